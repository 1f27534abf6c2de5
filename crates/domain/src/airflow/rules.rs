//! The tables of rules: a method and a path, and the permissions that they require.
//!
//! They are `data/rules-of-airflow-2.txt` and `data/rules-of-airflow-3.txt`: a rule on each line, with the permissions inside
//! Airflow that it takes on the deployment. What follows `by` says how a role on single DAGs can do instead.

use std::sync::LazyLock;

use crate::airflow::path::AirflowPath;
use crate::permissions::Permission;

/// A line of Apache Airflow: they differ in their paths, and in how a caller is made known to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// 2.x: the user and the role are in a signed header.
    Two,
    /// 3.x: the user and the role are in a bearer token.
    Three,
}

/// What a request of one kind needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub method: &'static str,
    /// The path: `{name}` is any one part, `{dag}` the id of a DAG, `{*}` the rest.
    pub path: &'static str,
    /// The permissions on the deployment that it requires, all of them; none if seeing the deployment is enough.
    pub needs: Vec<Permission>,
    /// How a role on single DAGs can do instead.
    pub by: By,
}

impl Rule {
    /// Reads a line of a table; `None` if it is not a rule, or takes a permission that there is not.
    fn read(line: &'static str) -> Option<Self> {
        let (line, by) = line.split_once(" by ").unwrap_or((line, ""));
        let mut words = line.split_whitespace();
        let (method, path) = (words.next()?, words.next()?);
        let needs = words.map(|need| Permission::named(&format!("deployment.airflow.{need}")));
        Some(Self { method, path, needs: needs.collect::<Option<_>>()?, by: By::read(by)? })
    }

    /// Whether a request of this kind changes something.
    pub fn is_write(&self) -> bool {
        self.needs.iter().any(|need| !need.name().ends_with(".get"))
    }

    /// Whether the query is checked too.
    pub fn is_judged_by_query(&self) -> bool {
        !matches!(self.by, By::Path | By::Shell)
    }
}

/// How a role on single DAGs can do instead of one on the deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By the DAG in the path, if the path has one; otherwise not at all.
    Path,
    /// By the one DAG that this parameter of the query names.
    Query(&'static str),
    /// By narrowing a list with its own filters.
    Filter {
        /// The parameter that takes ids of DAGs.
        ids: Option<&'static str>,
        /// Whether `tags` is one.
        tags: bool,
    },
    /// As it is, for anyone who may see anything inside: it shows nothing of a DAG by itself.
    Shell,
}

impl By {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "" => Self::Path,
            "shell" => Self::Shell,
            "dag_id" => Self::Query("dag_id"),
            "tags" => Self::Filter { ids: None, tags: true },
            "dag_ids" => Self::Filter { ids: Some("dag_ids"), tags: false },
            "dag_ids_or_tags" => Self::Filter { ids: Some("dag_ids"), tags: true },
            _ => return None,
        })
    }
}

/// Paths refused to everybody: other ways to sign in, and paths that only Airflow's own components call.
const CLOSED: &[(&str, &str)] = &[
    ("/execution", "It is for the environment's own tasks only."),
    ("/internal_api", "It is for the environment's own components only."),
    ("/auth", "Sign in to Podium instead: its tokens and sessions give access to the environment."),
    ("/ui/auth/token", "Create an API token in Podium instead: it also works for the environment's API."),
    ("/login", "Sign in to Podium instead: its tokens and sessions give access to the environment."),
    ("/api/v1/users", "Users and roles are managed in Podium."),
    ("/api/v1/roles", "Users and roles are managed in Podium."),
    ("/api/v1/permissions", "Users and roles are managed in Podium."),
];

/// Why a path is closed to everybody, if it is.
pub fn closed(path: &AirflowPath) -> Option<&'static str> {
    let is_below = |prefix: &str| {
        let mut parts = prefix.split('/').skip(1);
        let mut segments = path.segments().iter();
        parts.all(|part| segments.next().is_some_and(|segment| segment.eq_ignore_ascii_case(part)))
    };
    CLOSED.iter().find(|(prefix, _)| is_below(prefix)).map(|(_, why)| *why)
}

static THREE: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| table(include_str!("../../data/rules-of-airflow-3.txt")));
static TWO: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| table(include_str!("../../data/rules-of-airflow-2.txt")));

fn table(text: &'static str) -> Vec<Pattern> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rule = |line| Rule::read(line).unwrap_or_else(|| panic!("this is no rule of the front door: {line}"));
    lines.map(|line| Pattern::new(rule(line))).collect()
}

/// Reads the tables. A server that cannot read them does not start.
pub fn load() {
    LazyLock::force(&THREE);
    LazyLock::force(&TWO);
}

/// The rule for a request, and the DAG that its path names; `HEAD` is judged as `GET`.
pub fn find<'a>(line: Line, method: &str, path: &'a AirflowPath) -> Option<(&'static Rule, Option<&'a str>)> {
    let patterns = match line {
        Line::Three => &*THREE,
        Line::Two => &*TWO,
    };
    let method = if method == "HEAD" { "GET" } else { method };
    let fitting = patterns.iter().filter(|pattern| pattern.rule.method == method && pattern.fits(path));
    // The most literal one counts, as it does behind the door.
    let best = fitting.max_by(|a, b| a.literal.cmp(&b.literal))?;
    let dag = best.dag.and_then(|at| path.segments().get(at)).map(String::as_str);
    Some((&best.rule, dag))
}

/// A rule with its path taken apart.
struct Pattern {
    rule: Rule,
    parts: Vec<Part>,
    is_folder: bool,
    dag: Option<usize>,
    /// Which parts are literal, first to last.
    literal: Vec<bool>,
}

enum Part {
    Literal(&'static str),
    Any,
    Rest,
}

impl Pattern {
    fn new(rule: Rule) -> Self {
        let (path, is_folder) = rule.path.strip_suffix('/').map_or((rule.path, false), |path| (path, true));
        let part = |part: &'static str| match part {
            "{*}" => Part::Rest,
            part if part.starts_with('{') => Part::Any,
            part => Part::Literal(part),
        };
        let parts: Vec<Part> = path.split('/').skip(1).map(part).collect();
        let dag = path.split('/').skip(1).position(|part| part == "{dag}");
        let literal = parts.iter().map(|part| matches!(part, Part::Literal(_))).collect();
        Self { rule, parts, is_folder, dag, literal }
    }

    fn fits(&self, path: &AirflowPath) -> bool {
        let mut segments = path.segments().iter();
        for part in &self.parts {
            match (part, segments.next()) {
                (Part::Rest, Some(_)) => return true,
                (Part::Any, Some(_)) => {}
                (Part::Literal(text), Some(segment)) if text == segment => {}
                _ => return false,
            }
        }
        segments.next().is_none() && self.is_folder == path.is_folder()
    }
}
