//! The first start, the ones after it, and why a start is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::program::Installation;

/// What every start of these tests says.
const SIMULATED: &str = "Nothing real runs: deployments are simulated (--data-plane simulated).";

#[test]
fn the_first_start_says_where_the_token_is_and_never_the_token_itself() {
    let installation = Installation::new();
    let first = installation.serve(&["--log", "warn"]);
    let token = installation.read("owner-token");
    let path = installation.data_dir().join("owner-token");
    let url = format!("http://{}", first.address);
    let expected = format!(
        "The owner's token is kept in {}.\nTo use a browser, sign in at {url}/sign-in with that token, or as owner@localhost \
         with a password that `podium owner-password` sets.\n{SIMULATED}\nPodium is ready at {url}\n",
        path.display(),
    );
    assert_eq!(first.said(), expected);
    assert_eq!(first.get("/v1/users/self", &token).json()["username"], "owner@localhost");
    assert!(!first.stop().contains(&token));
    let second = installation.serve(&[]);
    assert_eq!(second.said(), format!("{SIMULATED}\nPodium is ready at http://{}\n", second.address));
    assert_eq!(installation.read("owner-token"), token);
    assert_eq!(second.get("/v1/users/self", &token).status, 200);
    assert!(!second.stop().contains(&token));
}

#[test]
fn secret_files_are_readable_by_their_owner_only() {
    let installation = Installation::new();
    installation.serve(&[]).stop();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let data_dir = installation.data_dir();
    let everything_is_private = || {
        // Others may pass, to environments of their own, and see nothing on the way.
        assert_eq!(mode(&data_dir), 0o711);
        let entries: Vec<_> =
            std::fs::read_dir(&data_dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        for name in ["secret-key", "owner-token", "podium.db", "logs", "objects"] {
            assert!(entries.iter().any(|path| path.ends_with(name)), "{name}");
        }
        for path in entries {
            assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
        }
    };
    everything_is_private();
    // What others could read is closed again.
    for open in [&data_dir, &data_dir.join("secret-key"), &data_dir.join("podium.db")] {
        std::fs::set_permissions(open, PermissionsExt::from_mode(0o755)).unwrap();
    }
    installation.serve(&[]).stop();
    everything_is_private();
}

#[test]
fn the_first_start_takes_names_from_its_settings() {
    let installation = Installation::new();
    let program = installation.serve(&["--organization-name", "Acme", "--owner-email", "ada@acme.test"]);
    let token = installation.read("owner-token");
    assert_eq!(program.get("/v1/users/self", &token).json()["username"], "ada@acme.test");
    assert_eq!(program.get("/v1/organizations", &token).json()["organizations"][0]["name"], "Acme");
}

#[test]
fn another_secret_key_is_refused() {
    let installation = Installation::new();
    installation.serve(&[]).stop();
    let key = installation.data_dir().join("secret-key");
    let right = std::fs::read(&key).unwrap();
    let expected = "podium: the secret key is not the one this database was created with: \
                    set PODIUM_SECRET_KEY, or restore the key file\n";
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    std::fs::write(&key, "another key, which is long enough to be one").unwrap();
    let refused = installation.run(&serve);
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(1), expected));
    std::fs::remove_file(&key).unwrap();
    assert_eq!(installation.run(&serve).stderr, expected);
    std::fs::write(&key, "short").unwrap();
    let refused = installation.run(&serve);
    assert_eq!(refused.code, Some(1));
    assert_eq!(
        refused.stderr,
        "podium: the secret key must be 32 bytes in base64, or at least 32 characters\n"
    );
    std::fs::write(&key, right).unwrap();
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    assert_eq!(program.get("/v1/users/self", &token).status, 200);
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let installation = Installation::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = installation.run(&["serve", "--listen", &address]);
    assert_eq!(refused.code, Some(1));
    let start = format!("podium: cannot listen on {address}: Address already in use");
    assert!(refused.stderr.starts_with(&start), "{}", refused.stderr);
    assert!(!installation.data_dir().exists(), "nothing was made");
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let database = installation.data_dir().join("podium.db");
    let expected =
        format!("podium: database unavailable: {} is in use by another process\n", database.display());
    for command in
        [&["serve", "--listen", "127.0.0.1:0"][..], &["ip-range", "reset"], &["signing-key", "rotate"]]
    {
        let refused = installation.run(command);
        assert_eq!((refused.code, refused.stderr.as_str()), (Some(1), expected.as_str()), "{command:?}");
    }
    let organization = program.organization(&token);
    let made =
        program.call("POST", &format!("{organization}/workspaces"), &token, Some(&json!({ "name": "Data" })));
    assert_eq!(made.status, 200);
}

#[test]
fn wrong_settings_are_explained() {
    let installation = Installation::new();
    for (arguments, expected) in [
        (&["--rate-limits", "25/10"][..], "reads/writes/deletes, such as 25/10/5"),
        (&["--tls-cert", "x.pem"], "--tls-key"),
        (&["--trusted-proxy", "everybody"], "invalid value 'everybody'"),
        (&["--log", "loud=very"], "--log: "),
        (&["--data-plane", "kubernetes"], "podium: the data plane `kubernetes` is not available yet"),
        (&["--data-plane", "cloud"], "[possible values: local, simulated, kubernetes]"),
        (
            &["--airflow-database", "mysql://db/x"],
            "podium: --airflow-database: expected `sqlite`, `private` or a URL",
        ),
        (
            &["--airflow-database", "sqlite", "--airflow-database-url", "postgres://db/x"],
            "the argument '--airflow-database <sqlite|private|URL>' cannot be used with '--airflow-database-url",
        ),
        (&["--lease", "2"], "2 is not in 3..=3600"),
        (&["--database-url", "postgres://podium@127.0.0.1:1/podium"], "PODIUM_SECRET_KEY"),
    ] {
        let refused = installation.run(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_ne!(refused.code, Some(0), "{arguments:?}");
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
        assert!(!installation.data_dir().join("podium.db").exists(), "nothing was made");
    }
}
