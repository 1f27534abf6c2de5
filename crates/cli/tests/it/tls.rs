//! TLS connections that the program terminates itself.
//!
//! The certificate is for 127.0.0.1, signed by itself, and of no use elsewhere.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::loops::wait_until;
use crate::program::{Installation, Program, exchange, request};

pub(crate) fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name).to_str().unwrap().to_owned()
}

/// A client that believes this certificate.
pub(crate) fn client_config(certificate: &str) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[test]
fn connections_are_encrypted_if_there_is_a_certificate() {
    let installation = Installation::new();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let program = installation.serve(&["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(program.said().contains(&format!("Podium is ready at https://{}\n", program.address)));
    let config = client_config(&certificate);
    let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = StreamOwned::new(connection, program.connect());
    let token = installation.read("owner-token");
    let head = format!("Authorization: Bearer {token}\r\nConnection: close\r\n");
    let answer = exchange(stream, &request("GET", "/v1/users/self", &head, None));
    assert_eq!(answer.json()["username"], "owner@localhost");
}

/// Whether a server shows this certificate.
fn shows(program: &Program, certificate: &str) -> bool {
    let config = client_config(certificate);
    let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = program.connect();
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            return false;
        }
    }
    true
}

#[test]
fn a_certificate_that_changes_is_served_without_a_restart_and_a_broken_one_is_not() {
    let installation = Installation::new();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let put = |from: &str, to: &str| {
        std::fs::copy(file(from), at("draft")).unwrap();
        std::fs::rename(at("draft"), at(to)).unwrap();
    };
    put("certificate.pem", "cert");
    put("key.pem", "key");
    let program = installation.serve(&["--tls-cert", &at("cert"), "--tls-key", &at("key")]);
    let (old, new) = (file("certificate.pem"), file("other-certificate.pem"));
    assert!(shows(&program, &old) && !shows(&program, &new));
    put("other-certificate.pem", "cert");
    wait_until(
        "it says that they do not fit",
        || program.said(),
        |said| said.contains("keeping the previous one"),
    );
    assert!(shows(&program, &old), "a half of a pair changes nothing");
    put("other-key.pem", "key");
    wait_until("the new one is served", || shows(&program, &new), |is_so| *is_so);
    assert!(!shows(&program, &old));
    std::fs::write(at("cert"), "nonsense").unwrap();
    program.tell_to_stop("HUP");
    wait_until(
        "it says so again",
        || program.said(),
        |said| said.matches("keeping the previous one").count() >= 2,
    );
    assert!(shows(&program, &new));
    let before = program.said().matches("reloaded the TLS certificate").count();
    put("other-certificate.pem", "cert");
    program.tell_to_stop("HUP");
    wait_until(
        "on demand",
        || program.said(),
        |said| said.matches("reloaded the TLS certificate").count() > before,
    );
    program.stop();
    let plain = installation.serve(&[]);
    plain.tell_to_stop("HUP");
    wait_until("it lives on", || plain.said(), |said| said.contains("nothing to reload on SIGHUP"));
    plain.stop();
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
