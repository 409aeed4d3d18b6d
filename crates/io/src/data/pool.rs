//! Threads that operations are handed to, one by one or several at a time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::calls::perform;
use super::{CompletedOp, Data, DataCalls, FileId, FileTable, Op};
use crate::Errno;

const STACK_BYTES: usize = 64 * 1024;

type Job = Vec<(Box<Op>, Arc<OwnedFd>)>;

/// The pool model. Its threads end when it is dropped; one that sits in a call keeps the file and the buffer until the call returns.
#[derive(Debug)]
pub struct Pool {
    files: FileTable,
    depth: usize,
    batch: usize,
    in_flight: usize,
    /// Operations to be handed over together.
    gathered: Job,
    /// What failed before it could be handed over.
    failed: Vec<CompletedOp>,
    jobs: Sender<Job>,
    results: Receiver<Vec<CompletedOp>>,
}

impl Pool {
    /// `threads` threads for up to `depth` operations, handed over `batch` at a time.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(calls: impl DataCalls, threads: usize, depth: usize, batch: usize) -> io::Result<Self> {
        let depth = depth.max(1);
        // There are never more jobs than operations, so nobody waits to hand one over.
        let (jobs, todo) = bounded::<Job>(depth);
        let (done, results) = unbounded();
        for _ in 0..threads.max(1) {
            let (calls, todo, done) = (calls.clone(), todo.clone(), done.clone());
            let builder = thread::Builder::new().name("io".to_owned()).stack_size(STACK_BYTES);
            builder.spawn(move || serve(&calls, &todo, &done))?;
        }
        let (files, gathered, failed) = (FileTable::default(), Vec::new(), Vec::new());
        Ok(Self { files, depth, batch: batch.clamp(1, depth), in_flight: 0, gathered, failed, jobs, results })
    }

    fn hand_over(&mut self) {
        if !self.gathered.is_empty() {
            let job = std::mem::take(&mut self.gathered);
            self.jobs.send(job).expect("the threads live as long as there may be jobs");
        }
    }

    fn take(&mut self, results: Vec<CompletedOp>, done: &mut Vec<CompletedOp>) {
        self.in_flight -= results.len();
        done.extend(results);
    }
}

fn serve(calls: &impl DataCalls, todo: &Receiver<Job>, done: &Sender<Vec<CompletedOp>>) {
    for job in todo {
        let perform = |(mut op, file): (Box<Op>, Arc<OwnedFd>)| {
            let result = perform(calls, file.as_fd(), &mut op);
            CompletedOp::new(op, result)
        };
        if done.send(job.into_iter().map(perform).collect()).is_err() {
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
        assert!(self.in_flight < self.depth, "no more operations than the depth");
        self.in_flight += 1;
        match self.files.get(op.file) {
            Ok(file) => self.gathered.push((op, file.clone())),
            Err(errno) => self.failed.push(CompletedOp::new(op, Err(errno))),
        }
        if self.gathered.len() >= self.batch {
            self.hand_over();
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        self.hand_over();
        let failed = std::mem::take(&mut self.failed);
        let found = !failed.is_empty();
        self.take(failed, done);
        if self.in_flight > 0 && !found {
            let results = self.results.recv().expect("a thread that has a job sends its results");
            self.take(results, done);
        }
        while let Ok(results) = self.results.try_recv() {
            self.take(results, done);
        }
    }
}
