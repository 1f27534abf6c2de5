//! Logs: what happened around then?

pub(crate) mod histogram;
mod lines;

use podium_api::deployment_logs::{self, DeploymentLogEntry, GetDeploymentLogs};
use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};

use self::histogram::Histogram;
use self::lines::{Line, lines};
use super::Head;
use crate::pages::{Answer, Choice, OrganizationVisit, Problem, Result, Shell, Template};

/// How many lines a page shows, and how many are downloaded at most.
const LINES: usize = 500;
const DOWNLOADED: usize = 10_000;
/// Time ranges: seconds and their names.
const RANGES: [(u64, &str); 5] = [
    (900, "Last 15 minutes"),
    (3600, "Last hour"),
    (21_600, "Last 6 hours"),
    (86_400, "Last day"),
    (604_800, "Last 7 days"),
];

#[derive(Template)]
#[template(path = "deployment/logs.html")]
struct LogsPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    sources: Vec<Choice>,
    ranges: Vec<Choice>,
    search: String,
    lines: Vec<Line>,
    /// What was counted, for one without scripts who has asked for it.
    histogram: Option<Histogram>,
    /// Where a script reads it, and a link that waits for it.
    part: String,
    now: String,
    problem: Option<String>,
    is_narrowed: bool,
    whole: String,
    /// The page with lines that are older than those shown.
    older: Option<String>,
    download: String,
    follow: String,
}

struct Wanted {
    sources: Vec<LogSource>,
    range: u64,
    start: Timestamp,
    end: Timestamp,
    is_narrowed: bool,
    search: String,
}

impl Wanted {
    fn read(visit: &OrganizationVisit<'_>) -> Self {
        let query = visit.query();
        let named: Vec<&str> = query.all("sources").collect();
        let all = LogSource::ALL.iter().copied();
        let sources = all.filter(|source| named.is_empty() || named.contains(&source.as_str())).collect();
        let ranges = RANGES.iter().map(|(seconds, _)| *seconds);
        let range = { ranges }.find(|seconds| query.get("range") == seconds.to_string()).unwrap_or(3600);
        let now = visit.visit.now;
        let window =
            query.opt("from").and_then(Timestamp::parse).zip(query.opt("to").and_then(Timestamp::parse));
        let millis = i64::try_from(range).unwrap_or_default() * 1000;
        let (start, end) = window.unwrap_or((Timestamp::from_millis(now.millis() - millis), now));
        Self { sources, range, start, end, is_narrowed: window.is_some(), search: query.get("q").to_owned() }
    }

    /// Reads them, the newest first.
    async fn find(
        &self,
        visit: &OrganizationVisit<'_>,
        id: DeploymentId,
        most: usize,
    ) -> Result<Vec<DeploymentLogEntry>> {
        let most = u64::try_from(most).unwrap_or_default();
        let query = GetDeploymentLogs {
            sources: self.sources.clone(),
            limit: most,
            offset: 0,
            range: self.range,
            max_num_results: 10_000,
            search_id: None,
            search_text: self.search_text(),
            start_date: Some(self.start),
            end_date: Some(self.end),
        };
        Ok(visit.calls().find::<deployment_logs::Get>(visit.deployment(id), query).await?.results)
    }

    fn search_text(&self) -> Option<String> {
        Some(self.search.clone()).filter(|search| !search.is_empty())
    }

    /// What a follower asks for.
    fn follow(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.sources.iter().map(|source| ("sources", source.as_str())));
        if !self.search.is_empty() {
            query.append_pair("searchText", &self.search);
        }
        query.finish()
    }
}

/// The same search in another window of time.
fn window(visit: &OrganizationVisit<'_>, from: Timestamp, to: Timestamp) -> String {
    let kept = crate::params::Params::read(&visit.query().with("from", &from.to_string()));
    format!("?{}", kept.with("to", &to.to_string()))
}

/// The lines of a time range.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (_, head) = Head::read(visit, id, "logs").await?;
    let wanted = Wanted::read(visit);
    let (entries, problem) = match wanted.find(visit, id, LINES).await {
        Ok(entries) => (entries, None),
        Err(Problem { status: 400, message, fields }) => {
            let fields: Vec<String> = fields.into_iter().map(|field| field.message).collect();
            (Vec::new(), Some(format!("{message} {}", fields.join(" "))))
        }
        Err(problem) => return Err(problem),
    };
    let oldest = entries.last().filter(|_| entries.len() == LINES).map(|entry| entry.timestamp);
    let histogram = match problem {
        None if visit.query().is_on("now") => Some(histogram::count(visit, id, &wanted).await),
        _ => None,
    };
    let whole = crate::params::Params::read(&visit.query().with("from", "")).with("to", "");
    let source = |of: &LogSource| Choice::new(of.as_str(), of.as_str(), wanted.sources.contains(of));
    let range =
        |(seconds, name): &(u64, &str)| Choice::new(seconds.to_string(), *name, *seconds == wanted.range);
    let page = LogsPage {
        sources: LogSource::ALL.iter().map(source).collect(),
        ranges: RANGES.iter().map(range).collect(),
        histogram,
        part: format!("{}/logs/histogram?{}", head.href, visit.query().with("now", "")),
        now: format!("?{}", visit.query().with("now", "1")),
        lines: lines(visit, &entries, &wanted.search),
        problem,
        is_narrowed: wanted.is_narrowed,
        whole: format!("?{whole}"),
        older: oldest.map(|at| window(visit, wanted.start, Timestamp::from_millis(at + 1))),
        download: format!("{}/logs/download?{}", head.href, visit.query().with("done", "")),
        follow: format!("{}/logs/follow?{}", head.href, wanted.follow()),
        search: wanted.search,
        shell: &head.shell,
        head: &head,
    };
    Answer::page(&page)
}

/// The lines of a time range as a file, the oldest first.
pub(crate) async fn download(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let entries = Wanted::read(visit).find(visit, id, DOWNLOADED).await?;
    let mut text = String::new();
    for entry in entries.iter().rev() {
        let parts = [
            &Timestamp::from_millis(entry.timestamp).to_string(),
            " ",
            entry.source.as_str(),
            " ",
            &entry.raw.replace('\n', "\n    "),
            "\n",
        ];
        text.extend(parts);
    }
    Ok(Answer::File { name: "lines.log", media_type: "text/plain; charset=utf-8", text })
}
