//! The threads of a session: no request waits for another, and a newer query cancels an older one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fathom_explore::input::{Answer, Effect, Event, Key, Query, QueryKind};
use fathom_explore::memory::{MemorySource, file};
use fathom_explore::session::Session;
use fathom_explore::source::{Place, PlacedRow, Row, Source, SourceError, SourceProgress, SumKey, SumRow};
use fathom_explore::state::{Settings, State};

use crate::driver::{FakeRemover, sample};

/// Only so that a broken build ends.
const LIMIT: Duration = Duration::from_secs(120);

/// A source whose directory "slow" is listed until that is cancelled, and whose directory "bad"
/// panics.
struct SlowSource {
    inner: MemorySource,
    started: Sender<()>,
}

impl Source for SlowSource {
    fn roots(&mut self) -> Vec<Row> {
        self.inner.roots()
    }

    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        assert_ne!(place.below, b"bad", "the source panics");
        if place.below == b"slow" {
            self.started.send(()).unwrap();
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
        self.started.send(()).unwrap();
    }

    fn pause(&mut self, _paused: bool) {}

    fn rescan(&mut self, place: &Place) -> bool {
        self.inner.rescan(place)
    }

    fn removed(&mut self, place: &Place, row: &Row) {
        self.inner.removed(place, row);
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        self.inner.largest(place, count, cancelled)
    }

    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        self.inner.sums(key, cancelled)
    }

    fn local_root(&self, root: usize) -> Option<Vec<u8>> {
        self.inner.local_root(root)
    }
}

fn start() -> (Session, Receiver<()>, Receiver<Answer>) {
    let mut inner = sample();
    inner.add(0, b"slow", file("x", 1, 0));
    inner.add(0, b"bad", file("x", 1, 0));
    let (started, was_started) = channel();
    let (send, answers) = channel();
    let source = SlowSource { inner, started };
    let remover = Box::<FakeRemover>::default();
    let session =
        Session::start(Box::new(source), Some(remover), move |answer| drop(send.send(answer))).unwrap();
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
    // The session ends although a query still runs.
    session.perform(query(4, "slow"));
    while started.try_recv().is_ok() {}
    session.end();
    // The second query was replaced before it began, or cancelled; the source is stopped at the end.
    started.recv_timeout(LIMIT).unwrap();
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
    run(&mut state, effects, &|state| state.message() == Some(b"entries removed: 1") && !state.is_waiting());
    session.end();
}

#[test]
fn without_a_remover_nothing_is_removed() {
    let (send, answers) = channel();
    let session = Session::start(Box::new(sample()), None, move |answer| drop(send.send(answer))).unwrap();
    session.perform(Effect::Plan { sequence: 7, removals: Vec::new() });
    loop {
        if let Answer::Planned { sequence, result } = answers.recv_timeout(LIMIT).unwrap() {
            assert_eq!((sequence, result.is_err()), (7, true));
            break;
        }
    }
    session.end();
}
