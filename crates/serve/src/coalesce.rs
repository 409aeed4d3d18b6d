//! Values that are computed once for all requests that need them meanwhile, on any worker, and
//! cached while they are fresh.
//!
//! ```text
//! request ─┐                                          ┌─> every request that joined
//! request ─┼─ join or start ── computation ── value ──┤
//! request ─┘                                          └─> cached while fresh
//! ```
//! Only workers take the lock and send wake-ups, and hold the lock briefly. A pool thread runs at a
//! lower priority, and would delay the workers that wait for the lock. Does not own: how a value is
//! computed, and the budget it is charged to.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use fathom_files::FileError;
use tokio::sync::Notify;
use tokio::task::spawn_local;

/// A value that can be reused for a while.
pub(crate) trait Fresh {
    /// Returns whether another request may still get this value.
    fn is_fresh(&self) -> bool;
}

/// Computations under way and fresh values, by key. Clones share the map.
#[derive(Debug)]
pub(crate) struct Coalescer<K, V>(Arc<Mutex<HashMap<K, Arc<Computation<V>>>>>);

/// One computation, with its result once it is complete.
#[derive(Debug)]
struct Computation<V> {
    result: OnceLock<Result<V, FileError>>,
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
    /// Returns the value of `key`: of a computation under way, or a fresh one that `fits`, or else
    /// the value that `start` computes. The computation is a task of this worker, so it continues
    /// if the request that started it is dropped.
    ///
    /// # Errors
    /// The errors of the computation; `Busy` if the worker that ran it has ended.
    pub(crate) async fn get<F>(
        &self,
        key: &K,
        fits: impl Fn(&V) -> bool,
        start: impl FnOnce() -> F,
    ) -> Result<V, FileError>
    where
        F: Future<Output = Result<V, FileError>> + 'static,
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
            // Create the future before checking the result: a notification sent from here on is not
            // lost, whichever thread sends it.
            let done = computation.done.notified();
            if let Some(result) = computation.result.get() {
                return result.clone();
            }
            done.await;
        }
    }

    /// Drops the values that are not fresh, or all of them. Computations under way continue.
    pub(crate) fn sweep(&self, all: bool) {
        let keeps = |computation: &Arc<Computation<V>>| match computation.result.get() {
            None => true,
            Some(result) => !all && result.as_ref().is_ok_and(Fresh::is_fresh),
        };
        // Dropped after the lock is released: values may be large.
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
        // Drop the old value after the lock is released: it may be large.
        drop(computations);
        drop(old);
        (computation, true)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Computation<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes `computation` from the map, unless another one has its key by now.
    fn remove(&self, key: &K, computation: &Arc<Computation<V>>) {
        let mut computations = self.lock();
        if computations.get(key).is_some_and(|known| Arc::ptr_eq(known, computation)) {
            let removed = computations.remove(key);
            drop(computations);
            drop(removed);
        }
    }
}

/// A guard that completes a computation. If it is dropped without a result, as at the end of a
/// worker, it completes the computation with `Busy`.
struct Completion<K: Eq + Hash + Clone + 'static, V: Fresh + Clone + 'static> {
    all: Coalescer<K, V>,
    key: K,
    computation: Arc<Computation<V>>,
}

impl<K: Eq + Hash + Clone + 'static, V: Fresh + Clone + 'static> Completion<K, V> {
    fn complete(&self, result: Result<V, FileError>) {
        let keep = result.as_ref().is_ok_and(Fresh::is_fresh);
        // Set the result before the notification, upon which waiting requests read it.
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
            self.complete(Err(FileError::Busy));
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

    /// Gets `key` from `all`. The computation increments `starts` and ends with the value that
    /// `gate` receives.
    fn ask(
        all: &All,
        key: &'static str,
        starts: &Rc<Cell<u32>>,
        gate: Option<oneshot::Receiver<Result<Value, FileError>>>,
    ) -> JoinHandle<Result<Value, FileError>> {
        let (all, starts) = (all.clone(), Rc::clone(starts));
        spawn_local(async move {
            let start = || {
                starts.set(starts.get() + 1);
                async move { gate.expect("nothing else is computed").await.unwrap_or(Err(FileError::Changed)) }
            };
            all.get(&key, |_| true, start).await
        })
    }

    #[test]
    fn concurrent_requests_wait_for_one_computation() {
        run(async {
            let (all, starts, (open, gate)) = (All::default(), Rc::default(), oneshot::channel());
            let first = ask(&all, "a", &starts, Some(gate));
            yield_now().await;
            let others: Vec<_> = (0..100).map(|_| ask(&all, "a", &starts, None)).collect();
            yield_now().await;
            // Drop the request that started the computation.
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
                [(Err(FileError::Changed), 1, 0), (Ok(Value(1, true)), 2, 1), (Ok(Value(2, true)), 2, 1)]
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
    fn the_end_of_a_worker_wakes_requests_of_other_workers() {
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
                // The runtime ends here with the computation under way.
            });
        });
        begins.recv().unwrap();
        run(async {
            let starts = Rc::default();
            let result = ask(&all, "a", &starts, None);
            yield_now().await;
            end.send(()).unwrap();
            assert_eq!((result.await.unwrap(), starts.get()), (Err(FileError::Busy), 0));
        });
        thread.join().unwrap();
    }
}
