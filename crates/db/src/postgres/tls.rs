//! TLS, with the usual meaning of `sslmode`.
//!
//! | `sslmode`                  | encrypted            | certificate checked                                  |
//! |----------------------------|----------------------|------------------------------------------------------|
//! | `disable`                  | no                   |                                                      |
//! | `prefer` (if none is given)| if the server can    | no                                                   |
//! | `require`                  | yes                  | only with `sslrootcert`                              |
//! | `verify-ca`, `verify-full` | yes                  | name and issuer: `sslrootcert`, or the system's list |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::{Error, Result};

/// Where distributions keep the certificates that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Which certificates to trust.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Anyone,
    Issuers(PathBuf),
}

impl Policy {
    /// Removes the parameters that the driver does not support from a URL.
    pub(super) fn split(url: &str) -> Result<(String, Self)> {
        let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), Self::Anyone)) };
        let mut kept = Vec::new();
        let mut verify = false;
        let mut issuers = None;
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslrootcert", "system")) => verify = true,
                Some(("sslrootcert", path)) => {
                    let path = percent_decode_str(path).decode_utf8_lossy();
                    issuers = Some(PathBuf::from(path.into_owned()));
                }
                Some(("sslmode", "verify-ca" | "verify-full")) => {
                    verify = true;
                    kept.push("sslmode=require");
                }
                _ => kept.push(pair),
            }
        }
        if verify && issuers.is_none() {
            let system = SYSTEM.iter().map(PathBuf::from).find(|path| path.exists());
            issuers = Some(system.ok_or_else(|| {
                Error::other(
                    "this system has no trusted certificates: add sslrootcert=<file> to the database URL",
                )
            })?);
        }
        let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
        Ok((url, issuers.map_or(Self::Anyone, Self::Issuers)))
    }

    /// The client side of the handshake; no global state is read or set.
    pub(super) fn client(&self) -> Result<ClientConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(Error::other)?;
        let mut config = match self {
            Self::Anyone => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            }
            Self::Issuers(path) => builder.with_root_certificates(read(path)?),
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(config)
    }
}

fn read(path: &Path) -> Result<RootCertStore> {
    let unreadable =
        |error| Error::Other(format!("cannot read certificates from {}: {error}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        roots.add_parsable_certificates([certificate.map_err(unreadable)?]);
    }
    if roots.is_empty() {
        return Err(Error::Other(format!("{} contains no certificate", path.display())));
    }
    Ok(roots)
}

/// Encrypts without verifying the server, as `prefer` and `require` do.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_unknown_to_the_driver_are_removed() {
        let split = |url| Policy::split(url).unwrap();
        assert_eq!(split("postgres://h/d"), ("postgres://h/d".to_owned(), Policy::Anyone));
        assert_eq!(
            split("postgres://h/d?sslmode=require&connect_timeout=3"),
            ("postgres://h/d?sslmode=require&connect_timeout=3".to_owned(), Policy::Anyone)
        );
        assert_eq!(
            split("postgres://h/d?sslrootcert=%2Fca.pem&sslmode=verify-full"),
            ("postgres://h/d?sslmode=require".to_owned(), Policy::Issuers("/ca.pem".into()))
        );
        assert_eq!(
            split("postgres://h/d?sslrootcert=/my%20ca%2Epem").1,
            Policy::Issuers("/my ca.pem".into()),
            "whatever is escaped"
        );
        assert!(Policy::Anyone.client().is_ok());
        assert!(Policy::Issuers("/nowhere".into()).client().is_err());
    }
}
