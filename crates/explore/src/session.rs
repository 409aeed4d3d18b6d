//! The threads on which the calls of the source and of the remover are made, so that the state
//! never waits. The queues are bounded: one query, of which the newest replaces an older one and
//! cancels it, one request of each other kind, and as many answers as there are requests.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_io::Clock;
use fathom_io::threads::spawn;

use crate::disk::DiskSpace;
use crate::input::{Answer, Effect, Found, Query, QueryKind};
use crate::listing::Listing;
use crate::remover::{Removal, RemovalKind, RemovalLimit, RemovalProgress, Remover};
use crate::source::{FileSearch, FoundFiles, Place, PlacedRow, Row, Source, SourceError, SourceProgress};

/// The stacks of the threads.
const STACK_BYTES: usize = 1 << 20;
/// The time between two looks at the progress.
const TICK: Duration = Duration::from_millis(100);
/// The part of the time that reading the same rows again may take while a tree is walked.
const REFRESH_SHARE: u32 = 10;
/// The number of files in the view of the largest.
const LARGEST: usize = 1000;
/// The most files that a search returns to be marked, which take some 100 MB.
const MATCHING_MAX: usize = 250_000;
/// The number of directories that can wait to be walked again.
const RESCANS_MAX: usize = 16;

/// The requests for the source that wait.
#[derive(Debug, Default)]
struct SourceRequests {
    query: Option<Query>,
    /// Set when the query that runs is no longer wanted.
    cancelled: Arc<AtomicBool>,
    pause: Option<bool>,
    rescans: Vec<Place>,
    removed: Vec<(Place, Row)>,
    ends: bool,
}

impl SourceRequests {
    fn are_waiting(&self) -> bool {
        let others = !self.rescans.is_empty() || !self.removed.is_empty();
        self.query.is_some() || self.pause.is_some() || others || self.ends
    }
}

/// A request for the remover.
#[derive(Debug)]
struct RemoverRequest {
    sequence: u64,
    /// The kind of the removal and its limit; `None` to count only.
    order: Option<(RemovalKind, RemovalLimit)>,
    removals: Vec<Removal>,
}

#[derive(Debug, Default)]
struct RemoverRequests {
    next: Option<RemoverRequest>,
    /// Whether the remover removes, so that the end of the session waits for it.
    is_removing: bool,
    stop: Arc<AtomicBool>,
    ends: bool,
}

/// The roots whose filesystems are to be looked at; the newest request replaces others.
#[derive(Debug, Default)]
struct SpaceRequests {
    roots: Option<Vec<Option<Vec<u8>>>>,
    ends: bool,
}

/// The function that takes an answer, on the thread that has it.
type Deliver = Arc<dyn Fn(Answer) + Send + Sync>;

/// A value with a wake-up for the thread that waits for it to change.
#[derive(Debug, Default)]
struct Mailbox<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Mailbox<T> {
    fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
        result
    }

    /// Waits until the value fulfils the condition, or for a time. Then takes from it.
    fn wait<R>(
        &self,
        time: Option<Duration>,
        ready: impl Fn(&T) -> bool,
        take: impl FnOnce(&mut T) -> R,
    ) -> R {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |value: &mut T| !ready(value);
        let mut value = match time {
            None => self.changed.wait_while(value, waits).unwrap_or_else(PoisonError::into_inner),
            Some(time) => {
                self.changed.wait_timeout_while(value, time, waits).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        take(&mut value)
    }
}

/// The threads of a session.
///
/// ```
/// use std::sync::mpsc;
/// use fathom_io::Clock;
/// use fathom_explore::input::Event;
/// use fathom_explore::memory::{MemorySource, file};
/// use fathom_explore::session::Session;
/// use fathom_explore::state::{Settings, State};
///
/// let mut source = MemorySource::default();
/// let root = source.root("/data", None);
/// source.add(root, b"", file("a", 5, 0));
/// let (send, answers) = mpsc::channel();
/// let deliver = move |answer| drop(send.send(answer));
/// let session = Session::start(Box::new(source), None, Clock::default(), deliver)?;
/// let mut state = State::new(Settings::default());
/// let mut effects = state.start();
/// while state.current().is_none() {
///     effects.drain(..).for_each(|effect| drop(session.perform(effect)));
///     effects = state.handle(Event::Answer(answers.recv().unwrap()));
/// }
/// assert_eq!(&*state.current().unwrap().name, b"a");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Session {
    source: Arc<Mailbox<SourceRequests>>,
    remover: Option<Arc<Mailbox<RemoverRequests>>>,
    space: Option<Arc<Mailbox<SpaceRequests>>>,
    deliver: Deliver,
    remover_thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts the threads. `deliver` takes the answers, and must not wait for the state. The source
    /// is asked for its progress, and the remover passes on its own, by `clock`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        source: Box<dyn Source>,
        remover: Option<Box<dyn Remover>>,
        clock: Clock,
        deliver: impl Fn(Answer) + Send + Sync + 'static,
    ) -> io::Result<Session> {
        let deliver: Deliver = Arc::new(deliver);
        let mailbox = Arc::new(Mailbox::<SourceRequests>::default());
        let mut session =
            Session { source: mailbox.clone(), remover: None, space: None, deliver, remover_thread: None };
        let (deliver, source_clock) = (session.deliver.clone(), clock.clone());
        spawn("source", STACK_BYTES, 0, move || {
            let _watch = DeathWatch(deliver.clone());
            let looked = source_clock.now();
            let (clock, cost) = (source_clock, Duration::ZERO);
            SourceThread { source, mailbox, deliver, clock, reported: None, looked, cost }.run();
        })?;
        if let Some(remover) = remover {
            let (mailbox, deliver) = (Arc::new(Mailbox::default()), session.deliver.clone());
            session.remover = Some(mailbox.clone());
            session.remover_thread = Some(spawn("remover", STACK_BYTES, 0, move || {
                let _watch = DeathWatch(deliver.clone());
                run_remover(remover, &mailbox, &deliver, &clock);
            })?);
        }
        Ok(session)
    }

    /// Starts the thread that reads the space of filesystems. Without it, nobody is asked for that.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn read_space(
        &mut self,
        mut read: impl FnMut(&[Option<Vec<u8>>]) -> Vec<Option<DiskSpace>> + Send + 'static,
    ) -> io::Result<()> {
        let (mailbox, deliver) = (Arc::<Mailbox<SpaceRequests>>::default(), self.deliver.clone());
        self.space = Some(mailbox.clone());
        // Detached: a server that does not respond must not hold the end of the session.
        spawn("space", STACK_BYTES, 0, move || {
            let _watch = DeathWatch(deliver.clone());
            let is_ready = |requests: &SpaceRequests| requests.roots.is_some() || requests.ends;
            while let Some(roots) = mailbox.wait(None, is_ready, |requests| requests.roots.take()) {
                deliver(Answer::Space(read(&roots)));
            }
        })?;
        Ok(())
    }

    /// Passes an effect to its thread. Returns it if it is for the terminal or for the program.
    pub fn perform(&self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Query(query) => self.source.change(|requests| {
                // Relaxed suffices: the source only reads the flag to end earlier.
                requests.cancelled.store(true, Ordering::Relaxed);
                requests.query = Some(query);
            }),
            Effect::CancelQuery => self.source.change(|requests| {
                requests.cancelled.store(true, Ordering::Relaxed);
                requests.query = None;
            }),
            Effect::Pause(paused) => self.source.change(|requests| requests.pause = Some(paused)),
            Effect::Rescan(place) => self.source.change(|requests| {
                if requests.rescans.len() < RESCANS_MAX && !requests.rescans.contains(&place) {
                    requests.rescans.push(place);
                }
            }),
            Effect::ReadSpace(roots) => {
                if let Some(space) = &self.space {
                    space.change(|requests| requests.roots = Some(roots));
                }
            }
            Effect::Removed(rows) => self.source.change(|requests| requests.removed.extend(rows)),
            Effect::Plan { sequence, removals } => self.ask_remover(sequence, None, removals),
            Effect::Remove { sequence, kind, limit, removals } => {
                self.ask_remover(sequence, Some((kind, limit)), removals)
            }
            Effect::StopRemoval => self.stop_removal(),
            other => return Some(other),
        }
        None
    }

    fn ask_remover(&self, sequence: u64, order: Option<(RemovalKind, RemovalLimit)>, removals: Vec<Removal>) {
        let Some(remover) = &self.remover else {
            let result = Err(b"nothing can be removed here".to_vec());
            return (self.deliver)(Answer::Planned { sequence, result });
        };
        remover.change(|requests| {
            requests.stop.store(true, Ordering::Relaxed);
            // A flag for each request: the one before may still be ending.
            requests.stop = Arc::default();
            requests.next = Some(RemoverRequest { sequence, order, removals });
        });
    }

    fn stop_removal(&self) {
        if let Some(remover) = &self.remover {
            remover.change(|requests| requests.stop.store(true, Ordering::Relaxed));
        }
    }

    /// Stops the walk and the removal. Waits for a removal, which ends with the entry that it
    /// removes; not for the source or for a plan, which may be blocked in slow system calls.
    pub fn end(mut self) {
        self.stop_removal();
        self.source.change(|requests| {
            requests.cancelled.store(true, Ordering::Relaxed);
            requests.ends = true;
        });
        self.space.iter().for_each(|space| space.change(|requests| requests.ends = true));
        let is_removing = self.remover.as_ref().is_some_and(|remover| {
            remover.change(|requests| {
                (requests.next, requests.ends) = (None, true);
                requests.is_removing
            })
        });
        if let Some(thread) = self.remover_thread.take_if(|_| is_removing) {
            // A panic was delivered as `Answer::Died`.
            let _ = thread.join();
        }
    }
}

/// Delivers [`Answer::Died`] if its thread panics.
struct DeathWatch(Deliver);

impl Drop for DeathWatch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)(Answer::Died);
        }
    }
}

/// The thread of the source.
struct SourceThread {
    source: Box<dyn Source>,
    mailbox: Arc<Mailbox<SourceRequests>>,
    deliver: Deliver,
    clock: Clock,
    /// The progress that was delivered last.
    reported: Option<SourceProgress>,
    /// The time of the last look at a progress.
    looked: Instant,
    /// The time that the last query took.
    cost: Duration,
}

impl SourceThread {
    fn run(mut self) {
        loop {
            let requests = self.next();
            if let Some(paused) = requests.pause {
                self.source.pause(paused);
            }
            if requests.ends {
                return self.source.stop();
            }
            // A directory that is walked again has no sums of what was removed before.
            if !requests.removed.is_empty() {
                self.source.removed(&requests.removed);
            }
            for place in requests.rescans {
                let result = self.source.rescan(&place);
                (self.deliver)(Answer::Rescanned { place, result });
            }
            if let Some(query) = requests.query {
                self.answer(&query, &requests.cancelled);
            }
            self.report();
        }
    }

    /// Waits for requests, or until it is time to look at the progress.
    fn next(&mut self) -> SourceRequests {
        let progress = self.source.progress();
        let is_over = progress.finished && self.reported == Some(progress);
        let tick = (!is_over).then(|| self.next_look().saturating_duration_since(self.clock.now()));
        self.mailbox.wait(tick, SourceRequests::are_waiting, |requests| {
            // A flag for each query: the one that is replaced must not cancel its successor.
            let cancelled: Arc<AtomicBool> = Arc::default();
            let taken = std::mem::take(requests);
            requests.cancelled = cancelled.clone();
            SourceRequests { cancelled, ..taken }
        })
    }

    /// Returns the time of the next look at the progress. A progress makes the state read the rows
    /// again, which is to take only a part of the time while a tree is walked.
    fn next_look(&self) -> Instant {
        self.looked + TICK.max(self.cost * REFRESH_SHARE)
    }

    /// Delivers the progress, if it has changed, and if it is time or nothing is walked any more.
    fn report(&mut self) {
        let (progress, now) = (self.source.progress(), self.clock.now());
        if !progress.finished && self.reported.is_some() {
            if now < self.next_look() {
                return;
            }
            self.looked = now;
        }
        if self.reported != Some(progress) {
            self.reported = Some(progress);
            (self.deliver)(Answer::Progress(progress));
        }
    }

    fn answer(&mut self, query: &Query, cancelled: &AtomicBool) {
        fathom_io::fault::point("explore-query");
        let start = self.clock.now();
        let result = self.find(query, cancelled);
        self.cost = self.clock.now() - start;
        (self.deliver)(Answer::Found { sequence: query.sequence, result });
    }

    fn find(&mut self, query: &Query, cancelled: &AtomicBool) -> Result<Found, SourceError> {
        let Query { kind, arrangement, .. } = query;
        Ok(match kind {
            QueryKind::Roots => {
                let rows = self.source.roots();
                let local = (0..rows.len()).map(|root| self.source.local_root(root)).collect();
                Found::Roots { rows, local, sums: self.source.row_sums(None) }
            }
            QueryKind::Directory(place) => {
                let rows = self.source.list(place, cancelled)?;
                let sums = self.source.row_sums(Some(place));
                Found::Listing(Listing::of_directory(place.clone(), rows, sums, arrangement))
            }
            QueryKind::Largest(place) if arrangement.is_selective() => {
                Found::Listing(Listing::of_found(self.search(query, place, LARGEST, cancelled)?, arrangement))
            }
            QueryKind::Matching(place) => Found::Files(self.search(query, place, MATCHING_MAX, cancelled)?),
            QueryKind::Largest(place) => {
                Found::Listing(Listing::of_files(self.largest(place.as_ref(), cancelled)?, arrangement))
            }
            QueryKind::Known(rows) => Found::Listing(Listing::of_rows(rows.clone(), arrangement)),
            QueryKind::Sums(key) => Found::Sums(self.source.sums(*key, cancelled)?),
        })
    }

    /// Searches the files below a directory, or of all roots, that the query's arrangement shows.
    fn search(
        &mut self,
        query: &Query,
        place: &Option<Place>,
        count_max: usize,
        cancelled: &AtomicBool,
    ) -> Result<FoundFiles, SourceError> {
        let places = match place {
            Some(place) => vec![place.clone()],
            None => (0..self.source.roots().len()).map(|root| Place { root, below: Vec::new() }).collect(),
        };
        let arrangement = query.arrangement.clone();
        let search = FileSearch { admits: Arc::new(move |row| arrangement.admits(row)), count_max };
        let mut report = searching(self.deliver.clone(), self.clock.clone(), query.sequence);
        let (mut all, mut before) = (FoundFiles::default(), 0);
        for place in places {
            let mut seen = 0;
            let found = self.source.search(&place, &search, cancelled, &mut |entries| {
                seen = entries;
                report(before + entries);
            });
            before += seen;
            match found {
                Err(SourceError::Cancelled) => return Err(SourceError::Cancelled),
                // A root that is missing or no directory is left out of the list.
                Err(_) if place.below.is_empty() => continue,
                Err(error) => return Err(error),
                Ok(found) => {
                    all.total.add(&found.total);
                    all.files.extend(found.files);
                }
            }
            all.files.sort_by_key(|file| u64::MAX - file.row.amount.allocated);
            all.files.truncate(count_max);
        }
        Ok(all)
    }

    /// Returns the largest files below a directory, or of all roots.
    fn largest(
        &mut self,
        place: Option<&Place>,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        if let Some(place) = place {
            return self.source.largest(place, LARGEST, cancelled);
        }
        let mut all = Vec::new();
        for root in 0..self.source.roots().len() {
            match self.source.largest(&Place { root, below: Vec::new() }, LARGEST, cancelled) {
                Err(SourceError::Cancelled) => return Err(SourceError::Cancelled),
                // A root that is missing or no directory is left out of the list.
                Err(_) => continue,
                Ok(files) => all.extend(files),
            }
            all.sort_by_key(|file| u64::MAX - file.row.amount.allocated);
            all.truncate(LARGEST);
        }
        Ok(all)
    }
}

fn run_remover(
    mut remover: Box<dyn Remover>,
    mailbox: &Mailbox<RemoverRequests>,
    deliver: &Deliver,
    clock: &Clock,
) {
    loop {
        let is_ready = |requests: &RemoverRequests| requests.next.is_some() || requests.ends;
        let (request, stop) = mailbox.wait(None, is_ready, |requests| {
            let next = requests.next.take();
            requests.is_removing = next.as_ref().is_some_and(|next| next.order.is_some());
            (next, requests.stop.clone())
        });
        let Some(RemoverRequest { sequence, order, removals }) = request else { return };
        let answer = match order {
            None => Answer::Planned { sequence, result: remover.plan(&removals, &stop) },
            Some((kind, limit)) => {
                let mut tell = throttled(deliver.clone(), clock.clone());
                Answer::RemovalEnded {
                    sequence,
                    outcome: remover.remove(kind, limit, &removals, &mut tell, &stop),
                }
            }
        };
        mailbox.change(|requests| requests.is_removing = false);
        deliver(answer);
    }
}

/// Returns a function that delivers the progress of a search, and drops one that follows another
/// too soon.
fn searching(deliver: Deliver, clock: Clock, sequence: u64) -> impl FnMut(u64) {
    let mut last = clock.now();
    move |entries| {
        if clock.now() - last >= TICK {
            last = clock.now();
            deliver(Answer::Searching { sequence, entries });
        }
    }
}

/// Returns a function that delivers a progress, and drops one that follows another too soon.
fn throttled(deliver: Deliver, clock: Clock) -> impl FnMut(RemovalProgress) {
    let mut last: Option<Instant> = None;
    move |progress| {
        if last.is_none_or(|last| clock.now() - last >= TICK) {
            last = Some(clock.now());
            deliver(Answer::Removing(progress));
        }
    }
}
