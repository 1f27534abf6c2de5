//! URLs of a PostgreSQL server: the administrator's as configured, and those derived from it for environments.

use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::Secret;

/// Parameters of the administrator's URL that are not passed on.
const ADMINS: &[&str] = &["dbname", "passfile", "password", "user"];
/// Parameters with the address of the server.
const PLACE: &[&str] = &["host", "port"];
/// Security parameters, which both drivers have to honour.
const SAFETY: &[&str] =
    &["sslcrl", "sslmode", "sslrootcert", "ssl_min_protocol_version", "target_session_attrs"];
/// Files among these.
const FILES: &[&str] = &["sslcrl", "sslrootcert"];
/// Parameters without effect on security, which only one of the drivers supports.
const COMFORT: &[&str] = &[
    "application_name",
    "connect_timeout",
    "fallback_application_name",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "tcp_user_timeout",
];
/// Credentials of the administrator, which environments would share.
const CREDENTIALS: &[&str] = &["sslcert", "sslkey", "sslpassword"];
const MODES: &[&str] = &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// Why a server URL cannot be used for the databases of environments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// A parameter that would be dropped silently.
    #[error(
        "not every component of Airflow supports its parameter `{0}`: remove it; the supported ones are {known}",
        known = [PLACE, SAFETY, ADMINS, COMFORT].concat().join(", ")
    )]
    Parameter(String),
    /// A certificate of the administrator's own.
    #[error(
        "its parameter `{0}` would give the administrator's certificate to every environment: use a password for the administrator"
    )]
    Credential(String),
    #[error("`sslmode={0}` is not one of {modes}", modes = MODES.join(", "))]
    Mode(String),
    /// No certificate to verify the server with.
    #[error("`sslmode={0}` needs `sslrootcert`: the absolute path of a file with the certificates to trust")]
    NoRoot(String),
    /// A relative path, which other programs would resolve differently.
    #[error("its parameter `{0}` is not the absolute path of a file")]
    NoPath(String),
    /// More than one server.
    #[error("it names several hosts: name one")]
    Hosts,
}

/// Refuses parameters that would be dropped silently for some component.
pub fn check(url: &str) -> Result<(), BadUrl> {
    let parts = parts(url);
    let value = |name: &str| parts.query.iter().find_map(|pair| value_of(pair, name));
    for name in parts.query.iter().map(|pair| pair.split('=').next().unwrap_or_default()) {
        if CREDENTIALS.contains(&name) {
            return Err(BadUrl::Credential(name.to_owned()));
        }
        if ![ADMINS, PLACE, SAFETY, COMFORT].iter().any(|known| known.contains(&name)) {
            return Err(BadUrl::Parameter(name.to_owned()));
        }
    }
    for name in FILES {
        // `system` is known to the newest drivers only.
        if value(name).is_some_and(|path| !Path::new(&path).is_absolute()) {
            return Err(BadUrl::NoPath((*name).to_owned()));
        }
    }
    if let Some(mode) = value("sslmode") {
        if !MODES.contains(&mode.as_str()) {
            return Err(BadUrl::Mode(mode));
        }
        if mode.starts_with("verify") && value("sslrootcert").is_none() {
            return Err(BadUrl::NoRoot(mode));
        }
    }
    let named = value("host").unwrap_or_else(|| decoded(parts.host));
    if named.contains(',') { Err(BadUrl::Hosts) } else { Ok(()) }
}

pub fn files(url: &str) -> Vec<PathBuf> {
    let parts = parts(url);
    let file = |name: &&str| parts.query.iter().find_map(|pair| value_of(pair, name)).map(PathBuf::from);
    FILES.iter().filter_map(file).collect()
}

fn value_of(pair: &str, name: &str) -> Option<String> {
    pair.strip_prefix(name)?.strip_prefix('=').map(decoded)
}

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

pub fn of_environment(admin: &Secret, name: &str, password: &Secret) -> String {
    let Parts { host, query, .. } = parts(admin.reveal());
    let is_shared = |pair: &&str| !ADMINS.contains(&pair.split('=').next().unwrap_or_default());
    let query: Vec<&str> = query.into_iter().filter(is_shared).collect();
    with_query(format!("postgresql+psycopg2://{name}:{}@{host}/{name}", password.reveal()), &query)
}

/// Another database of the same server, for its administrator.
pub fn of_database(admin: &Secret, name: &str) -> String {
    let Parts { user, host, query } = parts(admin.reveal());
    let at = if user.is_empty() { String::new() } else { format!("{user}@") };
    let query: Vec<&str> = query.into_iter().filter(|pair| !pair.starts_with("dbname=")).collect();
    with_query(format!("postgresql://{at}{host}/{name}"), &query)
}

pub fn socket_directory(url: &str) -> Option<PathBuf> {
    let Parts { host, query, .. } = parts(url);
    let named = query.iter().find_map(|pair| pair.strip_prefix("host=")).unwrap_or(host);
    Some(PathBuf::from(decoded(named))).filter(|path| path.is_absolute())
}

/// The address of a URL's server: a name or an address, and the port if the URL names one. `None` if its port is none.
pub fn address(url: &str) -> Option<(&str, Option<u16>)> {
    let Parts { host, query, .. } = parts(url);
    let member = |name: &str| query.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let (named, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':')),
        None => host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let named = member("hostaddr").or(member("host")).unwrap_or(named);
    match member("port").or(port).filter(|port| !port.is_empty()) {
        None => Some((named, None)),
        Some(port) => Some((named, Some(port.parse().ok()?))),
    }
}

/// A URL without its password, for a command line, and the password.
pub fn without_password(url: &str) -> (String, Option<Secret>) {
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
    (plain, password.map(|password| Secret::new(decoded(password))))
}

/// Text as it stands in a URL.
pub fn percent_encoded(text: &str) -> String {
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, RESERVED).to_string()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The URL for the asynchronous driver, if it differs. It supports the security parameters only in a nested URL, the
/// parameter `dsn`, and no other parameters.
pub fn asynchronous(url: &str) -> Option<String> {
    let Parts { query, .. } = parts(url);
    let of = |names: &[&str]| {
        let is_one = |pair: &&str| names.contains(&pair.split('=').next().unwrap_or_default());
        query.iter().copied().filter(is_one).collect::<Vec<&str>>()
    };
    if of(SAFETY).is_empty() && of(COMFORT).is_empty() {
        return None;
    }
    let mut told: Vec<String> = of(PLACE).into_iter().map(str::to_owned).collect();
    let safety = of(SAFETY);
    if !safety.is_empty() {
        told.push(format!("dsn={}", percent_encoded(&with_query("postgresql:///".into(), &safety))));
    }
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let base = url.split('?').next().unwrap_or_default();
    Some(with_query(base.replacen("+psycopg2", "+asyncpg", 1), &told))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.into())
    }

    #[test]
    fn an_environments_url_has_the_host_but_nothing_of_the_administrator() {
        let told = |admin: &str| of_environment(&secret(admin), "podium_x", &secret("pw"));
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
    fn a_socket_directory_is_recognised_wherever_the_url_names_it() {
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
            assert_eq!(of_database(&secret(admin), "t"), expected);
        }
    }

    #[test]
    fn a_password_is_separated_from_the_url() {
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
            assert_eq!((plain.as_str(), found.as_ref().map(Secret::reveal)), (expected, password), "{url}");
        }
    }

    #[test]
    fn the_asynchronous_driver_gets_tls_parameters_in_its_own_form() {
        assert_eq!(asynchronous("postgresql+psycopg2://x:pw@db/x"), None);
        assert_eq!(asynchronous("postgresql+psycopg2://x:pw@/x?host=/run/pg"), None);
        assert_eq!(asynchronous("sqlite:////x"), None);
        assert_eq!(
            asynchronous("postgresql+psycopg2://x:pw@db/x?sslmode=verify-full&sslrootcert=/ca.pem")
                .as_deref(),
            Some(
                "postgresql+asyncpg://x:pw@db/x?dsn=postgresql%3A%2F%2F%2F%3Fsslmode%3Dverify-full%26sslrootcert%3D%2Fca.pem"
            )
        );
        assert_eq!(
            asynchronous("postgresql+psycopg2://x:pw@/x?host=db&connect_timeout=3").as_deref(),
            Some("postgresql+asyncpg://x:pw@/x?host=db"),
            "it would not know the rest"
        );
    }

    #[test]
    fn parameters_that_would_be_dropped_are_refused() {
        let checked = |query: &str| check(&format!("postgres://a:b@db/p?{query}"));
        for fine in [
            "",
            "sslmode=require",
            "sslmode=verify-full&sslrootcert=/ca.pem",
            "sslmode=verify-ca&sslrootcert=%2Fca.pem&sslcrl=/crl.pem&ssl_min_protocol_version=TLSv1.3",
            "host=/run/pg&user=a&password=b&passfile=/p&dbname=c",
            "connect_timeout=3&application_name=podium&target_session_attrs=read-write",
        ] {
            assert_eq!(checked(fine), Ok(()), "{fine}");
        }
        let table = [
            ("channel_binding=require", BadUrl::Parameter("channel_binding".into())),
            ("options=-csearch_path%3Dx", BadUrl::Parameter("options".into())),
            ("service=main", BadUrl::Parameter("service".into())),
            ("sslkey=/key.pem&sslcert=/cert.pem", BadUrl::Credential("sslkey".into())),
            ("sslmode=verify", BadUrl::Mode("verify".into())),
            ("sslmode=verify-full", BadUrl::NoRoot("verify-full".into())),
            ("sslmode=verify-full&sslrootcert=ca.pem", BadUrl::NoPath("sslrootcert".into())),
            ("sslmode=verify-full&sslrootcert=system", BadUrl::NoPath("sslrootcert".into())),
            ("host=one,other", BadUrl::Hosts),
        ];
        for (query, expected) in table {
            assert_eq!(checked(query), Err(expected), "{query}");
        }
        assert_eq!(check("postgres://a@one:1,other:2/p"), Err(BadUrl::Hosts));
        let said = checked("channel_binding=require").unwrap_err().to_string();
        assert!(said.contains("`channel_binding`") && said.contains("sslrootcert"), "{said}");
        let of = |query: &str| files(&format!("postgres://db/p?{query}"));
        assert_eq!(of("sslmode=verify-ca&sslrootcert=%2Fca.pem"), [PathBuf::from("/ca.pem")]);
    }
}
