//! Rate limiting of requests and of wrong passwords: a token bucket for each client address, in a
//! table of bounded size that the workers share.
//!
//! The bucket is the generic cell rate algorithm (ITU-T I.371, annex A): it stores only the time at
//! which the bucket is full again. Does not own: the client's address, and the response to a
//! limited client.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shards of the table, so that workers seldom contend for a lock.
const SHARDS: usize = 16;
/// The maximum clients of a shard: 16 times as many in all, some 4 MiB.
const SHARD_CLIENTS: usize = 4096;

/// The request rate allowed to one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RequestRate {
    /// The time between two requests in the long run.
    interval: Duration,
    /// The time by which a request may be early.
    tolerance: Duration,
}

impl RequestRate {
    /// Creates a rate of `per_s` requests a second, with `burst` of them at once after a pause.
    /// Returns `None` if `per_s` is zero or no number: there is no limit.
    pub(crate) fn new(per_s: f64, burst: u32) -> Option<Self> {
        let interval =
            Duration::try_from_secs_f64(per_s.recip()).ok().filter(|interval| !interval.is_zero())?;
        Some(Self { interval, tolerance: interval.saturating_mul(burst.saturating_sub(1)) })
    }

    /// Returns how much too early a request is while the bucket is full again at `due`.
    fn admit(self, due: Instant, now: Instant) -> Result<(), Duration> {
        let early = (due - now).checked_sub(self.tolerance).filter(|early| !early.is_zero());
        early.map_or(Ok(()), Err)
    }
}

/// The table of buckets: by client, the time at which its bucket is full again.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    hasher: RandomState,
    shards: [Mutex<HashMap<IpAddr, Instant>>; SHARDS],
}

impl RateLimiter {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), shards: Default::default() }
    }

    /// Returns the time that the client has to wait until a request is not too early.
    pub(crate) fn look(&self, address: IpAddr, rate: RequestRate, now: Instant) -> Result<(), Duration> {
        let client = client(address);
        let Some(shard) = self.shard(client) else { return Ok(()) };
        let full = shard.lock().unwrap_or_else(PoisonError::into_inner);
        rate.admit(due(&full, client, now), now)
    }

    /// Counts a request from `address`. Returns the time that the client has to wait if the request
    /// is too early; such a request is not counted.
    pub(crate) fn take(&self, address: IpAddr, rate: RequestRate, now: Instant) -> Result<(), Duration> {
        let client = client(address);
        let Some(shard) = self.shard(client) else { return Ok(()) };
        let mut full = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let due = due(&full, client, now);
        rate.admit(due, now)?;
        if full.len() >= SHARD_CLIENTS && !full.contains_key(&client) {
            full.retain(|_, due| *due > now);
        }
        // All clients of the shard are active. Reset their buckets: a brief excess is the least
        // harm.
        if full.len() >= SHARD_CLIENTS && !full.contains_key(&client) {
            full.clear();
        }
        full.insert(client, due + rate.interval);
        Ok(())
    }

    fn shard(&self, client: IpAddr) -> Option<&Mutex<HashMap<IpAddr, Instant>>> {
        self.shards.get(usize::try_from(self.hasher.hash_one(client)).unwrap_or(0) % SHARDS)
    }
}

/// Returns the time at which the bucket of `client` is full again, `now` if it is full.
fn due(full: &HashMap<IpAddr, Instant>, client: IpAddr, now: Instant) -> Instant {
    full.get(&client).copied().filter(|due| *due > now).unwrap_or(now)
}

/// Returns the address that identifies a client: for IPv6 the /64 network, which one customer has
/// as a whole (RFC 6177).
pub(crate) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_burst_passes_and_then_one_request_each_interval() {
        let (buckets, now) = (RateLimiter::new(), Instant::now());
        let rate = RequestRate::new(10.0, 3).unwrap();
        let take = |ms: u64| buckets.take(address(1), rate, now + Duration::from_millis(ms));
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!(take(0), Err(Duration::from_millis(100)));
        assert_eq!(take(40), Err(Duration::from_millis(60)), "what was refused does not count");
        assert_eq!([take(100), take(200)], [Ok(()); 2]);
        assert_eq!(take(201), Err(Duration::from_millis(99)));
        assert_eq!([take(10_000), take(10_000), take(10_000)], [Ok(()); 3]);
        assert!(take(10_000).is_err());
        assert_eq!(buckets.take(address(2), rate, now), Ok(()), "each has its own");
    }

    #[test]
    fn an_address_of_a_network_of_ipv6_is_that_network() {
        let (buckets, now, rate) = (RateLimiter::new(), Instant::now(), RequestRate::new(1.0, 1).unwrap());
        let take = |text: &str| buckets.take(text.parse().unwrap(), rate, now).is_ok();
        assert!(take("2001:db8::1") && !take("2001:db8::2:3") && take("2001:db8:0:1::1"));
        assert!(take("192.0.2.1") && !take("::ffff:192.0.2.1"));
    }

    #[test]
    fn memory_is_bounded_and_the_idle_go_first() {
        let (buckets, now, rate) = (RateLimiter::new(), Instant::now(), RequestRate::new(1.0, 1).unwrap());
        let clients = || buckets.shards.iter().map(|shard| shard.lock().unwrap().len()).max().unwrap();
        for number in 0..3 * (SHARDS * SHARD_CLIENTS) as u32 {
            buckets.take(address(number), rate, now).unwrap();
        }
        assert!(clients() <= SHARD_CLIENTS);
        let later = now + Duration::from_secs(2);
        let busy = address(u32::MAX);
        buckets.take(busy, rate, later).unwrap();
        for number in 0..(SHARDS * SHARD_CLIENTS / 2) as u32 {
            buckets.take(address(number), rate, later).unwrap();
        }
        assert!(buckets.take(busy, rate, later).is_err(), "a busy client is kept while there are idle ones");
    }

    #[test]
    fn a_rate_of_zero_or_nan_is_no_limit() {
        assert_eq!(RequestRate::new(0.0, 1), None);
        assert_eq!(RequestRate::new(f64::NAN, 1), None);
        assert_eq!(RequestRate::new(-1.0, 1), None);
        assert_eq!(RequestRate::new(1e-3, 1).unwrap().interval, Duration::from_secs(1000));
    }
}
