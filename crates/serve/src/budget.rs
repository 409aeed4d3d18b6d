//! The memory of responses that the server generates (listings, archives), counted over all workers
//! against one limit.
//!
//! Does not own: the limit, which a reload may change. The counter is one atomic, so pool threads
//! and workers share it without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fathom_io::Errno;

/// The bytes in use. Clones share the counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an empty charge, which may grow while all charges together stay within `limit`
    /// bytes.
    pub(crate) fn charge(&self, limit: usize) -> Charge {
        Charge { budget: self.clone(), limit, bytes: 0 }
    }
}

/// Bytes that one holder has taken from a [`Budget`]. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    limit: usize,
    bytes: usize,
}

impl Charge {
    /// Takes the difference to `bytes` in all; a smaller number changes nothing.
    ///
    /// # Errors
    /// `TOOBIG` if `bytes` alone are more than the limit, and `NOMEM` if the budget would be
    /// exceeded. The charge stays as it was.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Errno> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        if bytes > self.limit {
            return Err(Errno::TOOBIG);
        }
        let take = |used: usize| used.checked_add(more).filter(|used| *used <= self.limit);
        // The counter publishes no data, so no ordering is needed.
        let taken = self.budget.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map_err(|_over| Errno::NOMEM)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Returns the excess over `bytes` to the budget.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.budget.0.fetch_sub(less, Ordering::Relaxed);
        self.bytes -= less;
    }

    /// Returns `bytes` with this charge, which lasts until the last clone and the last slice of
    /// them is dropped.
    pub(crate) fn attach(mut self, bytes: Vec<u8>) -> Bytes {
        self.shrink_to(bytes.capacity());
        Bytes::from_owner(Charged { bytes, _charge: self })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Charged {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_share_a_limit_and_give_back_what_they_took() {
        let budget = Budget::default();
        let (mut first, mut second) = (budget.charge(100), budget.charge(100));
        assert_eq!((first.grow_to(60), first.grow_to(10), budget.used()), (Ok(()), Ok(()), 60));
        assert_eq!((second.grow_to(41), budget.used()), (Err(Errno::NOMEM), 60));
        assert_eq!((second.grow_to(usize::MAX), second.grow_to(40)), (Err(Errno::TOOBIG), Ok(())));
        first.shrink_to(20);
        assert_eq!(budget.used(), 60);
        drop(first);
        assert_eq!(budget.used(), 40);
        let bytes = second.attach(vec![0; 30]);
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(budget.used(), 30, "a slice holds all of them");
        drop(slice);
        assert_eq!(budget.used(), 0);
    }
}
