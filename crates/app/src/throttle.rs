//! Throttles password guessing without locking out anybody else.
//!
//! Failures are counted for each account at each address, so the guesser waits and the account's owner, at another
//! address, does not: the right password from another address always works. At an address that guesses at many
//! accounts, the accounts it has tried wait too, though never long; because many people may share an address, the
//! first attempt at any other account is free, and failures decay. An account that is attacked from many addresses
//! allows each of them fewer attempts, but never none. Accounts that do not exist are treated like those that do.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use podium_api::Timestamp;
use quick_cache::sync::Cache;

use crate::error::{Error, Result};
use crate::secrets::sha256;

/// How many failures are free: people mistype, and many may share an address.
const FREE_FAILURES: u32 = 5;
const FREE_FAILURES_OF_AN_ADDRESS: u32 = 50;
/// After so many failures of an account, wherever from, each address has no more than one for free.
const MANY_FAILURES_OF_AN_ACCOUNT: u32 = 100;
const LONGEST_WAIT: u64 = 15 * 60;
const LONGEST_WAIT_OF_AN_ADDRESS: u64 = 60;
/// How long one failure of an address takes to decay.
const DRAINED_AFTER: Duration = Duration::from_mins(1);
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);
const REMEMBERED: usize = 100_000;

/// The origin of an attempt: an IPv4 address, or the whole network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(IpAddr);

/// An account by a hash of its folded name, known or not: names may be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Account([u8; 16]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    Account(Account),
    Place(Place),
    Both(Account, Place),
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Timestamp,
    /// Until when what drains away has been taken off.
    drained: Timestamp,
}

pub(crate) struct Throttle(Cache<Who, Failures>);

impl Default for Throttle {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl From<IpAddr> for Place {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        })
    }
}

impl Place {
    /// The network that a customer of a provider usually has as a whole: a /48 of IPv6, or the IPv4 address itself.
    pub(crate) fn site(self) -> Self {
        Self(match self.0 {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
            address => address,
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Account {
    /// The account of a name in the form in which names are compared.
    pub(crate) fn named(key: &str) -> Self {
        Self(sha256(key.as_bytes()).first_chunk().copied().unwrap_or_default())
    }
}

impl Throttle {
    /// Refuses an attempt that comes too soon after failures. Those of the address count where there is no account, or
    /// where there were failures of this account there.
    pub(crate) fn check(&self, account: Option<Account>, place: Place, now: Timestamp) -> Result<()> {
        if let Some(account) = account {
            self.check_both(account, place, now)?;
            if self.count(Who::Both(account, place), now) == 0 {
                return Ok(());
            }
        }
        let bounds = (FREE_FAILURES_OF_AN_ADDRESS, LONGEST_WAIT_OF_AN_ADDRESS);
        refuse_until(self.wait_until(Who::Place(place), bounds, now), now)
    }

    /// Refuses an attempt that comes too soon after failures of the account at the address.
    pub(crate) fn check_both(&self, account: Account, place: Place, now: Timestamp) -> Result<()> {
        let is_guessed_at = self.count(Who::Account(account), now) >= MANY_FAILURES_OF_AN_ACCOUNT;
        let free = if is_guessed_at { 1 } else { FREE_FAILURES };
        refuse_until(self.wait_until(Who::Both(account, place), (free, LONGEST_WAIT), now), now)
    }

    pub(crate) fn failed(&self, account: Option<Account>, place: Place, now: Timestamp) {
        let of_account =
            account.into_iter().flat_map(|account| [Who::Account(account), Who::Both(account, place)]);
        for who in of_account.chain([Who::Place(place)]) {
            let (count, drained) = self.failures(who, now).map_or((0, now), |it| (it.count, it.drained));
            self.0.insert(who, Failures { count: count.saturating_add(1), last: now, drained });
        }
    }

    /// Clears the failures of an account that has signed in, at that address.
    pub(crate) fn succeeded(&self, account: Account, place: Place) {
        self.0.remove(&Who::Both(account, place));
    }

    fn count(&self, who: Who, now: Timestamp) -> u32 {
        self.failures(who, now).map_or(0, |failures| failures.count)
    }

    fn failures(&self, who: Who, now: Timestamp) -> Option<Failures> {
        let mut recent = self.0.get(&who).filter(|failures| failures.last + FORGOTTEN_AFTER > now)?;
        if let Who::Place(_) = who {
            let since = u128::try_from(now.millis() - recent.drained.millis()).unwrap_or_default();
            let drops = u32::try_from(since / DRAINED_AFTER.as_millis()).unwrap_or(u32::MAX);
            recent.count = recent.count.saturating_sub(drops);
            recent.drained = recent.drained + DRAINED_AFTER * drops;
        }
        Some(recent)
    }

    /// Until when to wait: twice as long after each failure that was not free.
    fn wait_until(&self, who: Who, (free, longest): (u32, u64), now: Timestamp) -> Option<Timestamp> {
        let doublings = self.count(who, now).saturating_sub(free);
        if doublings == 0 {
            return None;
        }
        let seconds = 1u64.checked_shl(doublings).unwrap_or(u64::MAX).min(longest);
        self.0.get(&who).map(|failures| failures.last + Duration::from_secs(seconds))
    }
}

fn refuse_until(until: Option<Timestamp>, now: Timestamp) -> Result<()> {
    match until {
        Some(until) if until > now => {
            let wait = (until.millis() - now.millis()).unsigned_abs();
            Err(Error::TooMany { retry_after: wait.div_ceil(1000) })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn wait(throttle: &Throttle, account: Option<Account>, at: &str, now: Timestamp) -> u64 {
        match throttle.check(account, place(at), now) {
            Ok(()) => 0,
            Err(Error::TooMany { retry_after }) => retry_after,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    #[test]
    fn waits_double_after_some_failures_and_end_with_success() {
        let (throttle, ada) = (Throttle::default(), Account::named("ada"));
        let (here, there) = ("192.0.2.1", "192.0.2.2");
        for _ in 0..FREE_FAILURES {
            throttle.failed(Some(ada), place(here), now());
            assert_eq!(wait(&throttle, Some(ada), here, now()), 0);
        }
        let mut waits = Vec::new();
        for _ in 0..12 {
            throttle.failed(Some(ada), place(here), now());
            waits.push(wait(&throttle, Some(ada), here, now()));
            assert_eq!(wait(&throttle, Some(ada), there, now()), 0, "nobody else waits");
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
        assert_eq!(wait(&throttle, Some(Account::named("bob")), here, now()), 0, "nor at another account");
        assert_eq!(wait(&throttle, Some(ada), here, now() + Duration::from_secs(900)), 0);
        throttle.succeeded(ada, place(here));
        assert_eq!(wait(&throttle, Some(ada), here, now()), 0);
    }

    #[test]
    fn an_address_that_guesses_at_many_accounts_waits_and_not_for_long() {
        let throttle = Throttle::default();
        for number in 0..FREE_FAILURES_OF_AN_ADDRESS + 20 {
            throttle.failed(Some(Account::named(&number.to_string())), place("192.0.2.1"), now());
        }
        assert_eq!(wait(&throttle, None, "192.0.2.1", now()), LONGEST_WAIT_OF_AN_ADDRESS);
        assert_eq!(wait(&throttle, None, "192.0.2.2", now()), 0);
        let (guessed_at, ada) = (Account::named("7"), Account::named("ada"));
        assert_eq!(wait(&throttle, Some(guessed_at), "192.0.2.1", now()), LONGEST_WAIT_OF_AN_ADDRESS);
        assert_eq!(wait(&throttle, Some(ada), "192.0.2.1", now()), 0, "whoever shares it gets in");
        assert!(throttle.check_both(guessed_at, place("192.0.2.1"), now()).is_ok());
        let later = now() + DRAINED_AFTER * 20;
        throttle.failed(None, place("192.0.2.1"), later);
        assert_eq!(wait(&throttle, None, "192.0.2.1", later), 2, "all but one too many drained away");
    }

    #[test]
    fn an_account_that_is_guessed_at_from_everywhere_is_never_locked() {
        let (throttle, ada) = (Throttle::default(), Account::named("ada"));
        for number in 0..1000u32 {
            let at = IpAddr::from(number.to_be_bytes());
            assert!(throttle.check(Some(ada), at.into(), now()).is_ok(), "{at} has one attempt");
            throttle.failed(Some(ada), at.into(), now());
        }
        let late = "192.0.2.1";
        throttle.failed(Some(ada), place(late), now());
        assert_eq!(wait(&throttle, Some(ada), late, now()), 0, "one is free");
        throttle.failed(Some(ada), place(late), now());
        assert_eq!(wait(&throttle, Some(ada), late, now()), 2);
    }

    #[test]
    fn one_ipv6_network_is_one_address() {
        assert_eq!(place("::ffff:192.0.2.1"), place("192.0.2.1"));
        assert_ne!(place("192.0.2.1"), place("192.0.2.2"));
        assert_eq!(place("2001:db8::1"), place("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(place("2001:db8::1"), place("2001:db8:0:1::1"));
    }
}
