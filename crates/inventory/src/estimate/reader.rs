//! Reads the directories that are to be read, on the workers of a walk that goes nowhere by itself: each is opened relative to the
//! one it was found in.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_walk::{Fields, Follow, NextRoot, Node, Options, Progress, Roots, Summary, gather, spawn_thread};

use super::probe::{Probe, Tally};
use super::sampler::{OVERDUE, Reader};
use super::tally::Found;
use super::{Budget, Survey};
use crate::scan::{Pace, Problem, Watch};

/// How long anybody waits before looking whether that is still wanted.
const PATIENCE: Duration = Duration::from_millis(20);
/// No survey is given up before this time is over, however short its own is.
const LEAST: Duration = Duration::from_secs(1);
/// A survey that is given up ends after this share of its time, whatever hangs.
const END: f64 = 1.2;

/// The stack of the thread that leads the walk.
const STACK_BYTES: usize = 1 << 20;

/// Entries of a wide directory that are looked at, about, if it was drawn.
const LOOKS: u64 = 32_768;
/// Entries looked at in a second, as long as that is not known.
const RATE: f64 = 1e6;

/// Where a directory is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// At a path.
    Root(CString),
    /// In another, that was read.
    Below(Arc<Node>, CString),
}

impl Place {
    /// The whole path.
    pub(super) fn path(&self) -> Vec<u8> {
        match self {
            Self::Root(path) => path.to_bytes().to_vec(),
            Self::Below(dir, name) => path_of(dir, Some(name)),
        }
    }
}

/// The path of a directory, or of an entry of it.
pub(super) fn path_of(dir: &Node, name: Option<&CStr>) -> Vec<u8> {
    let mut path = Vec::new();
    dir.path_into(&mut path);
    if let Some(name) = name {
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
    }
    path
}

/// What the workers have found and nobody has taken.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) read: Vec<(Arc<Node>, Tally)>,
    pub(super) problems: Vec<Problem>,
}

/// What the workers and the calling thread share.
#[derive(Debug, Default)]
pub(super) struct Desk {
    news: Mutex<News>,
    some: Condvar,
    progress: Mutex<Progress>,
    stop: AtomicBool,
    /// The rate at which workers look at entries, if it is limited.
    pace: Option<Pace>,
    /// Entries of one directory that are looked at; of a wider one, not all are.
    pub(super) looks_max: AtomicU64,
}

impl Desk {
    pub(super) fn new(rate: Option<u64>) -> Self {
        Self { pace: rate.map(Pace::new), ..Self::default() }
    }

    /// Waits until so many more entries may be looked at, or the walk stops.
    pub(super) fn keep_pace(&self, entries: usize) {
        if let Some(pace) = &self.pace {
            pace.keep(entries);
        }
    }

    /// Stops the walk. Workers that wait for their turn do so no longer.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.pace.as_ref().inspect(|pace| pace.end());
    }

    pub(super) fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, node: &Arc<Node>, tally: Tally) {
        self.news().read.push((node.clone(), tally));
        self.some.notify_one();
    }

    /// What there is by now; waits a moment for it.
    fn take(&self) -> News {
        let news = self.news();
        let is_empty = |news: &mut News| news.read.is_empty();
        let waited = self.some.wait_timeout_while(news, PATIENCE, is_empty);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Hands the walk what is to be read.
struct Line {
    waiting: mpsc::Receiver<Place>,
    desk: Arc<Desk>,
}

impl Roots for Line {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        let patience = if wait { PATIENCE } else { Duration::ZERO };
        match self.waiting.recv_timeout(patience) {
            Ok(Place::Root(path)) => NextRoot::Path(path),
            Ok(Place::Below(dir, name)) => NextRoot::Below(dir, name),
            Err(mpsc::RecvTimeoutError::Timeout) => NextRoot::NotNow,
            Err(mpsc::RecvTimeoutError::Disconnected) => NextRoot::End,
        }
    }

    fn stopped(&mut self) -> bool {
        self.desk.stop.load(Ordering::Relaxed)
    }
}

/// Which directory of those asked for something is about: a root by its number, others by where they are.
type Ticket = (usize, CString);

fn ticket(dir: &Arc<Node>, name: &CStr) -> Ticket {
    (Arc::as_ptr(dir) as usize, name.to_owned())
}

/// A walk that waits for what is to be read.
pub(super) struct Walker<'w> {
    survey: &'w Survey,
    start: Instant,
    watch: &'w mut dyn Watch,
    desk: Arc<Desk>,
    line: mpsc::Sender<Place>,
    thread: JoinHandle<()>,
    ended: mpsc::Receiver<Result<Summary, fathom_walk::Error>>,
    given_up: bool,
    roots: usize,
    reads: u64,
    /// Paths of what could not be read.
    problems: HashSet<Vec<u8>>,
}

impl<'w> Walker<'w> {
    /// Starts the walk.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(
        survey: &'w Survey,
        start: Instant,
        watch: &'w mut dyn Watch,
    ) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::new(survey.rate));
        let (line, waiting) = mpsc::channel();
        let probe = Probe::new(survey, desk.clone());
        let (options, shared) = (options(survey), desk.clone());
        let (end, ended) = mpsc::channel();
        let lead = move || {
            let mut line = Line { waiting, desk: shared.clone() };
            let mut shown = |now| *shared.progress.lock().unwrap_or_else(PoisonError::into_inner) = now;
            // The send fails only if the reader has given up waiting and dropped the receiver.
            let _ = end.send(gather(options, probe, &mut line, &mut shown));
        };
        let thread = spawn_thread("survey", STACK_BYTES, 0, lead)?;
        let (roots, reads, problems) = (0, 0, HashSet::new());
        Ok(Self { survey, start, watch, desk, line, thread, ended, given_up: false, roots, reads, problems })
    }

    /// Ends the walk; how many things could not be read, and the devices met.
    ///
    /// # Errors
    /// If the walk could not start.
    pub(super) fn end(self) -> Result<(u64, Vec<u64>), Box<dyn std::error::Error + Send + Sync>> {
        let Self { survey, start, line, ended, given_up, problems, .. } = self;
        drop(line);
        let ended = match given_up {
            false => ended.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            // A call that hangs is left alone, and its thread with it.
            true => ended.recv_timeout(allowance(survey.budget, END).saturating_sub(start.elapsed())),
        };
        let errors = problems.len() as u64;
        match ended {
            Ok(ended) => ended.map(|summary| (errors, summary.devices)).map_err(Into::into),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok((errors, Vec::new())),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("the walk's leading thread panicked".into()),
        }
    }

    fn is_over(&self) -> bool {
        let overdue = self.start.elapsed() > allowance(self.survey.budget, OVERDUE);
        overdue || self.survey.stop.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    fn progress(&self) -> Progress {
        *self.desk.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries that can be looked at in half of the time left.
    fn affordable(&self) -> u64 {
        let Budget::Time(time) = self.survey.budget else { return u64::MAX };
        let (over, entries) = (self.start.elapsed(), self.progress().entries);
        let rate = if entries > LOOKS { entries as f64 / over.as_secs_f64() } else { RATE };
        (rate * time.saturating_sub(over).as_secs_f64() / 2.0) as u64
    }

    /// Asks for a directory; what tells it from the others.
    fn ask(&mut self, place: Place) -> Ticket {
        let ticket = match &place {
            Place::Root(_) => (self.roots, CString::default()),
            Place::Below(dir, name) => ticket(dir, name),
        };
        self.roots += usize::from(matches!(place, Place::Root(_)));
        // Whoever would take it is waited for, and found to be gone.
        let _ = self.line.send(place);
        ticket
    }

    fn tell(&mut self, problems: Vec<Problem>) {
        self.watch.progress(self.progress());
        for problem in problems {
            if self.problems.insert(problem.path.clone()) {
                self.watch.problem(&problem);
            }
        }
    }
}

impl Reader for Walker<'_> {
    type Key = Place;

    fn read(&mut self, keys: Vec<Place>, drawn: bool) -> Option<Vec<Found<Place>>> {
        let looks_max = if drawn { LOOKS } else { self.affordable().max(LOOKS) };
        self.desk.looks_max.store(looks_max, Ordering::Relaxed);
        let mut found: Vec<Found<Place>> = keys.iter().map(|_| Found::default()).collect();
        let mut left = keys.len();
        let asked: HashMap<Ticket, usize> =
            keys.into_iter().enumerate().map(|(index, place)| (self.ask(place), index)).collect();
        while left > 0 {
            let News { read, problems } = self.desk.take();
            left = left.saturating_sub(read.len());
            for (node, tally) in read {
                let ticket = match node.parent() {
                    Some(dir) => ticket(dir, node.name()),
                    None => (node.root_index(), CString::default()),
                };
                if let Some(index) = asked.get(&ticket) {
                    found[*index] = tally.into_found(&node);
                }
            }
            self.tell(problems);
            if left > 0 && self.is_over() {
                self.desk.stop();
                self.given_up = true;
                return None;
            }
        }
        self.reads += found.len() as u64;
        Some(found)
    }

    fn spent(&self) -> f64 {
        match self.survey.budget {
            Budget::Time(time) => self.start.elapsed().as_secs_f64() / time.as_secs_f64(),
            Budget::Directories(count) => self.reads as f64 / count as f64,
        }
    }
}

/// So many times the time of a budget, if that is one, and [`LEAST`] at least.
fn allowance(budget: Budget, times: f64) -> Duration {
    match budget {
        // Longer times than there are have no end.
        Budget::Time(time) => {
            Duration::try_from_secs_f64(time.as_secs_f64() * times).unwrap_or(time).max(LEAST)
        }
        Budget::Directories(_) => Duration::MAX,
    }
}

fn options(survey: &Survey) -> Options {
    Options {
        choice: survey.choice,
        threads: survey.threads,
        roots: Follow::No,
        links: Follow::No,
        fields: Fields::SIZE.and(Fields::BLOCKS),
        stat_dirs: true,
        once: false,
        loose: true,
        whole: false,
        workers_max: survey.in_flight_max,
        fds_max: None,
        leaps: survey.leaps.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_ends_within_a_fifth_of_its_time() {
        let of = |ms, times| allowance(Budget::Time(Duration::from_millis(ms)), times);
        assert_eq!(of(2_000, OVERDUE), Duration::from_millis(2_300));
        assert_eq!(of(2_000, END), Duration::from_millis(2_400));
        assert_eq!([of(0, OVERDUE), of(100, END)], [LEAST; 2]);
        assert_eq!(allowance(Budget::Time(Duration::MAX), END), Duration::MAX);
        assert_eq!(allowance(Budget::Directories(1), END), Duration::MAX);
    }
}
