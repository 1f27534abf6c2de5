//! Which server a command calls, as whom, and in which organization.

mod starting;

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use podium_api::path::{InOrganization, OfOperation};
use podium_api::plans::PlannedCall;
use podium_api::{Endpoint, Nothing, OrganizationId, organizations};
use podium_client::{Call, Client, Sent, Settings, Socket};
use podium_server::OWNER_TOKEN;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::answer::{Answer, BodyOf, read};
use super::contexts::{Context, Contexts};
use super::ending::{Exit, Failed, Outcome, one_line};
use super::operator;
use super::output::{Format, Listing, View};
use super::wait::Wait;

/// Which server, and as whom.
#[derive(Args, Clone)]
#[command(next_help_heading = "Server")]
pub(crate) struct Target {
    /// Context to use instead of the current one.
    #[arg(long, global = true, env = "PODIUM_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// URL of the server, instead of a context; set PODIUM_TOKEN to a token for it.
    #[arg(long, global = true, env = "PODIUM_URL", value_name = "URL")]
    url: Option<String>,
    /// Data directory of a server on this machine, to act as its operator through its socket. Without a context,
    /// PODIUM_DATA_DIR and ./podium-data are tried too.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Organization, by name or id; needed only if you belong to several.
    #[arg(long, global = true, env = "PODIUM_ORGANIZATION", value_name = "NAME")]
    organization: Option<String>,
    /// File with certificates (PEM) to trust in addition to those of the system.
    #[arg(long, global = true, env = "PODIUM_CA_CERTIFICATE", value_name = "FILE")]
    pub(crate) ca_certificate: Option<PathBuf>,
    /// Show every request on standard error, without secrets.
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

/// The flags of every command that calls a server and shows something.
#[derive(Args, Clone)]
pub(crate) struct Setup {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(flatten)]
    changes: Changes,
}

/// How a command changes things.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Changes")]
struct Changes {
    /// Show what would change, and stop.
    #[arg(long, global = true)]
    plan: bool,
    /// Do not ask for confirmation.
    #[arg(long, short, global = true)]
    yes: bool,
    #[command(flatten)]
    wait: Wait,
}

/// The calls of a command that are planned.
#[derive(Default)]
pub(crate) struct Planning {
    pub(super) calls: RefCell<Vec<PlannedCall>>,
    pub(super) is_held: Cell<bool>,
}

/// A page of a list that goes on behind a cursor.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CursorPage {
    #[serde(alias = "events", alias = "deliveries")]
    items: Vec<Value>,
    next_cursor: Option<String>,
    has_more: Option<bool>,
}

/// A server that is called, and how to show what it says.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) format: Format,
    organization: OnceCell<OrganizationId>,
    pub(super) wanted_organization: Option<String>,
    pub(super) planning: Option<Planning>,
    /// Whether a person has agreed beforehand.
    pub(super) is_agreed: bool,
    pub(crate) wait: Wait,
    /// The operations that this command has started and not followed yet.
    pub(super) started: RefCell<Vec<OfOperation>>,
}

impl Setup {
    /// Finds out which server to call, and as whom.
    pub(crate) fn open(&self) -> Outcome<Session> {
        let (client, known) = self.target.connect()?;
        let wanted = self.target.organization.clone();
        Ok(Session::new(client, known, wanted, self.format.clone(), &self.changes))
    }

    /// A session with this server, as whoever holds the token.
    pub(crate) fn open_at(&self, url: &str, token: String) -> Outcome<Session> {
        let client = self.target.client(url, Some(token), None)?;
        Ok(Session::new(client, None, None, self.format.clone(), &self.changes))
    }
}

impl Target {
    /// The URL that was given instead of a context.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Whether a server is named, in whatever way but the current context.
    pub(crate) fn is_named(&self) -> bool {
        self.context.is_some() || self.url.is_some() || self.data_dir.is_some()
    }

    /// A session that shows nothing, of a command that is not typed to its end.
    pub(crate) fn open_quietly(mut self) -> Outcome<Session> {
        self.verbose = false;
        let (client, known, _) = self.reach()?;
        Ok(Session::new(client, known, self.organization, Format::default(), &Changes::default()))
    }

    /// A client, and the organization that the context names. Says so if it is the operator's.
    pub(crate) fn connect(&self) -> Outcome<(Client, Option<OrganizationId>)> {
        let (client, known, operated) = self.reach()?;
        if let Some(directory) = operated {
            eprintln!("Acting as the operator of the server in {}.", directory.display());
        }
        Ok((client, known))
    }

    /// A client, the organization that the context names, and the data directory that was found without being named.
    fn reach(&self) -> Outcome<(Client, Option<OrganizationId>, Option<PathBuf>)> {
        if let Some(directory) = &self.data_dir {
            self.no_other_server_is_named()?;
            let socket = operator::socket_in(directory)?.ok_or_else(|| operator::absent(directory))?;
            return Ok((self.client_of(socket)?, None, None));
        }
        let token = own_token();
        let contexts = Contexts::read()?;
        let found = self.find(&contexts)?;
        let url = self.url.clone().or_else(|| found.map(|context| context.url.clone()));
        let Some(url) = url else {
            // Whoever has signed in anywhere means one of those servers, and has to say which.
            let is_new = token.is_none() && contexts.contexts.is_empty();
            let directory = operator::directory();
            let socket = if is_new { operator::socket_in(&directory)? } else { None };
            let socket = socket.ok_or_else(|| not_signed_in(&contexts, token.is_some()))?;
            return Ok((self.client_of(socket)?, None, Some(directory)));
        };
        let is_own_token = token.is_some();
        let token = token.or_else(|| found.map(|context| context.token.clone()));
        let Some(token) = token else {
            return Err(Failed::new(Exit::Refused, format!("you are not signed in to {url}"))
                .hint(format!("Sign in: podium login {url}. In CI, set PODIUM_TOKEN.")));
        };
        let certificate =
            self.ca_certificate.clone().or_else(|| found.and_then(|context| context.ca_certificate.clone()));
        let client = self.client(&url, Some(token), certificate.as_deref())?;
        // Another token may belong to another organization.
        Ok((client, found.and_then(|context| context.organization_id).filter(|_| !is_own_token), None))
    }

    /// The context that applies: the one that is named, the one of the URL, or the current one.
    pub(crate) fn find<'a>(&self, contexts: &'a Contexts) -> Outcome<Option<&'a Context>> {
        match (&self.context, &self.url) {
            (Some(name), None) => contexts.named(name).map(Some),
            (Some(name), Some(url)) => {
                let context = contexts.named(name)?;
                // A token goes to the server that it is for, and to no other.
                match is_same(&context.url, url) {
                    true => Ok(Some(context)),
                    false => Err(Failed::usage(format!(
                        "the context {name:?} is for {}, not for {url}",
                        context.url
                    ))
                    .hint(
                        "Name the server once: with --context (PODIUM_CONTEXT) or with --url (PODIUM_URL).",
                    )),
                }
            }
            (None, Some(url)) => Ok(contexts.contexts.values().find(|context| is_same(&context.url, url))),
            (None, None) => match &contexts.current {
                Some(name) => contexts.named(name).map(Some),
                None => Ok(None),
            },
        }
    }

    pub(crate) fn context_name(&self, contexts: &Contexts) -> Option<String> {
        self.context.clone().or_else(|| contexts.current.clone())
    }

    /// Refuses flags that name another server than the data directory does; variables give way to it.
    fn no_other_server_is_named(&self) -> Outcome {
        let others = [("--context", "PODIUM_CONTEXT", &self.context), ("--url", "PODIUM_URL", &self.url)];
        for (flag, variable, given) in others {
            if given.is_some() && *given != std::env::var(variable).ok() {
                return Err(Failed::usage(format!("--data-dir and {flag} each name a server: give one")));
            }
        }
        Ok(())
    }

    /// A client of the server on this machine, as its operator.
    fn client_of(&self, socket: Socket) -> Outcome<Client> {
        let settings = Settings { socket: Some(socket), ..self.settings() };
        Ok(Client::with(operator::BASE, settings)?)
    }

    fn settings(&self) -> Settings {
        Settings {
            user_agent: Some(concat!("podium/", env!("CARGO_PKG_VERSION")).into()),
            observer: self.verbose.then(|| Arc::new(tell) as podium_client::Observer),
            ..Settings::default()
        }
    }

    /// A client of a server, as whoever holds the token.
    pub(crate) fn client(&self, url: &str, token: Option<String>, ca: Option<&Path>) -> Outcome<Client> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| Failed::because(format!("{} cannot be read: {error}", path.display())))
        };
        let settings = Settings { token, certificates: ca.map(read).transpose()?, ..self.settings() };
        Ok(Client::with(url, settings)?)
    }
}

fn own_token() -> Option<String> {
    std::env::var("PODIUM_TOKEN").ok().filter(|token| !token.is_empty())
}

fn tell(sent: &Sent<'_>) {
    let Sent { method, path, outcome, request_id, took } = sent;
    let millis = took.as_millis();
    eprintln!("{method} {path} -> {outcome} in {millis} ms {request_id}");
}

/// Whether two URLs are the same server.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |url: &str| url.trim_end_matches('/').to_ascii_lowercase();
    plain(one) == plain(other)
}

/// No server is named, and none runs here: says what to do about it.
fn not_signed_in(contexts: &Contexts, has_token: bool) -> Failed {
    let directory = operator::directory();
    let token = directory.join(OWNER_TOKEN);
    let hint = match contexts.contexts.keys().next() {
        _ if has_token => "PODIUM_TOKEN is set, but no server to use it for: set PODIUM_URL too, or give --url.".into(),
        Some(first) => format!(
            "No context is current: podium context use {first}. List contexts: podium context list"
        ),
        None if std::fs::File::open(&token).is_ok() => format!(
            "The server with its data in {} is not running: podium serve. If it is, sign in as its owner: podium login \
             http://127.0.0.1:8080 --token-file {}",
            directory.display(),
            token.display()
        ),
        None => "Sign in: podium login URL. In CI, set PODIUM_URL and PODIUM_TOKEN. To start a server on this machine: \
                 podium serve"
            .into(),
    };
    Failed::new(Exit::Refused, "you are not signed in to a server").hint(hint)
}

impl Session {
    /// A session in the organization that is wanted by name, or else in the one that is known.
    fn new(
        client: Client,
        known: Option<OrganizationId>,
        wanted: Option<String>,
        format: Format,
        changes: &Changes,
    ) -> Self {
        let organization = OnceCell::new();
        if let (Some(id), None) = (known, &wanted) {
            let _ = organization.set(id);
        }
        Self {
            client,
            format,
            organization,
            wanted_organization: wanted,
            planning: changes.plan.then(Planning::default),
            is_agreed: changes.yes,
            wait: changes.wait.clone(),
            started: RefCell::default(),
        }
    }

    /// Sees whether the server answers.
    async fn knock(&self) -> Outcome {
        let call = Call::to::<organizations::List>(&()).query_params(&json!({ "limit": 1 }))?;
        Ok(self.client.send_for_bytes(&call).await.map(drop)?)
    }

    /// The organization: the one that is named, the context's, or the only one.
    pub(crate) async fn organization(&self) -> Outcome<OrganizationId> {
        self.organization.get_or_try_init(|| self.find_organization()).await.copied()
    }

    pub(super) fn known_organization(&self) -> Option<OrganizationId> {
        self.organization.get().copied()
    }

    pub(crate) async fn in_organization(&self) -> Outcome<InOrganization> {
        Ok(InOrganization { organization_id: self.organization().await? })
    }

    pub(crate) async fn get<E: Endpoint>(&self, path: &E::Path) -> Outcome<Answer<BodyOf<E>>> {
        self.ask::<E>(path, &Nothing).await
    }

    pub(crate) async fn ask<E: Endpoint>(
        &self,
        path: &E::Path,
        query: &impl Serialize,
    ) -> Outcome<Answer<BodyOf<E>>> {
        let call = Call::to::<E>(path).query_params(query)?;
        Ok(self.client.send::<Value>(call).await?.body.into())
    }

    /// What is in a list, up to a number of items.
    pub(crate) async fn all<L: Endpoint, T: DeserializeOwned>(
        &self,
        path: &L::Path,
        query: &impl Serialize,
        most: Option<u64>,
    ) -> Outcome<Vec<T>> {
        self.first::<L, T>(path, query, most, usize::MAX, |_| true).await
    }

    /// The first items of a list that fit.
    pub(crate) async fn first<L: Endpoint, T: DeserializeOwned>(
        &self,
        path: &L::Path,
        query: &impl Serialize,
        most: Option<u64>,
        count: usize,
        fits: impl Fn(&T) -> bool,
    ) -> Outcome<Vec<T>> {
        let mut pages = self.client.pages(Call::to::<L>(path).query_params(query)?, most);
        let mut found = Vec::new();
        while let Some(page) = pages.next().await? {
            for item in &page {
                found.extend(Some(read(item)?).filter(&fits));
                if found.len() == count {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Reads a list that goes on behind a cursor: up to so many items, in pages of at most so many, which may be empty, and
    /// so many pages. Where it ends, and can be continued; none if there is more.
    pub(crate) async fn behind_cursor<L: Endpoint>(
        &self,
        path: &L::Path,
        query: &impl Serialize,
        (mut left, at_once, pages): (u64, u64, u64),
        mut take: impl FnMut(&[Value]) -> Outcome,
    ) -> Outcome<Option<String>> {
        let mut cursor = None;
        for _ in 0..pages {
            if left == 0 {
                break;
            }
            let place = json!({ "cursor": cursor, "limit": left.min(at_once) });
            let call = Call::to::<L>(path).query_params(&place)?.query_params(query)?;
            let page: CursorPage = read(&self.client.send::<Value>(call).await?.body)?;
            take(&page.items)?;
            if !page.has_more.unwrap_or(page.next_cursor.is_some()) {
                return Ok(page.next_cursor);
            }
            left = left.saturating_sub(page.items.len() as u64);
            cursor = page.next_cursor;
        }
        Ok(None)
    }

    /// Shows a list, page by page.
    pub(crate) async fn list<L: Endpoint>(&self, path: &L::Path, view: &View, listing: &Listing) -> Outcome {
        self.list_call(Call::to::<L>(path), view, listing).await
    }

    /// Shows those of a list that a query asks for.
    pub(crate) async fn list_where<L: Endpoint>(
        &self,
        path: &L::Path,
        query: &L::Query,
        view: &View,
        listing: &Listing,
    ) -> Outcome {
        self.list_call(Call::to::<L>(path).query_params(query)?, view, listing).await
    }

    /// Shows the list that a call reads.
    pub(crate) async fn list_call(&self, call: Call, view: &View, listing: &Listing) -> Outcome {
        let call = call.query_params(&json!({ "sorts": listing.sorts() }))?;
        let mut pages = self.client.pages(call, listing.limit);
        let mut printer = self.format.printer(view)?;
        while let Some(page) = pages.next().await? {
            printer.page(&page)?;
        }
        Ok(printer.finish()?)
    }

    pub(crate) fn show(&self, item: &Value, view: &View) -> Outcome {
        let mut printer = self.format.printer(view)?;
        Ok(printer.one(item)?)
    }

    pub(crate) async fn show_at<E: Endpoint>(&self, path: &E::Path, view: &View) -> Outcome {
        self.show(&self.get::<E>(path).await?.raw, view)
    }

    /// Says why what a table shows is as it is; other formats have a field for that.
    pub(crate) fn explain(&self, reason: &str) {
        if self.format.is_table() && !reason.is_empty() {
            eprintln!("{}", one_line(reason));
        }
    }

    /// Shows a list that came as a whole.
    pub(crate) fn show_all(&self, items: &[Value], view: &View) -> Outcome {
        let mut printer = self.format.printer(view)?;
        printer.page(items)?;
        Ok(printer.finish()?)
    }

    /// Shows a secret: as the only thing on standard output, unless another format is wanted.
    pub(crate) fn show_secret<T: DeserializeOwned>(
        &self,
        made: &Answer<T>,
        secret: impl FnOnce(T) -> Option<String>,
        view: &View,
    ) -> Outcome {
        if self.format.is_table() {
            writeln!(std::io::stdout().lock(), "{}", secret(made.body()?).unwrap_or_default())?;
            return Ok(());
        }
        self.show(&made.raw, view)
    }
}

/// A field as text, without quotes.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
