//! What differs between any two deploys that ran: the changes that each rollout reported, put together.

use std::collections::BTreeMap;

use podium_api::deploy_reports::{self, DeployReport, ReportedChanges};
use podium_api::deploys::{self, Deploy, ListDeploys};
use podium_api::enums::{DeployReportState, DeployStatus};
use podium_api::page::Page;
use podium_api::path::OfDeploy;
use podium_api::{DeployId, DeploymentId, Timestamp};

use super::{Changes, name};
use crate::pages::deployment::Head;
use crate::pages::{Answer, Choice, Html, OrganizationVisit, Problem, Result, Shell, Template, id, view};

/// How many of the newest deploys can be chosen from, and how many may lie between two that are compared.
const CHOICES: u32 = 200;
const MOST_BETWEEN: usize = 40;
/// How many further deploys are read at both ends: some may be created meanwhile, or in the same moment.
const MARGIN: u32 = 10;

#[derive(Template)]
#[template(path = "deployment/compare.html")]
struct ComparePage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    from: Vec<Choice>,
    to: Vec<Choice>,
    sides: Vec<Side>,
    changes: Vec<Changes>,
    /// How many rollouts are put together.
    steps: usize,
    is_cut: bool,
    problem: Option<String>,
}

/// One of the two.
struct Side {
    label: &'static str,
    name: String,
    href: String,
    by: String,
    created: Html,
    commit: String,
    description: String,
}

/// What has become of a file or DAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Added,
    Changed,
    Removed,
}

/// What has become of each name, after several rollouts.
#[derive(Default)]
struct Folded {
    fates: BTreeMap<String, Fate>,
    /// Whether a report held fewer names than there were.
    is_cut: bool,
}

impl Folded {
    /// Adds the next rollout.
    fn add(&mut self, of: &ReportedChanges) {
        let is_cut = |names: &[String], count: u64| u64::try_from(names.len()).is_ok_and(|held| held < count);
        self.is_cut |= is_cut(&of.added, of.added_count)
            || is_cut(&of.changed, of.changed_count)
            || is_cut(&of.removed, of.removed_count);
        for name in &of.added {
            // What was there before, went and came again may be another one.
            let fate = if self.fates.contains_key(name) { Fate::Changed } else { Fate::Added };
            self.fates.insert(name.clone(), fate);
        }
        for name in &of.changed {
            self.fates.entry(name.clone()).or_insert(Fate::Changed);
        }
        for name in &of.removed {
            if self.fates.get(name) == Some(&Fate::Added) {
                self.fates.remove(name);
            } else {
                self.fates.insert(name.clone(), Fate::Removed);
            }
        }
    }

    /// The changes as a page shows them; backwards, what was added is removed.
    fn shown(&self, what: &'static str, is_backwards: bool) -> Changes {
        let of = |fate: Fate| -> Vec<String> {
            self.fates.iter().filter(|(_, own)| **own == fate).map(|(name, _)| name.clone()).collect()
        };
        let (added, removed) = (of(Fate::Added), of(Fate::Removed));
        let (added, removed) = if is_backwards { (removed, added) } else { (added, removed) };
        let groups = [("added", added), ("changed", of(Fate::Changed)), ("removed", removed)];
        let groups = groups.into_iter().filter(|(_, names)| !names.is_empty());
        let counted = |names: &Vec<String>| u64::try_from(names.len()).unwrap_or_default();
        Changes { what, groups: groups.map(|(word, names)| (word, counted(&names), names)).collect() }
    }
}

/// The form's choices: the deploys that were finalized, with one of them chosen.
pub(super) fn choices(
    visit: &OrganizationVisit<'_>,
    deploys: &[Deploy],
    chosen: Option<&str>,
) -> Vec<Choice> {
    let finalized = deploys.iter().filter(|of| of.status == DeployStatus::Deployed);
    let choice = |of: &Deploy| {
        let described = of.description.as_ref().filter(|text| !text.is_empty());
        let described = described.map(|text| text.chars().take(60).collect::<String>());
        let ago = view::relative(of.created_at, visit.visit.now);
        let label = format!("{}, {ago}", described.unwrap_or_else(|| view::short(&name(of))));
        Choice::new(of.id.as_str(), label, chosen == Some(of.id.as_str()))
    };
    finalized.map(choice).collect()
}

/// Compares two deploys, which the query names.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, deployment_id: DeploymentId) -> Result {
    let (_, head) = Head::read(visit, deployment_id, "deploys").await?;
    let (from, to) = (visit.query().get("from"), visit.query().get("to"));
    let query = ListDeploys { page: Page::first(CHOICES) };
    let found = visit.calls().find::<deploys::List>(visit.deployment(deployment_id), query).await?;
    let (chosen, compared, problem) = match chosen(visit, deployment_id, (from, to)).await {
        Ok(chosen) => match compare(visit, deployment_id, found.total_count, &chosen).await {
            Ok(compared) => (Some(chosen), compared, None),
            Err(problem) => (Some(chosen), Compared::default(), Some(problem.message)),
        },
        Err(problem) => (None, Compared::default(), Some(problem.message)),
    };
    let mut offered = found.deploys;
    for of in chosen.iter().flatten() {
        if !offered.iter().any(|other| other.id == of.id) {
            offered.push(of.clone());
        }
    }
    let side = |label, id: &str| {
        let of = chosen.iter().flatten().find(|of| of.id.to_string() == id)?;
        Some(Side {
            label,
            name: name(of),
            href: format!("{}/deploys/{}", head.href, of.id),
            by: view::subject(of.created_by_subject.as_ref()),
            created: view::time(of.created_at, visit.visit.now),
            commit: of.git.as_ref().map(|git| git.commit_sha.chars().take(10).collect()).unwrap_or_default(),
            description: of.description.clone().unwrap_or_default(),
        })
    };
    let page = ComparePage {
        from: choices(visit, &offered, Some(from)),
        to: choices(visit, &offered, Some(to)),
        sides: [side("From", from), side("To", to)].into_iter().flatten().collect(),
        changes: compared.changes,
        steps: compared.steps,
        is_cut: compared.is_cut,
        problem,
        shell: &head.shell,
        head: &head,
    };
    Answer::page(&page)
}

#[derive(Default)]
struct Compared {
    changes: Vec<Changes>,
    steps: usize,
    is_cut: bool,
}

/// The two that the query names.
async fn chosen(
    visit: &OrganizationVisit<'_>,
    deployment_id: DeploymentId,
    (from, to): (&str, &str),
) -> Result<[Deploy; 2]> {
    let read = async |text: &str| {
        let path: OfDeploy = (visit.organization_id, deployment_id, id(text)?).into();
        visit.calls().get::<deploys::Get>(path).await
    };
    let none = |problem: Problem| match problem.status {
        404 => Problem::new(404, "Choose two deploys of this deployment."),
        _ => problem,
    };
    Ok([read(from).await.map_err(none)?, read(to).await.map_err(none)?])
}

/// The deploys around the newer of two and as many older ones as may lie between them, the newest first. Its place in the
/// list is found by when it was created.
async fn newest_first_from(
    visit: &OrganizationVisit<'_>,
    deployment_id: DeploymentId,
    total: u64,
    newer: Timestamp,
) -> Result<Vec<Deploy>> {
    let page = async |offset: u64, limit: u32| {
        let query = ListDeploys { page: Page { offset, ..Page::first(limit) } };
        let found = visit.calls().find::<deploys::List>(visit.deployment(deployment_id), query).await?;
        Ok::<_, Problem>(found.deploys)
    };
    let (mut low, mut high) = (0, total);
    while low < high {
        let middle = low + (high - low) / 2;
        match page(middle, 1).await?.first() {
            Some(of) if of.created_at > newer => low = middle + 1,
            _ => high = middle,
        }
    }
    let between = u32::try_from(MOST_BETWEEN).unwrap_or_default();
    page(low.saturating_sub(MARGIN.into()), between + 2 * MARGIN).await
}

async fn compare(
    visit: &OrganizationVisit<'_>,
    deployment_id: DeploymentId,
    total: u64,
    [from, to]: &[Deploy; 2],
) -> Result<Compared> {
    let newer = from.created_at.max(to.created_at);
    let newest_first = newest_first_from(visit, deployment_id, total, newer).await?;
    let at = |of: &Deploy| newest_first.iter().position(|other| other.id == of.id);
    let too_far = || {
        let message =
            format!("More than {MOST_BETWEEN} deploys lie between these two: compare them in steps.");
        Problem::new(400, message)
    };
    let (from, to) = at(from).zip(at(to)).ok_or_else(too_far)?;
    let (newer, older) = (from.min(to), from.max(to));
    if older - newer > MOST_BETWEEN {
        return Err(too_far());
    }
    let mut ran: Vec<DeployReport> = Vec::new();
    for of in newest_first[newer..=older].iter().rev() {
        let path: OfDeploy = (visit.organization_id, deployment_id, of.id).into();
        let report = visit.calls().get::<deploy_reports::Get>(path).await?;
        ran.extend(Some(report).filter(|report| report.state == DeployReportState::Live));
    }
    // Each reports what it changed of what ran before it, so they are put together as they came into effect.
    ran.sort_by_key(|report| report.finished_at);
    let place = |id: DeployId| ran.iter().position(|report| report.deploy_id == id);
    let (Some(from), Some(to)) = (place(newest_first[from].id), place(newest_first[to].id)) else {
        return Err(Problem::new(
            400,
            "One of these deploys never ran here, or its rollout has not ended: there is nothing to compare.",
        ));
    };
    let steps = &ran[from.min(to) + 1..=from.max(to)];
    let (mut files, mut dags) = (Folded::default(), Folded::default());
    for report in steps {
        report.files.iter().for_each(|changes| files.add(changes));
        report.dags.iter().for_each(|changes| dags.add(changes));
    }
    let is_backwards = from > to;
    let is_cut = files.is_cut || dags.is_cut;
    // Nothing is said to be the same if a rollout did not report it.
    let known = (steps.iter().all(|step| step.files.is_some()), steps.iter().all(|step| step.dags.is_some()));
    let changes =
        [(known.0, files.shown("Files", is_backwards)), (known.1, dags.shown("DAGs", is_backwards))];
    let changes = changes.into_iter().filter(|(is_known, of)| *is_known || !of.groups.is_empty());
    let changes = changes.map(|(_, of)| of).collect();
    Ok(Compared { changes, steps: steps.len(), is_cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(added: &[&str], changed: &[&str], removed: &[&str]) -> ReportedChanges {
        let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect();
        let count = |of: &[&str]| u64::try_from(of.len()).unwrap();
        ReportedChanges {
            added: names(added),
            changed: names(changed),
            removed: names(removed),
            added_count: count(added),
            changed_count: count(changed),
            removed_count: count(removed),
        }
    }

    fn folded(steps: &[ReportedChanges]) -> Folded {
        let mut folded = Folded::default();
        steps.iter().for_each(|step| folded.add(step));
        folded
    }

    #[test]
    fn rollouts_are_put_together() {
        let steps = [
            changes(&["new", "brief"], &["edited"], &["gone", "back"]),
            changes(&["back"], &["new", "edited"], &["brief", "edited"]),
        ];
        let shown = folded(&steps).shown("Files", false);
        let text: Vec<(&str, String)> =
            shown.groups.into_iter().map(|(word, _, names)| (word, names.join(" "))).collect();
        let expected = [("added", "new"), ("changed", "back"), ("removed", "edited gone")];
        assert_eq!(text, expected.map(|(word, names)| (word, names.to_owned())));
    }

    #[test]
    fn backwards_what_was_added_is_removed() {
        let shown = folded(&[changes(&["a"], &["b"], &["c"])]).shown("DAGs", true);
        let words: Vec<(&str, &str)> =
            shown.groups.iter().map(|(word, _, names)| (*word, names[0].as_str())).collect();
        assert_eq!(words, [("added", "c"), ("changed", "b"), ("removed", "a")]);
    }

    #[test]
    fn a_report_with_fewer_names_than_there_were_is_noticed() {
        let cut = ReportedChanges { added_count: 500, ..changes(&["a"], &[], &[]) };
        assert!(folded(&[cut]).is_cut && !folded(&[changes(&["a"], &[], &[])]).is_cut);
    }
}
