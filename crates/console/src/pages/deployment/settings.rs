//! Settings of a deployment: what would this change do?

use podium_api::DeploymentId;
use podium_api::deployments::Deployment;
use podium_api::enums::{Executor, SchedulerSize};
use serde_json::{Map, Value, json};

use askama::Template;

use super::Head;
use super::calendar::{self, Day};
use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form};
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "deployment/settings.html")]
struct SettingsPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    form: Form,
    schedules: Vec<(String, String, String)>,
    /// When it sleeps, day by day.
    days: Vec<Day>,
}

/// The form.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    id: DeploymentId,
    problem: Option<Problem>,
) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let head = Head::new(visit, &of, "settings").await?;
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    let form = form(&head.href, &of);
    let form = form.after(visit.form(), problem);
    let spec = of.scaling_spec.as_ref().and_then(|spec| spec.hibernation_spec.as_ref());
    let schedules = spec.and_then(|spec| spec.schedules.clone()).unwrap_or_default();
    let days = calendar::days(&schedules, visit.visit.now);
    let schedules = schedules.into_iter().filter(|schedule| schedule.is_enabled).map(|schedule| {
        (schedule.description.unwrap_or_default(), schedule.hibernate_at_cron, schedule.wake_at_cron)
    });
    let page = SettingsPage { shell: &head.shell, head: &head, form, schedules: schedules.collect(), days };
    Answer::with_status(status, &page)
}

fn form(href: &str, of: &Deployment) -> Form {
    let words = |all: &[&'static str]| {
        all.iter().map(|word| ((*word).to_owned(), view::words(word))).collect::<Vec<_>>()
    };
    let executors: Vec<&str> = Executor::ALL.iter().map(|executor| executor.as_str()).collect();
    let sizes: Vec<&str> = SchedulerSize::ALL.iter().map(|size| size.as_str()).collect();
    let mut fields = vec![
        Field::text("name", "Name").required().value(of.name.clone()),
        Field::text("description", "Description").value(of.description.clone().unwrap_or_default()),
        Field::choice("executor", "Executor", words(&executors))
            .value(of.executor.map(Executor::as_str).unwrap_or_default()),
    ];
    if let Some(size) = of.scheduler_size {
        fields.push(Field::choice("schedulerSize", "Scheduler", words(&sizes)).value(size.as_str()));
        fields.push(Field::check(
            "isHighAvailability",
            "Run components in several replicas",
            of.is_high_availability == Some(true),
        ));
    }
    fields.push(
        Field::check("isCicdEnforced", "Only API tokens may deploy", of.is_cicd_enforced)
            .hint("People then deploy through CI, not from their machines."),
    );
    fields.push(
        Field::text("drainGraceSeconds", "Wait for running tasks, in seconds")
            .of(FieldKind::Number)
            .value(of.drain_grace_seconds.map(|seconds| seconds.to_string()).unwrap_or_default())
            .hint("How long a change waits before it restarts task processes. Ten minutes if empty."),
    );
    fields.push(
        Field::text("historyRetentionDays", "Keep history, in days")
            .of(FieldKind::Number)
            .value(of.history_retention_days.map(|days| days.to_string()).unwrap_or_default())
            .hint("Older DAG runs, their tasks and logs are removed. Everything is kept if 0 or empty."),
    );
    fields.push(
        Field::text("cleanUpCron", "Remove older history at")
            .value(of.clean_up_cron.clone().unwrap_or_default())
            .hint("A cron expression in UTC, such as 30 3 * * 0. Every night at three if empty."),
    );
    fields.push(
        Field::text("contactEmails", "Contacts")
            .value(of.contact_emails.clone().unwrap_or_default().join(", "))
            .hint("E-mail addresses, separated by commas, that are notified of problems."),
    );
    Form {
        action: format!("{href}/settings"),
        fields,
        submit: "See what this changes".to_owned(),
        cancel: href.to_owned(),
        ..Form::default()
    }
}

/// Plans the change, and shows what it would do.
pub(crate) async fn plan(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, etag) = super::read(visit, id).await?;
    let body = match changed(visit, &of) {
        Ok(body) => body,
        Err(problem) => return show(visit, id, Some(problem)).await,
    };
    let path = format!("/organizations/{}/deployments/{id}", visit.organization_id);
    let call = json!({ "method": "POST", "path": path, "body": body, "ifMatch": etag });
    let back = visit.link(&format!("/deployments/{id}/settings"));
    let then = visit.link(&format!("/deployments/{id}?done=applied"));
    match crate::pages::plans::show(visit, call, "Apply the change", &back, &then).await {
        Err(problem) if problem.status < 500 => show(visit, id, Some(problem)).await,
        shown => shown,
    }
}

/// The body of the update: the deployment as it is, with what the form says.
fn changed(visit: &OrganizationVisit<'_>, of: &Deployment) -> Result<Map<String, Value>> {
    let mut body = kept(of);
    let sent = visit.form();
    body.insert("name".to_owned(), json!(sent.get("name").trim()));
    body.insert("description".to_owned(), json!(sent.get("description").trim()));
    body.insert("executor".to_owned(), json!(sent.get("executor")));
    body.insert("isCicdEnforced".to_owned(), json!(sent.is_on("isCicdEnforced")));
    if of.scheduler_size.is_some() {
        body.insert("schedulerSize".to_owned(), json!(sent.get("schedulerSize")));
        body.insert("isHighAvailability".to_owned(), json!(sent.is_on("isHighAvailability")));
    }
    for (name, unit) in [("drainGraceSeconds", "seconds"), ("historyRetentionDays", "days")] {
        if let Some(number) = sent.filled(name) {
            let wrong = |_| {
                let message = format!("must be a whole number of {unit}");
                let field = podium_api::FieldError::new(name, "type", message);
                Problem {
                    status: 400,
                    message: "The settings were not saved.".to_owned(),
                    fields: vec![field],
                }
            };
            body.insert(name.to_owned(), json!(number.parse::<u32>().map_err(wrong)?));
        }
    }
    if let Some(cron) = sent.filled("cleanUpCron") {
        body.insert("cleanUpCron".to_owned(), json!(cron.trim()));
    }
    let emails: Vec<&str> =
        sent.get("contactEmails").split(',').map(str::trim).filter(|email| !email.is_empty()).collect();
    body.insert("contactEmails".to_owned(), json!(emails));
    Ok(body)
}

/// What an update has to repeat to keep it.
pub(super) fn kept(of: &Deployment) -> Map<String, Value> {
    let variables = of.environment_variables.iter().flatten().map(|variable| {
        let value = if variable.is_secret { None } else { variable.value.clone() };
        let mut request = json!({ "key": variable.key, "isSecret": variable.is_secret });
        if let Some(value) = value {
            request["value"] = json!(value);
        }
        request
    });
    let mut body = Map::new();
    body.extend(of.kind.map(|kind| ("type".to_owned(), json!(kind))));
    body.insert("name".to_owned(), json!(of.name));
    body.insert("workspaceId".to_owned(), json!(of.workspace_id));
    body.extend(of.description.as_ref().map(|text| ("description".to_owned(), json!(text))));
    body.extend(of.executor.map(|executor| ("executor".to_owned(), json!(executor))));
    body.insert("isCicdEnforced".to_owned(), json!(of.is_cicd_enforced));
    body.insert("isDagDeployEnabled".to_owned(), json!(of.is_dag_deploy_enabled));
    match of.scheduler_size {
        Some(size) => {
            body.insert("schedulerSize".to_owned(), json!(size));
            body.insert("isHighAvailability".to_owned(), json!(of.is_high_availability.unwrap_or_default()));
        }
        None => {
            let scheduler = json!({ "au": of.scheduler_au, "replicas": of.scheduler_replicas });
            body.insert("scheduler".to_owned(), scheduler);
        }
    }
    body.insert("environmentVariables".to_owned(), variables.collect());
    body
}
