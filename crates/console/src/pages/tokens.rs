//! API tokens.

pub(crate) mod roles;

use askama::Template;
use podium_api::TokenId;
use podium_api::enums::{OrganizationRole, TokenScope, WorkspaceRoleName};
use podium_api::path::OfToken;
use podium_api::tokens::{self, ApiToken};
use serde_json::{Map, json};

use self::roles::RolesForm;
use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::list::{Cell, Empty, ListPage, Pager, Row, Table};
use crate::pages::deployments::workspace_choices;
use crate::shell::Shell;
use crate::view::{self, Html, Tone};
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "token.html")]
struct TokenPage {
    shell: Shell,
    name: String,
    facts: Vec<(&'static str, String)>,
    ends: Option<Html>,
    last_used: Option<Html>,
    rotate: String,
    delete: String,
    roles: Option<RolesForm>,
}

/// A token right after it was made.
#[derive(Template)]
#[template(path = "token-made.html")]
struct MadePage {
    shell: Shell,
    value: String,
    can: String,
    ends: Option<Html>,
    back: String,
}

/// The tokens.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = visit.list::<tokens::List>(visit.here(), &[]).await?;
    let rows: Vec<Row> = found.tokens.iter().map(|of| row(visit, of)).collect();
    ListPage {
        shell: visit.shell("API tokens").await?.live(""),
        lead: "Programs such as CI jobs, scripts and other services use tokens.",
        action: visit.is_owner().await.then(|| ("Create token", visit.link("/tokens/new"))),
        filters: Vec::new(),
        table: Table {
            columns: vec!["Name", "Roles", "Expires", "Last used", "Created by"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No tokens",
                text: "Create one for each program, so that you can revoke each on its own.",
                command: String::new(),
            },
        },
    }
    .answer()
}

fn row(visit: &OrganizationVisit<'_>, of: &ApiToken) -> Row {
    let now = visit.visit.now;
    let ends = match of.end_at {
        Some(end) if end <= now => view::status(Tone::Warning, "Expired").into(),
        Some(end) => view::time(end, now).into(),
        None => "never".to_owned().into(),
    };
    let used = of.last_used_at.map(|at| view::time(at, now).into());
    Row {
        cells: vec![
            Cell::named(of.name.clone(), visit.link(&format!("/tokens/{}", of.id)), of.description.clone()),
            abilities(of).into(),
            ends,
            used.unwrap_or_else(|| "never".to_owned().into()),
            view::subject(of.created_by.as_ref()).into(),
        ],
        actions: Vec::new(),
    }
}

/// What a token can do, in words.
fn abilities(of: &ApiToken) -> String {
    let roles = of.roles.iter().flatten();
    let roles = roles.map(|role| {
        format!("{} of {}", view::words(&role.role), view::words(role.entity_type.as_str()).to_lowercase())
    });
    let roles: Vec<String> = roles.collect();
    if roles.is_empty() { "none".to_owned() } else { roles.join(", ") }
}

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let organization = OrganizationRole::ALL.iter().map(|role| role.as_str());
    let workspace = WorkspaceRoleName::ALL.iter().map(|role| role.as_str());
    let roles = organization.chain(workspace).map(|role| (role.to_owned(), view::words(role)));
    let spaces = workspace_choices(visit).await.unwrap_or_default();
    let first = spaces.first().map(|(id, _)| id.clone()).unwrap_or_default();
    let whole = (String::new(), "The whole organization".to_owned());
    let form = Form {
        action: visit.link("/tokens"),
        fields: vec![
            Field::text("name", "Name").required().hint("What the token is for, such as “deploys from CI”."),
            Field::choice("entityId", "Where", std::iter::once(whole).chain(spaces)).value(first),
            Field::choice("role", "Role", roles)
                .value("WORKSPACE_OPERATOR")
                .hint("Organization roles need the whole organization, workspace roles a workspace."),
            Field::text("tokenExpiryPeriodInDays", "Expires after, in days")
                .of(FieldKind::Number)
                .value("90")
                .hint("Empty means never."),
            Field::text("description", "Description"),
        ],
        submit: "Create token".to_owned(),
        cancel: visit.link("/tokens"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell = visit.shell("Create an API token").await?.below("API tokens", visit.link("/tokens"));
    FormPage { shell, lead: "Its value is shown once, on the next page.".to_owned(), form }.answer()
}

/// Creates one, and shows its value once.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(sent.get("name").trim()));
    body.insert("role".to_owned(), json!(sent.get("role")));
    body.extend(sent.filled("description").map(|text| ("description".to_owned(), json!(text))));
    let scope =
        if sent.filled("entityId").is_some() { TokenScope::Workspace } else { TokenScope::Organization };
    body.insert("scope".to_owned(), json!(scope));
    body.extend(sent.filled("entityId").map(|id| ("entityId".to_owned(), json!(id))));
    if let Some(days) = sent.filled("tokenExpiryPeriodInDays") {
        let days = days.parse::<u32>().map_or_else(|_| json!(days), |days| json!(days));
        body.insert("tokenExpiryPeriodInDays".to_owned(), days);
    }
    match visit.calls().change::<tokens::Create>(visit.here(), body, None).await {
        Ok(made) => show_value(visit, made.value, "Token created").await,
        Err(problem) => new(visit, Some(problem)).await,
    }
}

async fn show_value(visit: &OrganizationVisit<'_>, of: ApiToken, title: &str) -> Result {
    let page = MadePage {
        shell: visit.shell(title).await?.below("API tokens", visit.link("/tokens")),
        can: abilities(&of),
        ends: of.end_at.map(|at| view::time(at, visit.visit.now)),
        value: of.token.unwrap_or_default(),
        back: visit.link("/tokens"),
    };
    Answer::page(&page)
}

/// One token.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    token_id: TokenId,
    problem: Option<Problem>,
) -> Result {
    let path = OfToken { organization_id: visit.organization_id, token_id };
    let read = visit.calls().get_versioned::<tokens::Get>(path, &[]).await?;
    let (of, version) = (read.value, read.etag.unwrap_or_default());
    let code = problem.as_ref().map_or(200, |problem| problem.status);
    let roles = match visit.is_owner().await {
        true => Some(RolesForm::new(visit, &of, version, problem).await),
        false => None,
    };
    let now = visit.visit.now;
    let href = visit.link(&format!("/tokens/{token_id}"));
    let facts = [
        ("Ends with", of.short_token.clone()),
        ("Roles", abilities(&of)),
        ("Description", of.description.clone()),
        ("Created by", view::subject(of.created_by.as_ref())),
    ];
    let page = TokenPage {
        shell: visit.shell(of.name.clone()).await?.below("API tokens", visit.link("/tokens")),
        name: of.name,
        facts: facts.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        ends: of.end_at.map(|at| view::time(at, now)),
        last_used: of.last_used_at.map(|at| view::time(at, now)),
        rotate: format!("{href}/rotate"),
        delete: format!("{href}/delete"),
        roles,
    };
    Answer::with_status(code, &page)
}

/// Gives a token a new value, and shows that once.
pub(crate) async fn rotate(visit: &OrganizationVisit<'_>, token_id: TokenId) -> Result {
    let path = OfToken { organization_id: visit.organization_id, token_id };
    let made = visit.calls().change::<tokens::Rotate>(path, json!({}), None).await?;
    show_value(visit, made.value, "Token rotated").await
}

/// Deletes a token.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, token_id: TokenId) -> Result {
    let path = OfToken { organization_id: visit.organization_id, token_id };
    visit.calls().act::<tokens::Delete>(path, ()).await?;
    Answer::redirect(visit.link("/tokens?done=deleted"))
}
