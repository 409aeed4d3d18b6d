//! The limits on password checks: how many wait or run, in all and for one client, and how many
//! wrong passwords an address has in a minute. A check is slow on purpose, so that anybody could
//! keep all processors busy with guesses.
//!
//! Does not own: the queue of the checks, which belongs to the thread pool, and the responses to
//! refused clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::places::{Place, PlaceClient, PlaceRefusal, Places};
use crate::rate::{RateLimiter, RequestRate};

/// The part of all checks that one client may have.
const CLIENT_PART: usize = 8;

/// Why a password is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckRefusal {
    /// Too many checks wait: 503.
    Full,
    /// Too many checks of this client wait: 429.
    ClientFull,
    /// The address has had too many wrong passwords, and has to wait for this time: 429.
    WrongPasswords(Duration),
}

/// The client of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckClient {
    /// Its key in the queue of the pool.
    pub(crate) key: u64,
    /// Its address. Clients without one are limited all together only: they may be one proxy.
    pub(crate) address: Option<IpAddr>,
}

/// The limits, as the configuration has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckLimits {
    /// The most checks that wait or run.
    pub(crate) checks: usize,
    /// The rate of wrong passwords of one address; `None` for no limit.
    pub(crate) wrong: Option<RequestRate>,
}

/// The password checks of all workers. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct PasswordChecks(Arc<CheckState>);

#[derive(Debug)]
struct CheckState {
    /// The places of checks that wait or run.
    places: Places,
    wrong: RateLimiter,
}

impl PasswordChecks {
    pub(crate) fn new() -> Self {
        Self(Arc::new(CheckState { places: Places::default(), wrong: RateLimiter::new() }))
    }

    /// Returns a place for a check of `client`, unless a limit is reached.
    pub(crate) fn enter(
        &self,
        client: CheckClient,
        limits: CheckLimits,
        now: Instant,
    ) -> Result<Place, CheckRefusal> {
        if let (Some(address), Some(rate)) = (client.address, limits.wrong) {
            self.0.wrong.look(address, rate, now).map_err(CheckRefusal::WrongPasswords)?;
        }
        let client = PlaceClient { key: client.key, are_many: client.address.is_none() };
        self.0.places.enter(client, limits.checks, CLIENT_PART).map_err(|refusal| match refusal {
            PlaceRefusal::Full => CheckRefusal::Full,
            PlaceRefusal::ClientFull => CheckRefusal::ClientFull,
        })
    }

    /// Counts a wrong password of `client`.
    pub(crate) fn record_wrong(&self, client: CheckClient, limits: CheckLimits, now: Instant) {
        if let (Some(address), Some(rate)) = (client.address, limits.wrong) {
            // One that is beyond the limit, as checks run side by side, does not count.
            let _counted = self.0.wrong.take(address, rate, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u32) -> CheckClient {
        let address = std::net::Ipv4Addr::from_bits(number).into();
        CheckClient { key: number.into(), address: Some(address) }
    }

    fn limits(checks: usize) -> CheckLimits {
        CheckLimits { checks, wrong: RequestRate::new(1.0, 2) }
    }

    #[test]
    fn a_client_has_an_eighth_of_the_places() {
        let (checks, now) = (PasswordChecks::new(), Instant::now());
        let enter = |number| checks.enter(client(number), limits(16), now);
        let _places = [enter(1).unwrap(), enter(1).unwrap()];
        assert_eq!(enter(1).unwrap_err(), CheckRefusal::ClientFull);
    }

    #[test]
    fn clients_without_an_address_share_all_places() {
        let (checks, now) = (PasswordChecks::new(), Instant::now());
        let unknown = CheckClient { key: 7, address: None };
        let enter = || checks.enter(unknown, limits(16), now);
        let _places: Vec<_> = (0..16).map(|_| enter().unwrap()).collect();
        assert_eq!(enter().unwrap_err(), CheckRefusal::Full);
        (0..10).for_each(|_| checks.record_wrong(unknown, limits(16), now));
        assert_eq!(enter().unwrap_err(), CheckRefusal::Full, "their failures are nobody's");
    }

    #[test]
    fn wrong_passwords_close_an_address_for_a_while() {
        let (checks, now) = (PasswordChecks::new(), Instant::now());
        let enter = |number, now| checks.enter(client(number), limits(16), now).map(drop);
        assert_eq!((0..5).map(|_| enter(1, now)).filter(Result::is_ok).count(), 5, "right ones do not count");
        (0..5).for_each(|_| checks.record_wrong(client(1), limits(16), now));
        assert_eq!(enter(1, now), Err(CheckRefusal::WrongPasswords(Duration::from_secs(1))));
        assert_eq!((enter(2, now), enter(1, now + Duration::from_secs(1))), (Ok(()), Ok(())));
        let open = CheckLimits { wrong: None, ..limits(16) };
        assert!(checks.enter(client(1), open, now).is_ok());
    }
}
