//! Deployments: the list, and how one is created.

pub(crate) mod bulk;

use podium_api::deployments::{self, Deployment};
use podium_api::options;
use podium_api::workspaces;
use serde_json::{Map, Value, json};

use askama::Template;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Choice, Field, Form, FormPage};
use crate::list::{Filter, Pager};
use crate::pages::overview::DeploymentLine;
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "deployments.html")]
struct DeploymentsPage {
    shell: Shell,
    filters: Vec<Filter>,
    deployments: Vec<DeploymentLine>,
    pager: Option<Pager>,
    can_create: bool,
    /// Where the form goes that changes several.
    bulk: Option<String>,
}

/// The workspaces that the person sees: ids and names.
pub(crate) async fn workspace_choices(visit: &OrganizationVisit<'_>) -> Result<Vec<(String, String)>> {
    let query = [("limit", "1000"), ("sorts", "name:asc")];
    let found = visit.calls().get::<workspaces::List>(visit.here(), &query).await?;
    let read = found.workspaces.into_iter().filter_map(|shown| shown.into_value().ok());
    Ok(read.map(|workspace| (workspace.id.to_string(), workspace.name)).collect())
}

/// The workspaces that the person may create deployments in.
async fn creatable_in(visit: &OrganizationVisit<'_>) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (id, name) in workspace_choices(visit).await? {
        let target = crate::visit::id(&id)?;
        if visit.calls().may_on::<deployments::Create>(visit.here(), target).await {
            found.push((id, name));
        }
    }
    Ok(found)
}

/// Whether the person may create a deployment anywhere.
pub(crate) async fn can_create(visit: &OrganizationVisit<'_>) -> bool {
    let Ok(spaces) = workspace_choices(visit).await else { return false };
    for (id, _) in spaces {
        if let Ok(target) = crate::visit::id(&id)
            && visit.calls().may_on::<deployments::Create>(visit.here(), target).await
        {
            return true;
        }
    }
    false
}

/// The deployments.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let workspace_id = visit.query().get("workspaceIds");
    let query = [("sorts", "name:asc"), ("workspaceIds", workspace_id)];
    let found = visit.list::<deployments::List>(visit.here(), &query).await?;
    let read: Vec<Deployment> =
        found.deployments.into_iter().filter_map(|shown| shown.into_value().ok()).collect();
    let spaces = workspace_choices(visit).await.unwrap_or_default();
    let any = Choice { value: String::new(), label: "All".to_owned(), is_chosen: workspace_id.is_empty() };
    let choices = spaces.iter().map(|(id, name)| Choice {
        value: id.clone(),
        label: name.clone(),
        is_chosen: id == workspace_id,
    });
    let choices = std::iter::once(any).chain(choices).collect();
    let changeable = bulk::changeable_in(visit, &read).await;
    let line = |of: &Deployment| {
        let is_choosable = changeable.contains(&of.workspace_id);
        DeploymentLine { choice: is_choosable.then(|| of.id.to_string()), ..DeploymentLine::new(visit, of) }
    };
    let page = DeploymentsPage {
        bulk: (!changeable.is_empty()).then(|| visit.link("/deployments/bulk")),
        shell: visit.shell("Deployments").await?.live(""),
        filters: vec![Filter { name: "workspaceIds", label: "Workspace", choices }],
        pager: Pager::new(visit, read.len(), found.total_count),
        deployments: read.iter().map(line).collect(),
        can_create: can_create(visit).await,
    };
    Answer::page(&page)
}

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let form = form(visit).await?;
    let form = form.after(visit.form(), problem);
    let lead = "A name and a workspace are enough. The deployment runs the newest stable Apache Airflow, and you can change everything later.";
    let shell = visit.shell("Create a deployment").await?.below("Deployments", visit.link("/deployments"));
    FormPage { shell, lead: lead.to_owned(), form }.answer()
}

async fn form(visit: &OrganizationVisit<'_>) -> Result<Form> {
    let spaces = creatable_in(visit).await?;
    let chosen = visit.query().get("workspaceId");
    let chosen = spaces.iter().find(|(id, _)| id == chosen).or(spaces.first());
    let chosen = chosen.map(|(id, _)| id.clone()).unwrap_or_default();
    let options = visit.calls().get::<options::ForDeployments>(visit.here(), &[]).await;
    let mut more = Vec::new();
    if let Ok(options) = options {
        let releases = options.runtime_releases.into_iter();
        let named = releases.map(|of| {
            (of.version.clone(), format!("{} (Airflow {}, {})", of.version, of.airflow_version, of.channel))
        });
        let newest = (String::new(), "The newest stable runtime".to_owned());
        more.push(Field::choice("platformRuntimeVersion", "Runtime", std::iter::once(newest).chain(named)));
        let executors = options.executors.into_iter().map(|of| (of.clone(), view::words(&of)));
        more.push(Field::choice(
            "executor",
            "Executor",
            std::iter::once((String::new(), "Default".to_owned())).chain(executors),
        ));
        let sizes = options.scheduler_machines.into_iter().map(|of| {
            let label =
                format!("{} ({} CPU, {})", view::words(of.name.as_str()), of.spec.cpu, of.spec.memory);
            (of.name.as_str().to_owned(), label)
        });
        more.push(Field::choice(
            "schedulerSize",
            "Scheduler",
            std::iter::once((String::new(), "Default".to_owned())).chain(sizes),
        ));
    }
    more.push(
        Field::check("isDevelopmentMode", "For development", false)
            .hint("The deployment may hibernate, by hand or on a schedule."),
    );
    more.push(Field::text("description", "Description"));
    Ok(Form {
        action: visit.link("/deployments"),
        fields: vec![
            Field::text("name", "Name").required(),
            Field::choice("workspaceId", "Workspace", spaces).value(chosen),
        ],
        more,
        submit: "Create deployment".to_owned(),
        cancel: visit.link("/deployments"),
        ..Form::default()
    })
}

/// Creates one.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let mut body = Map::new();
    for name in ["name", "workspaceId", "description", "platformRuntimeVersion", "executor", "schedulerSize"]
    {
        body.extend(sent.filled(name).map(|value| (name.to_owned(), Value::from(value))));
    }
    body.entry("name").or_insert(json!(""));
    if sent.is_on("isDevelopmentMode") {
        body.insert("isDevelopmentMode".to_owned(), json!(true));
    }
    match visit.calls().change::<deployments::Create>(visit.here(), body, None).await {
        Ok(made) => Answer::redirect(visit.link(&format!("/deployments/{}?done=created", made.value.id))),
        Err(problem) => new(visit, Some(problem)).await,
    }
}
