//! The ways to walk a tree: every model with several numbers of workers. The result of an ordered
//! walk does not depend on the way.

use std::fmt;
use std::path::Path;

use fathom_io::{MetadataModel, Unavailable};
use fathom_walk::{Fields, Model, Options, OrderedVisitor, Progress, Summary, run, run_with};

use super::record::{Everything, RecordedItem, Recorder};
use super::{Watchdog, skip};

/// A model and a number of workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) model: Model,
    pub(crate) threads: Option<usize>,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads.map_or_else(String::new, |threads| format!(", {threads} workers"));
        write!(f, "{}{threads}", self.model)
    }
}

impl Way {
    pub(crate) const fn of(model: Model) -> Self {
        Self { model, threads: None }
    }

    pub(crate) const fn workers(count: usize) -> Self {
        Self::of(Model::Threads(Some(count)))
    }

    pub(crate) fn options(self) -> Options {
        Options::default().model(self.model).threads(self.threads).fields(Fields::ALL)
    }
}

/// The way whose result the others are compared with.
pub(crate) const SYNC: Way = Way::of(Model::Sync);

/// Returns the default way and another one in turn, of every model that is available here once; in
/// a run of all tests, all of them.
pub(crate) fn models() -> Vec<Way> {
    let mut others = vec![SYNC, Way::workers(64)];
    others.extend([Model::AsyncSeq, Model::AsyncPar].map(Way::of));
    others.extend(rings(&[64]));
    fathom_cases::engines(Way::of(Model::Auto), &others)
}

/// Like [`models`], of the ways without an async runtime or io_uring.
pub(crate) fn blocking() -> Vec<Way> {
    fathom_cases::engines(Way::of(Model::Auto), &[1, 2, 7, 64].map(Way::workers))
}

/// Like [`models`], of every way that is available here.
pub(crate) fn all() -> Vec<Way> {
    let mut others: Vec<Way> = [1, 2, 7, 64].map(Way::workers).into();
    others.extend([Model::AsyncSeq, Model::AsyncPar].map(Way::of));
    others.push(Way { model: Model::AsyncPar, threads: Some(3) });
    others.extend(rings(&[1, 64]));
    fathom_cases::engines(Way::of(Model::Auto), &others)
}

#[cfg(target_os = "linux")]
fn rings(depths: &[usize]) -> Vec<Way> {
    match fathom_io::uring::Uring::new(1) {
        Ok(_) => depths.iter().map(|depth| Way::of(Model::Uring(Some(*depth)))).collect(),
        Err(why) => {
            skip(why);
            Vec::new()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn rings(_depths: &[usize]) -> Vec<Way> {
    skip("no io_uring in this build");
    Vec::new()
}

fn unwatched(_: Progress) {}

/// Walks until the end or until the recorder stops, with the model of the options.
#[track_caller]
pub(crate) fn start(
    options: Options,
    visit: impl OrderedVisitor<Item = RecordedItem>,
    recorder: &mut Recorder<'_>,
) -> Summary {
    let _watchdog = Watchdog::new(format_args!("{options:?}"));
    run(options, visit, recorder, &mut unwatched).unwrap()
}

/// Like [`start`], with the models that `make` returns.
#[track_caller]
pub(crate) fn start_over<M: MetadataModel>(
    options: Options,
    visit: impl OrderedVisitor<Item = RecordedItem>,
    recorder: &mut Recorder<'_>,
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Summary {
    let _watchdog = Watchdog::new(format_args!("{options:?}"));
    run_with(options, visit, recorder, &mut unwatched, make).unwrap()
}

/// Walks until the end, with the model of the options.
#[track_caller]
pub(crate) fn walk(
    options: Options,
    visit: impl OrderedVisitor<Item = RecordedItem>,
    recorder: &mut Recorder<'_>,
) -> Summary {
    ended(start(options, visit, recorder), recorder)
}

/// Like [`walk`], with the models that `make` returns.
#[track_caller]
pub(crate) fn walk_over<M: MetadataModel>(
    options: Options,
    recorder: &mut Recorder<'_>,
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Summary {
    ended(start_over(options, Everything::default(), recorder, make), recorder)
}

#[track_caller]
fn ended(summary: Summary, recorder: &Recorder<'_>) -> Summary {
    assert!(summary.complete);
    recorder.check_end();
    summary
}

/// Returns the lines of an ordered walk of `roots`.
#[track_caller]
pub(crate) fn lines(options: Options, roots: &[impl AsRef<Path>]) -> Vec<String> {
    let mut recorder = Recorder::new(roots);
    walk(options, Everything::default(), &mut recorder);
    recorder.lines
}
