//! Password resets by the operator on the machine itself: the first password, or a new one after it was forgotten.

use podium_db::Tx;
use podium_domain::{names, passwords};
use podium_store::users::{self, Account};
use podium_store::{System, credentials, device_sign_ins, grants, organizations, sessions};

use super::db;
use crate::App;
use crate::authority::{rights_lock, sessions_change};
use crate::error::{Error, Result};
use crate::passwords::Requester;

impl App {
    /// The account of an e-mail address; of the oldest owner of the first organization where none is given.
    /// Only for operators:
    ///
    /// ```compile_fail,E0061
    /// async fn look(app: &podium_app::App) {
    ///     let _ = app.account_to_reset(Some("ada@example.com")).await;
    /// }
    /// ```
    pub async fn account_to_reset(&self, system: &System, email: Option<&str>) -> Result<Option<Account>> {
        let (system, key) = (*system, email.map(names::fold));
        db(self)
            .read(None, move |conn| {
                if let Some(key) = &key {
                    return users::account_by_username(conn, &system, key);
                }
                let Some(organization_id) = organizations::first(conn, &system)? else { return Ok(None) };
                match grants::oldest_owner(conn, &system.scope(organization_id))? {
                    Some(owner_id) => users::account(conn, &system, owner_id),
                    None => Ok(None),
                }
            })
            .await
            .map_err(Error::from)
    }

    /// What is wrong with a password for an account, if anything.
    pub fn password_problem(&self, account: &Account, password: &str) -> Option<String> {
        passwords::password("password", password, &account.username).err().map(|wrong| wrong.message)
    }

    /// Sets an account's password and ends every session of it; tokens that never expire stay. Only for operators:
    ///
    /// ```compile_fail,E0061
    /// async fn take(app: &podium_app::App, account: podium_store::users::Account) {
    ///     let _ = app.reset_password(account, String::from("correct horse battery staple")).await;
    /// }
    /// ```
    pub async fn reset_password(&self, system: &System, account: Account, password: String) -> Result<()> {
        passwords::password("password", &password, &account.username)?;
        let hash = self.passwords.hash(password, &[Requester::Operator]).await?;
        let (now, none_kept) = (self.world.now(), self.world.id());
        let system = *system;
        let sessions = rights_lock(account.id.id(), true);
        let set = move |tx: &Tx| {
            users::lock(tx, &system, account.id)?;
            let before = users::account(tx, &system, account.id)?.and_then(|account| account.password_hash);
            if !users::set_password(tx, &system, account.id, before.as_deref(), &hash, now)? {
                return Err(podium_db::Error::Lost.into());
            }
            credentials::delete_other_sessions(tx, &system, account.id, none_kept)?;
            sessions::delete_of_subject(tx, &system, account.id.into())?;
            device_sign_ins::forget_of(tx, &system, account.id)?;
            sessions_change(tx, &system, account.id.into(), now)
        };
        db(self).write_locked(None, vec![sessions], set).await
    }

    pub fn new_password(&self) -> String {
        self.world.secret()
    }
}
