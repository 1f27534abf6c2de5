//! What the forms of alerts ask, and what they say to the API.

use podium_api::alerts::{Alert, CreateAlertRequest, UpdateAlertRequest};
use podium_api::deployments::{self, ListDeployments};
use podium_api::enums::AlertKind;
use podium_api::page::Page;
use podium_api::webhooks::{self, ListWebhooks};

use super::watches_for;
use crate::pages::deployments::workspace_choices;
use crate::pages::{Field, FieldKind, OrganizationVisit, Params, Result, readable, view};

/// How many deployments can be chosen from; those that are chosen already come on top.
const DEPLOYMENTS: u32 = 50;

/// What an alert can be limited to, and whom it can tell: ids with their names.
pub(super) struct Places {
    workspaces: Vec<(String, String)>,
    deployments: Vec<(String, String)>,
    webhooks: Vec<(String, String)>,
    /// The deployments that are chosen before anything is sent.
    chosen: Vec<String>,
    has_more: bool,
}

impl Places {
    /// Reads what the person may see of them.
    pub(super) async fn read(visit: &OrganizationVisit<'_>, chosen: &[String]) -> Self {
        let calls = visit.calls();
        let first = ListDeployments {
            page: Page::first(DEPLOYMENTS).sorted_by("name"),
            ..ListDeployments::default()
        };
        let found = calls.find::<deployments::List>(visit.here(), first).await.ok();
        let has_more = found.as_ref().is_some_and(|found| found.total_count > found.limit.into());
        let mut read: Vec<_> = found.into_iter().flat_map(|found| found.deployments).collect();
        if has_more && !chosen.is_empty() {
            let query = ListDeployments {
                deployment_ids: chosen.iter().take(100).map(|id| id.as_str().into()).collect(),
                page: Page::first(100),
                ..ListDeployments::default()
            };
            let found = calls.find::<deployments::List>(visit.here(), query).await.ok();
            read.extend(found.into_iter().flat_map(|found| found.deployments));
        }
        let read = readable(read).into_iter();
        let mut deployments: Vec<(String, String)> = read.map(|of| (of.id.to_string(), of.name)).collect();
        deployments.sort_by(|one, other| one.1.cmp(&other.1));
        deployments.dedup();
        let query = ListWebhooks { page: Page::first(100).sorted_by("name") };
        let hooks = calls.find::<webhooks::List>(visit.here(), query).await.ok();
        let hooks = hooks.into_iter().flat_map(|found| found.webhooks);
        Self {
            workspaces: workspace_choices(visit).await.unwrap_or_default(),
            deployments,
            webhooks: hooks.map(|of| (of.id.to_string(), of.name)).collect(),
            chosen: chosen.to_vec(),
            has_more,
        }
    }

    /// The field that chooses which webhooks it tells; none if there are none.
    pub(super) fn webhook_field(&self, of: Option<&Alert>) -> Option<Field> {
        let chosen: Vec<String> =
            of.map(|of| of.webhook_ids.iter().map(ToString::to_string).collect()).unwrap_or_default();
        let hint = "Only these webhooks get the alert's events. If none is chosen, all subscribed ones do.";
        checks("webhookIds", "Webhooks", &self.webhooks, &chosen, hint)
    }

    /// The fields that limit where it looks.
    pub(super) fn place_fields(&self, of: Option<&Alert>) -> Vec<Field> {
        let chosen: Vec<String> =
            of.map(|of| of.workspace_ids.iter().map(ToString::to_string).collect()).unwrap_or_default();
        let all = "If nothing is chosen, the alert looks everywhere.";
        let some = "The first 50 by name are shown: for others, choose their workspace, or use podium alert.";
        let workspaces = checks("workspaceIds", "Only in these workspaces", &self.workspaces, &chosen, all);
        let hint = if self.has_more { some } else { all };
        let deployments =
            checks("deploymentIds", "Only on these deployments", &self.deployments, &self.chosen, hint);
        workspaces.into_iter().chain(deployments).collect()
    }

    pub(super) fn names(&self, of: &Alert) -> String {
        let spaces = of.workspace_ids.iter().map(|id| name(&self.workspaces, &id.to_string()));
        let names: Vec<String> = spaces
            .chain(of.deployment_ids.iter().map(|id| name(&self.deployments, &id.to_string())))
            .collect();
        if names.is_empty() { "everywhere".to_owned() } else { names.join(", ") }
    }

    pub(super) fn webhook_names(&self, of: &Alert) -> String {
        of.webhook_ids.iter().map(|id| name(&self.webhooks, &id.to_string())).collect::<Vec<_>>().join(", ")
    }
}

fn checks(
    name: &'static str,
    label: &str,
    known: &[(String, String)],
    chosen: &[String],
    hint: &str,
) -> Option<Field> {
    let choices = with_unknown(known, chosen);
    (!choices.is_empty()).then(|| Field::checks(name, label, choices).hint(hint))
}

/// The choices, with those that are chosen but not known.
fn with_unknown(known: &[(String, String)], chosen: &[String]) -> Vec<(String, String, bool)> {
    let listed = known.iter().map(|(id, name)| (id.clone(), name.clone(), chosen.contains(id)));
    let others = chosen.iter().filter(|id| !known.iter().any(|(known, _)| known == *id));
    listed.chain(others.map(|id| (id.clone(), view::short(id), true))).collect()
}

fn name(known: &[(String, String)], id: &str) -> String {
    known.iter().find(|(known, _)| known == id).map_or_else(|| view::short(id), |(_, name)| name.clone())
}

fn after_minutes() -> Field {
    Field::text("afterMinutes", "After, in minutes").of(FieldKind::Number)
}

fn days_before() -> Field {
    Field::text("daysBefore", "Days before").of(FieldKind::Number)
}

fn dag() -> Field {
    Field::text("dagId", "Only this DAG")
}

fn mails() -> Field {
    Field::text("mailAddresses", "Mails to").of(FieldKind::Area).hint("One address on each line.")
}

pub(super) fn new(visit: &OrganizationVisit<'_>) -> Vec<Field> {
    let kinds = AlertKind::ALL.iter().map(|kind| (kind.as_str().to_owned(), watches_for(*kind).to_owned()));
    let kind = visit.query().opt("kind").unwrap_or(AlertKind::DeploymentUnhealthy.as_str());
    vec![
        Field::text("name", "Name").required(),
        Field::choice("kind", "Condition", kinds).value(kind),
        after_minutes().hint("For unhealthy deployments (5 if empty) and slow runs."),
        days_before().hint("For tokens: 7 if empty."),
        dag().hint("For runs: all DAGs if empty."),
        mails(),
        Field::text("description", "Description"),
    ]
}

pub(super) fn of(alert: &Alert) -> Vec<Field> {
    let number = |of: Option<u32>| of.map(|number| number.to_string()).unwrap_or_default();
    let has = of_kind(alert.kind);
    let mut fields = vec![Field::text("name", "Name").value(&*alert.name).required()];
    fields.extend(has.contains(&"afterMinutes").then(|| after_minutes().value(number(alert.after_minutes))));
    fields.extend(has.contains(&"daysBefore").then(|| days_before().value(number(alert.days_before))));
    fields.extend(
        has.contains(&"dagId")
            .then(|| dag().value(alert.dag_id.clone().unwrap_or_default()).hint("All DAGs if empty.")),
    );
    fields.push(mails().value(alert.mail_addresses.join("\n")));
    fields.push(Field::text("description", "Description").value(&*alert.description));
    fields
}

/// What belongs to a kind beyond what every alert has.
const fn of_kind(kind: AlertKind) -> &'static [&'static str] {
    match kind {
        AlertKind::DeploymentUnhealthy => &["afterMinutes"],
        AlertKind::DeployFailed | AlertKind::OperationFailed => &[],
        AlertKind::DagRunFailed => &["dagId"],
        AlertKind::DagRunTooSlow => &["afterMinutes", "dagId"],
        AlertKind::TokenExpiring => &["daysBefore"],
    }
}

/// What the form says that creates an alert.
pub(super) fn new_body(sent: &Params) -> Result<CreateAlertRequest> {
    Ok(CreateAlertRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        kind: sent.required("kind")?,
        after_minutes: sent.parsed("afterMinutes")?,
        days_before: sent.parsed("daysBefore")?,
        dag_id: sent.filled("dagId").map(str::to_owned),
        workspace_ids: Some(sent.parsed_all("workspaceIds")?),
        deployment_ids: Some(sent.parsed_all("deploymentIds")?),
        webhook_ids: Some(sent.parsed_all("webhookIds")?),
        mail_addresses: Some(sent.words("mailAddresses")),
        is_enabled: None,
    })
}

/// What the form says that changes one. A DAG that is no more named is cleared.
pub(super) fn changed_body(sent: &Params, kind: AlertKind) -> Result<UpdateAlertRequest> {
    let has = |name| of_kind(kind).contains(&name);
    Ok(UpdateAlertRequest {
        name: Some(sent.text("name")),
        description: Some(sent.text("description")),
        after_minutes: sent.parsed("afterMinutes")?.filter(|_| has("afterMinutes")),
        days_before: sent.parsed("daysBefore")?.filter(|_| has("daysBefore")),
        dag_id: has("dagId").then(|| sent.text("dagId")),
        workspace_ids: Some(sent.parsed_all("workspaceIds")?),
        deployment_ids: Some(sent.parsed_all("deploymentIds")?),
        webhook_ids: Some(sent.parsed_all("webhookIds")?),
        mail_addresses: Some(sent.words("mailAddresses")),
        is_enabled: Some(sent.is_on("isEnabled")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_say_what_the_api_takes() {
        let (one, two) = ("c00000000000000000000000a", "c00000000000000000000000b");
        let sent = Params::read(&format!(
            "name=+slow+&kind=DAG_RUN_TOO_SLOW&afterMinutes=60&daysBefore=&dagId=load&mailAddresses=a%40b.c%0D%0Ad%40e.f&deploymentIds={one}&deploymentIds={two}"
        ));
        let new = new_body(&sent).unwrap();
        assert_eq!((new.name.as_str(), new.after_minutes, new.days_before), ("slow", Some(60), None));
        assert_eq!(new.mail_addresses.unwrap(), ["a@b.c", "d@e.f"]);
        assert_eq!(new.deployment_ids.unwrap(), [one, two].map(|id| id.parse().unwrap()));
        let changed = changed_body(&sent, AlertKind::DeployFailed).unwrap();
        assert_eq!((changed.after_minutes, changed.dag_id, changed.is_enabled), (None, None, Some(false)));
        let cleared = changed_body(&Params::read("dagId="), AlertKind::DagRunFailed).unwrap();
        assert_eq!(cleared.dag_id.as_deref(), Some(""));
        let wrong = changed_body(&Params::read("afterMinutes=many"), AlertKind::DagRunTooSlow).unwrap_err();
        assert!(wrong.of_field("afterMinutes").is_some());
    }

    #[test]
    fn what_is_chosen_stays_a_choice_though_it_is_not_listed() {
        let choices = with_unknown(&[("a".to_owned(), "Alpha".to_owned())], &["b".to_owned()]);
        assert_eq!(
            choices,
            [("a".to_owned(), "Alpha".to_owned(), false), ("b".to_owned(), "b".to_owned(), true)]
        );
    }
}
