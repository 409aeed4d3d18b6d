//! Reads the requested directories, on the workers of a walk that does not descend by itself. Each
//! directory is opened relative to the directory in which it was found.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_walk::{
    Clock, Fields, NextRoot, Node, Options, Progress, RootSource, Summary, run_unordered, spawn_thread,
};

use super::estimator::DirContents;
use super::probe::{DirTally, Probe};
use super::sampler::{DirReader, OVERDUE};
use super::{Budget, Survey};
use crate::scan::{Observer, Problem, RateLimiter};

/// Longest wait before a thread checks again whether the survey is stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Least time after which a survey is abandoned, however short its budget is.
const TIME_MIN: Duration = Duration::from_secs(1);
/// Share of its time after which an abandoned survey ends, even if a system call hangs.
const ABANDONED_END: f64 = 1.2;

/// The stack size of the thread that runs the walk.
const STACK_BYTES: usize = 1 << 20;

/// About the number of entries of a wide, drawn directory whose metadata is read.
const STAT_MAX: u64 = 32_768;
/// Assumed rate of entries in a second, until it has been measured.
const ENTRY_RATE: f64 = 1e6;

/// The location of a directory.
#[derive(Clone, Debug)]
pub(super) enum DirLocation {
    /// The path of a root.
    Root(CString),
    /// A name in a directory that was read.
    Below(Arc<Node>, CString),
}

impl DirLocation {
    /// Returns the whole path.
    pub(super) fn path(&self) -> Vec<u8> {
        match self {
            Self::Root(path) => path.to_bytes().to_vec(),
            Self::Below(dir, name) => dir.path_of(Some(name)),
        }
    }
}

/// Results of the workers that the calling thread has not taken yet.
#[derive(Debug, Default)]
pub(super) struct ProbeResults {
    pub(super) read: Vec<(Arc<Node>, DirTally)>,
    pub(super) problems: Vec<Problem>,
}

/// The state that the workers and the calling thread share.
#[derive(Debug, Default)]
pub(super) struct SurveyShared {
    results: Mutex<ProbeResults>,
    ready: Condvar,
    progress: Mutex<Progress>,
    stop: AtomicBool,
    /// The limit of the rate at which workers examine entries, if there is one.
    rate_limit: Option<RateLimiter>,
    /// About the number of entries of one directory whose metadata is read. Wider directories are
    /// sampled.
    pub(super) stat_max: AtomicU64,
}

impl SurveyShared {
    pub(super) fn new(rate: Option<u64>, clock: &Clock) -> Self {
        Self { rate_limit: rate.map(|rate| RateLimiter::new(rate, clock.clone())), ..Self::default() }
    }

    /// Waits until the rate limit admits this many more entries, or the walk stops.
    pub(super) fn throttle(&self, entries: usize) {
        if let Some(rate_limit) = &self.rate_limit {
            rate_limit.wait(entries);
        }
    }

    /// Stops the walk, and wakes the workers that wait for the rate limit.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.rate_limit.as_ref().inspect(|rate_limit| rate_limit.cancel());
    }

    pub(super) fn results(&self) -> MutexGuard<'_, ProbeResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, node: &Arc<Node>, tally: DirTally) {
        self.results().read.push((node.clone(), tally));
        self.ready.notify_one();
    }

    /// Takes the results so far. Waits up to [`POLL_INTERVAL`] if there are none.
    fn take(&self) -> ProbeResults {
        let results = self.results();
        let is_empty = |results: &mut ProbeResults| results.read.is_empty();
        let waited = self.ready.wait_timeout_while(results, POLL_INTERVAL, is_empty);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Gives the walk the requested directories.
struct RequestQueue {
    requests: mpsc::Receiver<DirLocation>,
    shared: Arc<SurveyShared>,
}

impl RootSource for RequestQueue {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        let timeout = if wait { POLL_INTERVAL } else { Duration::ZERO };
        match self.requests.recv_timeout(timeout) {
            Ok(DirLocation::Root(path)) => NextRoot::Path(path),
            Ok(DirLocation::Below(dir, name)) => NextRoot::Below(dir, name),
            Err(mpsc::RecvTimeoutError::Timeout) => NextRoot::NotNow,
            Err(mpsc::RecvTimeoutError::Disconnected) => NextRoot::End,
        }
    }

    fn stopped(&mut self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

/// Identifies a requested directory: a root by its number, others by the address of the parent's
/// node and the name.
type RequestKey = (usize, CString);

fn request_key(dir: &Arc<Node>, name: &CStr) -> RequestKey {
    (Arc::as_ptr(dir) as usize, name.to_owned())
}

/// A walk that reads directories on request.
pub(super) struct SurveyWalk<'w> {
    survey: &'w Survey,
    start: Instant,
    observer: &'w mut dyn Observer,
    shared: Arc<SurveyShared>,
    requests: mpsc::Sender<DirLocation>,
    thread: JoinHandle<()>,
    ended: mpsc::Receiver<Result<Summary, fathom_walk::Error>>,
    abandoned: bool,
    roots: usize,
    reads: u64,
    /// The paths that could not be read. Each is reported once.
    problems: HashSet<Vec<u8>>,
}

impl<'w> SurveyWalk<'w> {
    /// Starts the walk.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(
        survey: &'w Survey,
        start: Instant,
        observer: &'w mut dyn Observer,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(SurveyShared::new(survey.rate, &survey.clock));
        let (requests, receiver) = mpsc::channel();
        let probe = Probe::new(survey, shared.clone());
        let (options, walk_shared) = (options(survey), shared.clone());
        let (end, ended) = mpsc::channel();
        let run = move || {
            let mut queue = RequestQueue { requests: receiver, shared: walk_shared.clone() };
            let mut shown = |now| *walk_shared.progress.lock().unwrap_or_else(PoisonError::into_inner) = now;
            // The send fails only if the calling thread has stopped waiting and dropped the
            // receiver.
            let _ = end.send(run_unordered(options, probe, &mut queue, &mut shown));
        };
        let thread = spawn_thread("survey", STACK_BYTES, 0, run)?;
        let (roots, reads, problems) = (0, 0, HashSet::new());
        Ok(Self {
            survey,
            start,
            observer,
            shared,
            requests,
            thread,
            ended,
            abandoned: false,
            roots,
            reads,
            problems,
        })
    }

    /// Ends the walk. Returns the number of paths that could not be read, and the devices of the
    /// directories that were opened.
    ///
    /// # Errors
    /// If the walk could not start.
    pub(super) fn end(self) -> Result<(u64, Vec<u64>), Box<dyn std::error::Error + Send + Sync>> {
        let Self { survey, start, requests, ended, abandoned, problems, .. } = self;
        drop(requests);
        let ended = match abandoned {
            false => ended.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            // A system call that hangs is not waited for; its thread is left behind.
            true => ended.recv_timeout(
                time_limit(survey.budget, ABANDONED_END).saturating_sub(survey.clock.now() - start),
            ),
        };
        let errors = problems.len() as u64;
        match ended {
            Ok(ended) => ended.map(|summary| (errors, summary.devices)).map_err(Into::into),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok((errors, Vec::new())),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err("the walk's leading thread panicked, which is a bug".into())
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.survey.clock.now() - self.start
    }

    fn is_over(&self) -> bool {
        let overdue = self.elapsed() > time_limit(self.survey.budget, OVERDUE);
        overdue || self.survey.stop.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    fn progress(&self) -> Progress {
        *self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of entries that can be examined in half of the remaining time.
    fn affordable(&self) -> u64 {
        let Budget::Time(time) = self.survey.budget else { return u64::MAX };
        let (over, entries) = (self.elapsed(), self.progress().entries);
        let rate = if entries > STAT_MAX { entries as f64 / over.as_secs_f64() } else { ENTRY_RATE };
        (rate * time.saturating_sub(over).as_secs_f64() / 2.0) as u64
    }

    /// Requests a directory. Returns the key by which its result is recognised.
    fn request(&mut self, location: DirLocation) -> RequestKey {
        let request_key = match &location {
            DirLocation::Root(_) => (self.roots, CString::default()),
            DirLocation::Below(dir, name) => request_key(dir, name),
        };
        self.roots += usize::from(matches!(location, DirLocation::Root(_)));
        // The send fails only if the walk has ended, which `is_over` notices.
        let _ = self.requests.send(location);
        request_key
    }

    fn report(&mut self, problems: Vec<Problem>) {
        self.observer.progress(self.progress());
        for problem in problems {
            if self.problems.insert(problem.path.clone()) {
                self.observer.problem(&problem);
            }
        }
    }
}

impl DirReader for SurveyWalk<'_> {
    type Key = DirLocation;

    fn read(&mut self, keys: Vec<DirLocation>, drawn: bool) -> Option<Vec<DirContents<DirLocation>>> {
        let stat_max = if drawn { STAT_MAX } else { self.affordable().max(STAT_MAX) };
        self.shared.stat_max.store(stat_max, Ordering::Relaxed);
        let mut contents: Vec<DirContents<DirLocation>> =
            keys.iter().map(|_| DirContents::default()).collect();
        let mut left = keys.len();
        let requested: HashMap<RequestKey, usize> =
            keys.into_iter().enumerate().map(|(index, location)| (self.request(location), index)).collect();
        while left > 0 {
            let ProbeResults { read, problems } = self.shared.take();
            left = left.saturating_sub(read.len());
            for (node, tally) in read {
                let request_key = match node.parent() {
                    Some(dir) => request_key(dir, node.name()),
                    None => (node.root_index(), CString::default()),
                };
                if let Some(index) = requested.get(&request_key) {
                    contents[*index] = tally.into_contents(&node);
                }
            }
            self.report(problems);
            if left > 0 && self.is_over() {
                self.shared.stop();
                self.abandoned = true;
                return None;
            }
        }
        self.reads += contents.len() as u64;
        Some(contents)
    }

    fn spent(&self) -> f64 {
        match self.survey.budget {
            Budget::Time(time) => self.elapsed().as_secs_f64() / time.as_secs_f64(),
            Budget::Directories(count) => self.reads as f64 / count as f64,
        }
    }
}

/// Returns the duration of a budget, multiplied by `times` and at least [`TIME_MIN`]. A budget of
/// directories has no end.
fn time_limit(budget: Budget, times: f64) -> Duration {
    match budget {
        // A product beyond the range of a duration is replaced by the duration itself.
        Budget::Time(time) => {
            Duration::try_from_secs_f64(time.as_secs_f64() * times).unwrap_or(time).max(TIME_MIN)
        }
        Budget::Directories(_) => Duration::MAX,
    }
}

fn options(survey: &Survey) -> Options {
    Options::default()
        .model(survey.model)
        .threads(survey.threads)
        .fields(Fields::SIZE.union(Fields::BLOCKS))
        .stat_dirs(true)
        .unordered_chunks(true)
        .workers_max(survey.in_flight_max)
        .hints(survey.hints.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_ends_within_a_fifth_of_its_time() {
        let of = |ms, times| time_limit(Budget::Time(Duration::from_millis(ms)), times);
        assert_eq!(of(2_000, OVERDUE), Duration::from_millis(2_300));
        assert_eq!(of(2_000, ABANDONED_END), Duration::from_millis(2_400));
        assert_eq!([of(0, OVERDUE), of(100, ABANDONED_END)], [TIME_MIN; 2]);
        assert_eq!(time_limit(Budget::Time(Duration::MAX), ABANDONED_END), Duration::MAX);
        assert_eq!(time_limit(Budget::Directories(1), ABANDONED_END), Duration::MAX);
    }
}
