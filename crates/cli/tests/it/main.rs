//! The program as people run it: real processes, real sockets, a real data directory.

#[cfg(target_os = "linux")]
mod airflow;
mod attacks;
#[cfg(target_os = "linux")]
mod backups;
mod client;
mod commands;
#[cfg(target_os = "linux")]
mod confining;
mod crashes;
mod documents;
mod loops;
mod nodes;
mod operating;
mod program;
mod serving;
mod starting;
#[cfg(target_os = "linux")]
mod terminals;
mod tls;
mod units;
mod webhooks;
