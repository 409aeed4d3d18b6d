//! How many requests a client may make: a bucket for each address, all of them in a table of
//! bounded size that the workers share.
//!
//! The bucket is the generic cell rate algorithm (ITU-T I.371, annex A): of each client only the
//! moment is kept at which its bucket is full again. Does not own: which address a client has, and
//! what it is answered.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Parts of the table, so that workers seldom wait for each other.
const SHARDS: usize = 16;
/// Most clients of a part: 16 times so many, some 4 MiB together.
const SHARD_CLIENTS: usize = 4096;

/// The request rate allowed to one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Between two requests, in the long run.
    interval: Duration,
    /// For how long requests may come before their time.
    tolerance: Duration,
}

impl Rate {
    /// `per_s` requests a second, and `burst` of them at once after a pause. `None` for no limit.
    pub(crate) fn new(per_s: f64, burst: u32) -> Option<Self> {
        let interval =
            Duration::try_from_secs_f64(per_s.recip()).ok().filter(|interval| !interval.is_zero())?;
        Some(Self { interval, tolerance: interval.saturating_mul(burst.saturating_sub(1)) })
    }
}

/// When each client's bucket is full again.
#[derive(Debug)]
pub(crate) struct Buckets {
    hasher: RandomState,
    shards: [Mutex<HashMap<IpAddr, Instant>>; SHARDS],
}

impl Buckets {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), shards: Default::default() }
    }

    /// Counts a request from `address`. Returns how long the client has to wait if it has come too
    /// early; such a request does not count.
    pub(crate) fn take(&self, address: IpAddr, rate: Rate, now: Instant) -> Result<(), Duration> {
        let client = client(address);
        let shard = usize::try_from(self.hasher.hash_one(client)).unwrap_or(0) % SHARDS;
        let Some(shard) = self.shards.get(shard) else { return Ok(()) };
        let mut full = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let due = full.get(&client).copied().filter(|due| *due > now).unwrap_or(now);
        if let Some(early) = (due - now).checked_sub(rate.tolerance).filter(|early| !early.is_zero()) {
            return Err(early);
        }
        if full.len() >= SHARD_CLIENTS && !full.contains_key(&client) {
            full.retain(|_, due| *due > now);
        }
        // Full of clients that are all busy: each of them gets a new bucket, which is the least
        // that can go wrong.
        if full.len() >= SHARD_CLIENTS && !full.contains_key(&client) {
            full.clear();
        }
        full.insert(client, due + rate.interval);
        Ok(())
    }
}

/// A customer has all addresses of a /64 of IPv6 (RFC 6177): they are one client.
fn client(address: IpAddr) -> IpAddr {
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
        let (buckets, now) = (Buckets::new(), Instant::now());
        let rate = Rate::new(10.0, 3).unwrap();
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
        let (buckets, now, rate) = (Buckets::new(), Instant::now(), Rate::new(1.0, 1).unwrap());
        let take = |text: &str| buckets.take(text.parse().unwrap(), rate, now).is_ok();
        assert!(take("2001:db8::1") && !take("2001:db8::2:3") && take("2001:db8:0:1::1"));
        assert!(take("192.0.2.1") && !take("::ffff:192.0.2.1"));
    }

    #[test]
    fn memory_is_bounded_and_the_idle_go_first() {
        let (buckets, now, rate) = (Buckets::new(), Instant::now(), Rate::new(1.0, 1).unwrap());
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
    fn a_rate_that_is_none_limits_nobody() {
        assert_eq!(Rate::new(0.0, 1), None);
        assert_eq!(Rate::new(f64::NAN, 1), None);
        assert_eq!(Rate::new(-1.0, 1), None);
        assert_eq!(Rate::new(1e-3, 1).unwrap().interval, Duration::from_secs(1000));
    }
}
