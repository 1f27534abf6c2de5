//! Environments that are reached by a name, over encrypted connections.

use std::path::Path;
use std::sync::Arc;

use podium_dataplane::{Line, Secret, Upstream, UpstreamTls, WebServer};
use podium_testkit::{Engine, TestApp, run};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::{Behind, KEY};

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/tls").join(name)
}

/// Starts a listener that decrypts for an environment; returns its port.
async fn decrypt_for(behind: &Behind) -> u16 {
    let certificate = CertificateDer::from_pem_file(file("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, to) = (listener.local_addr().unwrap().port(), behind.environment.address);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut decrypted) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut decrypted, &mut plain).await;
            });
        }
    });
    port
}

fn put(app: &TestApp, behind: &Behind, port: u16, server_name: &str, authorities: &str) {
    let tls = UpstreamTls { server_name: server_name.into(), authorities: authorities.into() };
    let upstream = Upstream { host: "localhost".into(), port, tls: Some(tls) };
    let door = WebServer { upstream, line: Line::Three, key: Secret::new(KEY.into()) };
    app.plane.script().lock().web_servers.insert(behind.id, door);
}

#[test]
fn an_encrypted_environment_is_believed_by_its_certificate_only() {
    run(Engine::Sqlite, async |app| {
        let behind = Behind::new(&app).await;
        let port = decrypt_for(&behind).await;
        let authorities = std::fs::read_to_string(file("certificate.pem")).unwrap();
        let path = behind.at("/api/v2/dags");
        put(&app, &behind, port, "127.0.0.1", &authorities);
        behind.environment.send_headers(&[("location", &format!("https://localhost:{port}/airflow/here"))]);
        let answer = app.get(&app.owner, &path).await;
        assert_eq!((answer.code(), answer.header("location")), (200, "/airflow/here"));
        put(&app, &behind, port, "elsewhere.example", &authorities);
        assert!(app.get(&app.owner, &path).await.refused(502).contains("does not respond"));
        for nobody in ["", "not a certificate", "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----\n"]
        {
            put(&app, &behind, port, "127.0.0.1", nobody);
            let message = app.get(&app.owner, &path).await.refused(502);
            assert!(message.contains("cannot be encrypted"), "{nobody:?}: {message}");
        }
        put(&app, &behind, port, "127.0.0.1", &authorities);
        assert_eq!(app.get(&app.owner, &path).await.code(), 200);
    });
}
