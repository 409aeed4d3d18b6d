//! Values that are computed once for all requests that ask for them meanwhile, on whichever worker,
//! and kept while they are fresh.
//!
//! ```text
//! request ─┐                                          ┌─> every request that joined
//! request ─┼─ join or start ── computation ── value ──┤
//! request ─┘                                          └─> kept while fresh
//! ```
//! Only workers touch the lock and the wake-ups, each for a moment: a pool thread, which runs at a
//! lower priority, would hold up the workers that wait for it. Does not own: how a value is computed,
//! and which memory it is charged to.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::files::Failure;

/// A value that may be used again for a while.
pub(crate) trait Fresh {
    /// Returns whether another request may still get this value.
    fn is_fresh(&self) -> bool;
}

/// Computations under way and values that are fresh, by key. Clones are the same map.
#[derive(Debug)]
pub(crate) struct Coalescer<K, V>(Arc<Mutex<HashMap<K, Arc<Computation<V>>>>>);

/// One computation, and its result once there is one.
#[derive(Debug)]
struct Computation<V> {
    result: OnceLock<Result<V, Failure>>,
    done: Notify,
}

impl<K, V> Clone for Coalescer<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> Default for Coalescer<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone + 'static, V: Fresh + Clone + 'static> Coalescer<K, V> {
    /// Returns the value of `key`: one under way, a fresh one that `fits`, or else what `start`
    /// computes. The computation is a task of this worker, so it goes on even if the request that
    /// started it is dropped.
    ///
    /// # Errors
    /// The computation's; `Busy` if the worker that ran it has ended.
    pub(crate) async fn get<F>(
        &self,
        key: &K,
        fits: impl Fn(&V) -> bool,
        start: impl FnOnce() -> F,
    ) -> Result<V, Failure>
    where
        F: Future<Output = Result<V, Failure>> + 'static,
    {
        let (computation, is_new) = self.join(key, fits);
        if is_new {
            let (completion, task) = (
                Completion { all: self.clone(), key: key.clone(), computation: Arc::clone(&computation) },
                start(),
            );
            spawn_local(async move {
                let result = task.await;
                completion.complete(result);
            });
        }
        loop {
            // Made before the look at the result: a notification from then on is not lost, on
            // whichever thread it is sent.
            let done = computation.done.notified();
            if let Some(result) = computation.result.get() {
                return result.clone();
            }
            done.await;
        }
    }

    /// Drops the values that are not fresh, or all of them; computations under way go on.
    pub(crate) fn sweep(&self, all: bool) {
        let keeps = |computation: &Arc<Computation<V>>| match computation.result.get() {
            None => true,
            Some(result) => !all && result.as_ref().is_ok_and(Fresh::is_fresh),
        };
        // Dropped after the lock is released.
        let mut dropped = Vec::new();
        self.lock().retain(|_, computation| {
            let keep = keeps(computation);
            if !keep {
                dropped.push(Arc::clone(computation));
            }
            keep
        });
    }

    fn join(&self, key: &K, fits: impl Fn(&V) -> bool) -> (Arc<Computation<V>>, bool) {
        let usable = |computation: &Computation<V>| match computation.result.get() {
            None => true,
            Some(result) => result.as_ref().is_ok_and(|value| value.is_fresh() && fits(value)),
        };
        let mut computations = self.lock();
        if let Some(computation) = computations.get(key).filter(|computation| usable(computation)) {
            return (Arc::clone(computation), false);
        }
        let computation = Arc::new(Computation { result: OnceLock::new(), done: Notify::new() });
        let old = computations.insert(key.clone(), Arc::clone(&computation));
        // A value may be large: it is dropped after the lock is released.
        drop(computations);
        drop(old);
        (computation, true)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Computation<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets `computation` unless another one has its key by now.
    fn remove(&self, key: &K, computation: &Arc<Computation<V>>) {
        let mut computations = self.lock();
        if computations.get(key).is_some_and(|known| Arc::ptr_eq(known, computation)) {
            let removed = computations.remove(key);
            drop(computations);
            drop(removed);
        }
    }
}

/// The duty to complete a computation. Dropped without a result, as at a worker's end, it completes
/// it as `Busy`.
struct Completion<K: Eq + Hash + Clone + 'static, V: Fresh + Clone + 'static> {
    all: Coalescer<K, V>,
    key: K,
    computation: Arc<Computation<V>>,
}

impl<K: Eq + Hash + Clone + 'static, V: Fresh + Clone + 'static> Completion<K, V> {
    fn complete(&self, result: Result<V, Failure>) {
        let keep = result.as_ref().is_ok_and(Fresh::is_fresh);
        let _first = self.computation.result.set(result);
        if !keep {
            self.all.remove(&self.key, &self.computation);
        }
        self.computation.done.notify_waiters();
    }
}

impl<K: Eq + Hash + Clone + 'static, V: Fresh + Clone + 'static> Drop for Completion<K, V> {
    fn drop(&mut self) {
        if self.computation.result.get().is_none() {
            self.complete(Err(Failure::Busy));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::mpsc;

    use tokio::runtime::{Builder, LocalOptions};
    use tokio::sync::oneshot;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Value(u32, bool);

    impl Fresh for Value {
        fn is_fresh(&self) -> bool {
            self.1
        }
    }

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().build_local(LocalOptions::default()).unwrap().block_on(test);
    }

    type All = Coalescer<&'static str, Value>;

    /// Asks `all` for `key`, whose computation is counted in `starts` and ends with what `gate`
    /// gives.
    fn ask(
        all: &All,
        key: &'static str,
        starts: &Rc<Cell<u32>>,
        gate: Option<oneshot::Receiver<Result<Value, Failure>>>,
    ) -> JoinHandle<Result<Value, Failure>> {
        let (all, starts) = (all.clone(), Rc::clone(starts));
        spawn_local(async move {
            let start = || {
                starts.set(starts.get() + 1);
                async move { gate.expect("nothing else is computed").await.unwrap_or(Err(Failure::Changed)) }
            };
            all.get(&key, |_| true, start).await
        })
    }

    #[test]
    fn all_who_ask_meanwhile_wait_for_one_computation() {
        run(async {
            let (all, starts, (open, gate)) = (All::default(), Rc::default(), oneshot::channel());
            let first = ask(&all, "a", &starts, Some(gate));
            yield_now().await;
            let others: Vec<_> = (0..100).map(|_| ask(&all, "a", &starts, None)).collect();
            yield_now().await;
            // The request that began it goes away.
            first.abort();
            yield_now().await;
            assert_eq!((starts.get(), others.iter().any(JoinHandle::is_finished)), (1, false));
            open.send(Ok(Value(7, false))).unwrap();
            for other in others {
                assert_eq!(other.await.unwrap(), Ok(Value(7, false)));
            }
            assert!(all.lock().is_empty(), "what is not fresh is not kept");
        });
    }

    #[test]
    fn a_fresh_value_is_used_again_and_a_failure_is_not() {
        run(async {
            let (all, starts) = (All::default(), Rc::default());
            for (completion, starts_then, kept) in
                [(Err(Failure::Changed), 1, 0), (Ok(Value(1, true)), 2, 1), (Ok(Value(2, true)), 2, 1)]
            {
                let (open, gate) = oneshot::channel();
                open.send(completion).unwrap();
                let result = ask(&all, "a", &starts, Some(gate)).await.unwrap();
                assert_eq!((starts.get(), all.lock().len()), (starts_then, kept), "{result:?}");
            }
            all.sweep(false);
            assert_eq!(all.lock().len(), 1);
            all.sweep(true);
            assert_eq!(all.lock().len(), 0);
        });
    }

    #[test]
    fn a_worker_that_ends_leaves_nobody_waiting_on_another() {
        let all = All::default();
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let theirs = all.clone();
        let thread = std::thread::spawn(move || {
            run(async {
                let (_open, gate) = oneshot::channel();
                let _asked = ask(&theirs, "a", &Rc::default(), Some(gate));
                yield_now().await;
                begun.send(()).unwrap();
                ends.recv().unwrap();
                // The runtime ends here, the computation under way.
            });
        });
        begins.recv().unwrap();
        run(async {
            let starts = Rc::default();
            let result = ask(&all, "a", &starts, None);
            yield_now().await;
            end.send(()).unwrap();
            assert_eq!((result.await.unwrap(), starts.get()), (Err(Failure::Busy), 0));
        });
        thread.join().unwrap();
    }
}
