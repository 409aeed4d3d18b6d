//! The threads workers run on, and the one part that is executed without any.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;

use fathom_io::{Model, Unavailable};

use crate::duty::Duty;
use crate::worker::{Home, Shared, Worker};

/// A worker's stack: no recursion, and the buffers are on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// Somebody who can have parts executed.
pub(crate) trait Staff {
    /// Starts one more worker.
    fn hire(&self) -> io::Result<()>;
    /// Has the first part in the line executed on the calling thread.
    fn help_out(&self);
}

/// Starts workers on threads of their own. They are never joined: one that sits in a slow call must not hold up who
/// stops the walk, and ends by itself when the call returns.
pub(crate) struct Threads<D: Duty, F> {
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) make: Arc<F>,
    /// Directories a worker may have under way.
    pub(crate) width: usize,
    /// Where the first worker says that its model cannot run here.
    pub(crate) report: Cell<Option<mpsc::Sender<Unavailable>>>,
    /// The number of the worker that was the calling thread: the first to be started takes over.
    pub(crate) vacant: Cell<Option<usize>>,
}

/// Stops the walk if its worker panics, which only what the caller supplied does.
struct Alarm<D: Duty>(Arc<Shared<D>>);

impl<D: Duty> Drop for Alarm<D> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.schedule.panic();
        }
    }
}

impl<D: Duty, M: Model, F: Fn() -> Result<M, Unavailable> + Send + Sync + 'static> Staff for Threads<D, F> {
    fn hire(&self) -> io::Result<()> {
        let (shared, make) = (self.shared.clone(), self.make.clone());
        let (width, report, vacant) = (self.width.clamp(1, M::WIDTH), self.report.take(), self.vacant.take());
        let work = move || match make() {
            Ok(model) => {
                let number = vacant.unwrap_or_else(|| shared.schedule.add_worker());
                let _alarm = Alarm(shared.clone());
                Worker::new(shared, number, model, width, Home::Own).run();
            }
            Err(unavailable) => {
                // Without a report there are workers whose model runs: they have to do.
                if let Some(report) = report {
                    // Nobody listens any more once the walk has been given up.
                    let _ = report.send(unavailable);
                    shared.schedule.wake_consumer();
                }
            }
        };
        let builder = thread::Builder::new().name("walk".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(work).map(drop)
    }

    fn help_out(&self) {
        let Ok(model) = (self.make)() else { return };
        let number = self.shared.schedule.add_worker();
        let worker = Worker::new(self.shared.clone(), number, model, 1, Home::Shared);
        if catch_unwind(AssertUnwindSafe(|| worker.run_one())).is_err() {
            self.shared.schedule.panic();
        }
        self.vacant.set(Some(number));
    }
}
