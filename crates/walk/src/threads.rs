//! The worker threads, and the execution of tasks on the calling thread.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;

use fathom_io::{MetadataModel, Unavailable, threads};

use crate::driven::Driven;
use crate::worker::{Shared, ThreadOwner, Worker};

/// The stack of a worker, which has no recursion and keeps its buffers on the heap.
const STACK_BYTES: usize = 256 * 1024;
/// The address space of a worker: its stack, and its buffers.
const WORKER_BYTES: usize = 1 << 20;

/// Starts workers on threads of their own. The threads are never joined: a thread in a slow call
/// must not delay the caller that stops the walk. It ends by itself when the call returns.
pub(crate) struct Threads<D: Driven, M, F> {
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) make: Arc<F>,
    /// The number of tasks that a worker may execute at once.
    pub(crate) width: usize,
    /// Receives the error of the first worker if its model cannot run here.
    report: mpsc::Sender<Unavailable>,
    has_spawned: Cell<bool>,
    /// The worker on the calling thread. The first started thread takes over its number.
    inline: RefCell<Option<Worker<D, M>>>,
}

impl<D: Driven, M: MetadataModel, F> Threads<D, M, F> {
    pub(crate) fn new(
        shared: Arc<Shared<D>>,
        make: F,
        width: usize,
        report: mpsc::Sender<Unavailable>,
    ) -> Self {
        let (has_spawned, inline) = (Cell::new(false), RefCell::new(None));
        Self { shared, make: Arc::new(make), width, report, has_spawned, inline }
    }
}

/// Stops the walk if its worker panics. Only code of the caller (the visitor) is expected to panic.
struct Alarm<D: Driven>(Arc<Shared<D>>);

impl<D: Driven> Drop for Alarm<D> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.schedule.panic();
        }
    }
}

impl<D: Driven, M: MetadataModel, F: Fn() -> Result<M, Unavailable> + Send + Sync + 'static>
    Threads<D, M, F>
{
    /// Starts one more worker.
    pub(crate) fn spawn_worker(&self) -> io::Result<()> {
        let (shared, make, width) = (self.shared.clone(), self.make.clone(), self.width.clamp(1, M::WIDTH));
        let vacant = self.inline.borrow().as_ref().map(|worker| worker.number);
        let report = (!self.has_spawned.get()).then(|| self.report.clone());
        let work = move || match make() {
            Ok(model) => {
                let number = vacant.unwrap_or_else(|| shared.schedule.add_worker());
                let _alarm = Alarm(shared.clone());
                Worker::new(shared, number, model, width, ThreadOwner::Own).run();
            }
            Err(unavailable) => {
                // Without a report, other workers have started with this model. They go on alone.
                if let Some(report) = report {
                    // The receiver is gone if the walk has ended.
                    let _ = report.send(unavailable);
                    shared.schedule.wake_consumer();
                }
            }
        };
        let builder = thread::Builder::new().name("walk".to_owned()).stack_size(STACK_BYTES);
        let turn = threads::start_lock();
        if !threads::has_address_space(WORKER_BYTES) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        builder.spawn(work)?;
        drop(turn);
        self.has_spawned.set(true);
        *self.inline.borrow_mut() = None;
        Ok(())
    }

    /// Executes the first task in the queue on the calling thread. Returns false if there is none.
    pub(crate) fn run_inline(&self) -> Result<bool, Unavailable> {
        let mut inline = self.inline.borrow_mut();
        if inline.is_none() {
            let (model, number) = ((self.make)()?, self.shared.schedule.add_worker());
            *inline = Some(Worker::new(self.shared.clone(), number, model, 1, ThreadOwner::Shared));
        }
        let run = || inline.as_ref().is_some_and(Worker::run_one);
        Ok(catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            self.shared.schedule.panic();
            true
        }))
    }
}
