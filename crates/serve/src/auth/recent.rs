//! Who was verified a moment ago, so that not every request costs what a password's hash costs. Nothing in it can be turned back into
//! a password: the keys are tags under a random key that never leaves this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::{hmac, rand};

use crate::error::{Error, Op};

/// How long somebody stays verified.
const LIFETIME: Duration = Duration::from_secs(60);
/// No more than this are remembered.
const ENTRIES_MAX: usize = 4096;

/// A name, a password and the hash they were verified against.
pub(super) type Key = [u8; 32];

#[derive(Debug)]
pub(super) struct Recent {
    secret: hmac::Key,
    until: Mutex<HashMap<Key, Instant>>,
}

impl Recent {
    /// With a new key.
    pub(super) fn new() -> Result<Self, Error> {
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        let secret = secret
            .map_err(|_| Error::new(Op::Start, "authentication", "the system gives no random bytes"))?;
        Ok(Self { secret, until: Mutex::default() })
    }

    pub(super) fn key(&self, user: &str, password: &[u8], hash: &str) -> Key {
        let mut context = hmac::Context::with_key(&self.secret);
        // Neither a name nor a hash has a NUL, and a password comes last: no two triples are the same bytes.
        [user.as_bytes(), b"\0", hash.as_bytes(), b"\0", password]
            .iter()
            .for_each(|part| context.update(part));
        let mut key = Key::default();
        key.iter_mut().zip(context.sign().as_ref()).for_each(|(to, from)| *to = *from);
        key
    }

    pub(super) fn contains(&self, key: &Key, now: Instant) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(key).is_some_and(|&until| now < until)
    }

    pub(super) fn insert(&self, key: Key, now: Instant) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= ENTRIES_MAX {
            until.retain(|_, until| now < *until);
        }
        // Full of the living: to be verified once more is all that it costs them.
        if until.len() >= ENTRIES_MAX {
            until.clear();
        }
        until.insert(key, now + LIFETIME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_ends() {
        let recent = Recent::new().unwrap();
        let (key, now) = (recent.key("a", b"b", "c"), Instant::now());
        recent.insert(key, now);
        assert!(
            recent.contains(&key, now) && recent.contains(&key, now + LIFETIME - Duration::from_nanos(1))
        );
        assert!(!recent.contains(&key, now + LIFETIME));
    }

    #[test]
    fn keys_differ_by_every_part_and_by_process() {
        let [one, other] = [Recent::new().unwrap(), Recent::new().unwrap()];
        let keys = [
            one.key("a", b"b", "c"),
            one.key("ab", b"", "c"),
            one.key("a", b"", "bc"),
            one.key("a", b"c", "b"),
            other.key("a", b"b", "c"),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[0], one.key("a", b"b", "c"));
    }

    #[test]
    fn memory_is_bounded_and_the_living_come_before_the_dead() {
        let recent = Recent::new().unwrap();
        let now = Instant::now();
        let later = now + LIFETIME / 2;
        let key = |at: usize| recent.key(&at.to_string(), b"", "");
        (0..ENTRIES_MAX - 1).for_each(|at| recent.insert(key(at), now));
        recent.insert(key(ENTRIES_MAX), later);
        recent.insert(key(ENTRIES_MAX + 1), now + LIFETIME);
        assert!(recent.contains(&key(ENTRIES_MAX), now + LIFETIME));
        assert_eq!(recent.until.lock().unwrap().len(), 2);
        (0..2 * ENTRIES_MAX).for_each(|at| recent.insert(key(at), later));
        assert!(recent.until.lock().unwrap().len() <= ENTRIES_MAX);
    }
}
