//! What a model is: the metadata seam, the names users give models, and why one may not run here.

use std::ffi::CStr;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::str::FromStr;
use std::task::{Context, Poll, Waker};

use crate::{Dir, Errno, Fields, Meta, Names};

/// Whether a symbolic link as the last component is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Follow {
    /// The link itself is meant.
    #[default]
    No,
    /// What the link leads to is meant.
    Yes,
}

/// One worker's way of making metadata calls. A worker owns its model; nothing here crosses threads.
///
/// The futures of a blocking model are ready at the first poll, so generic code over `MetadataModel` costs it nothing.
pub trait MetadataModel {
    /// Directories one worker should have under way at once for its calls to overlap.
    const WIDTH: usize = 1;

    /// Calls are the kernel's own, made on the thread that asks for them, and take as long as the storage does.
    const DIRECT: bool = false;

    /// Fewest names worth one call of [`stat`](Self::stat), where a directory has that many.
    const BATCH: usize = 1;

    /// Opens the directory `name` in `at`.
    ///
    /// # Errors
    /// As openat(2); never opens anything but a directory.
    fn open(
        &self,
        at: BorrowedFd<'_>,
        name: &CStr,
        follow: Follow,
    ) -> impl Future<Output = Result<Dir, Errno>>;

    /// Appends names to `names` until it holds `limit`; false at the directory's end.
    ///
    /// # Errors
    /// As getdents64(2); what was read before stays in `names`.
    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> impl Future<Output = Result<bool, Errno>>;

    /// The same, but a model may stop after one system call: what is known then can be worked on while the rest is read.
    ///
    /// # Errors
    /// As [`MetadataModel::read`].
    fn read_some(
        &self,
        dir: &Dir,
        names: &mut Names,
        limit: usize,
    ) -> impl Future<Output = Result<bool, Errno>> {
        self.read(dir, names, limit)
    }

    /// Metadata of an open directory.
    ///
    /// # Errors
    /// As statx(2).
    fn stat_dir(&self, dir: &Dir, fields: Fields) -> impl Future<Output = Result<Meta, Errno>>;

    /// Metadata of entries `range` of `names` in `at`: one element an entry in `out`, `None` where
    /// [`Name::stat`](crate::Name) is off. `out` is emptied first.
    fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) -> impl Future<Output = ()>;

    /// Makes `dir` the working directory of the calling thread and of no other; false where that cannot be had. A call
    /// relative to [`CWD`](crate::sys::CWD) spares the kernel looking up and holding on to a descriptor.
    fn enter(&self, _dir: BorrowedFd<'_>) -> bool {
        false
    }

    /// Magic number of the filesystem an open directory is on; `None` where it cannot be told.
    fn magic(&self, dir: &Dir) -> Option<i64> {
        crate::sys::fs_magic(dir.as_fd())
    }

    /// Closes `dir`. A future dropped before its end closes it as well.
    fn close(&self, dir: Dir) -> impl Future<Output = ()> {
        drop(dir);
        std::future::ready(())
    }

    /// Runs `future`, which waits for nothing but this model's calls, to its end.
    fn run<F: Future>(&self, future: F) -> F::Output;
}

/// Polls `future`, which never waits, to its end.
///
/// # Panics
/// If it does wait.
pub fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a blocking model's calls are done when they return"),
    }
}

/// The model a user names with `--io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Model {
    /// One thread, blocking calls.
    Sync,
    /// This many threads with blocking calls; one a CPU if not said.
    Threads(Option<usize>),
    /// tokio's file calls, each awaited before the next.
    AsyncSeq,
    /// tokio's file calls, many futures at once.
    AsyncPar,
    /// io_uring, with this many operations in flight a ring.
    Uring(Option<usize>),
    /// Blocking threads whose number follows the storage.
    #[default]
    Auto,
}

impl Model {
    /// Every name `--io` takes, as help texts and error messages show them.
    pub const NAMES: [&str; 6] = ["sync", "threads[=N]", "async-seq", "async-par", "uring[=DEPTH]", "auto"];

    /// Most threads or operations in flight that can be asked for.
    pub const COUNT_MAX: usize = 4096;
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sync => f.write_str("sync"),
            Self::Threads(None) => f.write_str("threads"),
            Self::Threads(Some(count)) => write!(f, "threads={count}"),
            Self::AsyncSeq => f.write_str("async-seq"),
            Self::AsyncPar => f.write_str("async-par"),
            Self::Uring(None) => f.write_str("uring"),
            Self::Uring(Some(depth)) => write!(f, "uring={depth}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// A name that is no model's, or a count that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownModel;

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, max) = (Model::NAMES.join(", "), Model::COUNT_MAX);
        write!(f, "valid models are {names}, with N and DEPTH from 1 to {max}")
    }
}

impl std::error::Error for UnknownModel {}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        let (name, count) = match text.split_once('=') {
            Some((name, count)) => (name, Some(parse_count(count)?)),
            None => (text, None),
        };
        match (name, count) {
            ("sync", None) => Ok(Self::Sync),
            ("threads", count) => Ok(Self::Threads(count)),
            ("async-seq", None) => Ok(Self::AsyncSeq),
            ("async-par", None) => Ok(Self::AsyncPar),
            ("uring", depth) => Ok(Self::Uring(depth)),
            ("auto", None) => Ok(Self::Auto),
            _ => Err(UnknownModel),
        }
    }
}

fn parse_count(text: &str) -> Result<usize, UnknownModel> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let count = text.parse().ok().filter(|count| digits && (1..=Model::COUNT_MAX).contains(count));
    count.ok_or(UnknownModel)
}

/// Why a model cannot run here: what was refused, with what error, and the likely cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The deed that failed, as in "set up io_uring".
    pub deed: &'static str,
    /// The error it failed with.
    pub errno: Errno,
    /// The likely cause, in a few words.
    pub cause: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = std::io::Error::from(self.errno);
        write!(f, "cannot {}: {error} ({})", self.deed, self.cause)
    }
}

impl std::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in ["sync", "threads", "threads=7", "async-seq", "async-par", "uring", "uring=64", "auto"] {
            assert_eq!(text.parse::<Model>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn counts_are_bounded_and_only_where_they_mean_something() {
        for text in
            ["", "Sync", "threads=", "threads=0", "threads=+3", "threads=4097", "uring=x", "auto=2", "sync=1"]
        {
            assert_eq!(text.parse::<Model>(), Err(UnknownModel), "{text}");
        }
    }
}
