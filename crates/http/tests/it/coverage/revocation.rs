//! Every mutating operation, by a caller whose rights are taken away after it was judged and before it writes: whoever
//! is refused when its head comes is refused when its effect comes, and nothing has changed.

use podium_api::{Access, Description, ENDPOINTS, Method};
use podium_app::authority::{rights_change, rights_lock};
use podium_db::{AdvisoryLock, Tx};
use podium_store::{credentials, grants};
use podium_testkit::{Actor, TestApp, on_both_engines};

use super::calls::{Prepared, owner, prepare};

/// Operations by somebody with a token that change something.
fn mutating() -> impl Iterator<Item = &'static Description> {
    ENDPOINTS.iter().filter(|endpoint| {
        endpoint.method != Method::Get && !matches!(endpoint.access, Access::Public | Access::Agent)
    })
}

/// What the change log says of everything but rights, and how many tokens there are.
async fn state(app: &TestApp) -> (i64, i64) {
    (app.rows("changes WHERE kind <> 'authority'").await, app.rows("credentials").await)
}

async fn call_under(
    app: &TestApp,
    prepared: &Prepared,
    caller: &Actor,
    locks: Vec<AdvisoryLock>,
    change: impl FnMut(&Tx) -> podium_app::Result<()> + Send + 'static,
) -> u16 {
    let answer = app.send_during_change(prepared.call(app).by(caller), locks, change).await;
    super::contract::describes(prepared.endpoint, &answer);
    answer.code()
}

on_both_engines! {
    async fn a_caller_that_loses_its_rights_before_it_writes_changes_nothing(app) {
        let mut walked = 0;
        for endpoint in mutating().filter(|endpoint| matches!(endpoint.access, Access::Permission(_))) {
            let prepared = prepare(&app, endpoint).await;
            let caller = owner(&app).await;
            let before = state(&app).await;
            let (id, organization_id, now) = (caller.id, app.organization_id, app.world.now());
            let scope = app.scope();
            let demote = move |tx: &Tx| {
                rights_change(tx, &scope, now)?;
                Ok(grants::replace(tx, &scope, grants::Subject::User, id, &[])?)
            };
            let locks = vec![rights_lock(organization_id.id(), true)];
            let code = call_under(&app, &prepared, &caller, locks, demote).await;
            assert!([403, 404].contains(&code), "{}: {code}", endpoint.id);
            assert_eq!(state(&app).await, before, "{}", endpoint.id);
            walked += 1;
        }
        assert!(walked > 40, "{walked}");
    }

    async fn a_caller_that_loses_its_token_before_it_writes_changes_nothing(app) {
        let mut walked = 0;
        for endpoint in mutating() {
            let prepared = prepare(&app, endpoint).await;
            let caller = prepared.owner(&app).await;
            let (changes, tokens) = state(&app).await;
            let authority = app.app.authority(&caller.token, None, app.world.now()).await.unwrap();
            let (token_id, organization_id) = (authority.credential.token_id, app.organization_id);
            let (subject_id, now) = (caller.id, app.world.now());
            let (system, scope) = (app.system, app.scope());
            let revoke = move |tx: &Tx| {
                rights_change(tx, &scope, now)?;
                podium_app::authority::sessions_change(tx, &system, subject_id, now)?;
                Ok(credentials::end(tx, &system, token_id).map(drop)?)
            };
            let locks = vec![rights_lock(organization_id.id(), true), rights_lock(subject_id.id(), true)];
            let code = call_under(&app, &prepared, &caller, locks, revoke).await;
            assert_eq!(code, 401, "{}", endpoint.id);
            assert_eq!(state(&app).await, (changes, tokens - 1), "{}", endpoint.id);
            walked += 1;
        }
        assert!(walked > 40, "{walked}");
    }
}
