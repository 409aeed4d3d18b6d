//! A pool of threads that make blocking calls. Operations are passed to them one by one or in
//! batches.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::calls::perform;
use super::{CompletedOp, Data, DataCalls, FileId, FileTable, Op};
use crate::Errno;

const STACK_BYTES: usize = 64 * 1024;

type Job = Vec<(Box<Op>, Arc<OwnedFd>)>;

/// The number of operations of a job, and their results unless one has panicked.
type JobEnd = (usize, thread::Result<Vec<CompletedOp>>);

/// The pool model. Its threads end after it is dropped. A thread that is in a call keeps the file
/// and the buffer until the call returns.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::data::{Buffer, Data, NativeData, Op, OpKind, Pool};
///
/// let mut pool = Pool::new(NativeData, 2, 8, 1)?;
/// let file = pool.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// for offset in [0, 1] {
///     pool.submit(Op::new(OpKind::Read, file, offset, Buffer::new(4)));
/// }
/// let mut done = Vec::new();
/// while pool.in_flight() > 0 {
///     pool.complete(&mut done);
/// }
/// assert!(done.iter().all(|ended| ended.result() == Ok(4)));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Pool {
    files: FileTable,
    depth: usize,
    batch: usize,
    in_flight: usize,
    /// Operations of the next batch.
    batched: Job,
    /// Operations that failed before they were passed to a thread.
    failed: Vec<CompletedOp>,
    jobs: Sender<Job>,
    results: Receiver<JobEnd>,
}

impl Pool {
    /// Starts `threads` threads for up to `depth` operations in flight, passed on in batches of
    /// `batch`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(calls: impl DataCalls, threads: usize, depth: usize, batch: usize) -> io::Result<Self> {
        let depth = depth.max(1);
        // The channel has capacity for a job for each operation, so a send never waits.
        let (jobs, incoming) = bounded::<Job>(depth);
        let (done, results) = unbounded();
        for _ in 0..threads.max(1) {
            let (calls, incoming, done) = (calls.clone(), incoming.clone(), done.clone());
            let builder = thread::Builder::new().name("io".to_owned()).stack_size(STACK_BYTES);
            builder.spawn(move || serve(&calls, &incoming, &done))?;
        }
        let (files, batched, failed) = (FileTable::default(), Vec::new(), Vec::new());
        Ok(Self { files, depth, batch: batch.clamp(1, depth), in_flight: 0, batched, failed, jobs, results })
    }

    fn send_batch(&mut self) {
        if !self.batched.is_empty() {
            let job = std::mem::take(&mut self.batched);
            self.jobs.send(job).expect("the threads run as long as the sender exists");
        }
    }

    /// Takes the results of a job.
    ///
    /// # Panics
    /// If the job has.
    fn take_job(&mut self, (count, results): JobEnd, done: &mut Vec<CompletedOp>) {
        self.in_flight -= count;
        done.extend(results.unwrap_or_else(|panic| resume_unwind(panic)));
    }
}

/// Performs jobs. One that panics is sent as well: otherwise its operations would be waited for
/// for ever.
fn serve(calls: &impl DataCalls, incoming: &Receiver<Job>, done: &Sender<JobEnd>) {
    for job in incoming {
        let perform = |(mut op, file): (Box<Op>, Arc<OwnedFd>)| {
            let result = perform(calls, file.as_fd(), &mut op);
            CompletedOp::new(op, result)
        };
        let count = job.len();
        let performed = catch_unwind(AssertUnwindSafe(|| job.into_iter().map(perform).collect()));
        if done.send((count, performed)).is_err() {
            return;
        }
    }
}

impl Data for Pool {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        self.files.add(file)
    }

    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn submit(&mut self, op: Box<Op>) {
        assert!(self.in_flight < self.depth, "the number of operations in flight is at most the depth");
        self.in_flight += 1;
        match self.files.get(op.file) {
            Ok(file) => self.batched.push((op, file.clone())),
            Err(errno) => self.failed.push(CompletedOp::new(op, Err(errno))),
        }
        if self.batched.len() >= self.batch {
            self.send_batch();
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        self.send_batch();
        let failed = std::mem::take(&mut self.failed);
        let found = !failed.is_empty();
        self.in_flight -= failed.len();
        done.extend(failed);
        if self.in_flight > 0 && !found {
            let results = self.results.recv().expect("a thread sends the results of each job");
            self.take_job(results, done);
        }
        while let Ok(results) = self.results.try_recv() {
            self.take_job(results, done);
        }
    }
}
