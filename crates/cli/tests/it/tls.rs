//! Connections that are encrypted by the program itself.
//!
//! The certificate is for 127.0.0.1, signed by itself, and of no use elsewhere.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::program::{Installation, exchange, request};

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name).to_str().unwrap().to_owned()
}

#[test]
fn connections_are_encrypted_where_there_is_a_certificate() {
    let installation = Installation::new();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let program = installation.serve(&["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(program.said().contains(&format!("Podium is ready at https://{}\n", program.address)));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = StreamOwned::new(connection, program.connect());
    let token = installation.read("owner-token");
    let head = format!("Authorization: Bearer {token}\r\nConnection: close\r\n");
    let answer = exchange(stream, &request("GET", "/v1/users/self", &head, None));
    assert_eq!(answer.json()["username"], "owner@localhost");
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let installation = Installation::new();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    for (certificate, key, expected) in [
        ("missing.pem", key.as_str(), "the TLS certificate missing.pem cannot be read"),
        (&certificate, "missing.pem", "the TLS key missing.pem cannot be read"),
        (&key, &key, "the TLS certificate and key cannot be used together"),
    ] {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
        let refused = installation.run(&arguments);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
        assert!(!refused.stderr.contains("token"), "nothing was made: {}", refused.stderr);
    }
}
