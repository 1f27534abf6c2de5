//! Origins: every environment has one of its own, so that a page inside it is a stranger to the console and to others.

use std::ops::RangeInclusive;

use podium_store::front_door::Addressed;

use crate::App;
use crate::error::Result;

/// Where the environments have origins of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environments {
    /// A host name each, below this domain.
    Domain(String),
    /// A port each, out of these.
    Ports(RangeInclusive<u16>),
}

/// The public URL, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicUrl<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Host and port.
    pub authority: &'a str,
    /// The host; an address of IPv6 in its brackets.
    pub host: &'a str,
    /// The port, with its colon; empty where it is not written.
    pub port: &'a str,
}

impl<'a> PublicUrl<'a> {
    /// Takes a URL apart.
    pub fn parse(url: &'a str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let authority = rest.split('/').next().unwrap_or_default();
        let after_address = authority.rfind(']').map_or(0, |at| at + 1);
        let colon = authority[after_address..].find(':').map_or(authority.len(), |at| after_address + at);
        let (host, port) = authority.split_at(colon);
        Self { scheme, authority, host, port }
    }

    /// Scheme and authority, as browsers name an origin.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Whether browsers reach it encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }
}

impl App {
    /// The public URL, taken apart.
    pub fn public_url(&self) -> PublicUrl<'_> {
        PublicUrl::parse(&self.config.public_url)
    }

    /// The origin of an environment; it gets a port where it needs one and has none.
    pub async fn environment_origin(&self, deployment: &Addressed) -> Result<String> {
        let PublicUrl { scheme, host, port, .. } = self.public_url();
        Ok(match &self.config.environments {
            Environments::Domain(domain) => format!("{scheme}://{}.{domain}{port}", deployment.namespace),
            Environments::Ports(_) => {
                format!("{scheme}://{host}:{}", self.environment_port(deployment.id).await?)
            }
        })
    }

    /// The namespace in a host name of an environment; `None` for a host that is none.
    pub fn namespace_in_host<'a>(&self, host: &'a str) -> Option<&'a str> {
        let Environments::Domain(domain) = &self.config.environments else { return None };
        let name = PublicUrl::parse(host).host;
        let at = name.len().checked_sub(domain.len() + 1)?;
        let (namespace, rest) = (name.get(..at)?, name.get(at..)?);
        let is_below = rest.starts_with('.') && rest[1..].eq_ignore_ascii_case(domain);
        is_below.then_some(namespace)
    }

    /// The deployment at a host name or a port of its own, or named by its namespace.
    pub async fn deployment_in(&self, namespace: &str) -> Result<Option<Addressed>> {
        let namespace = namespace.to_owned();
        self.db.read(None, move |conn| Ok(podium_store::front_door::by_namespace(conn, &namespace)?)).await
    }

    /// The deployment that a port belongs to.
    pub async fn deployment_on_port(&self, port: u16) -> Result<Option<Addressed>> {
        self.db.read(None, move |conn| Ok(podium_store::front_door::by_port(conn, port)?)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let table = [
            ("https://podium.example.com", ("https", "podium.example.com", "")),
            ("http://127.0.0.1:8080", ("http", "127.0.0.1", ":8080")),
            ("http://[::1]:8080/below", ("http", "[::1]", ":8080")),
            ("http://[::1]", ("http", "[::1]", "")),
        ];
        for (url, expected) in table {
            let parsed = PublicUrl::parse(url);
            assert_eq!((parsed.scheme, parsed.host, parsed.port), expected, "{url}");
        }
        assert_eq!(PublicUrl::parse("http://[::1]:8080/below").origin(), "http://[::1]:8080");
    }
}
