//! HTTP: endpoints bound to functions, requests decoded, responses and errors written, connections limited.
//!
//! The only crate that names the HTTP library. It decides nothing: `podium-app` and `podium-domain` decide who may
//! call, and every limit here protects the process, not the product.

mod admission;
mod agents;
mod assets;
mod bind;
mod body;
mod checks;
mod compress;
mod connections;
mod cors;
mod credential;
mod errors;
mod events;
mod front_door;
mod in_process;
mod incoming;
mod lines;
mod metrics;
mod operator;
mod outgoing;
mod pace;
mod pages;
mod peer;
mod planes;
mod ports;
mod respond;
mod response_cache;
mod routes;
mod serve;
mod server;
mod settings;
mod tls;
mod uploads;

pub use body::Body;
pub use operator::{OperatorGate, serve_operator};
pub use serve::{ServeError, Serving, check, serve};
pub use server::Server;
pub use settings::{Settings, Tls, Waiting};
pub use tls::TlsError;
