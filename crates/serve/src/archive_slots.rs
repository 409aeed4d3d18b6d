//! The places of archives that are being sent: how many there are in all and for one client, and
//! which archive gives its place to another when all are taken.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client that takes fewer bytes a second than this, in the mean, gives its place to another one
/// if all are taken.
const RATE_MIN: u64 = 32 << 10;
/// The time after which the rate of an archive counts.
const RATE_AFTER: Duration = Duration::from_secs(20);
/// The part of all places that one client may have.
const CLIENT_PART: usize = 2;

/// Why there is no place for an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotRefusal {
    /// All places are taken.
    Full,
    /// The client has as many as one may have.
    ClientFull,
}

/// The places of all workers. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArchiveSlots(Arc<Mutex<Vec<Arc<SlotState>>>>);

#[derive(Debug)]
struct SlotState {
    client: u64,
    began: Instant,
    sent_bytes: AtomicU64,
    /// Whether another archive has the place now.
    is_lost: AtomicBool,
}

impl SlotState {
    /// Returns the mean rate in bytes a second, once it counts.
    fn rate(&self, now: Instant) -> Option<u64> {
        let age = now.saturating_duration_since(self.began);
        (age >= RATE_AFTER).then(|| self.sent_bytes.load(Ordering::Relaxed) / age.as_secs())
    }
}

impl ArchiveSlots {
    /// Returns one of `all` places for an archive of `client`. Clients that `are_one` are limited
    /// all together only: they may be many behind a proxy.
    pub(crate) fn enter(
        &self,
        client: u64,
        are_one: bool,
        all: usize,
        now: Instant,
    ) -> Result<ArchiveSlot, SlotRefusal> {
        let mut slots = self.lock();
        if slots.len() >= all {
            let rates = slots.iter().enumerate().filter_map(|(at, slot)| Some((slot.rate(now)?, at)));
            let slowest = rates.filter(|(rate, _)| *rate < RATE_MIN).min().ok_or(SlotRefusal::Full)?;
            // Relaxed: the archive ends at one of its next pieces.
            slots.swap_remove(slowest.1).is_lost.store(true, Ordering::Relaxed);
        }
        let own = slots.iter().filter(|slot| slot.client == client).count();
        if !are_one && own >= all.div_ceil(CLIENT_PART) {
            return Err(SlotRefusal::ClientFull);
        }
        let (sent_bytes, is_lost) = (AtomicU64::new(0), AtomicBool::new(false));
        let state = Arc::new(SlotState { client, began: now, sent_bytes, is_lost });
        slots.push(Arc::clone(&state));
        Ok(ArchiveSlot { slots: self.clone(), state })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SlotState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an archive. It is free when this is dropped.
#[derive(Debug)]
pub(crate) struct ArchiveSlot {
    slots: ArchiveSlots,
    state: Arc<SlotState>,
}

impl ArchiveSlot {
    /// Counts bytes that the client takes.
    pub(crate) fn record_sent(&self, bytes: usize) {
        self.state.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns whether another archive has the place now.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for ArchiveSlot {
    fn drop(&mut self) {
        self.slots.lock().retain(|slot| !Arc::ptr_eq(slot, &self.state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_a_part_and_all_have_all() {
        let (slots, now) = (ArchiveSlots::default(), Instant::now());
        let enter = |client| slots.enter(client, false, 4, now);
        let first = [enter(1).unwrap(), enter(1).unwrap()];
        assert_eq!(enter(1).unwrap_err(), SlotRefusal::ClientFull);
        let others = [enter(2).unwrap(), enter(3).unwrap()];
        assert_eq!(enter(4).unwrap_err(), SlotRefusal::Full);
        drop(first);
        let one = |_| slots.enter(9, true, 4, now);
        assert_eq!([one(0), one(1)].map(|slot| slot.map(drop)), [Ok(()), Ok(())]);
        drop(others);
        assert!(slots.lock().is_empty());
        assert!(slots.enter(1, false, 1, now).is_ok(), "one of one");
    }

    #[test]
    fn the_slowest_client_gives_its_place_to_another_if_all_are_taken() {
        let (slots, start) = (ArchiveSlots::default(), Instant::now());
        let held: Vec<_> = (0..4).map(|client| slots.enter(client, false, 4, start).unwrap()).collect();
        let later = start + RATE_AFTER;
        for (slot, rate) in held.iter().zip([RATE_MIN, 2048, 1024, 4096]) {
            slot.record_sent((rate * RATE_AFTER.as_secs()) as usize);
        }
        let early = later - Duration::from_secs(1);
        assert_eq!(slots.enter(9, false, 4, early).unwrap_err(), SlotRefusal::Full);
        let new: Vec<_> = (9..12).map(|client| slots.enter(client, false, 4, later).unwrap()).collect();
        assert_eq!(held.iter().map(ArchiveSlot::is_lost).collect::<Vec<_>>(), [false, true, true, true]);
        // The one that is left is fast enough.
        assert_eq!(slots.enter(12, false, 4, later).unwrap_err(), SlotRefusal::Full);
        // Those that have lost their place free none.
        drop(held);
        assert_eq!(slots.lock().len(), new.len());
    }
}
