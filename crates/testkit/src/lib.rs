//! The test kit: an application in process, actors to call it, a clock that tests control, both database engines.
//!
//! A test is written once and runs on SQLite and PostgreSQL ([`on_both_engines!`]). Time and ids are fixed, so a
//! snapshot is literal. PostgreSQL is a private server that `cargo xtask test` starts; every test has a database of
//! its own there.

#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "tests look at what is stored")]

mod actors;
mod answer;
mod app;
mod archives;
mod browser;
mod clusters;
mod databases;
mod deployments;
mod inbox;
mod interference;
mod receiver;
mod resources;
mod snapshots;
mod templates;
mod webhooks;

use std::pin::Pin;

pub use actors::Actor;
pub use answer::Answer;
pub use app::{Call, START, StreamingResponse, TestApp};
pub use archives::{archive, gzip, tar};
pub use browser::{Browser, DriverError, missing as missing_for_browser};
pub use databases::{Database, Engine, mark_node_unseen};
pub use inbox::Inbox;
pub use podium_domain::deployments::rollout::RolloutStep;
pub use receiver::{Received, Receiver};
pub use resources::role;

/// The body of a test, of an erased type: a runtime compiles every future that it blocks on three times.
type Test = Box<dyn FnOnce(TestApp) -> Pin<Box<dyn Future<Output = ()>>>>;

/// Runs a test body on one engine.
pub fn run<F: Future<Output = ()> + 'static>(engine: Engine, test: impl FnOnce(TestApp) -> F + 'static) {
    run_on(engine, Box::new(|app| Box::pin(test(app))));
}

fn run_on(engine: Engine, test: Test) {
    block_on(async move { test(TestApp::start(engine).await).await });
}

/// Runs an asynchronous test that starts its own application.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Declares tests that run on both engines, each against an application of its own.
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$attribute:meta])* async fn $name:ident($app:pat_param) $body:block)*) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn test($app: $crate::TestApp) $body

            #[test]
            fn sqlite() {
                $crate::run($crate::Engine::Sqlite, test);
            }

            #[test]
            fn postgres() {
                $crate::run($crate::Engine::Postgres, test);
            }
        }
    )*};
}

/// Declares tests of what no engine can change, such as how requests are parsed and pages are rendered: they run on SQLite.
#[macro_export]
macro_rules! on_one_engine {
    ($($(#[$attribute:meta])* async fn $name:ident($app:pat_param) $body:block)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            async fn test($app: $crate::TestApp) $body
            $crate::run($crate::Engine::Sqlite, test);
        }
    )*};
}
