//! The program as people run it: real processes, real sockets, a real data directory.

#[cfg(target_os = "linux")]
mod airflow;
mod commands;
mod crashes;
mod loops;
mod program;
mod serving;
mod starting;
mod tls;
