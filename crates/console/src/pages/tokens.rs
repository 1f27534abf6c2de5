//! API tokens.

pub(crate) mod roles;

use podium_api::TokenId;
use podium_api::enums::{OrganizationRole, TokenScope, WorkspaceRoleName};
use podium_api::tokens::{self, ApiToken, CreateApiTokenRequest, ListApiTokens};

use self::roles::RolesForm;
use super::{
    Answer, Cell, Choice, Field, FieldKind, Form, Html, ListPage, OrganizationVisit, Result, Row, Shell,
    Table, Template, Tone, view,
};
use crate::pages::deployments::workspace_choices;

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

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListApiTokens { page: visit.page(), ..ListApiTokens::default() };
    let found = visit.calls().find::<tokens::List>(visit.here(), query).await?;
    let columns = ["Name", "Roles", "Expires", "Last used", "Created by"];
    let rows = found.tokens.iter().map(|of| row(visit, of));
    let table = Table::paged(visit, columns, rows, found.total_count)
        .or("No tokens", "Create one for each program, so that you can revoke each on its own.");
    let lead = "Programs such as CI jobs, scripts and other services use tokens.";
    ListPage::new(visit.shell("API tokens").await?.live(""), lead, table)
        .offer(visit.is_owner().await, "Create token", visit.link("/tokens/new"))
        .answer()
}

fn row(visit: &OrganizationVisit<'_>, of: &ApiToken) -> Row {
    let now = visit.visit.now;
    let ends = match of.end_at {
        Some(end) if end <= now => view::status(Tone::Warning, "Expired").into(),
        Some(end) => view::time(end, now).into(),
        None => "never".into(),
    };
    let used = of.last_used_at.map(|at| view::time(at, now).into());
    Row::of(vec![
        Cell::named(of.name.clone(), visit.link(&format!("/tokens/{}", of.id)), of.description.clone()),
        abilities(of).into(),
        ends,
        used.unwrap_or_else(|| "never".into()),
        view::subject(of.created_by.as_ref()).into(),
    ])
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

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let organization = OrganizationRole::ALL.iter().map(|role| role.as_str());
    let workspace = WorkspaceRoleName::ALL.iter().map(|role| role.as_str());
    let spaces = workspace_choices(visit).await.unwrap_or_default();
    let first = spaces.first().map(|(id, _)| id.clone()).unwrap_or_default();
    let fields = vec![
        Field::text("name", "Name").required().hint("What the token is for, such as “deploys from CI”."),
        Field::choice("entityId", "Where", spaces).or_open("The whole organization").value(first),
        Field::choice("role", "Role", Choice::words(organization.chain(workspace)))
            .value("WORKSPACE_OPERATOR")
            .hint("Organization roles need the whole organization, workspace roles a workspace."),
        Field::text("tokenExpiryPeriodInDays", "Expires after, in days")
            .of(FieldKind::Number)
            .value("90")
            .hint("Empty means never."),
        Field::text("description", "Description"),
    ];
    let form = Form::new(visit.link("/tokens"), "Create token", fields);
    let lead = "Its value is shown once, on the next page.";
    visit.ask("Create an API token", ("API tokens", "/tokens"), lead, form).await
}

/// Creates one, and shows its value once.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let entity_id = sent.parsed("entityId")?;
    let body = CreateApiTokenRequest {
        name: sent.text("name"),
        description: sent.filled("description").map(str::to_owned),
        scope: if entity_id.is_some() { TokenScope::Workspace } else { TokenScope::Organization },
        entity_id,
        role: sent.text("role"),
        kind: None,
        token_expiry_period_in_days: sent.parsed("tokenExpiryPeriodInDays")?,
    };
    let made = visit.change::<tokens::Create>(visit.here(), body).await?;
    show_value(visit, made, "Token created").await
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

pub(crate) async fn show(visit: &OrganizationVisit<'_>, token_id: TokenId) -> Result {
    let (of, version) = visit.calls().get_versioned::<tokens::Get>(visit.at(token_id)).await?;
    let roles = match visit.is_owner().await {
        true => Some(RolesForm::new(visit, &of, version).await),
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
        facts: view::facts(facts),
        ends: of.end_at.map(|at| view::time(at, now)),
        last_used: of.last_used_at.map(|at| view::time(at, now)),
        rotate: format!("{href}/rotate"),
        delete: format!("{href}/delete"),
        roles,
    };
    Answer::page(&page)
}

/// Gives a token a new value, and shows that once.
pub(crate) async fn rotate(visit: &OrganizationVisit<'_>, token_id: TokenId) -> Result {
    let made = visit.calls().act::<tokens::Rotate>(visit.at(token_id)).await?;
    show_value(visit, made, "Token rotated").await
}
