//! URLs of a PostgreSQL server: the administrator's as it is given, and what environments are told after it.

use std::path::PathBuf;

use crate::Hidden;

/// What of the administrator's URL is nobody else's.
const ADMINS: &[&str] = &["dbname", "passfile", "password", "service", "servicefile", "sslpassword", "user"];

/// The parts of a URL.
struct Parts<'a> {
    user: &'a str,
    host: &'a str,
    query: Vec<&'a str>,
}

fn parts(url: &str) -> Parts<'_> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    Parts { user, host, query: query.split('&').filter(|pair| !pair.is_empty()).collect() }
}

fn with_query(url: String, query: &[&str]) -> String {
    if query.is_empty() { url } else { format!("{url}?{}", query.join("&")) }
}

/// The database of an environment on the server of an administrator, as Airflow is told.
pub(super) fn of_environment(admin: &Hidden, name: &str, password: &Hidden) -> String {
    let Parts { host, query, .. } = parts(admin.reveal());
    let is_shared = |pair: &&str| !ADMINS.contains(&pair.split('=').next().unwrap_or_default());
    let query: Vec<&str> = query.into_iter().filter(is_shared).collect();
    with_query(format!("postgresql+psycopg2://{name}:{}@{host}/{name}", password.reveal()), &query)
}

/// Another database of the same server, for its administrator.
pub(super) fn of_database(admin: &Hidden, name: &str) -> String {
    let Parts { user, host, query } = parts(admin.reveal());
    let at = if user.is_empty() { String::new() } else { format!("{user}@") };
    let query: Vec<&str> = query.into_iter().filter(|pair| !pair.starts_with("dbname=")).collect();
    with_query(format!("postgresql://{at}{host}/{name}"), &query)
}

/// The directory of the socket that a URL leads to, where it leads to one.
pub(super) fn socket_directory(url: &str) -> Option<PathBuf> {
    let Parts { host, query, .. } = parts(url);
    let named = query.iter().find_map(|pair| pair.strip_prefix("host=")).unwrap_or(host);
    Some(PathBuf::from(decoded(named))).filter(|path| path.is_absolute())
}

/// The port of a server that a URL finds on this machine's loopback, where it does; any URL with a host will do.
pub(super) fn loopback_port(url: &str, usual: u16) -> Option<u16> {
    let Parts { host, query, .. } = parts(url);
    let member = |name: &str| query.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let (named, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':')),
        None => host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let named = member("hostaddr").or(member("host")).unwrap_or(named);
    let is_here = named.eq_ignore_ascii_case("localhost")
        || named.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let port = member("port").or(port).filter(|port| !port.is_empty());
    is_here.then(|| port.map_or(Some(usual), |port| port.parse().ok())).flatten()
}

/// A URL as it may stand on a command line, and the password that may not.
pub(super) fn without_password(url: &str) -> (String, Option<Hidden>) {
    let is_password = |pair: &&str| pair.starts_with("password=");
    let Parts { user, host, query } = parts(url);
    let (name, password) =
        user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
    let password = password.or(query.iter().find_map(|pair| pair.strip_prefix("password=")));
    let at = if name.is_empty() { String::new() } else { format!("{name}@") };
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest).split('?').next().unwrap_or_default();
    let path = rest.split_once('/').map(|(_, path)| path).unwrap_or_default();
    let query: Vec<&str> = query.iter().copied().filter(|pair| !is_password(pair)).collect();
    let plain = with_query(format!("postgresql://{at}{host}/{path}"), &query);
    (plain, password.map(|password| Hidden::new(decoded(password))))
}

/// Text without percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the asynchronous driver is told, where it does not follow from a URL: it names the mode of TLS otherwise, and
/// knows no other parameter of the connection.
pub(super) fn asynchronous(url: &str) -> Option<String> {
    let Parts { query, .. } = parts(url);
    if !query.iter().any(|pair| pair.starts_with("ssl")) {
        return None;
    }
    let known = |pair: &&str| match pair.split_once('=')? {
        ("sslmode", mode) => Some(format!("ssl={mode}")),
        ("host" | "port", _) => Some((*pair).to_owned()),
        _ => None,
    };
    let known: Vec<String> = query.iter().filter_map(known).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let base = url.split('?').next().unwrap_or_default();
    Some(with_query(base.replacen("+psycopg2", "+asyncpg", 1), &known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> Hidden {
        Hidden::new(text.into())
    }

    #[test]
    fn a_server_on_loopback_is_known_by_its_port() {
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

    #[test]
    fn an_environment_is_told_the_host_and_how_to_reach_it_and_nothing_of_the_administrator() {
        let told = |admin: &str| of_environment(&hidden(admin), "podium_x", &hidden("pw"));
        let table = [
            ("postgres://admin:secret@db:5433/postgres", "db:5433/podium_x"),
            ("postgresql://db/postgres", "db/podium_x"),
            (
                "postgres://a@db/p?sslmode=verify-full&sslrootcert=/ca.pem",
                "db/podium_x?sslmode=verify-full&sslrootcert=/ca.pem",
            ),
            ("postgres:///p?host=/run/pg&user=admin&password=secret", "/podium_x?host=/run/pg"),
            ("postgres://a:b%40c@db?sslmode=require", "db/podium_x?sslmode=require"),
        ];
        for (admin, expected) in table {
            assert_eq!(told(admin), format!("postgresql+psycopg2://podium_x:pw@{expected}"), "{admin}");
        }
    }

    #[test]
    fn a_socket_is_known_wherever_the_url_names_it() {
        let at = |url: &str| socket_directory(url).map(|path| path.display().to_string());
        assert_eq!(at("postgres:///p?host=/run/pg").as_deref(), Some("/run/pg"));
        assert_eq!(at("postgres://admin@%2Ftmp/p").as_deref(), Some("/tmp"));
        assert_eq!(at("postgres://admin@db.example.com/p"), None);
    }

    #[test]
    fn another_database_is_reached_the_same_way() {
        let table = [
            (
                "postgres://admin:secret@db:5433/postgres?sslmode=verify-full",
                "postgresql://admin:secret@db:5433/t?sslmode=verify-full",
            ),
            ("postgresql://db", "postgresql://db/t"),
            ("postgresql://podium:pw@/postgres?host=/run/x", "postgresql://podium:pw@/t?host=/run/x"),
        ];
        for (admin, expected) in table {
            assert_eq!(of_database(&hidden(admin), "t"), expected);
        }
    }

    #[test]
    fn a_password_is_kept_apart() {
        let table = [
            (
                "postgres://a:b%40c@db:1/x?sslmode=require",
                "postgresql://a@db:1/x?sslmode=require",
                Some("b@c"),
            ),
            (
                "postgres:///x?host=/run/pg&password=p&user=a",
                "postgresql:///x?host=/run/pg&user=a",
                Some("p"),
            ),
            ("postgresql://a@db", "postgresql://a@db/", None),
            ("postgresql://podium:pw@/x?host=/run/y", "postgresql://podium@/x?host=/run/y", Some("pw")),
        ];
        for (url, expected, password) in table {
            let (plain, found) = without_password(url);
            assert_eq!((plain.as_str(), found.as_ref().map(Hidden::reveal)), (expected, password), "{url}");
        }
    }

    #[test]
    fn the_asynchronous_driver_has_other_words_for_tls() {
        assert_eq!(asynchronous("postgresql+psycopg2://x:pw@db/x"), None);
        assert_eq!(asynchronous("postgresql+psycopg2://x:pw@/x?host=/run/pg"), None);
        assert_eq!(asynchronous("sqlite:////x"), None);
        assert_eq!(
            asynchronous("postgresql+psycopg2://x:pw@db/x?sslmode=verify-full&sslrootcert=/ca.pem")
                .as_deref(),
            Some("postgresql+asyncpg://x:pw@db/x?ssl=verify-full")
        );
    }
}
