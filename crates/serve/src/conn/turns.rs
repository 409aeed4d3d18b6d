//! When long bodies wait for short ones: between two long pieces a worker looks for what has come meanwhile.
//!
//! A worker that has many long bodies under way would otherwise send a piece of each before it looks for requests again, and each piece takes
//! as long as several of those.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

/// What is sent of long bodies before somebody else is looked for.
const TURN_BYTES: usize = 128 << 10;

/// The turns of one worker's long bodies.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// What they have sent since the worker last looked for requests.
    bytes: Cell<usize>,
    /// None for one that is gone.
    waiting: RefCell<VecDeque<Option<Waker>>>,
    /// The number of the first of those that wait: who has a lower one was called.
    first: Cell<u64>,
    wanted: Notify,
}

/// The number of a body that waits for its turn.
pub(crate) type Told = Option<u64>;

impl Turns {
    /// Calls one body, the one that has waited longest, each time the worker has looked for requests. Never ends.
    pub(crate) async fn call(&self) {
        loop {
            self.wanted.notified().await;
            while !self.waiting.borrow().is_empty() {
                // Only the next look wakes this task, whatever happens to those that wait: they are tasks of their own.
                yield_now().await;
                self.bytes.set(0);
                self.call_first();
            }
        }
    }

    fn call_first(&self) {
        while let Some(first) = self.pop_first() {
            if let Some(waker) = first {
                return waker.wake();
            }
        }
    }

    fn pop_first(&self) -> Option<Option<Waker>> {
        let first = self.waiting.borrow_mut().pop_front()?;
        self.first.set(self.first.get() + 1);
        Some(first)
    }

    /// A body that was called has nothing to send yet: another one may.
    pub(crate) fn pass(&self) {
        if self.bytes.get() < TURN_BYTES {
            self.call_first();
        }
    }

    /// A body is gone, and what it was told with it.
    pub(crate) fn leave(&self, told: Told) {
        let mut waiting = self.waiting.borrow_mut();
        let place = told.and_then(|number| usize::try_from(number.checked_sub(self.first.get())?).ok());
        if let Some(waker) = place.and_then(|place| waiting.get_mut(place)) {
            *waker = None;
        }
        // Those at the end are forgotten at once: clients that come and go are never many here.
        while waiting.back().is_some_and(Option::is_none) {
            waiting.pop_back();
        }
    }

    /// Ready when a long body may send its next piece.
    pub(crate) fn poll(&self, told: &mut Told, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting.borrow_mut();
        match told.take().map(|number| number.checked_sub(self.first.get())) {
            Some(Some(place)) => {
                *told = Some(self.first.get() + place);
                if let Some(waker) = usize::try_from(place).ok().and_then(|place| waiting.get_mut(place)) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Some(None) => Poll::Ready(()),
            None if self.bytes.get() < TURN_BYTES && waiting.is_empty() => Poll::Ready(()),
            None => {
                *told = Some(self.first.get() + waiting.len() as u64);
                waiting.push_back(Some(cx.waker().clone()));
                self.wanted.notify_one();
                Poll::Pending
            }
        }
    }

    /// `bytes` of a long body are sent.
    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    type Log = Rc<RefCell<Vec<&'static str>>>;

    /// Sends pieces as a connection does: it is polled again and again, whoever woke it and whatever was said.
    async fn send(turns: Rc<Turns>, name: &'static str, log: Log) {
        for _ in 0..3 {
            let mut told = None;
            poll_fn(|cx| {
                let first = turns.poll(&mut told, cx);
                if first.is_pending() { turns.poll(&mut told, cx) } else { first }
            })
            .await;
            turns.sent(TURN_BYTES);
            log.borrow_mut().push(name);
        }
    }

    /// What is told of each look, until the bodies are sent.
    async fn look(log: Log, bodies: usize) {
        while log.borrow().iter().filter(|name| **name != "look").count() < bodies * 3 {
            tokio::task::yield_now().await;
            log.borrow_mut().push("look");
        }
    }

    fn run(bodies: &[&'static str]) -> Vec<&'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (local, log) = (tokio::task::LocalSet::new(), Log::default());
        let sent = Rc::clone(&log);
        local.block_on(&runtime, async move {
            let turns = Rc::<Turns>::default();
            let looks = tokio::task::spawn_local(look(Rc::clone(&sent), bodies.len()));
            let calls = Rc::clone(&turns);
            let calling = tokio::task::spawn_local(async move { calls.call().await });
            for name in bodies {
                tokio::task::spawn_local(send(Rc::clone(&turns), name, Rc::clone(&sent)));
            }
            looks.await.unwrap();
            calling.abort();
        });
        log.take()
    }

    #[test]
    fn between_two_pieces_there_is_a_look() {
        let log = run(&["a", "b", "c"]);
        assert!(log.windows(2).all(|two| two.contains(&"look")), "{log:?}");
    }

    #[test]
    fn who_has_waited_longest_is_next() {
        let sent = run(&["a", "b"]).into_iter().filter(|name| *name != "look").collect::<Vec<_>>();
        // The first one waits for its second turn before the other has begun.
        assert_eq!(sent, ["a", "a", "b", "a", "b", "b"]);
    }

    #[test]
    fn those_that_come_and_go_leave_nothing() {
        let turns = Turns::default();
        turns.sent(TURN_BYTES);
        let mut cx = Context::from_waker(Waker::noop());
        let mut told = [None; 3];
        told.iter_mut().for_each(|told| assert!(turns.poll(told, &mut cx).is_pending()));
        for _ in 0..1000 {
            let mut gone = None;
            assert!(turns.poll(&mut gone, &mut cx).is_pending());
            turns.leave(gone);
        }
        assert_eq!(turns.waiting.borrow().len(), 3);
        turns.leave(told[0]);
        turns.leave(told[1]);
        turns.bytes.set(0);
        turns.pass();
        assert!(turns.poll(&mut told[2], &mut cx).is_ready(), "the first one that is still there is called");
    }

    #[test]
    fn who_cannot_send_yet_lets_another_one() {
        let turns = Turns::default();
        turns.sent(TURN_BYTES);
        let mut cx = Context::from_waker(Waker::noop());
        let mut told = None;
        assert!(turns.poll(&mut told, &mut cx).is_pending());
        turns.pass();
        assert!(turns.poll(&mut told, &mut cx).is_pending(), "enough was sent");
        turns.bytes.set(0);
        turns.pass();
        assert!(turns.poll(&mut told, &mut cx).is_ready());
    }

    #[test]
    fn one_that_is_gone_holds_up_nobody() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let turns = Rc::<Turns>::default();
            let calls = Rc::clone(&turns);
            let calling = tokio::task::spawn_local(async move { calls.call().await });
            turns.sent(TURN_BYTES);
            let gone = poll_fn(|cx| Poll::Ready(turns.poll(&mut None, cx))).await;
            assert!(gone.is_pending());
            let mut told = None;
            poll_fn(|cx| turns.poll(&mut told, cx)).await;
            calling.abort();
        });
    }
}
