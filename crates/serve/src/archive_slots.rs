//! The places of archives that are being sent: how many there are in all and for one client, and
//! which archive gives its place to another when all are taken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::places::{PlaceClient, PlaceRefusal};

/// A client that takes fewer bytes than this in a second for which its archive waits gives its
/// place to another one if all are taken.
const RATE_MIN: u64 = 32 << 10;
/// The time of waiting after which the rate of a client counts, and of which it is the mean.
const WINDOW: Duration = Duration::from_secs(20);
/// The part of all places that one client may have.
const CLIENT_PART: usize = 2;

/// The places of all workers, each with the archive of type `T` while it waits for its client.
#[derive(Debug)]
pub(crate) struct ArchiveSlots<T>(Arc<Mutex<Vec<Arc<SlotState<T>>>>>);

impl<T> Default for ArchiveSlots<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

#[derive(Debug)]
struct SlotState<T> {
    client: u64,
    waiting: Mutex<WaitingArchive<T>>,
}

/// An archive, and how fast its client takes it.
#[derive(Debug)]
struct WaitingArchive<T> {
    /// `None` while the next piece is made, or once another archive has the place.
    archive: Option<T>,
    /// Since when it waits for its client.
    since: Option<Instant>,
    /// Bytes that the client has got, and the time for which they have waited, in this window.
    got: (u64, Duration),
    /// The same in the window before.
    before: (u64, Duration),
}

impl<T> WaitingArchive<T> {
    /// Returns the bytes a second that the client takes, if it has waited long enough.
    fn rate(&self, now: Instant) -> Option<u64> {
        let waits = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let waited = self.before.1 + self.got.1 + waits;
        (waited >= WINDOW).then(|| (self.before.0 + self.got.0) / waited.as_secs())
    }

    fn begin_wait(&mut self, bytes: usize, now: Instant) {
        self.got.0 += bytes as u64;
        self.since = Some(now);
    }

    fn end_wait(&mut self, now: Instant) {
        let waits = self.since.take().map(|since| now.saturating_duration_since(since));
        self.got.1 += waits.unwrap_or_default();
        if self.got.1 >= WINDOW {
            self.before = std::mem::take(&mut self.got);
        }
    }
}

impl<T> SlotState<T> {
    fn waiting(&self) -> MutexGuard<'_, WaitingArchive<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> ArchiveSlots<T> {
    /// Returns one of `all` places for an archive of `client`.
    pub(crate) fn enter(
        &self,
        client: PlaceClient,
        all: usize,
        now: Instant,
    ) -> Result<ArchiveSlot<T>, PlaceRefusal> {
        let mut slots = self.lock();
        let own = slots.iter().filter(|slot| slot.client == client.key).count();
        // One that may have no place takes none from others.
        if !client.are_many && (all.div_ceil(CLIENT_PART)..all).contains(&own) {
            return Err(PlaceRefusal::ClientFull);
        }
        while slots.len() >= all {
            let at = slowest(&slots, now).ok_or(PlaceRefusal::Full)?;
            // With the archive, its memory and its files are free.
            drop(slots.swap_remove(at).waiting().archive.take());
        }
        let waiting = WaitingArchive {
            archive: None,
            since: None,
            got: Default::default(),
            before: Default::default(),
        };
        let state = Arc::new(SlotState { client: client.key, waiting: Mutex::new(waiting) });
        slots.push(Arc::clone(&state));
        Ok(ArchiveSlot { slots: Self(Arc::clone(&self.0)), state })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SlotState<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the index of the archive that waits for the slowest client, if that is slow.
fn slowest<T>(slots: &[Arc<SlotState<T>>], now: Instant) -> Option<usize> {
    let rate = |(at, slot): (usize, &Arc<SlotState<T>>)| {
        let waiting = slot.waiting();
        let rate = waiting.archive.as_ref().and(waiting.rate(now))?;
        (rate < RATE_MIN).then_some((rate, at))
    };
    slots.iter().enumerate().filter_map(rate).min().map(|(_, at)| at)
}

/// The place of an archive. It is free when this is dropped.
#[derive(Debug)]
pub(crate) struct ArchiveSlot<T> {
    slots: ArchiveSlots<T>,
    state: Arc<SlotState<T>>,
}

impl<T> ArchiveSlot<T> {
    /// Keeps the archive until its client has taken a piece of `bytes` bytes.
    pub(crate) fn keep(&self, archive: T, bytes: usize, now: Instant) {
        let mut waiting = self.state.waiting();
        waiting.archive = Some(archive);
        waiting.begin_wait(bytes, now);
    }

    /// Returns the archive for its next piece; `None` once another archive has the place.
    pub(crate) fn take(&self, now: Instant) -> Option<T> {
        let mut waiting = self.state.waiting();
        waiting.end_wait(now);
        waiting.archive.take()
    }
}

impl<T> Drop for ArchiveSlot<T> {
    fn drop(&mut self) {
        self.slots.lock().retain(|slot| !Arc::ptr_eq(slot, &self.state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn one(key: u64) -> PlaceClient {
        PlaceClient { key, are_many: false }
    }

    fn refusals(slots: &ArchiveSlots<u32>, client: u64, now: Instant) -> Option<PlaceRefusal> {
        slots.enter(one(client), 4, now).err()
    }

    #[test]
    fn a_client_has_a_part_and_all_have_all() {
        let (slots, now) = (ArchiveSlots::<u32>::default(), Instant::now());
        let enter = |client| slots.enter(one(client), 4, now).unwrap();
        let first = [enter(1), enter(1)];
        assert_eq!(refusals(&slots, 1, now), Some(PlaceRefusal::ClientFull));
        let others = [enter(2), enter(3)];
        assert_eq!(refusals(&slots, 4, now), Some(PlaceRefusal::Full));
        drop(first);
        let many: Vec<_> =
            (0..2).map(|_| slots.enter(PlaceClient { key: 9, are_many: true }, 4, now).unwrap()).collect();
        drop((others, many));
        assert!(slots.lock().is_empty());
        let only = slots.enter(one(1), 1, now);
        assert!(only.is_ok(), "one of one");
        assert_eq!(slots.enter(one(1), 1, now).err(), Some(PlaceRefusal::Full));
    }

    #[test]
    fn the_slowest_client_gives_its_place_to_another_if_all_are_taken() {
        let (slots, start) = (ArchiveSlots::<u32>::default(), Instant::now());
        let held: Vec<_> = (0..4).map(|client| slots.enter(one(client), 4, start).unwrap()).collect();
        for (slot, rate) in held.iter().zip([RATE_MIN, 2048, 1024, 4096]) {
            slot.keep(7, (rate * WINDOW.as_secs()) as usize, start);
        }
        assert_eq!(refusals(&slots, 9, start + WINDOW - SECOND), Some(PlaceRefusal::Full));
        let later = start + WINDOW;
        let new: Vec<_> = (9..12).map(|client| slots.enter(one(client), 4, later).unwrap()).collect();
        // The one that is left is fast enough. Those that have lost their place free none.
        assert_eq!(refusals(&slots, 12, later), Some(PlaceRefusal::Full));
        assert_eq!([0, 1, 2, 3].map(|at| held[at].take(later)), [Some(7), None, None, None]);
        drop(held);
        assert_eq!(slots.lock().len(), new.len());
    }

    #[test]
    fn a_client_that_may_have_no_further_place_takes_none_from_others() {
        let (slots, start) = (ArchiveSlots::<u32>::default(), Instant::now());
        let held = [1, 1, 2, 3].map(|client| slots.enter(one(client), 4, start).unwrap());
        held[2].keep(7, 1, start);
        let later = start + WINDOW;
        assert_eq!(refusals(&slots, 1, later), Some(PlaceRefusal::ClientFull));
        assert_eq!(held[2].take(later), Some(7));
    }

    #[test]
    fn the_time_of_the_server_is_not_that_of_the_client_and_old_bytes_do_not_count() {
        let (slots, mut now) = (ArchiveSlots::<u32>::default(), Instant::now());
        let slot = slots.enter(one(1), 1, now).unwrap();
        // An hour to make each piece, which its client takes at once.
        for _ in 0..3 {
            slot.keep(7, 1000, now);
            assert_eq!(slot.take(now), Some(7));
            now += 3600 * SECOND;
        }
        slot.keep(7, 1 << 30, now);
        assert_eq!(slots.enter(one(2), 1, now).err(), Some(PlaceRefusal::Full));
        // A gigabyte at once, and then two kilobytes a second.
        for _ in 0..5 {
            assert_eq!(slot.take(now), Some(7));
            slot.keep(7, 40 << 10, now);
            now += WINDOW;
        }
        assert!(slots.enter(one(2), 1, now).is_ok());
        assert_eq!(slot.take(now), None);
    }
}
