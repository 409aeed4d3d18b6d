//! The phase of each connection and the time it began, so that a periodic sweep over all
//! connections finds those past their deadlines, and no request sets a timer. The sweep also asks
//! the kernel for the connections of HTTP/1.1 whose client has gone while it waits for an answer:
//! nothing reads from them until then.
//!
//! Owns: the phases, their deadlines, and the command that a connection is to follow. Does not own:
//! the sweep interval ([`crate::worker`]), reading and writing.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use fathom_io::Clock;
use fathom_io::clock::CoarseInstant;
use fathom_io::sys::peers_ended;

use super::stall::StreamStall;

/// The event that a connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// The first byte of a request.
    Idle,
    /// The rest of the request's headers, or of the TLS handshake.
    Headers,
    /// The end of the response.
    Responding,
}

/// A command to a connection, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionCommand {
    /// Continue.
    Serve,
    /// Free the memory that an idle connection does not need.
    Park,
    /// End after the requests under way.
    Drain,
    /// End now.
    Close,
}

/// The longest time that a connection may spend in each phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) headers: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
    /// The longest time that a stream of HTTP/2 or HTTP/3 may wait for flow control without
    /// progress.
    pub(crate) stall: Duration,
    /// The longest time without progress of a response whose client sends no more. Such a client
    /// may still be reading, or may be gone.
    pub(crate) gone: Duration,
}

/// The state of one connection: phase, requests under way, pending command.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    clock: Clock,
    phase: Cell<ConnectionPhase>,
    since: Cell<CoarseInstant>,
    /// Since when the client has taken none of the bytes that are ready for it.
    blocked: Cell<Option<CoarseInstant>>,
    /// Requests under way: HTTP/2 and HTTP/3 may have more than one.
    requests: Cell<u32>,
    command: Cell<ConnectionCommand>,
    /// Whether the connection has been parked since its last request.
    is_parked: Cell<bool>,
    /// Whether the connection is multiplexed (HTTP/2, HTTP/3): bytes that arrive between requests
    /// then do not begin a request.
    is_multiplexed: Cell<bool>,
    /// Whether the last request had a body that may be unread.
    has_body: Cell<bool>,
    /// Whether the connection has ended, although tasks of its streams may be left.
    has_ended: Cell<bool>,
    /// The number of the socket, while it is open.
    socket: Cell<Option<RawFd>>,
    /// Whether the client has taken bytes since the last sweep.
    has_sent: Cell<bool>,
    /// The time of the last sweep that has found `has_sent`.
    sent: Cell<CoarseInstant>,
    /// The stall clocks of the streams that have waited for flow control.
    stalls: RefCell<Vec<Weak<StreamStall>>>,
    waker: RefCell<Option<Waker>>,
}

impl ConnectionState {
    /// Creates the state of a connection that was just accepted. The deadline for headers applies
    /// until the first request.
    pub(crate) fn new(clock: Clock) -> Rc<Self> {
        let since = clock.coarse_now();
        Rc::new(Self {
            phase: Cell::new(ConnectionPhase::Headers),
            since: Cell::new(since),
            clock,
            blocked: Cell::new(None),
            requests: Cell::new(0),
            command: Cell::new(ConnectionCommand::Serve),
            is_parked: Cell::new(false),
            is_multiplexed: Cell::new(false),
            has_body: Cell::new(false),
            has_ended: Cell::new(false),
            socket: Cell::new(None),
            has_sent: Cell::new(false),
            sent: Cell::new(since),
            stalls: RefCell::default(),
            waker: RefCell::new(None),
        })
    }

    /// Returns the time of day now.
    pub(super) fn wall_now(&self) -> SystemTime {
        self.clock.wall_now()
    }

    /// Records the number of the socket; `None` before it is closed.
    pub(super) fn set_socket(&self, socket: Option<RawFd>) {
        self.socket.set(socket);
    }

    /// Records that bytes have arrived.
    pub(crate) fn record_received(&self) {
        if self.phase.get() == ConnectionPhase::Idle && !self.is_multiplexed.get() {
            self.enter(ConnectionPhase::Headers);
        }
    }

    /// Records that the client has begun HTTP/2 or HTTP/3. The idle deadline applies until the
    /// first request.
    pub(crate) fn set_multiplexed(&self) {
        self.is_multiplexed.set(true);
        self.enter(ConnectionPhase::Idle);
    }

    /// Records that the response is sent and that further input is discarded. The deadline for
    /// headers applies.
    pub(crate) fn begin_linger(&self) {
        self.enter(ConnectionPhase::Headers);
    }

    /// Records whether the request that has begun has a body.
    pub(crate) fn set_body(&self, has_body: bool) {
        self.has_body.set(has_body);
    }

    /// Returns whether the last request had a body that may be unread.
    pub(crate) fn has_body(&self) -> bool {
        self.has_body.get()
    }

    /// Returns a new stall clock for a stream that waits for flow control.
    pub(crate) fn new_stall(&self) -> Rc<StreamStall> {
        let stall = Rc::new(StreamStall::new(self.clock.clone()));
        self.stalls.borrow_mut().push(Rc::downgrade(&stall));
        stall
    }

    /// Returns whether the connection is open, and a request is under way or the client has not
    /// taken all of a response.
    fn is_busy(&self) -> bool {
        !self.has_ended.get() && (self.requests.get() > 0 || self.blocked.get().is_some())
    }

    /// Records that the client has taken bytes.
    pub(crate) fn record_sent(&self) {
        self.has_sent.set(true);
        // The bytes may be the end of a response whose request has ended. The idle time begins when
        // the client has taken them.
        if self.blocked.take().is_some() && self.phase.get() == ConnectionPhase::Idle {
            self.since.set(self.clock.coarse_now());
        }
    }

    /// Records that the client takes no bytes.
    pub(crate) fn record_blocked(&self) {
        if self.blocked.get().is_none() {
            self.blocked.set(Some(self.clock.coarse_now()));
        }
    }

    /// Records that a request has begun. The request ends when the guard is dropped.
    pub(crate) fn begin_request(self: &Rc<Self>) -> RequestGuard {
        self.requests.set(self.requests.get() + 1);
        self.is_parked.set(false);
        self.enter(ConnectionPhase::Responding);
        RequestGuard(Rc::clone(self))
    }

    fn enter(&self, phase: ConnectionPhase) {
        self.phase.set(phase);
        self.since.set(self.clock.coarse_now());
    }

    /// Returns the pending command. `waker` is woken when the command changes.
    pub(crate) fn command(&self, waker: &Waker) -> ConnectionCommand {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        self.command.get()
    }

    /// Returns whether no request is under way or has begun, and the client has taken all
    /// responses.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase.get() == ConnectionPhase::Idle && self.blocked.get().is_none()
    }

    /// Records that the connection has followed [`ConnectionCommand::Park`], or could not.
    pub(crate) fn set_parked(&self) {
        self.is_parked.set(true);
        if self.command.get() == ConnectionCommand::Park {
            self.command.set(ConnectionCommand::Serve);
        }
    }

    /// Returns whether the connection has been idle for `time` and has not been parked since its
    /// last request.
    fn can_park(&self, time: Duration, now: CoarseInstant) -> bool {
        self.is_idle() && !self.is_parked.get() && now.is_over(self.since.get(), time)
    }

    /// Sets the pending command, unless a stronger one is pending.
    fn send_command(&self, command: ConnectionCommand) {
        if self.command.get() >= command {
            return;
        }
        self.command.set(command);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Commands the connection to close.
    pub(crate) fn close(&self) {
        self.send_command(ConnectionCommand::Close);
    }

    /// Returns whether the connection is past a deadline of `timeouts`.
    fn is_overdue(&self, timeouts: &Timeouts, now: CoarseInstant) -> bool {
        let over = |since: CoarseInstant, limit| now.is_over(since, limit);
        let waiting = match self.phase.get() {
            ConnectionPhase::Idle => self.blocked.get().is_none() && over(self.since.get(), timeouts.idle),
            ConnectionPhase::Headers => over(self.since.get(), timeouts.headers),
            ConnectionPhase::Responding => false,
        };
        waiting || self.blocked.get().is_some_and(|since| over(since, timeouts.write))
    }

    /// Returns the socket if the client has waited for `limit` for the answer to a request, or for
    /// more of it, without taking any. A connection of HTTP/2 or HTTP/3 reads all the time, and
    /// sees the end of its client by itself.
    fn quiet_socket(&self, limit: Duration, now: CoarseInstant) -> Option<RawFd> {
        if self.has_sent.take() {
            self.sent.set(now);
            return None;
        }
        let waits = self.phase.get() == ConnectionPhase::Responding
            && !self.is_multiplexed.get()
            && self.blocked.get().is_none()
            && [self.since.get(), self.sent.get()].into_iter().all(|since| now.is_over(since, limit));
        self.socket.get().filter(|_| waits)
    }
}

/// A request under way, counted until this guard is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard(Rc<ConnectionState>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let left = self.0.requests.get().saturating_sub(1);
        self.0.requests.set(left);
        if left == 0 {
            self.0.enter(ConnectionPhase::Idle);
        }
    }
}

/// The connections of one worker.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable(RefCell<Vec<Weak<ConnectionState>>>);

impl ConnectionTable {
    /// Adds a connection, which ends when the entry is dropped. It is removed when its state is
    /// dropped.
    pub(crate) fn add(&self, state: &Rc<ConnectionState>) -> ConnectionEntry {
        self.0.borrow_mut().push(Rc::downgrade(state));
        ConnectionEntry(Rc::clone(state))
    }

    /// Commands the connections past a deadline to close, and those that have been idle for `idle`
    /// to park, at `now`. Expires stalled streams. Returns the number of connections commanded to
    /// park.
    pub(crate) fn sweep(&self, timeouts: &Timeouts, idle: Duration, now: CoarseInstant) -> usize {
        let (mut parked, mut quiet) = (0, Vec::new());
        self.each(|state| {
            let socket = state.quiet_socket(timeouts.gone, now);
            quiet.extend(socket.map(|socket| (socket, Rc::clone(state))));
            let look = |stall: &Weak<StreamStall>| {
                stall.upgrade().map(|stall| stall.expire(stall.limit(timeouts), now)).is_some()
            };
            state.stalls.borrow_mut().retain(look);
            if state.is_overdue(timeouts, now) {
                state.send_command(ConnectionCommand::Close);
            } else if state.can_park(idle, now) {
                state.send_command(ConnectionCommand::Park);
                parked += 1;
            }
        });
        close_ended(&quiet);
        parked
    }

    /// Returns whether any connection is busy.
    pub(crate) fn is_any_busy(&self) -> bool {
        let mut is_any_busy = false;
        self.each(|state| is_any_busy |= state.is_busy());
        is_any_busy
    }

    /// Sends `command` to all connections.
    pub(crate) fn send_command(&self, command: ConnectionCommand) {
        self.each(|state| state.send_command(command));
    }

    fn each(&self, mut visit: impl FnMut(&Rc<ConnectionState>)) {
        self.0.borrow_mut().retain(|state| state.upgrade().map(|state| visit(&state)).is_some());
    }
}

/// Commands the connections whose clients have ended them to close.
fn close_ended(quiet: &[(RawFd, Rc<ConnectionState>)]) {
    if quiet.is_empty() {
        return;
    }
    let sockets: Vec<_> = quiet.iter().map(|(socket, _)| *socket).collect();
    // Without an answer of the kernel, the connections stay.
    let ended = peers_ended(&sockets).unwrap_or_default();
    let ended = quiet.iter().zip(ended).filter(|(_, has_ended)| *has_ended);
    ended.for_each(|((_, state), _)| state.send_command(ConnectionCommand::Close));
}

/// A connection in the table, open until this entry is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionEntry(Rc<ConnectionState>);

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.0.has_ended.set(true);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        headers: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        write: Duration::from_secs(30),
        stall: Duration::from_secs(30),
        gone: Duration::from_secs(2),
    };

    fn overdue_after(state: &ConnectionState, seconds: u64) -> bool {
        state.is_overdue(&TIMEOUTS, state.clock.coarse_now() + Duration::from_secs(seconds))
    }

    #[test]
    fn each_phase_has_its_deadline() {
        let state = ConnectionState::new(Clock::held());
        assert!(!overdue_after(&state, 9) && overdue_after(&state, 11), "a first request");
        let (first, second) = (state.begin_request(), state.begin_request());
        assert!(!overdue_after(&state, 1000), "a response takes what it takes");
        drop(first);
        assert!(!overdue_after(&state, 1000), "one of two is under way");
        drop(second);
        assert!(!overdue_after(&state, 59) && overdue_after(&state, 61), "idle");
        state.record_received();
        assert!(!overdue_after(&state, 9) && overdue_after(&state, 11), "a request that does not end");
        state.set_multiplexed();
        state.record_received();
        assert!(!overdue_after(&state, 59) && overdue_after(&state, 61), "a frame is no request");
    }

    #[test]
    fn a_client_that_takes_nothing_is_overdue_in_any_phase() {
        let state = ConnectionState::new(Clock::held());
        let _request = state.begin_request();
        state.record_blocked();
        assert!(!overdue_after(&state, 29) && overdue_after(&state, 31));
        state.record_sent();
        assert!(!overdue_after(&state, 31));
    }

    #[test]
    fn a_client_that_sends_no_more_is_given_up_when_its_answer_makes_no_progress() {
        let (table, state) = (ConnectionTable::default(), ConnectionState::new(Clock::held()));
        let _open = table.add(&state);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        state.set_socket(Some(ours.as_raw_fd()));
        let request = state.begin_request();
        let sweep = |seconds| {
            state.clock.advance(Duration::from_secs(seconds));
            table.sweep(&TIMEOUTS, Duration::MAX, state.clock.coarse_now());
            state.command(Waker::noop())
        };
        assert_eq!(sweep(1000), ConnectionCommand::Serve, "it is still there");
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        state.record_sent();
        assert_eq!([sweep(1), sweep(1)], [ConnectionCommand::Serve; 2], "it may be reading");
        state.set_socket(None);
        assert_eq!(sweep(1), ConnectionCommand::Serve, "the socket is closed");
        state.set_socket(Some(ours.as_raw_fd()));
        assert_eq!(sweep(0), ConnectionCommand::Close);
        // While the server drains, it is given up at once, but not while it takes bytes.
        let (state, drain) =
            (ConnectionState::new(Clock::held()), Timeouts { gone: Duration::ZERO, ..TIMEOUTS });
        let _open = table.add(&state);
        state.set_socket(Some(ours.as_raw_fd()));
        let _request = state.begin_request();
        let sweep = || {
            table.sweep(&drain, Duration::MAX, state.clock.coarse_now());
            state.command(Waker::noop())
        };
        state.record_sent();
        assert_eq!([sweep(), sweep()], [ConnectionCommand::Serve, ConnectionCommand::Close]);
        drop(request);
    }

    #[test]
    fn an_idle_connection_is_parked_once() {
        let (connection_table, state) = (ConnectionTable::default(), ConnectionState::new(Clock::held()));
        let _open = connection_table.add(&state);
        let sweep = || connection_table.sweep(&TIMEOUTS, Duration::ZERO, state.clock.coarse_now());
        assert_eq!(sweep(), 0, "its first request has not come");
        drop(state.begin_request());
        state.record_blocked();
        assert_eq!(sweep(), 0, "the response is not out");
        state.record_sent();
        assert_eq!((sweep(), state.command(Waker::noop())), (1, ConnectionCommand::Park));
        state.set_parked();
        assert_eq!((sweep(), state.command(Waker::noop())), (0, ConnectionCommand::Serve));
        drop(state.begin_request());
        assert_eq!(sweep(), 1);
    }

    #[test]
    fn a_client_is_idle_when_it_has_taken_its_response() {
        let state = ConnectionState::new(Clock::held());
        drop(state.begin_request());
        state.clock.advance(Duration::from_secs(1000));
        assert!(overdue_after(&state, 0));
        state.record_blocked();
        assert!(!overdue_after(&state, 29) && overdue_after(&state, 31));
        state.record_sent();
        assert!(!overdue_after(&state, 59) && overdue_after(&state, 61));
    }

    #[test]
    fn close_outranks_all_other_commands() {
        let (connection_table, state) = (ConnectionTable::default(), ConnectionState::new(Clock::held()));
        let open = connection_table.add(&state);
        assert_eq!(state.command(Waker::noop()), ConnectionCommand::Serve);
        connection_table.send_command(ConnectionCommand::Drain);
        assert_eq!(state.command(Waker::noop()), ConnectionCommand::Drain);
        connection_table.send_command(ConnectionCommand::Close);
        connection_table.send_command(ConnectionCommand::Drain);
        assert_eq!(state.command(Waker::noop()), ConnectionCommand::Close);
        let now = state.clock.coarse_now();
        drop((open, state));
        connection_table.sweep(&TIMEOUTS, Duration::ZERO, now);
        assert!(connection_table.0.borrow().is_empty());
    }

    /// The last response's task may outlive the connection by a moment, when the server counts the
    /// requests that it cuts off.
    #[test]
    fn a_request_of_a_connection_that_has_ended_is_not_busy() {
        let (connection_table, state) = (ConnectionTable::default(), ConnectionState::new(Clock::held()));
        let open = connection_table.add(&state);
        let _request = state.begin_request();
        assert!(connection_table.is_any_busy());
        drop(open);
        assert!(!connection_table.is_any_busy());
    }
}
