//! A cache of recent verifications, so that not every request costs a password hash. No entry can
//! be turned back into a password: the keys are tags under a random key that never leaves this
//! process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::{hmac, rand};

use crate::error::{Error, Op};

/// How long a verification is valid.
pub(super) const LIFETIME: Duration = Duration::from_secs(60);
/// The most entries.
const ENTRIES_MAX: usize = 4096;

/// A tag of a name, a password and the hash they were verified against.
pub(super) type CredentialTag = [u8; 32];

#[derive(Debug)]
pub(super) struct VerifiedCache {
    secret: hmac::Key,
    until: Mutex<HashMap<CredentialTag, Instant>>,
}

impl VerifiedCache {
    /// Creates an empty cache with a new secret key.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub(super) fn new() -> Result<Self, Error> {
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        let secret = secret
            .map_err(|_| Error::new(Op::Start, "authentication", "the system gives no random bytes"))?;
        Ok(Self { secret, until: Mutex::default() })
    }

    pub(super) fn tag(&self, user: &str, password: &[u8], hash: &str) -> CredentialTag {
        let mut context = hmac::Context::with_key(&self.secret);
        // Neither a name nor a hash contains a NUL, and the password is last: different triples
        // have different bytes.
        [user.as_bytes(), b"\0", hash.as_bytes(), b"\0", password]
            .iter()
            .for_each(|part| context.update(part));
        let mut key = CredentialTag::default();
        key.iter_mut().zip(context.sign().as_ref()).for_each(|(to, from)| *to = *from);
        key
    }

    pub(super) fn contains(&self, key: &CredentialTag, now: Instant) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(key).is_some_and(|&until| now < until)
    }

    pub(super) fn insert(&self, key: CredentialTag, now: Instant) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= ENTRIES_MAX {
            until.retain(|_, until| now < *until);
        }
        // All entries are valid: dropping them costs their users one more verification each.
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
        let verified = VerifiedCache::new().unwrap();
        let (key, now) = (verified.tag("a", b"b", "c"), Instant::now());
        verified.insert(key, now);
        assert!(
            verified.contains(&key, now) && verified.contains(&key, now + LIFETIME - Duration::from_nanos(1))
        );
        assert!(!verified.contains(&key, now + LIFETIME));
    }

    #[test]
    fn keys_differ_by_every_part_and_by_process() {
        let [one, other] = [VerifiedCache::new().unwrap(), VerifiedCache::new().unwrap()];
        let keys = [
            one.tag("a", b"b", "c"),
            one.tag("ab", b"", "c"),
            one.tag("a", b"", "bc"),
            one.tag("a", b"c", "b"),
            other.tag("a", b"b", "c"),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[0], one.tag("a", b"b", "c"));
    }

    #[test]
    fn entries_are_bounded_and_expired_ones_go_first() {
        let verified = VerifiedCache::new().unwrap();
        let now = Instant::now();
        let later = now + LIFETIME / 2;
        let key = |at: usize| verified.tag(&at.to_string(), b"", "");
        (0..ENTRIES_MAX - 1).for_each(|at| verified.insert(key(at), now));
        verified.insert(key(ENTRIES_MAX), later);
        verified.insert(key(ENTRIES_MAX + 1), now + LIFETIME);
        assert!(verified.contains(&key(ENTRIES_MAX), now + LIFETIME));
        assert_eq!(verified.until.lock().unwrap().len(), 2);
        (0..2 * ENTRIES_MAX).for_each(|at| verified.insert(key(at), later));
        assert!(verified.until.lock().unwrap().len() <= ENTRIES_MAX);
    }
}
