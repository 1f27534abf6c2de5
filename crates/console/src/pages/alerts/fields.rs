//! What the forms of alerts ask, and what they say to the API.

use podium_api::alerts::Alert;
use podium_api::enums::AlertKind;
use podium_api::{deployments, webhooks};
use serde_json::{Value, json};

use super::watches_for;
use crate::form::{Field, FieldKind};
use crate::pages::deployments::workspace_choices;
use crate::params::Params;
use crate::view;
use crate::visit::OrganizationVisit;

/// How many deployments can be chosen from; those that are chosen already come on top.
const DEPLOYMENTS: &str = "50";

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
        let first = [("limit", DEPLOYMENTS), ("sorts", "name:asc")];
        let found = calls.get::<deployments::List>(visit.here(), &first).await.ok();
        let has_more = found.as_ref().is_some_and(|found| found.total_count > found.limit.into());
        let mut read: Vec<_> = found.into_iter().flat_map(|found| found.deployments).collect();
        if has_more && !chosen.is_empty() {
            let mut query: Vec<(&str, &str)> =
                chosen.iter().take(100).map(|id| ("deploymentIds", id.as_str())).collect();
            query.push(("limit", "100"));
            let found = calls.get::<deployments::List>(visit.here(), &query).await.ok();
            read.extend(found.into_iter().flat_map(|found| found.deployments));
        }
        let read = read.into_iter().filter_map(|shown| shown.into_value().ok());
        let mut deployments: Vec<(String, String)> = read.map(|of| (of.id.to_string(), of.name)).collect();
        deployments.sort_by(|one, other| one.1.cmp(&other.1));
        deployments.dedup();
        let query = [("limit", "100"), ("sorts", "name:asc")];
        let hooks = calls.get::<webhooks::List>(visit.here(), &query).await.ok();
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

    /// Where an alert looks, by name.
    pub(super) fn names(&self, of: &Alert) -> String {
        let spaces = of.workspace_ids.iter().map(|id| name(&self.workspaces, &id.to_string()));
        let names: Vec<String> = spaces
            .chain(of.deployment_ids.iter().map(|id| name(&self.deployments, &id.to_string())))
            .collect();
        if names.is_empty() { "everywhere".to_owned() } else { names.join(", ") }
    }

    /// The webhooks that an alert names.
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

/// The fields of a new alert.
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

/// The fields that an alert of this kind has.
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

/// What every form says.
fn body(sent: &Params) -> Value {
    let all = |name: &str| sent.all(name).map(str::to_owned).collect::<Vec<_>>();
    json!({
        "name": sent.get("name").trim(),
        "description": sent.get("description").trim(),
        "mailAddresses": sent.get("mailAddresses").split_whitespace().collect::<Vec<_>>(),
        "webhookIds": all("webhookIds"),
        "workspaceIds": all("workspaceIds"),
        "deploymentIds": all("deploymentIds"),
    })
}

/// A number as one, and what is none as it was sent: the API says what is wrong with it.
fn number(text: &str) -> Value {
    text.parse::<u32>().map_or_else(|_| json!(text), |number| json!(number))
}

/// What the form says that creates an alert.
pub(super) fn new_body(sent: &Params) -> Value {
    let mut body = body(sent);
    body["kind"] = json!(sent.get("kind"));
    for name in ["afterMinutes", "daysBefore"] {
        if let Some(text) = sent.filled(name) {
            body[name] = number(text);
        }
    }
    if let Some(dag) = sent.filled("dagId") {
        body["dagId"] = json!(dag);
    }
    body
}

/// What the form says that changes one.
pub(super) fn changed_body(sent: &Params, kind: AlertKind) -> Value {
    let mut body = body(sent);
    body["isEnabled"] = json!(sent.is_on("isEnabled"));
    for name in of_kind(kind) {
        match *name {
            "dagId" => body["dagId"] = json!(sent.get("dagId").trim()),
            name => {
                if let Some(text) = sent.filled(name) {
                    body[name] = number(text);
                }
            }
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_say_what_the_api_takes() {
        let sent = Params::read(
            "name=+slow+&kind=DAG_RUN_TOO_SLOW&afterMinutes=60&daysBefore=&dagId=load&mailAddresses=a%40b.c%0D%0Ad%40e.f&deploymentIds=x&deploymentIds=y",
        );
        let new = new_body(&sent);
        assert_eq!(
            (&new["name"], &new["afterMinutes"], new.get("daysBefore")),
            (&json!("slow"), &json!(60), None)
        );
        assert_eq!(
            (&new["mailAddresses"], &new["deploymentIds"]),
            (&json!(["a@b.c", "d@e.f"]), &json!(["x", "y"]))
        );
        let changed = changed_body(&sent, AlertKind::DeployFailed);
        assert_eq!(
            (changed.get("afterMinutes"), changed.get("dagId"), &changed["isEnabled"]),
            (None, None, &json!(false))
        );
        assert_eq!(changed_body(&Params::read("dagId="), AlertKind::DagRunFailed)["dagId"], "");
        assert_eq!(number("many"), json!("many"));
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
