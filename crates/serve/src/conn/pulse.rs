//! What a connection is doing and since when: so that one look at all of them, now and then, finds those that have taken too long, and no
//! request has to set a timer.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::stall::Stall;

/// A point in time, as exact as timeouts of seconds need it: this clock costs a fifth of the exact one, and is asked for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Duration);

impl Moment {
    /// Whether `limit` has passed from `since` to this.
    pub(super) fn is_over(self, since: Self, limit: Duration) -> bool {
        self.0.saturating_sub(since.0) >= limit
    }

    pub(super) fn now() -> Self {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let (sec, nsec) = (u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        Self(Duration::new(sec, nsec))
    }
}

/// What a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first byte of a request.
    Idle,
    /// The rest of its headers, or of the handshake.
    Headers,
    /// The response.
    Responding,
}

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// To go on.
    Serve,
    /// To keep no memory while nothing is asked for.
    Park,
    /// To end after what is under way.
    Drain,
    /// To end now.
    Close,
}

/// How long a connection may be in each phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) headers: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
    /// How long a stream of HTTP/2 may wait for its window.
    pub(crate) stall: Duration,
}

/// One connection's state.
#[derive(Debug)]
pub(crate) struct Pulse {
    phase: Cell<Phase>,
    since: Cell<Moment>,
    /// Since when the client has taken nothing of what is there for it.
    blocked: Cell<Option<Moment>>,
    /// Requests under way: more than one with HTTP/2.
    requests: Cell<u32>,
    order: Cell<Order>,
    /// Since its last request.
    parked: Cell<bool>,
    /// Whether bytes come between requests, too (HTTP/2): they say nothing of the next one.
    multiplexes: Cell<bool>,
    /// Whether the last request had a body that may not have been read.
    has_body: Cell<bool>,
    /// Streams that have waited for their window.
    stalls: RefCell<Vec<Weak<Stall>>>,
    waker: RefCell<Option<Waker>>,
}

impl Pulse {
    /// Of a connection that was just accepted: it has to say something soon.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            phase: Cell::new(Phase::Headers),
            since: Cell::new(Moment::now()),
            blocked: Cell::new(None),
            requests: Cell::new(0),
            order: Cell::new(Order::Serve),
            parked: Cell::new(false),
            multiplexes: Cell::new(false),
            has_body: Cell::new(false),
            stalls: RefCell::default(),
            waker: RefCell::new(None),
        })
    }

    /// Bytes have come.
    pub(crate) fn received(&self) {
        if self.phase.get() == Phase::Idle && !self.multiplexes.get() {
            self.enter(Phase::Headers);
        }
    }

    /// The client speaks HTTP/2 and has said so: it need not ask at once.
    pub(crate) fn multiplexes(&self) {
        self.multiplexes.set(true);
        self.enter(Phase::Idle);
    }

    /// The response is out, and what the client still sends is thrown away: it has as long as for
    /// headers.
    pub(crate) fn lingers(&self) {
        self.enter(Phase::Headers);
    }

    /// Notes whether the request that has begun has a body.
    pub(crate) fn set_body(&self, has_body: bool) {
        self.has_body.set(has_body);
    }

    /// Whether the last request had a body that may not have been read.
    pub(crate) fn has_body(&self) -> bool {
        self.has_body.get()
    }

    /// The clock of a stream that waits for its window.
    pub(crate) fn stall(&self) -> Rc<Stall> {
        let stall = Rc::<Stall>::default();
        self.stalls.borrow_mut().push(Rc::downgrade(&stall));
        stall
    }

    /// Whether a request is under way or not all of a response has been taken.
    fn is_busy(&self) -> bool {
        self.requests.get() > 0 || self.blocked.get().is_some()
    }

    /// The client has taken bytes.
    pub(crate) fn sent(&self) {
        // What it was slow to take may be the end of a response: it is idle from then on.
        if self.blocked.take().is_some() && self.phase.get() == Phase::Idle {
            self.since.set(Moment::now());
        }
    }

    /// The client takes no bytes.
    pub(crate) fn blocked(&self) {
        if self.blocked.get().is_none() {
            self.blocked.set(Some(Moment::now()));
        }
    }

    /// A request has begun; it ends with the value.
    pub(crate) fn request(self: &Rc<Self>) -> Busy {
        self.requests.set(self.requests.get() + 1);
        self.parked.set(false);
        self.enter(Phase::Responding);
        Busy(Rc::clone(self))
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(Moment::now());
    }

    /// What it is told to do, now and whenever that changes.
    pub(crate) fn order(&self, waker: &Waker) -> Order {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        self.order.get()
    }

    /// Whether no request is under way or has begun, and none of a response is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.get() == Phase::Idle && self.blocked.get().is_none()
    }

    /// It has done what [`Order::Park`] says, or could not.
    pub(crate) fn parked(&self) {
        self.parked.set(true);
        if self.order.get() == Order::Park {
            self.order.set(Order::Serve);
        }
    }

    /// Whether it is worth being parked: idle since `time`, and not since it last was.
    fn can_park(&self, time: Duration, now: Moment) -> bool {
        self.is_idle() && !self.parked.get() && now.is_over(self.since.get(), time)
    }

    /// Tells it to do `order`, unless it was told to do more.
    fn tell(&self, order: Order) {
        if self.order.get() >= order {
            return;
        }
        self.order.set(order);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Whether it has taken longer than `patience` has it.
    fn is_overdue(&self, patience: &Patience, now: Moment) -> bool {
        let over = |since: Moment, limit| now.is_over(since, limit);
        let waiting = match self.phase.get() {
            Phase::Idle => self.blocked.get().is_none() && over(self.since.get(), patience.idle),
            Phase::Headers => over(self.since.get(), patience.headers),
            Phase::Responding => false,
        };
        waiting || self.blocked.get().is_some_and(|since| over(since, patience.write))
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Busy(Rc<Pulse>);

impl Drop for Busy {
    fn drop(&mut self) {
        let left = self.0.requests.get().saturating_sub(1);
        self.0.requests.set(left);
        if left == 0 {
            self.0.enter(Phase::Idle);
        }
    }
}

/// All connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct Pulses(RefCell<Vec<Weak<Pulse>>>);

impl Pulses {
    /// Knows `pulse` from now on.
    pub(crate) fn add(&self, pulse: &Rc<Pulse>) {
        self.0.borrow_mut().push(Rc::downgrade(pulse));
    }

    /// Closes the connections that have taken longer than `patience` has it, and parks those that are idle since `idle`; how many.
    pub(crate) fn sweep(&self, patience: &Patience, idle: Duration) -> usize {
        let (now, mut parked) = (Moment::now(), 0);
        self.each(|pulse| {
            let look = |stall: &Weak<Stall>| {
                stall.upgrade().map(|stall| stall.look(stall.limit(patience), now)).is_some()
            };
            pulse.stalls.borrow_mut().retain(look);
            if pulse.is_overdue(patience, now) {
                pulse.tell(Order::Close);
            } else if pulse.can_park(idle, now) {
                pulse.tell(Order::Park);
                parked += 1;
            }
        });
        parked
    }

    /// Whether a request is under way on any of them.
    pub(crate) fn are_busy(&self) -> bool {
        let mut are_busy = false;
        self.each(|pulse| are_busy |= pulse.is_busy());
        are_busy
    }

    /// Gives all connections `order`.
    pub(crate) fn tell(&self, order: Order) {
        self.each(|pulse| pulse.tell(order));
    }

    fn each(&self, mut visit: impl FnMut(&Pulse)) {
        self.0.borrow_mut().retain(|pulse| pulse.upgrade().map(|pulse| visit(&pulse)).is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        headers: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        write: Duration::from_secs(30),
        stall: Duration::from_secs(30),
    };

    fn overdue_after(pulse: &Pulse, seconds: u64) -> bool {
        pulse.is_overdue(&PATIENCE, Moment(Moment::now().0 + Duration::from_secs(seconds)))
    }

    #[test]
    fn each_phase_has_its_time() {
        let pulse = Pulse::new();
        assert!(!overdue_after(&pulse, 9) && overdue_after(&pulse, 11), "a first request");
        let (first, second) = (pulse.request(), pulse.request());
        assert!(!overdue_after(&pulse, 1000), "a response takes what it takes");
        drop(first);
        assert!(!overdue_after(&pulse, 1000), "one of two is under way");
        drop(second);
        assert!(!overdue_after(&pulse, 59) && overdue_after(&pulse, 61), "idle");
        pulse.received();
        assert!(!overdue_after(&pulse, 9) && overdue_after(&pulse, 11), "a request that does not end");
        pulse.multiplexes();
        pulse.received();
        assert!(!overdue_after(&pulse, 59) && overdue_after(&pulse, 61), "a frame is no request");
    }

    #[test]
    fn a_client_that_takes_nothing_is_overdue_in_any_phase() {
        let pulse = Pulse::new();
        let _request = pulse.request();
        pulse.blocked();
        assert!(!overdue_after(&pulse, 29) && overdue_after(&pulse, 31));
        pulse.sent();
        assert!(!overdue_after(&pulse, 31));
    }

    #[test]
    fn what_is_idle_is_parked_once() {
        let (pulses, pulse) = (Pulses::default(), Pulse::new());
        pulses.add(&pulse);
        let sweep = || pulses.sweep(&PATIENCE, Duration::ZERO);
        assert_eq!(sweep(), 0, "its first request has not come");
        drop(pulse.request());
        pulse.blocked();
        assert_eq!(sweep(), 0, "the response is not out");
        pulse.sent();
        assert_eq!((sweep(), pulse.order(Waker::noop())), (1, Order::Park));
        pulse.parked();
        assert_eq!((sweep(), pulse.order(Waker::noop())), (0, Order::Serve));
        drop(pulse.request());
        assert_eq!(sweep(), 1);
    }

    #[test]
    fn a_client_is_idle_when_it_has_taken_its_response() {
        let pulse = Pulse::new();
        drop(pulse.request());
        pulse.since.set(Moment(Moment::now().0.saturating_sub(Duration::from_secs(1000))));
        assert!(overdue_after(&pulse, 0));
        pulse.blocked();
        assert!(!overdue_after(&pulse, 29) && overdue_after(&pulse, 31));
        pulse.sent();
        assert!(!overdue_after(&pulse, 59) && overdue_after(&pulse, 61));
    }

    #[test]
    fn orders_arrive_once_and_the_last_word_is_close() {
        let (pulses, pulse) = (Pulses::default(), Pulse::new());
        pulses.add(&pulse);
        assert_eq!(pulse.order(Waker::noop()), Order::Serve);
        pulses.tell(Order::Drain);
        assert_eq!(pulse.order(Waker::noop()), Order::Drain);
        pulses.tell(Order::Close);
        pulses.tell(Order::Drain);
        assert_eq!(pulse.order(Waker::noop()), Order::Close);
        drop(pulse);
        pulses.sweep(&PATIENCE, Duration::ZERO);
        assert!(pulses.0.borrow().is_empty());
    }
}
