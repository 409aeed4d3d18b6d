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

pub use build::Toolchain;
pub use measurement::Measurement;
pub use program::{Direction, MethodAvailability, Program, RunRequest, execute};

/// A language of the playground other than Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lang {
    /// C with liburing.
    C,
    /// Go with its own io_uring bindings.
    Go,
    /// Java NIO channels.
    Java,
    /// Node.js without dependencies.
    Node,
    /// CPython with the `liburing` package of PyPI.
    Python,
    /// Zig, from the `ziglang` package of PyPI.
    Zig,
}

impl Lang {
    /// All languages, sorted by name.
    pub const ALL: [Self; 6] = [Self::C, Self::Go, Self::Java, Self::Node, Self::Python, Self::Zig];

    /// Returns the value of [`crate::Row::lang`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Go => "go",
            Self::Java => "java",
            Self::Node => "node",
            Self::Python => "python",
            Self::Zig => "zig",
        }
    }

    /// Returns the methods that the program implements, available on this machine or not, in the
    /// order of its `--list`.
    #[must_use]
    pub fn methods(self) -> &'static [PlaygroundMethod] {
        use PlaygroundMethod::{Blocking, Goroutines, Promises, Pwrite, Stream, Uring, Virtual, Workers};
        match self {
            Self::C | Self::Zig => &[Blocking, Pwrite, Uring],
            Self::Go => &[Blocking, Pwrite, Uring, Goroutines],
            Self::Java => &[Blocking, Pwrite, Virtual],
            Self::Node => &[Blocking, Promises, Workers],
            Self::Python => &[Blocking, Pwrite, Uring, Stream],
        }
    }

    /// Returns the arms of the published protocol: each method with 1, 10 and 100 threads, and
    /// rings of 1 and 128 entries that are submitted as one batch. Promises use the thread counts
    /// of other methods as their depths.
    #[must_use]
    pub fn arms(self) -> Vec<PlaygroundArm> {
        self.methods().iter().flat_map(|&method| arms_of(method)).collect()
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn arms_of(method: PlaygroundMethod) -> Vec<PlaygroundArm> {
    let many = [1, 10, 100];
    match method {
        PlaygroundMethod::Blocking | PlaygroundMethod::Stream => vec![PlaygroundArm::new(method, 1, 1, 1)],
        PlaygroundMethod::Promises => many.map(|depth| PlaygroundArm::new(method, 1, depth, 1)).to_vec(),
        PlaygroundMethod::Uring => many
            .into_iter()
            .flat_map(|threads| [1, 128].map(|entries| PlaygroundArm::new(method, threads, entries, entries)))
            .collect(),
        _ => many.map(|threads| PlaygroundArm::new(method, threads, 1, 1)).to_vec(),
    }
}

/// The way in which a program performs its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaygroundMethod {
    /// One thread, at the file position.
    Blocking,
    /// Threads with one partition each.
    Pwrite,
    /// Threads with one partition and one ring each.
    Uring,
    /// Goroutines.
    Goroutines,
    /// Java virtual threads.
    Virtual,
    /// Node.js promises: one JavaScript thread and libuv's thread pool.
    Promises,
    /// Node.js worker threads.
    Workers,
    /// A buffered file object of Python.
    Stream,
}

impl PlaygroundMethod {
    /// Returns the value of the programs' `--method`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Pwrite => "pwrite",
            Self::Uring => "uring",
            Self::Goroutines => "goroutines",
            Self::Virtual => "virtual",
            Self::Promises => "promises",
            Self::Workers => "workers",
            Self::Stream => "stream",
        }
    }

    /// Returns the I/O model. `None` for threads of a runtime (goroutines, virtual threads), which
    /// no model has.
    #[must_use]
    pub fn model(self) -> Option<Model> {
        match self {
            Self::Blocking | Self::Stream => Some(Model::Sync),
            Self::Pwrite | Self::Workers => Some(Model::Threads(None)),
            Self::Goroutines | Self::Virtual => None,
            Self::Promises => Some(Model::Pool),
            Self::Uring => Some(Model::Uring(None)),
        }
    }
}

/// A method with its parameters. `Display` formats the value of [`crate::Row::method`].
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
    fn new(method: PlaygroundMethod, threads: u32, depth: u32, batch: u32) -> Self {
        Self { method, threads, depth, batch, spins: false }
    }
}

impl fmt::Display for PlaygroundArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, depth, .. } = self;
        match self.method {
            PlaygroundMethod::Blocking | PlaygroundMethod::Stream => f.write_str(self.method.name()),
            PlaygroundMethod::Pwrite => write!(f, "{threads}_threads_pwrite"),
            PlaygroundMethod::Goroutines => write!(f, "{threads}_goroutines_pwrite"),
            PlaygroundMethod::Virtual => write!(f, "{threads}_virtual_threads_pwrite"),
            PlaygroundMethod::Workers => write!(f, "{threads}_workers_pwrite"),
            PlaygroundMethod::Promises => write!(f, "{depth}_promises_pwrite"),
            PlaygroundMethod::Uring => write!(f, "{threads}_threads_iouring_pwrite_{depth}_entries"),
        }?;
        f.write_str(if self.spins { "_spin" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_arms_have_their_names() {
        let names: Vec<String> = Lang::Zig.arms().iter().map(PlaygroundArm::to_string).collect();
        let threads = ["1_threads_pwrite", "10_threads_pwrite", "100_threads_pwrite"].map(str::to_owned);
        assert_eq!(names[..4], [&["blocking".to_owned()], &threads[..]].concat());
        assert_eq!(names[4], "1_threads_iouring_pwrite_1_entries");
        assert_eq!(names[9], "100_threads_iouring_pwrite_128_entries");
        assert_eq!(names.len(), 10);
    }

    #[test]
    fn no_two_arms_of_a_language_have_the_same_name() {
        for lang in Lang::ALL {
            let mut names: Vec<String> = lang.arms().iter().map(PlaygroundArm::to_string).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{lang}");
        }
    }
}
