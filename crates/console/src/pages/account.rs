//! Your account: your sessions and your password.

use podium_api::SessionId;
use podium_api::auth::{self, ChangePasswordRequest};
use podium_api::path::OfSession;
use podium_api::user_sessions::{self, ListSessions, UserSession};

use super::{
    Answer, Field, FieldKind, Form, Html, OrganizationVisit, Pager, Problem, Result, Shell, Template, view,
};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    shell: Shell,
    lead: String,
    /// Why a session was not ended.
    problem: Option<String>,
    sessions: Vec<SessionLine>,
    pager: Option<Pager>,
    /// Where the form that ends the others goes.
    end_others: String,
    form: Form,
}

struct SessionLine {
    device: String,
    kind: String,
    is_current: bool,
    /// Whether this session ends with it, which is not offered here.
    ends_current: bool,
    address: String,
    began: Html,
    used: Html,
    ends: Option<Html>,
    /// Where the form that ends it goes.
    end: String,
}

/// The sessions, and the form that changes the password.
pub(crate) async fn show(visit: &OrganizationVisit<'_>) -> Result {
    page(visit, None).await
}

async fn page(visit: &OrganizationVisit<'_>, not_ended: Option<String>) -> Result {
    let fields = vec![
        Field::text("currentPassword", "Current password").of(FieldKind::Password),
        Field::text("newPassword", "New password").of(FieldKind::Password).required(),
    ];
    let form = Form::new(visit.link("/account"), "Change the password", fields).after(visit);
    let query = ListSessions { page: visit.page().sorted_down_by("lastUsedAt") };
    let found = match visit.calls().find::<user_sessions::List>((), query).await {
        Ok(found) => Some(found),
        // An API token has no sessions.
        Err(problem) if problem.status == 403 => None,
        Err(problem) => return Err(problem),
    };
    let (sessions, total) = found.map_or((Vec::new(), 0), |found| (found.sessions, found.total_count));
    let page = AccountPage {
        shell: visit.shell("Your account").await?,
        lead: format!("You are signed in as {}.", visit.visit.person),
        problem: not_ended,
        pager: Pager::new(visit, sessions.len(), total).map(|pager| pager.at(&visit.link("/account"))),
        sessions: sessions.into_iter().map(|session| line(visit, session)).collect(),
        end_others: visit.link("/account/sessions/end-others"),
        form,
    };
    Answer::page(&page)
}

fn line(visit: &OrganizationVisit<'_>, session: UserSession) -> SessionLine {
    let now = visit.visit.now;
    SessionLine {
        device: session.device(),
        kind: view::words(session.kind.as_str()),
        is_current: session.is_current,
        ends_current: session.ends_current,
        address: session.address.unwrap_or_default(),
        began: view::time(session.created_at, now),
        used: view::time(session.last_used_at, now),
        ends: session.expires_at.map(|end| view::time(end, now)),
        end: visit.link(&format!("/account/sessions/{}/end", session.id)),
    }
}

pub(crate) async fn update(visit: &OrganizationVisit<'_>) -> Result {
    let sent = |name| visit.form().get(name).to_owned();
    let body = ChangePasswordRequest {
        current_password: sent("currentPassword"),
        new_password: sent("newPassword"),
    };
    visit.change::<auth::ChangePassword>((), body).await?;
    visit.go("/account?done=password")
}

pub(crate) async fn end_session(visit: &OrganizationVisit<'_>, session_id: SessionId) -> Result {
    let ended = visit.calls().act::<user_sessions::End>(OfSession { session_id }).await;
    after_ending(visit, ended.err()).await
}

/// Ends every session except this one.
pub(crate) async fn end_other_sessions(visit: &OrganizationVisit<'_>) -> Result {
    let ended = visit.calls().act::<user_sessions::EndOthers>(()).await;
    after_ending(visit, ended.err()).await
}

async fn after_ending(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    match problem {
        None => visit.go("/account?done=session"),
        Some(problem) => page(visit, Some(problem.message)).await,
    }
}
