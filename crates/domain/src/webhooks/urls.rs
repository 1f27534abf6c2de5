//! The URL of a webhook.

use std::net::{IpAddr, Ipv4Addr};

use podium_api::FieldError;
use url::Url;

use super::addresses::{Destinations, Scheme};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address, which is known now.
    Address(IpAddr),
    /// A name, which is looked up for each connection.
    Name(String),
}

/// What decides whether a request may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAndScheme {
    pub scheme: Scheme,
    pub host: Host,
}

impl HostAndScheme {
    /// Of a URL; `None` if events cannot be sent to such a URL at all.
    pub fn of(url: &Url) -> Option<Self> {
        let scheme = match url.scheme() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            _ => return None,
        };
        let host = match url.host()? {
            url::Host::Ipv4(address) => Host::Address(address.into()),
            url::Host::Ipv6(address) => Host::Address(address.into()),
            url::Host::Domain(name) => Host::Name(name.to_owned()),
        };
        Some(Self { scheme, host })
    }
}

/// Checks a URL that a caller gives, as far as that is possible without a look-up; returns it as it is stored.
pub fn url(field: &str, text: &str, destinations: &Destinations) -> Result<String, FieldError> {
    let wrong = |code, message: &str| Err(FieldError::new(field, code, message));
    let text = text.trim();
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) || podium_api::text::hidden(text).is_some() {
        return wrong("format", "must not contain spaces or invisible characters");
    }
    let parsed = Url::parse(text).ok();
    let Some((parsed, to)) = parsed.and_then(|url| HostAndScheme::of(&url).map(|to| (url, to))) else {
        return wrong("format", "must be a URL such as https://hooks.example.com/podium");
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return wrong("format", "must not contain a user or a password: requests are signed instead");
    }
    if parsed.fragment().is_some() {
        return wrong("format", "must not have a fragment (#…)");
    }
    if to.scheme == Scheme::Http && !destinations.has_allowed() {
        return wrong("format", "must begin with https://");
    }
    if !parsed.port_or_known_default().is_some_and(|port| matches!(port, 80 | 443 | 1024..)) {
        return wrong("format", "must have port 80, 443, or one above 1023");
    }
    let address = match to.host {
        Host::Address(address) => Some(address),
        Host::Name(name) if is_localhost(&name) => Some(Ipv4Addr::LOCALHOST.into()),
        Host::Name(_) => None,
    };
    if address.is_some_and(|address| !destinations.admit(to.scheme, address)) {
        return wrong("notAllowed", "must lead to a public address, or to a range that the operator allows");
    }
    Ok(parsed.into())
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(allowed: &[&str], text: &str) -> Result<String, String> {
        let allowed = allowed.iter().map(|range| range.parse().unwrap()).collect();
        url("url", text, &Destinations::new(allowed)).map_err(|error| error.code)
    }

    #[test]
    fn urls_lead_to_public_addresses_over_https() {
        for (text, kept) in [
            ("https://hooks.example.com/podium?key=1", "https://hooks.example.com/podium?key=1"),
            (" https://Hooks.Example.com ", "https://hooks.example.com/"),
            ("https://8.8.8.8:8443/a", "https://8.8.8.8:8443/a"),
            ("https://hooks.example.com:80/", "https://hooks.example.com:80/"),
        ] {
            assert_eq!(checked(&[], text).as_deref(), Ok(kept), "{text}");
        }
        let wrong = "hooks.example.com //hooks.example.com ftp://hooks.example.com file:///etc/passwd \
            javascript:alert(1) https:// http://hooks.example.com/ https://ada@hooks.example.com/ \
            https://ada:secret@hooks.example.com/ https://:secret@hooks.example.com/ https://hooks.example.com/#a \
            https://hooks.example.com:22/ https://hooks.example.com:0/ https://hooks.example.com:99999/ \
            https://hooks.exa\u{202e}mple.com/a";
        let spaced = ["", "https://hooks.example.com/a b", "https://hooks.example.com/\n"];
        for text in wrong.split(' ').chain(spaced) {
            let got = checked(&[], text);
            assert!(
                got.as_ref().is_err_and(|code| code == "format") || text.ends_with('\n'),
                "{text:?}: {got:?}"
            );
        }
        let inside = "https://127.0.0.1/ https://127.1/ https://0x7f000001/ https://2130706433/ https://[::1]/ \
            https://[::ffff:10.0.0.1]/ https://169.254.169.254/latest/meta-data https://localhost/ \
            https://LOCALHOST./ https://a.localhost:8080/ https://10.0.0.1/ https://0/";
        for text in inside.split(' ') {
            assert_eq!(checked(&[], text), Err("notAllowed".into()), "{text}");
        }
    }

    #[test]
    fn the_operator_can_allow_ranges_also_without_encryption() {
        let allowed = &["127.0.0.0/8"];
        assert!(checked(allowed, "http://127.0.0.1:9000/").is_ok());
        assert!(checked(allowed, "http://localhost:9000/").is_ok());
        assert!(checked(allowed, "https://localhost/").is_ok());
        // Where a name leads to is looked up for each connection.
        assert!(checked(allowed, "http://hooks.internal/").is_ok());
        assert_eq!(checked(allowed, "http://8.8.8.8/"), Err("notAllowed".into()));
        assert_eq!(checked(allowed, "http://10.0.0.1/"), Err("notAllowed".into()));
    }
}
