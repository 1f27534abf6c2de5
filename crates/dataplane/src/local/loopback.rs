//! The loopback addresses of servers that URLs name.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use podium_airflow::database_url;

/// The port of a URL whose host is this machine's loopback address; any URL with a host will do.
pub(super) fn loopback_port(url: &str, usual: u16) -> Option<u16> {
    loopback(url, usual).first().map(SocketAddr::port)
}

/// The loopback addresses of a URL's host. A name is resolved once.
pub(super) fn loopback(url: &str, usual: u16) -> Vec<SocketAddr> {
    let Some((named, port)) = database_url::address(url) else { return Vec::new() };
    let port = port.unwrap_or(usual);
    let mut found: Vec<SocketAddr> = match named.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        // Clients that try IPv6 first are refused there and fall back.
        Err(_) if named.eq_ignore_ascii_case("localhost") => vec![(Ipv4Addr::LOCALHOST, port).into()],
        Err(_) => (named, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
    };
    found.retain(|address| address.ip().is_loopback());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_server_on_loopback_is_recognised() {
        let port = |url: &str| loopback_port(url, 5432);
        assert_eq!(port("postgres://a:b@127.0.0.1:5433/postgres"), Some(5433));
        assert_eq!(port("postgres://a@localhost/postgres?sslmode=disable"), Some(5432));
        assert_eq!(port("postgres://a@[::1]:5434/postgres"), Some(5434));
        assert_eq!(port("postgres:///postgres?host=127.0.0.1&port=5435"), Some(5435));
        assert_eq!(port("redis://:pw@127.0.0.1"), Some(5432));
        for elsewhere in
            ["postgres://a@db.example.com/p", "postgres:///p?host=/run/postgresql", "redis://10.0.0.1:6379/0"]
        {
            assert_eq!(port(elsewhere), None, "{elsewhere}");
        }
    }
}
