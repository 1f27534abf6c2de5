//! Encrypted connections to environments: each web server has authorities and a name of its own.

use std::sync::Arc;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use podium_dataplane::UpstreamTls;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::{connector, pooled};
use crate::body::RequestBody;

/// A client of one encrypted web server.
pub(super) type Encrypted = Client<HttpsConnector<HttpConnector>, RequestBody>;

/// Why a web server cannot be trusted or asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Untrusted {
    #[error("its authorities are not certificates: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("its certificates cannot be checked: {0}")]
    Certificate(#[from] rustls::Error),
    #[error("it has no authorities")]
    Nobody,
    #[error("its name is not one of a server: {0}")]
    Name(#[from] rustls::pki_types::InvalidDnsNameError),
}

/// A client that trusts the authorities of one web server, and no others.
pub(super) fn client(tls: &UpstreamTls) -> Result<Encrypted, Untrusted> {
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(tls.authorities.as_bytes()) {
        authorities.add(certificate?)?;
    }
    if authorities.is_empty() {
        return Err(Untrusted::Nobody);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(authorities)
        .with_no_client_auth();
    let name = ServerName::try_from(tls.server_name.clone())?;
    let mut tcp = connector();
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(name))
        .enable_http1()
        .wrap_connector(tcp);
    Ok(pooled(connector))
}
