//! Arms in other languages: the programs of the playground, located, built and run. Their command
//! line, data pattern and output row are specified in `playground/README.md`.
//!
//! Owns: the list of languages and methods, toolchains, cached builds, child processes and their
//! output. Does not own: the schedule of samples, the written file, and Rust samples, which this
//! program executes itself.

mod build;
mod child;
mod measurement;
mod program;
mod recipe;

use std::fmt;

use fathom_io::Model;

use crate::arms::RING_BATCH_MAX;
use crate::workload::NULL;
use crate::{ArmNumbers, Workload};

pub use build::Toolchain;
pub use measurement::Measurement;
pub use program::{MethodAvailability, Program, RunRequest, execute};

/// A language of the playground other than the Rust of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lang {
    /// Bun, with the program of Node.js.
    Bun,
    /// C with liburing.
    C,
    /// C++ with the threads, file streams and std::filesystem of its standard library.
    Cpp,
    /// Deno, with the program of Node.js.
    Deno,
    /// Go with its own io_uring bindings.
    Go,
    /// Java NIO channels.
    Java,
    /// Node.js without dependencies.
    Node,
    /// CPython with the `liburing` package of PyPI.
    Python,
    /// Rust without fathom: the standard library, Tokio and the io-uring crate.
    RustCrates,
    /// Zig, from the `ziglang` package of PyPI.
    Zig,
}

impl Lang {
    /// All languages, sorted by name.
    pub const ALL: [Self; 10] = [
        Self::Bun,
        Self::C,
        Self::Cpp,
        Self::Deno,
        Self::Go,
        Self::Java,
        Self::Node,
        Self::Python,
        Self::RustCrates,
        Self::Zig,
    ];

    /// Returns the value of [`crate::Row::lang`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bun => "bun",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Deno => "deno",
            Self::Go => "go",
            Self::Java => "java",
            Self::Node => "node",
            Self::Python => "python",
            Self::RustCrates => "rust-crates",
            Self::Zig => "zig",
        }
    }

    /// Returns the methods that the program implements, available on this machine or not, in the
    /// order of its `--list`.
    #[must_use]
    pub fn methods(self) -> &'static [PlaygroundMethod] {
        use PlaygroundMethod::{
            Async, Blocking, Executor, File, Goroutines, Null, Promises, Stream, Threads, ToThread, Tokio,
            Uring, Virtual, Workers,
        };
        match self {
            Self::C | Self::Zig => &[Blocking, Threads, Uring, Null],
            Self::Cpp => &[Blocking, Threads, Stream, Null],
            Self::Go => &[Blocking, Threads, Uring, Goroutines, File, Null],
            Self::Java => &[Blocking, Threads, Virtual, Async, Null],
            Self::Bun | Self::Deno | Self::Node => &[Blocking, Promises, Workers, Null],
            Self::Python => &[Blocking, Threads, Uring, Stream, Executor, ToThread, Null],
            Self::RustCrates => &[Blocking, Threads, Uring, Tokio, Null],
        }
    }

    /// Returns the arms of `workload`. Each method has the numbers of threads, or of operations in
    /// flight, that the Rust arms have: 1, 10 and 100 to write, as published, and rings of 1 and
    /// 128 entries that are submitted as one batch; or the `numbers` that the user lists. Only work
    /// on blocks has a loop to measure.
    #[must_use]
    pub fn arms(self, workload: Workload, numbers: &ArmNumbers) -> Vec<PlaygroundArm> {
        let has_blocks = matches!(workload, Workload::Write | Workload::Read | Workload::RandomRead);
        let methods = self.methods().iter().copied();
        let methods = methods.filter(|method| *method != PlaygroundMethod::Null || has_blocks);
        let arms = |method| {
            if numbers.is_given() { own_arms_of(method, numbers) } else { arms_of(method, workload) }
        };
        methods.flat_map(arms).collect()
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the arms of `method` with the numbers that the user lists.
fn own_arms_of(method: PlaygroundMethod, numbers: &ArmNumbers) -> Vec<PlaygroundArm> {
    let arm = |threads, depth, batch, spins| PlaygroundArm { method, threads, depth, batch, spins };
    match method {
        PlaygroundMethod::Blocking | PlaygroundMethod::Stream | PlaygroundMethod::Null => {
            vec![arm(1, 1, 1, false)]
        }
        PlaygroundMethod::Uring => {
            let rings = numbers.of_rings().into_iter();
            rings.map(|(threads, depth, batch)| arm(threads, depth, batch, numbers.spins)).collect()
        }
        _ if method.is_deep() => numbers.depths().map(|depth| arm(1, depth, 1, false)).collect(),
        _ => numbers.threads().map(|threads| arm(threads, 1, 1, false)).collect(),
    }
}

fn arms_of(method: PlaygroundMethod, workload: Workload) -> Vec<PlaygroundArm> {
    let arm = |threads, depth, batch| PlaygroundArm { method, threads, depth, batch, spins: false };
    let counts: &[u32] = match workload {
        Workload::Write => &[1, 10, 100],
        Workload::AppendSync => &[1],
        Workload::Walk | Workload::Stat => &[2, 8, 32, 128],
        _ => &[1, 8, 32, 128],
    };
    let counts = counts.iter().copied();
    match method {
        PlaygroundMethod::Blocking | PlaygroundMethod::Stream | PlaygroundMethod::Null => vec![arm(1, 1, 1)],
        PlaygroundMethod::Uring if workload == Workload::Write => {
            counts.flat_map(|threads| [1, 128].map(|entries| arm(threads, entries, entries))).collect()
        }
        PlaygroundMethod::Uring => {
            counts.map(|depth| arm(1, depth, depth.min(RING_BATCH_MAX as u32))).collect()
        }
        _ if method.is_deep() => counts.map(|depth| arm(1, depth, 1)).collect(),
        _ => counts.map(|threads| arm(threads, 1, 1)).collect(),
    }
}

/// The way in which a program performs its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaygroundMethod {
    /// One thread, at the file position.
    Blocking,
    /// Threads with one partition each.
    Threads,
    /// Threads with one partition and one ring each.
    Uring,
    /// Goroutines.
    Goroutines,
    /// Goroutines with the `os.File` of Go.
    File,
    /// Java virtual threads.
    Virtual,
    /// The AsynchronousFileChannel of Java.
    Async,
    /// JavaScript promises: one JavaScript thread and the thread pool of the runtime.
    Promises,
    /// JavaScript worker threads.
    Workers,
    /// The buffered file object of the language's standard library.
    Stream,
    /// A ThreadPoolExecutor of Python.
    Executor,
    /// Calls of Python's asyncio.to_thread.
    ToThread,
    /// Tasks of Tokio, each with a `tokio::fs::File`.
    Tokio,
    /// The loop of [`PlaygroundMethod::Blocking`] without its calls.
    Null,
}

impl PlaygroundMethod {
    /// Returns the value of the programs' `--method`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Threads => "threads",
            Self::Uring => "uring",
            Self::Goroutines => "goroutines",
            Self::File => "file",
            Self::Virtual => "virtual",
            Self::Async => "async",
            Self::Promises => "promises",
            Self::Workers => "workers",
            Self::Stream => "stream",
            Self::Executor => "executor",
            Self::ToThread => "to_thread",
            Self::Tokio => "tokio",
            Self::Null => NULL,
        }
    }

    /// Returns the first part of the names of arms: the name of the I/O model where Rust has an arm
    /// that does the same.
    fn kind(self) -> &'static str {
        match self {
            Self::Blocking => Model::Sync.name(),
            Self::File => "goroutines-file",
            Self::Virtual => "virtual-threads",
            Self::Async => "async-channel",
            Self::ToThread => "to-thread",
            other => other.name(),
        }
    }

    /// Returns the I/O model. `None` for threads of a runtime (goroutines, virtual threads), which
    /// no model has, and for the loop without calls.
    #[must_use]
    pub fn model(self) -> Option<Model> {
        match self {
            Self::Blocking | Self::Stream => Some(Model::Sync),
            Self::Threads | Self::Workers => Some(Model::Threads(None)),
            Self::Goroutines | Self::File | Self::Virtual | Self::Null => None,
            Self::Async | Self::Promises | Self::Executor | Self::ToThread => Some(Model::Pool),
            Self::Tokio => Some(Model::Tokio),
            Self::Uring => Some(Model::Uring(None)),
        }
    }

    /// Returns whether one thread keeps many operations in flight.
    fn is_deep(self) -> bool {
        matches!(
            self,
            Self::Uring | Self::Async | Self::Promises | Self::Executor | Self::ToThread | Self::Tokio
        )
    }
}

/// A method with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaygroundArm {
    /// The method.
    pub method: PlaygroundMethod,
    /// Threads, each with its own partition.
    pub threads: u32,
    /// Limit of operations in flight for each thread.
    pub depth: u32,
    /// Operations submitted at once.
    pub batch: u32,
    /// Whether the program polls for completions instead of sleeping.
    pub spins: bool,
}

impl PlaygroundArm {
    /// Returns the value of [`crate::Row::method`]: the name of the Rust arm that does the same, if
    /// there is one.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { method, threads, depth, batch, spins, .. } = self;
        let kind = method.kind();
        match method {
            PlaygroundMethod::Blocking | PlaygroundMethod::Stream | PlaygroundMethod::Null => kind.to_owned(),
            PlaygroundMethod::Uring => {
                let is_usual = *batch as usize == (*depth as usize).min(RING_BATCH_MAX);
                let parts = [
                    (*threads != 1).then(|| format!(":threads={threads}")),
                    (!is_usual).then(|| format!(":batch={batch}")),
                    spins.then(|| ":spin".to_owned()),
                ];
                format!("{kind}={depth}") + &parts.into_iter().flatten().collect::<String>()
            }
            _ if method.is_deep() => format!("{kind}={depth}"),
            _ => format!("{kind}={threads}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::arms::arms;

    const OF_LANGUAGES: [Workload; 6] = [
        Workload::Write,
        Workload::Read,
        Workload::RandomRead,
        Workload::AppendSync,
        Workload::Walk,
        Workload::Stat,
    ];

    fn names(lang: Lang, workload: Workload) -> Vec<String> {
        lang.arms(workload, &ArmNumbers::default()).iter().map(|arm| arm.name()).collect()
    }

    #[test]
    fn the_published_arms_have_their_names() {
        let names = names(Lang::Zig, Workload::Write);
        let threads = ["threads=1", "threads=10", "threads=100"].map(str::to_owned);
        assert_eq!(names[..4], [&["sync".to_owned()], &threads[..]].concat());
        assert_eq!(names[4], "uring=1");
        assert_eq!(names[9], "uring=128:threads=100:batch=128");
        assert_eq!((names[10].as_str(), names.len()), ("null", 11));
    }

    #[test]
    fn no_two_arms_of_a_language_have_the_same_name() {
        for (lang, workload) in Lang::ALL.into_iter().flat_map(|lang| OF_LANGUAGES.map(|work| (lang, work))) {
            let mut names = names(lang, workload);
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{lang} {workload:?}");
        }
    }

    /// Parameter sets differed, and arms that read were called `..._pwrite`.
    #[test]
    fn arms_of_c_that_are_in_rust_too_have_its_names_and_numbers() {
        for workload in OF_LANGUAGES {
            let parameters = |arm: &crate::arms::Arm| (arm.name.clone(), arm.threads, arm.depth, arm.batch);
            let rust: BTreeSet<_> = arms(workload, &[]).iter().map(parameters).collect();
            // No ring walks a tree, and no thread of its own appends in Rust.
            let in_rust = |arm: &&PlaygroundArm| match arm.method {
                PlaygroundMethod::Null => false,
                PlaygroundMethod::Uring => !workload.is_of_tree(),
                _ => workload != Workload::AppendSync || arm.method == PlaygroundMethod::Blocking,
            };
            let ours = Lang::C.arms(workload, &ArmNumbers::default());
            for arm in ours.iter().filter(in_rust).map(|arm| crate::arms::Arm::of(Lang::C, *arm)) {
                assert!(rust.contains(&parameters(&arm)), "{arm:?} is not in {rust:?}");
            }
        }
    }
}
