//! Which of two ways of sending what is in memory is cheaper here: sendfile(2), or writing a buffer, into which files are read first. Pages
//! are shared by the one and copied by the other, and what that saves depends on the machine, the network and the size. So both are timed
//! while they are used, and the one that has been cheaper by the byte is taken, but now and then the other one, to know. What reading costs
//! also says how much is read at once.

use std::cell::Cell;
use std::time::Duration;

/// Every so many decisions the dearer way is taken.
const TRIAL: u32 = 64;
/// A measurement's weight against those before it: about this many count.
const MEMORY: f64 = 16.0;

/// What each of the ways has cost.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// Whether it is sendfile(2) whatever that costs.
    always_sends: bool,
    /// Nanoseconds a byte.
    sent: Cost,
    sent_kept: Cost,
    read: Cost,
    written: Cost,
    /// What headers took that were written by themselves, since the last part was sent.
    heads: Cell<Duration>,
    decisions: Cell<u32>,
}

#[derive(Debug, Default)]
struct Cost(Cell<Option<f64>>);

impl Cost {
    fn add(&self, time: Duration, bytes: usize) {
        if bytes < Way::BYTES_MIN {
            return;
        }
        let now = time.as_nanos() as f64 / bytes as f64;
        let cost = self.0.get().map_or(now, |before| before + (now - before) / MEMORY);
        self.0.set(Some(cost));
    }

    fn bytes_in(&self, time: Duration) -> usize {
        let bytes = self.0.get().map_or(0.0, |cost| time.as_nanos() as f64 / cost) as usize;
        1 << bytes.max(Way::BYTES_MIN).ilog2()
    }
}

impl Way {
    /// The cheaper one, or sendfile(2) whatever it costs.
    pub(crate) fn new(always_sends: bool) -> Self {
        Self { always_sends, ..Self::default() }
    }

    /// Shorter calls say little about bytes.
    pub(crate) const BYTES_MIN: usize = 16 << 10;
    /// How long a worker reads, or writes, without looking for requests.
    const CALL_TIME: Duration = Duration::from_micros(40);
    /// Kept bodies that are longer always go by sendfile(2): a socket takes them in several goes, and copying was never the cheaper way.
    pub(crate) const KEPT_BYTES_MAX: usize = 64 << 10;

    /// sendfile(2) took `time` for `bytes` of a file.
    pub(crate) fn sent(&self, time: Duration, bytes: usize) {
        self.sent.add(self.heads.take() + time, bytes);
    }

    /// sendfile(2) took `time` for `bytes` of a body that is kept.
    pub(crate) fn sent_kept(&self, time: Duration, bytes: usize) {
        let time = self.heads.take() + time;
        // By the byte longer ones cost less, and there is nothing to decide about them.
        if bytes <= Self::KEPT_BYTES_MAX {
            self.sent_kept.add(time, bytes);
        }
    }

    /// Writing the headers before a part took `time`: written with the body they take no call.
    pub(crate) fn headed(&self, time: Duration, _: usize) {
        self.heads.set(self.heads.get() + time);
    }

    /// Reading `bytes` into a buffer took `time`.
    pub(crate) fn copied(&self, time: Duration, bytes: usize) {
        self.read.add(time, bytes);
    }

    /// How many bytes a worker is to read in one go: what it can in [`Way::CALL_TIME`], a power of two, and at least [`Way::BYTES_MIN`]. Pages
    /// that another processor has just filled may take it twenty times as long as others.
    pub(crate) fn read_bytes(&self) -> usize {
        self.read.bytes_in(Self::CALL_TIME)
    }

    /// The same of writing.
    pub(crate) fn write_bytes(&self) -> usize {
        self.written.bytes_in(Self::CALL_TIME)
    }

    /// Writing `bytes` of buffers took `time`.
    pub(crate) fn written(&self, time: Duration, bytes: usize) {
        self.written.add(time, bytes);
    }

    /// Whether the next bytes of a file are to go by sendfile(2).
    pub(crate) fn sends(&self) -> bool {
        let buffered = self.read.0.get().zip(self.written.0.get()).map(|(read, written)| read + written);
        self.takes(&self.sent, buffered)
    }

    /// Whether `bytes` of a body that is kept are to go by sendfile(2).
    pub(crate) fn sends_kept(&self, bytes: usize) -> bool {
        bytes > Self::KEPT_BYTES_MAX || self.takes(&self.sent_kept, self.written.0.get())
    }

    fn takes(&self, sent: &Cost, buffered: Option<f64>) -> bool {
        if self.always_sends {
            return true;
        }
        let cheaper = match (sent.0.get(), buffered) {
            (Some(sent), Some(buffered)) => sent <= buffered,
            (Some(_), None) => false,
            (None, _) => true,
        };
        let decision = self.decisions.get().wrapping_add(1);
        self.decisions.set(decision);
        cheaper != decision.is_multiple_of(TRIAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(way: &Way) -> bool {
        (0..TRIAL).filter(|_| way.sends()).count() as u32 > TRIAL / 2
    }

    #[test]
    fn both_are_tried_and_the_cheaper_one_is_taken() {
        let (way, bytes) = (Way::default(), 1 << 16);
        assert!(way.sends(), "nothing is known");
        way.sent(Duration::from_micros(10), bytes);
        assert!(!way.sends(), "the other one is not known");
        way.copied(Duration::from_micros(5), bytes);
        way.written(Duration::from_micros(8), bytes);
        assert!(most(&way));
        (0..100).for_each(|_| way.written(Duration::from_micros(3), bytes));
        assert!(!most(&way));
        assert_eq!((0..TRIAL).filter(|_| way.sends()).count(), 1, "one trial");
    }

    #[test]
    fn what_is_always_sent_is_so_whatever_it_costs() {
        let (way, bytes) = (Way::new(true), 1 << 16);
        way.sent(Duration::from_secs(1), bytes);
        way.copied(Duration::from_micros(1), bytes);
        way.written(Duration::from_micros(1), bytes);
        assert!((0..TRIAL * 2).all(|_| way.sends()));
    }

    #[test]
    fn kept_bodies_have_a_choice_of_their_own() {
        let (way, bytes) = (Way::default(), 1 << 16);
        let sends = || (0..TRIAL).filter(|_| way.sends_kept(bytes)).count() as u32 > TRIAL / 2;
        way.written(Duration::from_micros(9), bytes);
        way.sent_kept(Duration::from_micros(7), bytes);
        assert!(sends());
        (0..100).for_each(|_| {
            way.headed(Duration::from_micros(3), 200);
            way.sent_kept(Duration::from_micros(7), bytes);
        });
        assert!(!sends(), "headers count");
        assert!(most(&way), "nothing is known of files");
        (0..100).for_each(|_| way.written(Duration::from_micros(30), bytes));
        assert!(sends(), "copying has become dear");
        assert!((0..TRIAL * 2).all(|_| way.sends_kept(bytes + 1)), "long ones are not copied");
    }

    #[test]
    fn a_read_takes_about_as_long_whatever_a_byte_costs() {
        let way = Way::default();
        assert_eq!(way.read_bytes(), Way::BYTES_MIN, "nothing is known");
        way.copied(Duration::from_micros(40), 1 << 16);
        assert_eq!((way.read_bytes(), way.write_bytes()), (1 << 16, Way::BYTES_MIN));
        (0..100).for_each(|_| way.copied(Duration::from_micros(58), 1 << 16));
        assert_eq!(way.read_bytes(), 32 << 10);
        (0..100).for_each(|_| way.copied(Duration::from_secs(1), 1 << 16));
        assert_eq!(way.read_bytes(), Way::BYTES_MIN);
        (0..200).for_each(|_| way.copied(Duration::ZERO, 1 << 16));
        assert!(way.read_bytes() >= 1 << 20, "nothing is as cheap as that");
    }

    #[test]
    fn short_calls_do_not_count() {
        let way = Way::default();
        way.sent(Duration::from_secs(1), Way::BYTES_MIN - 1);
        assert_eq!(way.sent.0.get(), None);
    }
}
