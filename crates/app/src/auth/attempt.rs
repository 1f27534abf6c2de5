//! An attempt to authenticate: throttled after failures, by account and by address.

use std::net::IpAddr;

use podium_api::Timestamp;

use crate::App;
use crate::error::Result;
use crate::passwords::Requester;
use crate::throttle::{Account, Place};

/// An attempt to sign in with a password.
pub(super) struct Attempt<'a> {
    app: &'a App,
    account: Account,
    place: Place,
    now: Timestamp,
}

impl<'a> Attempt<'a> {
    /// Begins, unless there were too many failures of late.
    pub(super) fn begin(app: &'a App, username_key: &str, address: IpAddr, now: Timestamp) -> Result<Self> {
        let (account, place) = (Account::named(username_key), Place::from(address));
        app.sign_in_throttle.check(Some(account), place, now)?;
        Ok(Self { app, account, place, now })
    }

    pub(super) async fn fits(&self, password: String, hash: Option<String>) -> Result<bool> {
        let throttle = &self.app.sign_in_throttle;
        let requesters = [Requester::Address(self.place), Requester::User(self.account)];
        let fits = self.app.passwords.fits(password, hash, &requesters).await?;
        // Guesses that were made at the same time count: many at once learn no more than one after the other.
        throttle.check_both(self.account, self.place, self.now)?;
        if fits {
            throttle.succeeded(self.account, self.place);
        } else {
            throttle.failed(Some(self.account), self.place, self.now);
        }
        Ok(fits)
    }
}
