//! An attempt to prove oneself: slowed down after failures, by account and by address.

use std::net::{IpAddr, Ipv6Addr};

use podium_api::Timestamp;

use crate::App;
use crate::error::Result;
use crate::passwords::Payer;
use crate::throttle::Who;

/// Somebody who says that it knows a password.
pub(super) struct Attempt<'a> {
    app: &'a App,
    keys: [Who; 2],
    payers: [Payer; 2],
    now: Timestamp,
}

impl<'a> Attempt<'a> {
    /// Begins, unless there were too many failures of late.
    pub(super) fn begin(app: &'a App, username_key: &str, address: IpAddr, now: Timestamp) -> Result<Self> {
        let keys = [Who::Account(username_key.to_owned()), of_address(address)];
        app.sign_in_throttle.check(&keys, now)?;
        let payers = [Payer::at(address), Payer::User(username_key.to_owned())];
        Ok(Self { app, keys, payers, now })
    }

    /// Whether the password fits.
    pub(super) async fn fits(&self, password: String, hash: Option<String>) -> Result<bool> {
        let throttle = &self.app.sign_in_throttle;
        let fits = self.app.passwords.fits(password, hash, &self.payers).await?;
        // Guesses that were made at the same time count: many at once learn no more than one after the other.
        throttle.check(&self.keys, self.now)?;
        if fits {
            throttle.succeeded(&self.keys[0]);
        } else {
            throttle.failed(&self.keys, self.now);
        }
        Ok(fits)
    }
}

/// The key of an address; whoever has one IPv6 address has all of its network.
pub(super) fn of_address(address: IpAddr) -> Who {
    Who::Address(match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("{}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ipv6_network_is_one_address() {
        let key = |text: &str| of_address(text.parse().unwrap());
        assert_eq!(key("192.0.2.1"), Who::Address("192.0.2.1".into()));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
    }
}
