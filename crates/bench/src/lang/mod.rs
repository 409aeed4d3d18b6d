//! The methods in other languages: the programs of the playground, found, built and run. What they agree on, the command line, the
//! pattern and the row, is in `playground/README.md`.
//!
//! Owns: which languages and methods there are, toolchains, builds in a cache, child processes and what they print. Does not own: which
//! samples are made and when, the file that a program writes, and Rust, whose samples this program makes itself.

mod answer;
mod build;
mod child;
mod program;
mod recipe;

use std::fmt;

pub use answer::Answer;
pub use build::Toolchain;
pub use program::{Deed, Offer, Program, Request, execute};

/// A language of the playground other than Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lang {
    /// With liburing.
    C,
    /// With a ring of its own.
    Go,
    /// NIO's channels.
    Java,
    /// Without dependencies.
    Node,
    /// CPython, with PyPI's liburing.
    Python,
    /// As PyPI's ziglang has it.
    Zig,
}

impl Lang {
    /// All of them, by name.
    pub const ALL: [Self; 6] = [Self::C, Self::Go, Self::Java, Self::Node, Self::Python, Self::Zig];

    /// As in [`crate::Row::lang`].
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

    /// What its program can be asked for, here or elsewhere, in the order in which it lists them.
    #[must_use]
    pub fn methods(self) -> &'static [Method] {
        use Method::{Blocking, Goroutines, Promises, Pwrite, Stream, Uring, Virtual, Workers};
        match self {
            Self::C | Self::Zig => &[Blocking, Pwrite, Uring],
            Self::Go => &[Blocking, Pwrite, Uring, Goroutines],
            Self::Java => &[Blocking, Pwrite, Virtual],
            Self::Node => &[Blocking, Promises, Workers],
            Self::Python => &[Blocking, Pwrite, Uring, Stream],
        }
    }

    /// Its arms in the published protocol: each method with 1, 10 and 100 threads, and rings of 1 and 128 entries that are submitted
    /// at once and then waited for. The operations of promises are as many as another method's threads.
    #[must_use]
    pub fn arms(self) -> Vec<Arm> {
        self.methods().iter().flat_map(|&method| arms_of(method)).collect()
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn arms_of(method: Method) -> Vec<Arm> {
    let many = [1, 10, 100];
    match method {
        Method::Blocking | Method::Stream => vec![Arm::new(method, 1, 1, 1)],
        Method::Promises => many.map(|depth| Arm::new(method, 1, depth, 1)).to_vec(),
        Method::Uring => many
            .into_iter()
            .flat_map(|threads| [1, 128].map(|entries| Arm::new(method, threads, entries, entries)))
            .collect(),
        _ => many.map(|threads| Arm::new(method, threads, 1, 1)).to_vec(),
    }
}

/// How a program makes its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// One thread, at the file position.
    Blocking,
    /// Threads with a partition each.
    Pwrite,
    /// Threads with a partition and a ring each.
    Uring,
    /// Go's own threads.
    Goroutines,
    /// Java's own threads.
    Virtual,
    /// Node's promises, on one thread of its own and those of its library.
    Promises,
    /// Node's threads.
    Workers,
    /// Python's buffered file object.
    Stream,
}

impl Method {
    /// What the programs call it.
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

    /// As in [`crate::Row::model`].
    #[must_use]
    pub fn model(self) -> &'static str {
        match self {
            Self::Blocking | Self::Stream => "blocking",
            Self::Pwrite | Self::Workers => "threads",
            Self::Goroutines | Self::Virtual => "green-threads",
            Self::Promises => "pool",
            Self::Uring => "uring",
        }
    }
}

/// A method with its parameters. Its text is that of [`crate::Row::method`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arm {
    /// How operations are made.
    pub method: Method,
    /// Threads with a partition each.
    pub threads: u32,
    /// Most operations each of them has in flight.
    pub depth: u32,
    /// Operations submitted at once.
    pub batch: u32,
    /// Whether completions are looked for rather than slept for.
    pub spins: bool,
}

impl Arm {
    fn new(method: Method, threads: u32, depth: u32, batch: u32) -> Self {
        Self { method, threads, depth, batch, spins: false }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, depth, .. } = self;
        match self.method {
            Method::Blocking | Method::Stream => f.write_str(self.method.name()),
            Method::Pwrite => write!(f, "{threads}_threads_pwrite"),
            Method::Goroutines => write!(f, "{threads}_goroutines_pwrite"),
            Method::Virtual => write!(f, "{threads}_virtual_threads_pwrite"),
            Method::Workers => write!(f, "{threads}_workers_pwrite"),
            Method::Promises => write!(f, "{depth}_promises_pwrite"),
            Method::Uring => write!(f, "{threads}_threads_iouring_pwrite_{depth}_entries"),
        }?;
        f.write_str(if self.spins { "_spin" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_arms_have_their_names() {
        let names: Vec<String> = Lang::Zig.arms().iter().map(Arm::to_string).collect();
        let threads = ["1_threads_pwrite", "10_threads_pwrite", "100_threads_pwrite"].map(str::to_owned);
        assert_eq!(names[..4], [&["blocking".to_owned()], &threads[..]].concat());
        assert_eq!(names[4], "1_threads_iouring_pwrite_1_entries");
        assert_eq!(names[9], "100_threads_iouring_pwrite_128_entries");
        assert_eq!(names.len(), 10);
    }

    #[test]
    fn no_two_arms_of_a_language_have_the_same_name() {
        for lang in Lang::ALL {
            let mut names: Vec<String> = lang.arms().iter().map(Arm::to_string).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{lang}");
        }
    }
}
