//! `podium serve`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser as _;
use ipnet::IpNet;
use podium_app::disk::Reserve;
use podium_app::front_door::Environments;
use podium_app::mail::Mailer;
use podium_app::webhooks::Destinations;
use podium_app::{App, Config, Rates, Started, disk, follow, maintenance, webhooks};

use podium_dataplane::Planes;
use podium_http::{Server, Settings, Tls};
use podium_reconcile::{Loops, Options};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::log::{Format, Log};
use crate::settings::Installation;
use crate::{data_plane, joining, limits, operator_socket, sockets, tell};

const EXAMPLES: &str = "\
Examples:
  podium serve
  podium serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --public-url https://podium.example.com
  PODIUM_SECRET_KEY=... podium serve --database-url postgres://podium@db.example.com/podium";

/// How long steps of the loops may take to finish during shutdown.
const DRAIN: Duration = Duration::from_secs(10);

/// Serve the API.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    #[command(flatten)]
    installation: Installation,
    /// Address to listen on.
    #[arg(long, env = "PODIUM_LISTEN", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// URL under which clients reach this server; the default is the listen address.
    #[arg(long, env = "PODIUM_PUBLIC_URL")]
    public_url: Option<String>,
    /// Name of the organization that the first start creates.
    #[arg(long, env = "PODIUM_ORGANIZATION_NAME", default_value = "My organization")]
    organization_name: String,
    /// E-mail address of the organization's owner.
    #[arg(long, env = "PODIUM_OWNER_EMAIL", default_value = "owner@localhost")]
    owner_email: String,
    /// Certificate chain in PEM, to serve TLS.
    #[arg(long, env = "PODIUM_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key in PEM, to serve TLS.
    #[arg(long, env = "PODIUM_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Domain under which every environment gets its own host name, such as apps.example.com; without it every
    /// environment gets its own port.
    #[arg(long, env = "PODIUM_ENVIRONMENTS_DOMAIN", value_parser = domain)]
    environments_domain: Option<String>,
    /// Ports for environments without a host name, such as 18000-18999, on the listen address; for a console on a
    /// loopback address, on another one.
    #[arg(long, env = "PODIUM_ENVIRONMENT_PORTS", default_value = "18000-18999", value_parser = podium_dataplane::ports)]
    environment_ports: RangeInclusive<u16>,
    /// Let browsers sign in even if the public URL is neither encrypted nor on this machine.
    #[arg(long, env = "PODIUM_ALLOW_INSECURE_SIGN_IN", value_parser = clap::builder::BoolishValueParser::new())]
    allow_insecure_sign_in: bool,
    /// Proxy whose X-Forwarded-For header is trusted, as a CIDR range; may be repeated.
    #[arg(long = "trusted-proxy", env = "PODIUM_TRUSTED_PROXIES", value_delimiter = ',')]
    trusted_proxies: Vec<IpNet>,
    /// Maximum number of connections; idle ones are closed first to make room for more. Never more than the limit of
    /// open files allows.
    #[arg(long, env = "PODIUM_MAX_CONNECTIONS", default_value_t = 10_000, value_parser = at_least_one())]
    max_connections: usize,
    /// Maximum number of connections from one address; loopback and trusted proxies may have most of the total.
    #[arg(long, env = "PODIUM_MAX_CONNECTIONS_PER_ADDRESS", default_value_t = 1000, value_parser = at_least_one())]
    max_connections_per_address: usize,
    /// Origin whose pages may call the API from a browser; may be repeated.
    #[arg(long = "cors-origin", env = "PODIUM_CORS_ORIGINS", value_delimiter = ',')]
    cors_origins: Vec<String>,
    /// Calls per second for each subject as reads/writes/deletes, such as 25/10/5, or off; the default is off with
    /// SQLite and 25/10/5 with PostgreSQL.
    #[arg(long, env = "PODIUM_RATE_LIMITS", value_parser = limits)]
    rate_limits: Option<Limits>,
    /// Connections to PostgreSQL, 16 by default; with SQLite the number of lists that are read concurrently, by default
    /// the number of cores.
    #[arg(long, env = "PODIUM_DATABASE_CONNECTIONS")]
    database_connections: Option<usize>,
    #[command(flatten)]
    data_plane: data_plane::Choice,
    /// Name of this machine among the nodes that share a database; the default is its host name.
    #[arg(long, env = "PODIUM_NODE_NAME", value_parser = joining::node_name)]
    node_name: Option<String>,
    /// Seconds after which another replica takes over the work of one that died; a step may take two thirds of it.
    #[arg(long, env = "PODIUM_LEASE", default_value = "30", value_parser = clap::value_parser!(u32).range(3..=3600))]
    lease: u32,
    /// Days for which logs of deployments are kept.
    #[arg(long, env = "PODIUM_LOG_RETENTION_DAYS", default_value = "15", value_parser = clap::value_parser!(u32).range(1..))]
    log_retention_days: u32,
    /// Let callers who may change environment objects read the secrets in them.
    #[arg(long, env = "PODIUM_ALLOW_SHOW_SECRETS", value_parser = clap::builder::BoolishValueParser::new())]
    allow_show_secrets: bool,
    /// Refuse deployments that would run on this server's own infrastructure: every deployment needs a cluster or a
    /// region.
    #[arg(long, env = "PODIUM_NO_SHARED_INFRASTRUCTURE", value_parser = clap::builder::BoolishValueParser::new())]
    no_shared_infrastructure: bool,
    /// Mebibytes to keep free on the data directory's disk: uploads and installations do not use them.
    #[arg(long = "disk-reserve-mib", env = "PODIUM_DISK_RESERVE_MIB", default_value_t = 512)]
    disk_reserve: u64,
    /// Largest archive of DAGs or of a bundle that is accepted, in bytes as sent.
    #[arg(long, env = "PODIUM_UPLOAD_LIMIT", default_value_t = 1 << 30)]
    upload_limit: u64,
    /// Mail server such as smtps://user:password@mail.example.com; without one, owners pass on invite links themselves.
    #[arg(long, env = "PODIUM_SMTP_URL", hide_env_values = true, requires = "mail_from")]
    smtp_url: Option<String>,
    /// Sender of mails.
    #[arg(long, env = "PODIUM_MAIL_FROM")]
    mail_from: Option<String>,
    /// Range of addresses that webhooks may send to beyond the public Internet, also without encryption, as a CIDR range;
    /// may be repeated.
    #[arg(long = "webhook-allow", env = "PODIUM_WEBHOOK_ALLOW", value_delimiter = ',')]
    webhook_allow: Vec<IpNet>,
    /// Format of the log on stderr.
    #[arg(long, env = "PODIUM_LOG_FORMAT", value_enum, default_value = "text")]
    log_format: Format,
    /// Filter of the log, such as info, or warn,podium::request=off.
    #[arg(long, env = "PODIUM_LOG", default_value = "info")]
    log: String,
}

#[derive(Clone, Copy)]
enum Limits {
    Off,
    At(Rates),
}

fn limits(text: &str) -> Result<Limits, Failure> {
    if text == "off" {
        return Ok(Limits::Off);
    }
    let rates: Option<Vec<NonZeroU32>> = text.split('/').map(|rate| rate.parse().ok()).collect();
    match rates.as_deref() {
        Some([reads, writes, deletes]) => {
            Ok(Limits::At(Rates { reads: *reads, writes: *writes, deletes: *deletes }))
        }
        _ => Err("give three numbers above zero: reads/writes/deletes, such as 25/10/5, or off".into()),
    }
}

fn at_least_one() -> impl clap::builder::TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..).map(|number| number as usize)
}

fn domain(text: &str) -> Result<String, Failure> {
    let text = text.trim_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if text.split('.').all(is_label) {
        Ok(text)
    } else {
        Err("give a domain such as apps.example.com".into())
    }
}

impl Serve {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let log = Log::start(&self.log, self.log_format)?;
        let mut stop = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let files = limits::raise_open_files();
        let listener = match sockets::inherited()? {
            Some(listener) => listener,
            None => TcpListener::bind(self.listen)
                .await
                .map_err(|error| format!("cannot listen on {}: {error}", self.listen))?,
        };
        let address = listener.local_addr()?;
        let settings = self.settings(files);
        podium_http::check(&settings)?;
        self.data_plane.check().await?;
        let Started { app, system, .. } = self.installation.open(self.config(address)?).await?;
        let planes =
            self.data_plane.open(&app, system, &self.installation.data_dir, self.tls_key.clone()).await?;
        tell::what_runs(&app, &system, &planes).await?;
        joining::join(&app, &planes, &self.installation, self.node_name.clone()).await?;
        let loops = Loops::new(&app, system.steward(), &planes, self.loops()).start();
        let background = [
            tokio::spawn(follow::run(app.clone())),
            tokio::spawn(maintenance::run(app.clone())),
            tokio::spawn(disk::run(app.clone())),
            tokio::spawn(webhooks::run(app.clone())),
        ];
        let server = Server::new(app.clone(), planes.clone(), settings);
        let operator =
            operator_socket::start(server.clone(), app.clone(), &system, &self.installation.data_dir).await;
        let mut is_forgotten = false;
        let (staying, forgotten) = (app.clone(), &mut is_forgotten);
        let stopped = async move {
            // Polled only once the server accepts requests and signals.
            eprintln!("Podium is ready at {}", staying.config.public_url);
            tokio::select! {
                _ = stop.recv() => {}
                _ = interrupt.recv() => {}
                () = staying.send_heartbeats() => *forgotten = true,
            }
        };
        let served = podium_http::serve(server, listener, stopped).await?;
        tracing::info!(?served, "stopped serving");
        end(operator).await;
        loops.drain(DRAIN).await;
        end_of_machine(&planes).await;
        background.iter().for_each(tokio::task::JoinHandle::abort);
        finish(&app).await;
        log.write_out();
        if is_forgotten { Err(joining::FORGOTTEN.into()) } else { Ok(()) }
    }

    fn loops(&self) -> Options {
        let lease = Duration::from_secs(self.lease.into());
        Options { lease, step_time: lease * 2 / 3, ..Options::default() }
    }

    fn config(&self, address: SocketAddr) -> Result<Config, Failure> {
        let scheme = if self.tls_cert.is_some() { "https" } else { "http" };
        let url = self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        let mut config = Config::new(url.trim_end_matches('/'));
        config.organization_name.clone_from(&self.organization_name);
        config.owner_email.clone_from(&self.owner_email);
        config.rates = match self.rate_limits {
            Some(Limits::Off) => None,
            Some(Limits::At(rates)) => Some(rates),
            None => (!self.installation.is_embedded()).then(Rates::default),
        };
        config.shared_infrastructure = !self.no_shared_infrastructure;
        config.connections = self.database_connections;
        config.log_retention = Duration::from_hours(24 * u64::from(self.log_retention_days));
        config.show_secrets = self.allow_show_secrets;
        config.environments = match &self.environments_domain {
            Some(domain) => Environments::Domain(domain.clone()),
            None => Environments::Ports(self.environment_ports.clone()),
        };
        config.allow_insecure_sign_in = self.allow_insecure_sign_in;
        config.webhook_destinations = Destinations::new(self.webhook_allow.clone());
        config.upload_limit = self.upload_limit;
        config.reserve = Reserve {
            directories: vec![self.installation.data_dir.clone(), self.installation.objects_dir()],
            bytes: self.disk_reserve.saturating_mul(1 << 20),
        };
        if let (Some(url), Some(from)) = (&self.smtp_url, &self.mail_from) {
            config.mailer = Some(Mailer::new(url, from)?);
        }
        Ok(config)
    }

    fn settings(&self, files: Option<u64>) -> Settings {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        Settings {
            connections: limits::connections(self.max_connections, files),
            connections_per_address: self.max_connections_per_address,
            trusted_proxies: self.trusted_proxies.clone(),
            cors_origins: self.cors_origins.clone(),
            tls: tls.map(|(certificate, key)| Tls { certificate, key }),
            ..Settings::default()
        }
    }
}

/// Waits until the operator's socket has been removed.
async fn end(operator: Option<tokio::task::JoinHandle<()>>) {
    if let Some(operator) = operator {
        let _ = operator.await;
    }
}

/// Ends what must not run on without the server. The plane itself may live as long as the process does.
async fn end_of_machine(planes: &Planes) {
    if let Some(machine) = planes.machine()
        && let Err(fault) = machine.end().await
    {
        tracing::warn!(%fault, "environments that are being removed may run on");
    }
}

/// Flushes pending writes and closes the database.
async fn finish(app: &App) {
    if let Err(error) = maintenance::flush_uses(app).await {
        tracing::warn!(%error, "the last uses of tokens could not be saved");
    }
    app.close().await;
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        serve: Serve,
    }

    #[test]
    fn the_public_url_defaults_to_the_listen_address() {
        let public_url = |arguments: &[&str]| {
            let serve = Typed::parse_from(["podium"].iter().chain(arguments)).serve;
            serve.config(([127, 0, 0, 1], 8080).into()).unwrap().public_url
        };
        assert_eq!(public_url(&[]), "http://127.0.0.1:8080");
        let set = ["--public-url", "https://podium.example.com/"];
        assert_eq!(public_url(&set), "https://podium.example.com");
    }

    #[test]
    fn environments_have_ports_unless_they_have_a_domain() {
        let environments = |arguments: &[&str]| {
            let serve = Typed::try_parse_from(["podium"].iter().chain(arguments)).map_err(|_| ())?.serve;
            Ok::<_, ()>(serve.config(([127, 0, 0, 1], 8080).into()).unwrap().environments)
        };
        assert_eq!(environments(&[]), Ok(Environments::Ports(18_000..=18_999)));
        assert_eq!(environments(&["--environment-ports", "7000-7001"]), Ok(Environments::Ports(7000..=7001)));
        let domain = Environments::Domain("apps.example.com".into());
        assert_eq!(environments(&["--environments-domain", "Apps.example.com."]), Ok(domain));
        for wrong in ["2-1", "0-5", "x", "1-70000"] {
            assert!(environments(&["--environment-ports", wrong]).is_err(), "{wrong}");
        }
        assert!(environments(&["--environments-domain", "https://x"]).is_err());
    }
}
