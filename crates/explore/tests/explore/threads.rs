//! The threads of a session: no request waits for another, and a newer query cancels an older one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fathom_explore::input::{Answer, Effect, Event, Found, Key, Query, QueryKind};
use fathom_explore::memory::{MemorySource, file};
use fathom_explore::remover::{
    Removal, RemovalKind, RemovalLimit, RemovalOutcome, RemovalPlan, RemovalProgress, Remover,
};
use fathom_explore::session::Session;
use fathom_explore::source::{
    FileSearch, FoundFiles, Place, PlacedRow, Row, Source, SourceError, SourceProgress, SumKey, SumRow,
};
use fathom_explore::state::{Settings, State};
use fathom_io::Clock;

use crate::driver::{FakeRemover, sample};

/// Only so that a broken build ends.
const LIMIT: Duration = Duration::from_secs(120);

/// A call of the source that a test waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowCall {
    List,
    Removed,
    Rescan,
    Stop,
}

/// A source whose directory "slow" is listed until that is cancelled, whose directory "bad" panics,
/// and whose second root is missing.
struct SlowSource {
    inner: MemorySource,
    started: Sender<SlowCall>,
}

impl Source for SlowSource {
    fn roots(&mut self) -> Vec<Row> {
        self.inner.roots()
    }

    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        assert_ne!(place.below, b"bad", "the source panics");
        if place.below == b"slow" {
            self.started.send(SlowCall::List).unwrap();
            while !cancelled.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            return Err(SourceError::Cancelled);
        }
        self.inner.list(place, cancelled)
    }

    fn progress(&self) -> SourceProgress {
        self.inner.progress()
    }

    fn stop(&mut self) {
        self.started.send(SlowCall::Stop).unwrap();
    }

    fn pause(&mut self, _paused: bool) {}

    fn rescan(&mut self, place: &Place) -> Result<(), SourceError> {
        self.started.send(SlowCall::Rescan).unwrap();
        self.inner.rescan(place)
    }

    fn removed(&mut self, gone: &[(Place, Row)]) {
        self.started.send(SlowCall::Removed).unwrap();
        self.inner.removed(gone);
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        if place.root == 1 {
            return Err(SourceError::Other("there is no such directory".to_owned()));
        }
        self.inner.largest(place, count, cancelled)
    }

    fn search(
        &mut self,
        place: &Place,
        search: &FileSearch,
        cancelled: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FoundFiles, SourceError> {
        self.inner.search(place, search, cancelled, progress)
    }

    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        self.inner.sums(key, cancelled)
    }

    fn local_root(&self, root: usize) -> Option<Vec<u8>> {
        self.inner.local_root(root)
    }
}

fn start() -> (Session, Receiver<SlowCall>, Receiver<Answer>) {
    let mut inner = sample();
    inner.add(0, b"slow", file("x", 1, 0));
    inner.add(0, b"bad", file("x", 1, 0));
    let (started, was_started) = channel();
    let (send, answers) = channel();
    let source = SlowSource { inner, started };
    let remover = Box::<FakeRemover>::default();
    let session = Session::start(Box::new(source), Some(remover), Clock::default(), move |answer| {
        drop(send.send(answer))
    })
    .unwrap();
    (session, was_started, answers)
}

fn query(sequence: u64, below: &str) -> Effect {
    let kind = QueryKind::Directory(Place { root: 0, below: below.into() });
    Effect::Query(Query { sequence, kind, arrangement: Default::default() })
}

/// Waits for the answer to a query.
fn answer(answers: &Receiver<Answer>, wanted: u64) -> Answer {
    loop {
        let answer = answers.recv_timeout(LIMIT).unwrap();
        if matches!(answer, Answer::Found { sequence, .. } if sequence == wanted) {
            return answer;
        }
    }
}

#[test]
fn a_newer_query_cancels_an_older_one() {
    let (session, started, answers) = start();
    assert!(session.perform(query(1, "slow")).is_none());
    started.recv_timeout(LIMIT).unwrap();
    session.perform(query(2, "slow"));
    session.perform(query(3, "log"));
    assert!(matches!(answer(&answers, 3), Answer::Found { result: Ok(_), .. }));
    // The second query was replaced before it began, or cancelled.
    while started.try_recv() == Ok(SlowCall::List) {}
    // The session ends although a query still runs, and stops the source.
    session.perform(query(4, "slow"));
    assert_eq!(started.recv_timeout(LIMIT), Ok(SlowCall::List));
    session.end();
    assert_eq!(started.recv_timeout(LIMIT), Ok(SlowCall::Stop));
}

#[test]
fn entries_leave_the_sums_before_their_directory_is_walked_again() {
    let (session, started, answers) = start();
    session.perform(query(1, "slow"));
    assert_eq!(started.recv_timeout(LIMIT), Ok(SlowCall::List));
    let top = Place { root: 0, below: Vec::new() };
    session.perform(Effect::Rescan(top.clone()));
    session.perform(Effect::Removed(vec![(top, file("notes.txt", 1, 0))]));
    session.perform(query(2, "log"));
    answer(&answers, 2);
    let calls = [started.recv_timeout(LIMIT), started.recv_timeout(LIMIT)];
    assert_eq!(calls, [Ok(SlowCall::Removed), Ok(SlowCall::Rescan)]);
    session.end();
}

#[test]
fn a_missing_root_hides_no_files_of_the_others() {
    let mut inner = sample();
    inner.root("/missing", None);
    let ((started, _started), (send, answers)) = (channel(), channel());
    let source = SlowSource { inner, started };
    let session =
        Session::start(Box::new(source), None, Clock::default(), move |answer| drop(send.send(answer)))
            .unwrap();
    let kind = QueryKind::Largest(None);
    session.perform(Effect::Query(Query { sequence: 1, kind, arrangement: Default::default() }));
    let Answer::Found { result: Ok(Found::Listing(listing)), .. } = answer(&answers, 1) else { panic!() };
    assert_eq!(&*listing.row(0).unwrap().name, b"movie.mkv");
    session.end();
}

/// A source that has changed at each look, and whose directories take a while of its clock.
struct BusySource {
    inner: MemorySource,
    version: AtomicU64,
    clock: Clock,
}

const BUSY: Duration = Duration::from_millis(30);

impl Source for BusySource {
    fn roots(&mut self) -> Vec<Row> {
        self.inner.roots()
    }

    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        self.clock.advance(BUSY);
        self.inner.list(place, cancelled)
    }

    fn progress(&self) -> SourceProgress {
        let version = self.version.fetch_add(1, Ordering::Relaxed);
        SourceProgress { version, finished: false, ..self.inner.progress() }
    }

    fn stop(&mut self) {}

    fn pause(&mut self, _paused: bool) {}

    fn rescan(&mut self, place: &Place) -> Result<(), SourceError> {
        self.inner.rescan(place)
    }

    fn removed(&mut self, gone: &[(Place, Row)]) {
        self.inner.removed(gone);
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        self.inner.largest(place, count, cancelled)
    }

    fn search(
        &mut self,
        place: &Place,
        search: &FileSearch,
        cancelled: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FoundFiles, SourceError> {
        self.inner.search(place, search, cancelled, progress)
    }

    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        self.inner.sums(key, cancelled)
    }

    fn local_root(&self, root: usize) -> Option<Vec<u8>> {
        self.inner.local_root(root)
    }
}

/// The first progress is delivered at once. After it, one is delivered for each ten times as long
/// as a listing takes.
#[test]
fn reading_the_same_rows_again_takes_a_part_of_the_time_only() {
    let ((send, answers), clock) = (channel(), Clock::held());
    let source = BusySource { inner: sample(), version: AtomicU64::new(0), clock: clock.clone() };
    let session =
        Session::start(Box::new(source), None, clock, move |answer| drop(send.send(answer))).unwrap();
    let next_progress = || {
        while !matches!(answers.recv_timeout(LIMIT).unwrap(), Answer::Progress(_)) {}
    };
    next_progress();
    for round in 0..3 {
        for sequence in (0..10).map(|number| round * 10 + number) {
            session.perform(query(sequence, "log"));
            let is_answer =
                |answer| matches!(answer, Answer::Found { sequence: found, .. } if found == sequence);
            assert!(
                is_answer(answers.recv_timeout(LIMIT).unwrap()),
                "query {sequence}: a progress came first"
            );
        }
        next_progress();
    }
    session.end();
}

/// A remover whose plan ends when the test says so, and whose removal when it is stopped.
struct GatedRemover {
    began: Sender<()>,
    gate: Receiver<()>,
    ended: Arc<AtomicBool>,
}

impl Remover for GatedRemover {
    fn plan(&mut self, _removals: &[Removal], _stop: &Arc<AtomicBool>) -> Result<RemovalPlan, Vec<u8>> {
        self.began.send(()).unwrap();
        // As on a server that does not answer.
        let _ = self.gate.recv();
        Ok(RemovalPlan::default())
    }

    fn remove(
        &mut self,
        _kind: RemovalKind,
        _limit: RemovalLimit,
        _removals: &[Removal],
        _progress: &mut dyn FnMut(RemovalProgress),
        stop: &Arc<AtomicBool>,
    ) -> RemovalOutcome {
        self.began.send(()).unwrap();
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        // The end of the session has begun. Without a wait for this thread it would be over.
        std::thread::sleep(BUSY);
        self.ended.store(true, Ordering::Relaxed);
        RemovalOutcome::default()
    }
}

fn gated() -> (Session, Receiver<()>, Sender<()>, Arc<AtomicBool>) {
    let ((began, has_begun), (open, gate)) = (channel(), channel());
    let ended = Arc::new(AtomicBool::new(false));
    let remover = GatedRemover { began, gate, ended: ended.clone() };
    let session =
        Session::start(Box::new(sample()), Some(Box::new(remover)), Clock::default(), |_| ()).unwrap();
    (session, has_begun, open, ended)
}

#[test]
fn the_end_waits_for_a_removal() {
    let (session, has_begun, _open, ended) = gated();
    session.perform(Effect::Remove {
        sequence: 1,
        kind: RemovalKind::Delete,
        limit: RemovalPlan::default().possible,
        removals: Vec::new(),
    });
    has_begun.recv_timeout(LIMIT).unwrap();
    session.end();
    assert!(ended.load(Ordering::Relaxed));
}

#[test]
fn the_end_does_not_wait_for_a_plan() {
    let (session, has_begun, open, _ended) = gated();
    session.perform(Effect::Plan { sequence: 1, removals: Vec::new() });
    has_begun.recv_timeout(LIMIT).unwrap();
    let (send, is_over) = channel();
    std::thread::spawn(move || {
        session.end();
        send.send(()).unwrap();
    });
    is_over.recv_timeout(LIMIT).expect("the plan still waits");
    open.send(()).unwrap();
}

#[test]
fn a_panic_of_the_source_ends_the_session() {
    let (session, _started, answers) = start();
    session.perform(query(1, "bad"));
    loop {
        if matches!(answers.recv_timeout(LIMIT).unwrap(), Answer::Died) {
            break;
        }
    }
    let mut state = State::new(Settings::default());
    assert!(matches!(state.handle(Event::Answer(Answer::Died))[..], [Effect::Abort]));
    session.end();
}

#[test]
fn a_whole_session_lists_and_removes() {
    let (session, _started, answers) = start();
    let mut state = State::new(Settings::default());
    let mut effects = state.start();
    let run = |state: &mut State, effects: Vec<Effect>, until: &dyn Fn(&State) -> bool| {
        let mut effects = effects;
        loop {
            effects.drain(..).for_each(|effect| assert!(session.perform(effect).is_none()));
            if until(state) {
                return;
            }
            effects = state.handle(Event::Answer(answers.recv_timeout(LIMIT).unwrap()));
        }
    };
    run(&mut state, std::mem::take(&mut effects), &|state| state.current().is_some());
    for letter in "fnotes\nd".chars() {
        let key = if letter == '\n' { Key::Enter } else { Key::Char(letter) };
        let effects = state.handle(Event::Key(key));
        run(&mut state, effects, &|_| true);
    }
    run(&mut state, Vec::new(), &|state| {
        let overlay = format!("{:?}", state.overlay());
        overlay.contains("Confirming")
    });
    let effects = state.handle(Event::Key(Key::Char('y')));
    run(&mut state, effects, &|state| {
        state.message().is_some_and(|message| message.starts_with(b"removed 1 file,")) && !state.is_waiting()
    });
    session.end();
}

#[test]
fn without_a_remover_nothing_is_removed() {
    let (send, answers) = channel();
    let session =
        Session::start(Box::new(sample()), None, Clock::default(), move |answer| drop(send.send(answer)))
            .unwrap();
    session.perform(Effect::Plan { sequence: 7, removals: Vec::new() });
    loop {
        if let Answer::Planned { sequence, result } = answers.recv_timeout(LIMIT).unwrap() {
            assert_eq!((sequence, result.is_err()), (7, true));
            break;
        }
    }
    session.end();
}
