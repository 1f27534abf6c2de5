//! Certificates: read at the start, and again when their files change or somebody asks for it.
//!
//! A new certificate that cannot be used changes nothing: the one before it is served on, and the log says why.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::signal::unix::Signal;
use tokio_rustls::TlsAcceptor;

use crate::settings::Tls;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// The certificate that is served.
#[derive(Clone)]
pub(crate) struct Certificate {
    files: Tls,
    current: Arc<RwLock<TlsAcceptor>>,
}

/// What tells whether a file has changed.
type Stamp = Option<(u64, u64, i64, i64)>;

impl Certificate {
    pub(crate) fn load(files: &Tls) -> Result<Self, String> {
        let current = Arc::new(RwLock::new(acceptor(files)?));
        Ok(Self { files: files.clone(), current })
    }

    /// What new connections are accepted with.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stamps(&self) -> [Stamp; 2] {
        [stamp(&self.files.certificate), stamp(&self.files.key)]
    }

    /// Reads the files again; where they cannot be used, what was read before stays.
    fn reload(&self) {
        match acceptor(&self.files) {
            Ok(new) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
                tracing::info!(certificate = %self.files.certificate.display(), "the TLS certificate was read again");
            }
            Err(error) => {
                tracing::error!(
                    error,
                    "the new TLS certificate cannot be used; the one before it is served on"
                );
            }
        }
    }
}

/// Reads certificates again when their files change, and on SIGHUP. Without TLS a SIGHUP does nothing.
pub(crate) async fn follow(mut asked: Signal, certificate: Option<Certificate>) {
    let Some(certificate) = certificate else {
        while asked.recv().await.is_some() {
            tracing::info!("nothing is read again on SIGHUP: there is no TLS certificate");
        }
        return;
    };
    let mut seen = certificate.stamps();
    loop {
        let is_asked = tokio::select! {
            _ = asked.recv() => true,
            () = tokio::time::sleep(LOOK) => false,
        };
        let now = certificate.stamps();
        if is_asked || now != seen {
            seen = now;
            certificate.reload();
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let file = std::fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let certificates =
        CertificateDer::pem_file_iter(&tls.certificate).and_then(Iterator::collect).map_err(|error| {
            format!("the TLS certificate {} cannot be read: {error}", tls.certificate.display())
        })?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| format!("the TLS key {} cannot be read: {error}", tls.key.display()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| format!("the TLS certificate and key cannot be used together: {error}"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
