//! A fair queue of the long response bodies of one worker: between two long pieces the worker polls
//! its sockets for new requests.
//!
//! A worker with many long bodies would otherwise send one piece of each before it polls its
//! sockets again, and one long piece takes as long as several short responses.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::task::yield_now;

/// The fair queue of one worker's long bodies. One slot is available for each pass of the event
/// loop; a body that finds the slot used or other bodies queued waits with a ticket.
#[derive(Debug, Default)]
pub(crate) struct BodyQueue {
    /// Whether a body has sent a long piece since the worker last polled its sockets.
    is_slot_used: Cell<bool>,
    /// The queued bodies in the order of their tickets. `None`: the body was dropped while queued.
    wakers: RefCell<VecDeque<Option<Waker>>>,
    /// The ticket of the front of `wakers`. A body with a lower ticket has been woken.
    first_ticket: Cell<u64>,
    enqueued: Notify,
}

/// The position of a queued body, counted from the start of the worker; `None` while the body is
/// not queued.
pub(crate) type Ticket = Option<u64>;

impl BodyQueue {
    /// Wakes the body at the front of the queue each time the worker has polled its sockets. Never
    /// returns.
    pub(crate) async fn run(&self) {
        loop {
            self.enqueued.notified().await;
            while !self.wakers.borrow().is_empty() {
                // `yield_now` alone decides when this task runs again: the queued bodies are tasks
                // of their own, and their wake-ups do not reach it.
                yield_now().await;
                self.is_slot_used.set(false);
                self.wake_first();
            }
        }
    }

    fn wake_first(&self) {
        while let Some(first) = self.pop_first() {
            if let Some(waker) = first {
                return waker.wake();
            }
        }
    }

    fn pop_first(&self) -> Option<Option<Waker>> {
        let first = self.wakers.borrow_mut().pop_front()?;
        self.first_ticket.set(self.first_ticket.get() + 1);
        Some(first)
    }

    /// Gives an unused slot to the next queued body: the calling body was woken and has nothing to
    /// send yet.
    pub(crate) fn pass_slot(&self) {
        if !self.is_slot_used.get() {
            self.wake_first();
        }
    }

    /// Removes the body with `ticket`, which is being dropped.
    pub(crate) fn cancel(&self, ticket: Ticket) {
        let mut wakers = self.wakers.borrow_mut();
        let place =
            ticket.and_then(|number| usize::try_from(number.checked_sub(self.first_ticket.get())?).ok());
        if let Some(waker) = place.and_then(|place| wakers.get_mut(place)) {
            *waker = None;
        }
        // Drop cancelled entries at the back at once, so clients that come and go do not grow the
        // queue.
        while wakers.back().is_some_and(Option::is_none) {
            wakers.pop_back();
        }
    }

    /// Returns `Ready` when the long body may send its next piece; otherwise queues the body and
    /// registers the task's waker.
    pub(crate) fn poll_slot(&self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Poll<()> {
        let mut wakers = self.wakers.borrow_mut();
        match ticket.take().map(|number| number.checked_sub(self.first_ticket.get())) {
            // Still queued: keep the ticket and register the current waker.
            Some(Some(place)) => {
                *ticket = Some(self.first_ticket.get() + place);
                if let Some(waker) = usize::try_from(place).ok().and_then(|place| wakers.get_mut(place)) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            // Woken: the ticket has left the queue.
            Some(None) => Poll::Ready(()),
            // The slot is free and the queue is empty: no ticket is needed.
            None if !self.is_slot_used.get() && wakers.is_empty() => Poll::Ready(()),
            None => {
                drop(wakers);
                *ticket = Some(self.enqueue(cx));
                Poll::Pending
            }
        }
    }

    /// Marks the slot as used: a long body has sent a piece.
    pub(crate) fn use_slot(&self) {
        self.is_slot_used.set(true);
    }

    /// Uses the slot and queues the body again: the body needs another slot before it can send.
    pub(crate) fn requeue(&self, ticket: &mut Ticket, cx: &mut Context<'_>) {
        self.use_slot();
        *ticket = Some(self.enqueue(cx));
    }

    /// Appends the body to the queue and returns its ticket.
    fn enqueue(&self, cx: &mut Context<'_>) -> u64 {
        let mut wakers = self.wakers.borrow_mut();
        let number = self.first_ticket.get() + wakers.len() as u64;
        wakers.push_back(Some(cx.waker().clone()));
        self.enqueued.notify_one();
        number
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    type EventLog = Rc<RefCell<Vec<&'static str>>>;

    /// Sends pieces as a connection does: spurious polls between wake-ups must not change the
    /// order.
    async fn send(body_queue: Rc<BodyQueue>, name: &'static str, log: EventLog) {
        for _ in 0..3 {
            let mut ticket = None;
            poll_fn(|cx| {
                let first = body_queue.poll_slot(&mut ticket, cx);
                if first.is_pending() { body_queue.poll_slot(&mut ticket, cx) } else { first }
            })
            .await;
            body_queue.use_slot();
            log.borrow_mut().push(name);
        }
    }

    /// Logs each pass of the event loop until all bodies are sent.
    async fn look(log: EventLog, bodies: usize) {
        while log.borrow().iter().filter(|name| **name != "look").count() < bodies * 3 {
            tokio::task::yield_now().await;
            log.borrow_mut().push("look");
        }
    }

    fn run(bodies: &[&'static str]) -> Vec<&'static str> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (local, log) = (tokio::task::LocalSet::new(), EventLog::default());
        let sent = Rc::clone(&log);
        local.block_on(&runtime, async move {
            let body_queue = Rc::<BodyQueue>::default();
            let looks = tokio::task::spawn_local(look(Rc::clone(&sent), bodies.len()));
            let queue = Rc::clone(&body_queue);
            let calling = tokio::task::spawn_local(async move { queue.run().await });
            for name in bodies {
                tokio::task::spawn_local(send(Rc::clone(&body_queue), name, Rc::clone(&sent)));
            }
            looks.await.unwrap();
            calling.abort();
        });
        log.take()
    }

    #[test]
    fn the_event_loop_runs_between_two_pieces() {
        let log = run(&["a", "b", "c"]);
        assert!(log.windows(2).all(|two| two.contains(&"look")), "{log:?}");
    }

    #[test]
    fn queued_bodies_are_woken_in_order() {
        let sent = run(&["a", "b"]).into_iter().filter(|name| *name != "look").collect::<Vec<_>>();
        // The first body queues for its second slot before the second body is polled for the first
        // time.
        assert_eq!(sent, ["a", "a", "b", "a", "b", "b"]);
    }

    #[test]
    fn a_requeued_body_goes_to_the_end() {
        let body_queue = BodyQueue::default();
        let mut cx = Context::from_waker(Waker::noop());
        let look = || {
            body_queue.is_slot_used.set(false);
            body_queue.pass_slot();
        };
        let [mut called, mut first] = [None; 2];
        body_queue.use_slot();
        assert!(body_queue.poll_slot(&mut called, &mut cx).is_pending());
        look();
        assert!(body_queue.poll_slot(&mut first, &mut cx).is_ready(), "the queue is free");
        body_queue.requeue(&mut first, &mut cx);
        assert!(
            body_queue.poll_slot(&mut called, &mut cx).is_ready(),
            "it was called, whatever others have done since"
        );
        assert!(body_queue.poll_slot(&mut first, &mut cx).is_pending(), "before anybody has looked");
        look();
        assert!(body_queue.poll_slot(&mut first, &mut cx).is_ready());
    }

    #[test]
    fn cancelled_tickets_leave_no_entries() {
        let body_queue = BodyQueue::default();
        body_queue.use_slot();
        let mut cx = Context::from_waker(Waker::noop());
        let mut ticket = [None; 3];
        ticket.iter_mut().for_each(|ticket| assert!(body_queue.poll_slot(ticket, &mut cx).is_pending()));
        for _ in 0..1000 {
            let mut gone = None;
            assert!(body_queue.poll_slot(&mut gone, &mut cx).is_pending());
            body_queue.cancel(gone);
        }
        assert_eq!(body_queue.wakers.borrow().len(), 3);
        body_queue.cancel(ticket[0]);
        body_queue.cancel(ticket[1]);
        body_queue.is_slot_used.set(false);
        body_queue.pass_slot();
        assert!(
            body_queue.poll_slot(&mut ticket[2], &mut cx).is_ready(),
            "the first one that is still there is called"
        );
    }

    #[test]
    fn a_body_without_data_passes_its_slot() {
        let body_queue = BodyQueue::default();
        body_queue.use_slot();
        let mut cx = Context::from_waker(Waker::noop());
        let mut ticket = None;
        assert!(body_queue.poll_slot(&mut ticket, &mut cx).is_pending());
        body_queue.pass_slot();
        assert!(body_queue.poll_slot(&mut ticket, &mut cx).is_pending(), "enough was sent");
        body_queue.is_slot_used.set(false);
        body_queue.pass_slot();
        assert!(body_queue.poll_slot(&mut ticket, &mut cx).is_ready());
    }

    #[test]
    fn a_dropped_body_does_not_block_the_queue() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let body_queue = Rc::<BodyQueue>::default();
            let queue = Rc::clone(&body_queue);
            let calling = tokio::task::spawn_local(async move { queue.run().await });
            body_queue.use_slot();
            let gone = poll_fn(|cx| Poll::Ready(body_queue.poll_slot(&mut None, cx))).await;
            assert!(gone.is_pending());
            let mut ticket = None;
            poll_fn(|cx| body_queue.poll_slot(&mut ticket, cx)).await;
            calling.abort();
        });
    }
}
