//! What the benchmark compares with: a web framework's plainest handler, which answers every request with the bytes
//! of a file. Usage: `bare PORT FILE`.

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, file] = arguments.as_slice() else { return Err("usage: bare PORT FILE".into()) };
    let answer = Bytes::from(std::fs::read(file)?);
    // The body of a request is read, as any handler that creates something would.
    let handler = move |_: Bytes| async move { ([(CONTENT_TYPE, "application/json")], answer) };
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, Router::new().fallback(handler)).await?;
    Ok(())
}
