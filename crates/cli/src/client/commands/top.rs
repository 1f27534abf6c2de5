//! `podium top`: deployments on the whole screen, as they change.

mod pace;
mod screen;
mod state;

use std::io::IsTerminal as _;
use std::pin::Pin;
use std::time::Duration;

use clap::Args;
use podium_api::enums::EventType;
use podium_api::events as events_api;
use podium_api::{deployment_processes, deployments, operations};
use podium_app::world::World;
use podium_client::Call;
use ratatui::crossterm::event::{self, KeyCode, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::ending::{Failed, Outcome};
use crate::client::fields::given;
use crate::client::output::{View, column, wide};
use crate::client::progress::pause;
use crate::client::session::{Session, Setup};
use pace::Pace;
use state::{Key, Next, Row, Top};

/// How many deployments are shown; a filter of the command shows others.
const MOST: u64 = 1_000;
/// The DAG runs of this time are counted, up to a number of them.
const PAST: Duration = Duration::from_hours(24);
const MOST_RUNS: u64 = 10_000;
/// How many of them are read at once.
const PAGE: u64 = 1_000;
/// How many keys and events wait.
const WAITING: usize = 256;

/// Watch deployments: status, runtime, memory, DAG runs of the last day, running operations and recent problems.
///
/// On a terminal the view follows the events of the organization until you press q. Otherwise it is printed once, as a table.
#[derive(Args)]
#[command(after_help = "\
Keys: j and k move, enter shows one deployment, / filters, q quits.

Examples:
  podium top
  podium top --workspace Reports
  podium top --output json | jq -r '.[] | select(.status != \"HEALTHY\").name'")]
pub(crate) struct Watch {
    /// Only deployments of this workspace.
    #[arg(long, env = "PODIUM_WORKSPACE")]
    workspace: Option<String>,
    #[command(flatten)]
    setup: Setup,
}

/// As it is printed without a terminal.
const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("WORKSPACE", "workspaceName"),
        column("STATUS", "status"),
        column("RUNTIME", "platformRuntimeVersion"),
        column("MEMORY", "memory"),
        column("RUNS", "runs"),
        column("OPERATION", "operation"),
        column("REASON", "statusReason"),
        wide("ID", "id"),
    ],
};

/// Something that happened, here or at the server.
enum News {
    Key(Key),
    Quit,
    Redraw,
    /// From now on no event is missed.
    Following,
    Event(Value),
    Unreachable(String),
}

impl Watch {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let path = session.in_organization().await?;
        let workspace = match &self.workspace {
            Some(name) => Some(session.workspace(name).await?.workspace_id),
            None => None,
        };
        let params = given(json!({ "workspaceIds": workspace.map(|id| [id]) }));
        let is_watched =
            session.format.is_table() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let (rows, is_cut) = read(&session, &path, &params).await?;
        let mut top = Top::default();
        let of_workspace = given(json!({ "workspaceId": workspace }));
        let cursor = count_runs(&session, &path, &of_workspace, &mut top).await;
        if !is_watched {
            let with_runs = |(mut deployment, row): (Value, Row)| {
                deployment["runs"] = top.runs(&row.id).into();
                deployment
            };
            return session.show_all(&rows.into_iter().map(with_runs).collect::<Vec<_>>(), &VIEW);
        }
        top.refresh(rows.into_iter().map(|(_, row)| row).collect());
        top.is_cut = is_cut;
        let follow = given(json!({ "workspaceId": workspace, "cursor": cursor }));
        watch(&session, top, (&path, &params, &follow)).await
    }
}

type Deployments = Vec<(Value, Row)>;
type Reading<'a> = Pin<Box<dyn Future<Output = Outcome<(Deployments, bool)>> + 'a>>;

/// The deployments with what is being done to them, and whether there are more.
async fn read(
    session: &Session,
    path: &podium_api::path::InOrganization,
    params: &Value,
) -> Outcome<(Deployments, bool)> {
    let running = json!({ "states": ["PENDING", "RUNNING"] });
    let running = all(session, Call::to::<operations::List>(path).query_params(&running)?).await?;
    let sorted = json!({ "sorts": ["name:asc"] });
    let call = Call::to::<deployments::List>(path).query_params(params)?.query_params(&sorted)?;
    let found = all(session, call).await?;
    let is_cut = found.len() as u64 >= MOST;
    let call = Call::to::<deployment_processes::List>(path).query_params(params)?.query_params(&sorted)?;
    // An older server has no list of them, and nothing else depends on it.
    let processes = all(session, call).await.unwrap_or_default();
    let with_more = |mut deployment: Value| {
        let row = Row::of(&deployment, &running, &processes);
        deployment["operation"] = row.operation.clone().into();
        deployment["memory"] = row.memory.clone().into();
        (deployment, row)
    };
    Ok((found.into_iter().map(with_more).collect(), is_cut))
}

/// Counts the DAG runs that ended on the last day, and says where the events go on that were not looked at. A server that
/// has no events, or does not show them, leaves them uncounted.
async fn count_runs(
    session: &Session,
    path: &podium_api::path::InOrganization,
    params: &Value,
    top: &mut Top,
) -> Option<String> {
    let types = [EventType::DagRunSucceeded, EventType::DagRunFailed];
    let since = World::machine().now() - PAST;
    let (mut cursor, mut looked_at) = (None, 0);
    while looked_at < MOST_RUNS {
        let page = given(json!({ "types": types, "since": since, "cursor": cursor, "limit": PAGE }));
        let call = Call::to::<events_api::List>(path).query_params(params).ok()?.query_params(&page).ok()?;
        let page: Value = session.client.send(call).await.ok()?.body;
        page["events"].as_array().into_iter().flatten().for_each(|event| top.count(event));
        looked_at += PAGE;
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if page["hasMore"] != json!(true) {
            return cursor;
        }
    }
    None
}

async fn all(session: &Session, call: Call) -> Outcome<Vec<Value>> {
    let mut pages = session.client.pages(call, Some(MOST));
    let mut items = Vec::new();
    while let Some(page) = pages.next().await? {
        items.extend(page);
    }
    Ok(items)
}

/// Shows the view until the person quits.
async fn watch(
    session: &Session,
    mut top: Top,
    (path, params, follow): (&podium_api::path::InOrganization, &Value, &Value),
) -> Outcome {
    let (sender, mut news) = mpsc::channel(WAITING);
    let mut ended = signal(SignalKind::terminate())?;
    let mut screen = Screen::open()?;
    read_keys(sender.clone());
    let has_colours = std::env::var_os("NO_COLOR").is_none();
    let following = follow_events(session, path, follow, sender);
    let mut following = std::pin::pin!(following);
    let mut pace = Pace::new(Instant::now());
    // Beside everything else: a server that does not answer must not keep the person here.
    let mut reading: Option<Reading<'_>> = None;
    loop {
        screen.0.draw(|frame| screen::draw(frame, &top, has_colours))?;
        let heard = tokio::select! {
            refused = &mut following => return refused,
            _ = ended.recv() => return Ok(()),
            heard = news.recv() => heard,
            read = finished(&mut reading) => {
                reading = None;
                show(&mut top, read)?;
                None
            }
            () = tokio::time::sleep_until(pace.due()), if reading.is_none() => None,
        };
        match heard {
            Some(News::Quit) => return Ok(()),
            Some(News::Key(key)) => {
                if top.press(key) == Next::Quit {
                    return Ok(());
                }
            }
            Some(News::Event(event)) => {
                top.note(&event);
                pace.event(Instant::now());
            }
            // What changed before is in no event.
            Some(News::Following) => pace.following(Instant::now()),
            Some(News::Unreachable(why)) => top.trouble = Some(why),
            Some(News::Redraw) | None => {}
        }
        if reading.is_none() && pace.begins(Instant::now()) {
            reading = Some(Box::pin(read(session, path, params)));
        }
    }
}

/// What was read, once it was; never while nothing is being read.
async fn finished(reading: &mut Option<Reading<'_>>) -> Outcome<(Deployments, bool)> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

/// Shows what was read, or why it is old; what cannot pass is an error.
fn show(top: &mut Top, read: Outcome<(Deployments, bool)>) -> Outcome {
    match read {
        Ok((rows, is_cut)) => {
            top.is_cut = is_cut;
            top.refresh(rows.into_iter().map(|(_, row)| row).collect());
            Ok(())
        }
        Err(failed) if failed.is_passing() => {
            top.trouble = Some(failed.reason());
            Ok(())
        }
        Err(failed) => Err(failed),
    }
}

/// Follows the events of the organization; a broken stream goes on where it broke. Ends only if the server refuses.
async fn follow_events(
    session: &Session,
    path: &podium_api::path::InOrganization,
    params: &Value,
    news: mpsc::Sender<News>,
) -> Outcome {
    let (mut last, mut cuts) = (None, 0);
    loop {
        let call = Call::to::<events_api::Follow>(path).query_params(params)?.after_event(last.clone());
        match session.client.events(&call).await {
            Ok(mut stream) => {
                let _ = news.send(News::Following).await;
                while let Ok(Some(event)) = stream.next().await {
                    cuts = 0;
                    last = event.id.or(last);
                    if let Ok(event) = serde_json::from_str(&event.data) {
                        let _ = news.send(News::Event(event)).await;
                    }
                }
            }
            Err(error) => {
                let failed = Failed::from(error);
                if !failed.is_passing() {
                    return Err(failed);
                }
                let _ = news.send(News::Unreachable(failed.reason())).await;
            }
        }
        pause(cuts).await;
        cuts += 1;
    }
}

/// The terminal in its other mode; what was on it comes back at the end, also after a panic.
struct Screen(ratatui::DefaultTerminal);

impl Screen {
    fn open() -> Outcome<Self> {
        Ok(Self(ratatui::try_init()?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Reads keys in a thread of its own, which ends with the program.
fn read_keys(news: mpsc::Sender<News>) {
    std::thread::spawn(move || {
        while let Ok(read) = event::read() {
            let said = match read {
                event::Event::Key(key) if key.kind == KeyEventKind::Release => continue,
                event::Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => match key.code {
                    KeyCode::Char('c') => News::Quit,
                    _ => continue,
                },
                event::Event::Key(key) => match key.code {
                    KeyCode::Up => News::Key(Key::Up),
                    KeyCode::Down => News::Key(Key::Down),
                    KeyCode::Enter => News::Key(Key::Enter),
                    KeyCode::Esc => News::Key(Key::Escape),
                    KeyCode::Backspace => News::Key(Key::Backspace),
                    KeyCode::Char(letter) => News::Key(Key::Letter(letter)),
                    _ => continue,
                },
                event::Event::Resize(_, _) => News::Redraw,
                _ => continue,
            };
            if news.blocking_send(said).is_err() {
                return;
            }
        }
    });
}
