//! Ctrl-C: it leaves a wait, and ends the program where nobody waits.
//!
//! Whoever handles the signal once handles it for good. So a thread of its own does, which also works while the program
//! asks a question and cannot do anything else.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// As a shell says it of a program that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

static IS_WAITING: AtomicBool = AtomicBool::new(false);
static PRESSED: Notify = Notify::const_new();
static LISTENS: OnceLock<Result<(), String>> = OnceLock::new();

/// A wait that Ctrl-C ends.
pub(super) struct Interrupt;

/// Listens to Ctrl-C from now on.
pub(super) fn listen() -> std::io::Result<Interrupt> {
    LISTENS.get_or_init(start).clone().map_err(std::io::Error::other)?;
    IS_WAITING.store(true, Ordering::SeqCst);
    Ok(Interrupt)
}

impl Interrupt {
    /// Waits for Ctrl-C.
    pub(super) async fn pressed(&mut self) {
        PRESSED.notified().await;
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        IS_WAITING.store(false, Ordering::SeqCst);
    }
}

fn start() -> Result<(), String> {
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error.to_string()))),
        };
        runtime.block_on(async {
            let mut interrupts = match signal(SignalKind::interrupt()) {
                Ok(interrupts) => interrupts,
                Err(error) => return drop(ready.send(Err(error.to_string()))),
            };
            let _ = ready.send(Ok(()));
            while interrupts.recv().await.is_some() {
                if !IS_WAITING.load(Ordering::SeqCst) {
                    std::process::exit(INTERRUPTED);
                }
                PRESSED.notify_one();
            }
        });
    });
    is_ready.recv().unwrap_or_else(|_| Err("the thread for Ctrl-C has ended".into()))
}
