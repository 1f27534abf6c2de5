//! Origins: every environment has its own, so that a page inside it is cross-origin to the console and to other
//! environments.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use podium_api::DeploymentId;
use podium_store::front_door::{DeploymentRef, DeploymentSummary};
use url::{Position, Url};

use super::db;
use super::system;
use crate::App;
use crate::error::{Error, Result};

/// Where environments are for a console on this machine.
const OTHER_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The same where the console has that one.
const NEXT_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environments {
    /// A host name each, below this domain.
    Domain(String),
    /// A port each, out of these.
    Ports(RangeInclusive<u16>),
}

/// The URL of the console, in the form that browsers use: host names in lower case,
/// and without the scheme's default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(Url);

impl PublicUrl {
    pub fn parse(url: &str) -> Result<Self> {
        let parsed = Url::parse(url).ok().filter(|parsed| matches!(parsed.scheme(), "http" | "https"));
        let wrong =
            || format!("the public URL must be a URL such as https://podium.example.com; it is `{url}`");
        parsed.map(Self).ok_or_else(|| Error::Internal(wrong()))
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    pub fn authority(&self) -> &str {
        &self.0[Position::BeforeHost..Position::AfterPort]
    }

    /// The host; an address of IPv6 in its brackets.
    pub fn host(&self) -> &str {
        &self.0[Position::BeforeHost..Position::AfterHost]
    }

    /// The port, with its colon; empty where it is not written.
    pub fn port(&self) -> &str {
        &self.0[Position::AfterHost..Position::AfterPort]
    }

    /// Scheme and authority, as browsers name an origin.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme(), self.authority())
    }

    /// The address of this machine that it names, if it names one of its own.
    fn loopback(&self) -> Option<IpAddr> {
        if self.host().eq_ignore_ascii_case("localhost") {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        let address: IpAddr = self.host().trim_matches(['[', ']']).parse().ok()?;
        Some(address.to_canonical()).filter(IpAddr::is_loopback)
    }

    /// The host of environments that have ports. Cookies know no ports, so on this machine they are on another of its
    /// addresses: browsers then take their pages for another site's, and keep the cookies of the two apart.
    pub fn environments_host(&self) -> Cow<'_, str> {
        match self.loopback() {
            // Elsewhere a machine has one such address, unless somebody configures more.
            Some(address) if cfg!(target_os = "linux") => {
                let taken = address == IpAddr::from(OTHER_ADDRESS);
                Cow::Owned(if taken { NEXT_ADDRESS } else { OTHER_ADDRESS }.to_string())
            }
            _ => Cow::Borrowed(self.host()),
        }
    }

    /// Whether traffic between a browser and this server is private.
    pub fn is_private(&self) -> bool {
        self.is_encrypted() || self.loopback().is_some()
    }

    pub fn is_encrypted(&self) -> bool {
        self.scheme() == "https"
    }
}

impl App {
    pub fn public_url(&self) -> &PublicUrl {
        &self.public_url
    }

    /// The origin of an environment; it gets a port where it needs one and has none.
    pub async fn environment_origin(&self, id: DeploymentId, namespace: &str) -> Result<String> {
        let (scheme, port) = (self.public_url().scheme(), self.public_url().port());
        Ok(match &self.config.environments {
            Environments::Domain(domain) => format!("{scheme}://{namespace}.{domain}{port}"),
            Environments::Ports(_) => self.origin_on_port(self.environment_port(id).await?),
        })
    }

    pub fn origin_on_port(&self, port: u16) -> String {
        let url = self.public_url();
        format!("{}://{}:{port}", url.scheme(), url.environments_host())
    }

    /// The address that the ports of environments are listened on; `listens` is the console's.
    pub fn environments_address(&self, listens: IpAddr) -> IpAddr {
        if !listens.to_canonical().is_loopback() {
            return listens;
        }
        self.public_url().environments_host().parse().unwrap_or(listens)
    }

    /// Whether browsers may sign in here and hold cookies.
    pub fn lets_browsers_sign_in(&self) -> bool {
        self.config.allow_insecure_sign_in || self.public_url().is_private()
    }

    /// The namespace in a host name of an environment, which a port may follow; `None` for a host that is none. It is
    /// split here and by no library: what is no plain name, such as one with a user before it, must not become one.
    pub fn namespace_in_host<'a>(&self, host: &'a str) -> Option<&'a str> {
        let Environments::Domain(domain) = &self.config.environments else { return None };
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        let at = name.len().checked_sub(domain.len() + 1)?;
        let (namespace, rest) = (name.get(..at)?, name.get(at..)?);
        let is_below = rest.starts_with('.') && rest[1..].eq_ignore_ascii_case(domain);
        is_below.then_some(namespace)
    }

    /// The deployment at a host name or a port of its own, or named by its namespace.
    pub async fn deployment_in(&self, namespace: &str) -> Result<Option<DeploymentRef>> {
        let (system, namespace) = (system(self), namespace.to_owned());
        db(self)
            .read(None, move |conn| Ok(podium_store::front_door::by_namespace(conn, &system, &namespace)?))
            .await
    }

    /// A deployment with what its page shows; whoever looks is admitted first.
    pub async fn deployment_summary(&self, id: DeploymentId) -> Result<Option<DeploymentSummary>> {
        let system = system(self);
        db(self).read(None, move |conn| Ok(podium_store::front_door::summary(conn, &system, id)?)).await
    }

    pub async fn deployment_on_port(&self, port: u16) -> Result<Option<DeploymentRef>> {
        let system = system(self);
        db(self).read(None, move |conn| Ok(podium_store::front_door::by_port(conn, &system, port)?)).await
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
            ("https://Podium.example.com:443", ("https", "podium.example.com", "")),
        ];
        for (url, expected) in table {
            let parsed = PublicUrl::parse(url).unwrap();
            assert_eq!((parsed.scheme(), parsed.host(), parsed.port()), expected, "{url}");
        }
        assert_eq!(PublicUrl::parse("http://[::1]:8080/below").unwrap().origin(), "http://[::1]:8080");
        for wrong in ["", "podium.example.com", "ftp://podium.example.com", "https://"] {
            assert!(PublicUrl::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn on_this_machine_environments_are_at_another_address_than_the_console() {
        let table = [
            ("http://127.0.0.1:8080", "127.0.0.2", true),
            ("http://localhost:8080", "127.0.0.2", true),
            ("http://LOCALHOST", "127.0.0.2", true),
            ("http://127.0.0.2:8080", "127.0.0.3", true),
            ("https://127.8.8.8", "127.0.0.2", true),
            ("http://[::1]:8080", "127.0.0.2", true),
            ("http://[::ffff:127.0.0.2]:8080", "127.0.0.3", true),
            ("https://podium.example.com", "podium.example.com", true),
            ("http://podium.example.com:8080", "podium.example.com", false),
            ("http://192.0.2.1:8080", "192.0.2.1", false),
            ("http://0.0.0.0:8080", "0.0.0.0", false),
            ("http://localhost.example.com", "localhost.example.com", false),
            ("http://[2001:db8::1]:8080", "[2001:db8::1]", false),
        ];
        for (url, host, is_private) in table {
            let url = PublicUrl::parse(url).unwrap();
            assert_eq!((&*url.environments_host(), url.is_private()), (host, is_private), "{url:?}");
        }
    }
}
