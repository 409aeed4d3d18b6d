//! When long bodies wait for short ones: between two long pieces a worker looks for what has come meanwhile.
//!
//! A worker that has many long bodies under way would otherwise send a piece of each before it looks for requests again, and each piece takes
//! as long as several of those.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;

/// What is sent of long bodies before somebody else is looked for.
const TURN_BYTES: usize = 256 << 10;

/// The turns of one worker's long bodies.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    turn: Cell<u64>,
    bytes: Cell<usize>,
}

/// In which turn a body was told to wait.
pub(crate) type Told = Option<u64>;

impl Turns {
    /// Ready when a long body may send its next piece. Until then it is woken each time the worker has looked for requests.
    pub(crate) fn poll(&self, told: &mut Told, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.turn.get();
        if told.take() == Some(now) {
            self.turn.set(now.wrapping_add(1));
            self.bytes.set(0);
        }
        if self.bytes.get() < TURN_BYTES {
            return Poll::Ready(());
        }
        *told = Some(self.turn.get());
        // What yields is woken after the next look, and not earlier.
        pin!(yield_now()).poll(cx)
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

    #[test]
    fn long_bodies_take_turns_with_what_comes_meanwhile() {
        let turns = Rc::new(Turns::default());
        let sends = |name: &'static str, log: &Rc<std::cell::RefCell<Vec<&'static str>>>| {
            let (turns, log) = (Rc::clone(&turns), Rc::clone(log));
            async move {
                let mut told = None;
                for _ in 0..3 {
                    poll_fn(|cx| turns.poll(&mut told, cx)).await;
                    turns.sent(TURN_BYTES);
                    log.borrow_mut().push(name);
                }
            }
        };
        let log = Rc::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let looks = Rc::clone(&log);
        local.block_on(&runtime, async move {
            let bodies = [sends("a", &looks), sends("b", &looks)].map(tokio::task::spawn_local);
            for body in bodies {
                body.await.unwrap();
            }
        });
        assert_eq!(*log.borrow(), ["a", "b", "a", "b", "a", "b"]);
    }
}
