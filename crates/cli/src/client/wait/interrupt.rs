//! Ctrl-C: it leaves a wait, and ends the program where nobody waits.
//!
//! Whoever handles the signal once handles it for good. So a thread of its own does, which also works while the program
//! asks a question and cannot do anything else.

use std::io::ErrorKind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// As a shell says it of a program that Ctrl-C has ended.
const INTERRUPTED: i32 = 130;

static IS_WAITING: AtomicBool = AtomicBool::new(false);
static PRESSED: Notify = Notify::const_new();
static LISTENS: OnceLock<Result<(), ErrorKind>> = OnceLock::new();

/// A wait that Ctrl-C ends.
pub(super) struct Interrupt;

/// Listens to Ctrl-C from now on.
pub(super) fn listen() -> std::io::Result<Interrupt> {
    (*LISTENS.get_or_init(start))?;
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

fn start() -> Result<(), ErrorKind> {
    let (ready, is_ready) = mpsc::channel();
    std::thread::spawn(move || {
        let begun = begin();
        let _ = ready.send(begun.as_ref().map(|_| ()).map_err(std::io::Error::kind));
        if let Ok((runtime, interrupts)) = begun {
            runtime.block_on(handle(interrupts));
        }
    });
    is_ready.recv().unwrap_or(Err(ErrorKind::BrokenPipe))
}

fn begin() -> std::io::Result<(Runtime, Signal)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let interrupts = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
    Ok((runtime, interrupts))
}

async fn handle(mut interrupts: Signal) {
    while interrupts.recv().await.is_some() {
        if !IS_WAITING.load(Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        PRESSED.notify_one();
    }
}
