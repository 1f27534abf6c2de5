//! Settings of a deployment: what would this change do?

use podium_api::DeploymentId;
use podium_api::deployments::{
    self, Deployment, DeploymentEnvironmentVariable, DeploymentEnvironmentVariableRequest,
    InstanceSpecRequest, UpdateDeploymentRequest,
};
use podium_api::enums::{Executor, SchedulerSize};
use podium_api::union::OneOf;
use serde_json::json;

use super::Head;
use super::calendar::{self, Day};
use crate::pages::plans::{self, planned};
use crate::pages::{
    Answer, Choice, Field, FieldKind, Form, OrganizationVisit, Params, Result, Shell, Template, least,
};

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

pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, head) = Head::read(visit, id, "settings").await?;
    let form = form(&head.href, &of).after(visit);
    let spec = of.scaling_spec.as_ref().and_then(|spec| spec.hibernation_spec.as_ref());
    let schedules = spec.and_then(|spec| spec.schedules.clone()).unwrap_or_default();
    let days = calendar::days(&schedules, visit.visit.now);
    let schedules = schedules.into_iter().filter(|schedule| schedule.is_enabled).map(|schedule| {
        (schedule.description.unwrap_or_default(), schedule.hibernate_at_cron, schedule.wake_at_cron)
    });
    let page = SettingsPage { shell: &head.shell, head: &head, form, schedules: schedules.collect(), days };
    Answer::page(&page)
}

fn form(href: &str, of: &Deployment) -> Form {
    let executors = Choice::words(Executor::ALL.iter().map(|executor| executor.as_str()));
    let sizes = Choice::words(SchedulerSize::ALL.iter().map(|size| size.as_str()));
    let mut fields = vec![
        Field::text("name", "Name").required().value(of.name.clone()),
        Field::text("description", "Description").value(of.description.clone().unwrap_or_default()),
        Field::choice("executor", "Executor", executors)
            .value(of.executor.map(Executor::as_str).unwrap_or_default()),
    ];
    if let Some(size) = of.scheduler_size {
        fields.push(Field::choice("schedulerSize", "Scheduler", sizes).value(size.as_str()));
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
    Form::new(format!("{href}/settings"), "See what this changes", fields).or(href.to_owned())
}

/// Plans the change, and shows what it would do.
pub(crate) async fn plan(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, version) = super::read(visit, id).await?;
    let back = visit.link(&format!("/deployments/{id}/settings"));
    let then = visit.link(&format!("/deployments/{id}?done=applied"));
    plan_change(visit, id, (changed(visit.form(), &of)?, version), (&back, &then)).await
}

pub(super) async fn plan_change(
    visit: &OrganizationVisit<'_>,
    id: DeploymentId,
    (body, version): (UpdateDeploymentRequest, String),
    ways: (&str, &str),
) -> Result {
    let call = planned::<deployments::Update>(&visit.deployment(id), OneOf(body), Some(version))?;
    plans::show(visit, call, "Apply the change", ways).await
}

/// The body of the update: the deployment as it is, with what the form says.
fn changed(sent: &Params, of: &Deployment) -> Result<UpdateDeploymentRequest> {
    let emails = sent.get("contactEmails").split(',').map(str::trim).filter(|email| !email.is_empty());
    let kept = kept(of)?;
    let has_size = of.scheduler_size.is_some();
    Ok(UpdateDeploymentRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        executor: sent.required("executor")?,
        is_cicd_enforced: sent.is_on("isCicdEnforced"),
        scheduler_size: if has_size { Some(sent.required("schedulerSize")?) } else { None },
        is_high_availability: has_size.then(|| sent.is_on("isHighAvailability")),
        drain_grace_seconds: sent.parsed("drainGraceSeconds")?,
        history_retention_days: sent.parsed("historyRetentionDays")?,
        clean_up_cron: sent.filled("cleanUpCron").map(str::to_owned),
        contact_emails: Some(emails.map(str::to_owned).collect()),
        ..kept
    })
}

/// What an update has to repeat to keep it.
pub(super) fn kept(of: &Deployment) -> Result<UpdateDeploymentRequest> {
    let variable = |of: &DeploymentEnvironmentVariable| DeploymentEnvironmentVariableRequest {
        key: of.key.clone(),
        value: of.value.clone().filter(|_| !of.is_secret),
        is_secret: of.is_secret,
    };
    let has_size = of.scheduler_size.is_some();
    let mut body: UpdateDeploymentRequest = least(json!({
        "name": of.name,
        "workspaceId": of.workspace_id,
        "executor": of.executor,
        "isCicdEnforced": of.is_cicd_enforced,
        "isDagDeployEnabled": of.is_dag_deploy_enabled,
        "environmentVariables": [],
    }))?;
    body.kind = of.kind;
    body.description.clone_from(&of.description);
    body.scheduler_size = of.scheduler_size;
    body.is_high_availability = has_size.then(|| of.is_high_availability.unwrap_or_default());
    if !has_size {
        body.scheduler =
            Some(InstanceSpecRequest { au: of.scheduler_au, replicas: Some(of.scheduler_replicas) });
    }
    body.environment_variables = of.environment_variables.iter().flatten().map(variable).collect();
    Ok(body)
}
