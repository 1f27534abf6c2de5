//! `podium top`: deployments on the whole screen, as they change.

mod pace;
mod screen;
mod state;

use std::io::IsTerminal as _;
use std::pin::Pin;
use std::time::Duration;

use clap::Args;
use podium_api::enums::EventType;
use podium_api::events::{Follow, FollowEvents, List};
use podium_api::operations::{self, ListOperations};
use podium_api::path::InOrganization;
use podium_api::{Named, WorkspaceId, deployment_processes, deployments};
use podium_app::world::World;
use podium_client::Call;
use ratatui::crossterm::event::{self, KeyCode, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::events::{Happened, PAGE};
use super::{Outcome, Session, Setup, View, merged, read};
use crate::client::follow::UNDER_WAY;
use crate::client::streams::{Heard, Stream};
use pace::Pace;
use state::{Key, Next, Processes, Row, Top, UnderWay};

/// How many deployments are shown; a filter of the command shows others.
const MOST: u64 = 1_000;
/// The DAG runs of this time are counted, up to a number of them.
const PAST: Duration = Duration::from_hours(24);
const MOST_RUNS: u64 = 10_000;
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
    columns: "NAME name, WORKSPACE workspaceName, STATUS status, RUNTIME platformRuntimeVersion, \
              MEMORY memory, RUNS runs, OPERATION operation, REASON statusReason",
    wide: "ID id",
};

/// Something that happened, here or at the server.
enum News {
    Key(Key),
    Quit,
    Redraw,
    /// From now on no event is missed.
    Following,
    Event(Happened),
    Unreachable(String),
}

impl Watch {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let path = session.in_organization().await?;
        let (workspace, _) = session.ids_in(self.workspace.as_deref(), None).await?;
        let workspace_ids: Vec<Named<WorkspaceId>> = workspace.into_iter().map(Into::into).collect();
        let is_watched =
            session.format.is_table() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let (rows, is_cut) = read_all(&session, &path, &workspace_ids).await?;
        let mut top = Top::default();
        let cursor = count_runs(&session, &path, workspace, &mut top).await;
        if !is_watched {
            let with_runs = |(row, deployment): (Row, Value)| {
                let Row { id, operation, memory, .. } = &row;
                let more = json!({ "operation": operation, "memory": memory, "runs": top.runs(id) });
                merged(deployment, more)
            };
            return session.show_all(&rows.into_iter().map(with_runs).collect::<Vec<_>>(), &VIEW);
        }
        top.refresh(rows.into_iter().map(|(row, _)| row).collect());
        top.is_cut = is_cut;
        let follow = FollowEvents { workspace_id: workspace, cursor, ..FollowEvents::default() };
        let events = Stream::new(&session, Call::to::<Follow>(&path).query_params(&follow)?, usize::MAX);
        watch(&session, top, (&path, &workspace_ids), events).await
    }
}

type Deployments = Vec<(Row, Value)>;
type Reading<'a> = Pin<Box<dyn Future<Output = Outcome<(Deployments, bool)>> + 'a>>;

/// The deployments with what is being done to them, and whether there are more.
async fn read_all(
    session: &Session,
    path: &InOrganization,
    workspace_ids: &[Named<WorkspaceId>],
) -> Outcome<(Deployments, bool)> {
    let open = ListOperations { states: UNDER_WAY.to_vec(), ..ListOperations::default() };
    let running = session.all::<operations::List, UnderWay>(path, &open, Some(MOST)).await?;
    let sorted = json!({ "workspaceIds": workspace_ids, "sorts": ["name:asc"] });
    let found = session.all::<deployments::List, Value>(path, &sorted, Some(MOST)).await?;
    let is_cut = found.len() as u64 >= MOST;
    // An older server has no list of them, and nothing else depends on it.
    let processes = session.all::<deployment_processes::List, Processes>(path, &sorted, Some(MOST)).await;
    let processes = processes.unwrap_or_default();
    let with_row = |raw: Value| Ok((Row::of(&read(&raw)?, &running, &processes), raw));
    Ok((found.into_iter().map(with_row).collect::<Outcome<_>>()?, is_cut))
}

/// Counts the DAG runs that ended on the last day, and says where the events go on that were not looked at. A server that
/// has no events, or does not show them, leaves them uncounted.
async fn count_runs(
    session: &Session,
    path: &InOrganization,
    workspace_id: Option<WorkspaceId>,
    top: &mut Top,
) -> Option<String> {
    let query = FollowEvents {
        types: vec![EventType::DagRunSucceeded, EventType::DagRunFailed],
        since: Some(World::machine().now() - PAST),
        workspace_id,
        ..FollowEvents::default()
    };
    let count = |page: &[Value]| {
        page.iter().filter_map(|event| read(event).ok()).for_each(|event| top.count(&event));
        Ok(())
    };
    session.behind_cursor::<List>(path, &query, (MOST_RUNS, PAGE, MOST_RUNS / PAGE), count).await.ok()?
}

/// Shows the view until the person quits.
async fn watch(
    session: &Session,
    mut top: Top,
    (path, workspace_ids): (&InOrganization, &[Named<WorkspaceId>]),
    events: Stream<'_>,
) -> Outcome {
    let (sender, mut news) = mpsc::channel(WAITING);
    let mut ended = signal(SignalKind::terminate())?;
    let mut screen = Screen::open()?;
    read_keys(sender.clone());
    let has_colours = std::env::var_os("NO_COLOR").is_none();
    let following = follow_events(events, sender);
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
            reading = Some(Box::pin(read_all(session, path, workspace_ids)));
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
            top.refresh(rows.into_iter().map(|(row, _)| row).collect());
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
async fn follow_events(mut events: Stream<'_>, news: mpsc::Sender<News>) -> Outcome {
    loop {
        let heard = match events.hear().await? {
            Heard::Opened => News::Following,
            Heard::Broken(failed) => News::Unreachable(failed.reason()),
            Heard::Event(event) => match read(&event) {
                Ok(event) => News::Event(event),
                Err(_) => continue,
            },
        };
        let _ = news.send(heard).await;
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
