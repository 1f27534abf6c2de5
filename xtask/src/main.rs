//! The developer's commands: `cargo xtask test`, `contract`, `tidy`, `bench`, `crash`, `attack` and `mutate`.
//!
//! They are a program of the workspace, so that a machine with Rust can run them with nothing else prepared. It is
//! the first thing built, so it depends on almost nothing.

#![expect(clippy::print_stdout, reason = "a command line program talks to a person")]

mod airflow;
mod attack;
mod auth_types;
mod bench;
mod console;
mod contract;
mod crash;
mod mutate;
mod outcome;
mod postgres;
mod probe;
mod processes;
mod python;
mod schemathesis;
mod server_process;
mod system;
mod test;
mod tidy;
mod webhooks;
mod workspace;

use std::process::ExitCode;

use outcome::Outcome;

const HELP: &str = "\
Usage: cargo xtask <command>

  test [--quick] [filter…]   everything that must hold: formatting, tidy, clippy, the contract, all tests on SQLite
                             and PostgreSQL, the console in a browser, Apache Airflow for real, and Schemathesis and a receiver of
                             webhooks against the served program. --quick leaves out clippy and these.
                             With a filter: only the tests that match it. Arguments go to `cargo nextest run`.
  contract [--check]         write the generated files in contract/; with --check only compare them
  snapshot                   write a database of the newest schema with rows in every table, for the tests of upgrades
  auth-types                 write the catalogue of connection types anew, from the provider packages on PyPI
  tidy                       the rules that no compiler checks: arrows between crates, names, sizes, links
  schemathesis               only that part of the tests
  webhooks                   only that part of the tests: events received with the published library
  console                    only that part of the tests: the web console in a browser
  screenshots                make pictures of every page of the console, wide and narrow, light and dark
  airflow                    only that part of the tests: Apache Airflow for real, from nothing to nothing
  airflow --all-runtimes [VERSION…]
                             start every runtime that is offered, or these, run a DAG in it and open it
  airflow --rounds [COUNT]   100 updates while tasks run, and 50 deploys that are run as soon as they are live
  bench [--fresh]            the release program against a bare handler, as ratios; with --fresh only reads during commits,
        [--creates]          with --creates only durable creates, with --deployments only that part, with --million also
        [--deployments]      the start on a database of a million rows
        [--million]
  bench --instructions       instructions of the same reads, counted by callgrind: comparable on a busy machine
  bench --events             creates with and without storing events and operations, and a thousand followers
  bench --console            every page of the console with ten thousand deployments and a million audit records: its time
                             and its size
  bench --cli [--debug]      the command line: how long it takes to start, and how much memory a list of ten thousand needs;
                             with --debug of the build for developers
  bench --postgres           the release program on a PostgreSQL server that is started for it, on the same cores: rates, and
                             the processor time of both
  bench --logs [--lines 10000000] [--against PATH FLAGS…]
                             the log store on its own: ingest, size, memory and searches against ripgrep; and against
                             another log database that is started with these flags, DIR and PORT in them filled in
  crash [--rounds 50] [--callers 500]
                             kill the served program at random moments while callers create, deploy to and delete
                             deployments, on both engines, and check what is left
  attack                     known attacks at full strength: forged tokens, smuggled requests, floods of
                             connections, hostile authors. On loopback only; the tests run each in small
  mutate [--quick] [PATH…]   break rules on purpose, one at a time: the tests must notice each; with --quick only those
                             of the domain, all at once; with parts of paths only those in such files
  help                       this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nxtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["test", options @ ..] => test::run(options),
        ["contract"] => contract::write(),
        ["contract", "--check"] => contract::check(),
        ["snapshot"] => contract::write_snapshot(),
        ["auth-types"] => auth_types::write(),
        ["tidy"] => tidy::run(),
        ["bench"] => bench::run(bench::What::All),
        ["bench", "--fresh"] => bench::run(bench::What::Fresh),
        ["bench", "--instructions"] => bench::run(bench::What::Instructions),
        ["bench", "--creates"] => bench::run(bench::What::Creates),
        ["bench", "--console"] => console::bench(),
        ["bench", "--cli", options @ ..] => bench::cli::run(options),
        ["bench", "--events"] => bench::run(bench::What::Events),
        ["bench", "--postgres"] => bench::postgres::run(),
        ["bench", "--deployments"] => bench::run(bench::What::Deployments),
        ["bench", "--logs", options @ ..] => bench::logs::run(options),
        ["bench", "--million"] => bench::run(bench::What::Million),
        ["crash", options @ ..] => crash::run(options),
        ["attack"] => attack::run(),
        ["mutate", "--quick"] => mutate::quick(),
        ["mutate", only @ ..] => mutate::run(only),
        ["schemathesis"] => schemathesis::alone(),
        ["webhooks"] => webhooks::alone(),
        ["console"] => console::run().map(drop),
        ["screenshots"] => console::screenshots(),
        ["airflow"] => airflow::run().map(drop),
        ["airflow", "--rounds", count @ ..] => airflow::rounds(count).map(drop),
        ["airflow", "--all-runtimes", only @ ..] => airflow::all_runtimes(only).map(drop),
        [] | ["help" | "--help" | "-h", ..] => {
            print!("{HELP}");
            Ok(())
        }
        unknown => Err(format!("unknown command `{}`; `cargo xtask help` lists them", unknown.join(" "))),
    }
}
