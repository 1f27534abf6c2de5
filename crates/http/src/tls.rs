//! TLS certificates: loaded at the start, and reloaded when their files change or on SIGHUP.
//!
//! A new certificate that cannot be used has no effect: the previous one stays in use, and the reason is logged.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::signal::unix::Signal;
use tokio_rustls::TlsAcceptor;

use crate::settings::Tls;

/// How often the files are checked.
const LOOK: Duration = Duration::from_secs(2);

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the TLS certificate {} cannot be read: {error}", .path.display())]
    Certificate { path: PathBuf, error: pem::Error },
    /// Its key cannot be read.
    #[error("the TLS key {} cannot be read: {error}", .path.display())]
    Key { path: PathBuf, error: pem::Error },
    /// They do not go together.
    #[error("the TLS certificate and key cannot be used together: {0}")]
    Together(#[from] rustls::Error),
}

/// Does what waits for a disk on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[derive(Clone)]
pub(crate) struct Certificate {
    files: Tls,
    current: Arc<RwLock<TlsAcceptor>>,
}

/// What tells whether a file has changed.
type Stamp = Option<(u64, u64, i64, i64)>;

impl Certificate {
    pub(crate) fn load(files: &Tls) -> Result<Self, TlsError> {
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

    /// Reloads the files; if they cannot be used, the previous certificate stays.
    fn reload(&self) {
        match acceptor(&self.files) {
            Ok(new) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
                tracing::info!(certificate = %self.files.certificate.display(), "reloaded the TLS certificate");
            }
            Err(error) => {
                tracing::error!(
                    %error,
                    "the new TLS certificate cannot be used; keeping the previous one"
                );
            }
        }
    }
}

/// Reloads certificates when their files change, and on SIGHUP. Without TLS, SIGHUP does nothing.
pub(crate) async fn follow(mut asked: Signal, certificate: Option<Certificate>) {
    let Some(certificate) = certificate else {
        while asked.recv().await.is_some() {
            tracing::info!("nothing to reload on SIGHUP: no TLS certificate is configured");
        }
        return;
    };
    let stamps = || {
        let certificate = certificate.clone();
        blocking(move || certificate.stamps())
    };
    let mut seen = stamps().await;
    loop {
        let is_asked = tokio::select! {
            _ = asked.recv() => true,
            () = tokio::time::sleep(LOOK) => false,
        };
        let now = stamps().await;
        if is_asked || now != seen {
            seen = now;
            let certificate = certificate.clone();
            blocking(move || certificate.reload()).await;
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let file = std::fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let certificates = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| TlsError::Certificate { path: tls.certificate.clone(), error })?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| TlsError::Key { path: tls.key.clone(), error })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
