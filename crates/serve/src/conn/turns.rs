//! When long bodies wait for short ones: between two long pieces a worker looks for what has come meanwhile.
//!
//! A worker that has many long bodies under way would otherwise send a piece of each before it looks for requests again, and each piece takes
//! as long as several of those.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

/// The turns of one worker's long bodies.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Whether one of them has had its turn since the worker last looked for requests.
    is_over: Cell<bool>,
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
                self.is_over.set(false);
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
        if !self.is_over.get() {
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
            None if !self.is_over.get() && waiting.is_empty() => Poll::Ready(()),
            None => {
                drop(waiting);
                *told = Some(self.queue(cx));
                Poll::Pending
            }
        }
    }

    /// A long body has had its turn.
    pub(crate) fn had(&self) {
        self.is_over.set(true);
    }

    /// A body has had a turn, and needs another one before it can send.
    pub(crate) fn again(&self, told: &mut Told, cx: &mut Context<'_>) {
        self.had();
        *told = Some(self.queue(cx));
    }

    /// The number of the body that waits from now on, after all others.
    fn queue(&self, cx: &mut Context<'_>) -> u64 {
        let mut waiting = self.waiting.borrow_mut();
        let number = self.first.get() + waiting.len() as u64;
        waiting.push_back(Some(cx.waker().clone()));
        self.wanted.notify_one();
        number
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
            turns.had();
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
    fn who_needs_more_turns_comes_after_those_that_wait() {
        let turns = Turns::default();
        let mut cx = Context::from_waker(Waker::noop());
        let look = || {
            turns.is_over.set(false);
            turns.pass();
        };
        let [mut called, mut first] = [None; 2];
        turns.had();
        assert!(turns.poll(&mut called, &mut cx).is_pending());
        look();
        assert!(turns.poll(&mut first, &mut cx).is_ready(), "nobody waits");
        turns.again(&mut first, &mut cx);
        assert!(
            turns.poll(&mut called, &mut cx).is_ready(),
            "it was called, whatever others have done since"
        );
        assert!(turns.poll(&mut first, &mut cx).is_pending(), "before anybody has looked");
        look();
        assert!(turns.poll(&mut first, &mut cx).is_ready());
    }

    #[test]
    fn those_that_come_and_go_leave_nothing() {
        let turns = Turns::default();
        turns.had();
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
        turns.is_over.set(false);
        turns.pass();
        assert!(turns.poll(&mut told[2], &mut cx).is_ready(), "the first one that is still there is called");
    }

    #[test]
    fn who_cannot_send_yet_lets_another_one() {
        let turns = Turns::default();
        turns.had();
        let mut cx = Context::from_waker(Waker::noop());
        let mut told = None;
        assert!(turns.poll(&mut told, &mut cx).is_pending());
        turns.pass();
        assert!(turns.poll(&mut told, &mut cx).is_pending(), "enough was sent");
        turns.is_over.set(false);
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
            turns.had();
            let gone = poll_fn(|cx| Poll::Ready(turns.poll(&mut None, cx))).await;
            assert!(gone.is_pending());
            let mut told = None;
            poll_fn(|cx| turns.poll(&mut told, cx)).await;
            calling.abort();
        });
    }
}
