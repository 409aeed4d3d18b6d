//! What a sample is to do, and how it may fail.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fathom_io::uring::Completion;
use fathom_io::{Choice, Unavailable};

/// The work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Each block once, in ascending order.
    Write,
    /// The same.
    Read,
    /// Each block once, in random order.
    RandomRead,
    /// Blocks one after the other, each synced (fdatasync) before the next.
    AppendSync,
    /// Reads all names of a tree.
    Walk,
    /// The same, with all metadata.
    Stat,
    /// Opens, reads and closes files of one block.
    SmallFiles,
    /// Asks a server of static files for files of one block, each once, in random order.
    Serve,
    /// Makes a copy of the file.
    Copy,
}

impl Deed {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::Write,
        Self::Read,
        Self::RandomRead,
        Self::AppendSync,
        Self::Walk,
        Self::Stat,
        Self::SmallFiles,
        Self::Serve,
        Self::Copy,
    ];

    /// Whether the file is made by it.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AppendSync)
    }

    /// Whether it is about a tree, not a file.
    #[must_use]
    pub fn is_of_tree(self) -> bool {
        matches!(self, Self::Walk | Self::Stat)
    }

    /// Whether it reads many files of one block.
    #[must_use]
    pub fn is_of_small_files(self) -> bool {
        matches!(self, Self::SmallFiles | Self::Serve)
    }

    /// As it is spelled.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::RandomRead => "random-read",
            Self::AppendSync => "append-sync",
            Self::Walk => "walk",
            Self::Stat => "stat",
            Self::SmallFiles => "small-files",
            Self::Serve => "serve",
            Self::Copy => "copy",
        }
    }

    /// The deed of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|deed| deed.name() == name)
    }
}

/// The way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// read(2) and write(2) on one thread.
    Blocking,
    /// pread(2) and pwrite(2), a partition a thread.
    Pwrite,
    /// A ring a thread.
    Uring,
    /// The same with files and buffers registered.
    UringRegistered,
    /// The same with a thread of the kernel's that looks for submissions.
    UringPolled,
    /// A pool of `depth` threads, a hand-off a batch.
    Pool,
    /// Reads that do not wait, else the pool.
    Nowait,
    /// tokio's files.
    Tokio,
    /// A memory map.
    Mmap,
    /// No call at all: what the loop around the calls costs.
    Null,
    /// For trees: blocking calls on one thread.
    Sync,
    /// For trees: blocking calls on threads.
    Threads,
    /// For trees: tokio, one call after another.
    AsyncSeq,
    /// For trees: tokio, many calls under way.
    AsyncPar,
    /// For trees: as many threads as the storage rewards.
    Auto,
    /// For copies: copy_file_range(2).
    CopyFileRange,
    /// For copies and servers: sendfile(2).
    Sendfile,
    /// For copies: splice(2) through a pipe.
    Splice,
}

impl Method {
    /// Whether `deed` can be done with it.
    fn can(self, deed: Deed) -> bool {
        let walks = matches!(
            self,
            Self::Sync | Self::Threads | Self::AsyncSeq | Self::AsyncPar | Self::Auto | Self::Uring
        );
        let copies = matches!(self, Self::CopyFileRange | Self::Sendfile | Self::Splice);
        match deed {
            Deed::Walk | Deed::Stat => walks,
            Deed::Copy => copies || self == Self::Blocking,
            Deed::SmallFiles => matches!(self, Self::Blocking | Self::Pwrite | Self::Tokio),
            Deed::Serve => {
                matches!(self, Self::Blocking | Self::Nowait | Self::Pool | Self::Tokio | Self::Sendfile)
            }
            _ => self == Self::Uring || !(walks || copies),
        }
    }
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The work.
    pub deed: Deed,
    /// The way.
    pub method: Method,
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// Bytes of an operation.
    pub block: usize,
    /// Threads, each with a partition.
    pub threads: usize,
    /// Operations each has under way.
    pub depth: usize,
    /// Operations submitted at once.
    pub batch: usize,
    /// How completions are waited for.
    pub completion: Completion,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// Of the data and of the order.
    pub seed: u64,
    /// Of the data.
    pub generation: u64,
}

/// Largest block: a read or write of more is cut by the kernel (read(2)).
const BLOCK_MAX: usize = 1 << 30;

impl Spec {
    /// Blocks of the file.
    pub(super) fn blocks(&self) -> u64 {
        self.size.div_ceil(self.block as u64)
    }

    /// Whether this can be asked for at all.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = |what: &str| Err(Failure::Usage(what.to_owned()));
        let odd = |bytes: u64| !bytes.is_multiple_of(512);
        let alone = matches!(self.method, Method::Blocking | Method::Mmap | Method::Null);
        match self {
            _ if !self.method.can(self.deed) => wrong("this method is not for this workload"),
            Self { size: 0, .. } if !self.deed.is_of_tree() => wrong("the size is zero"),
            Self { block: 0 | BLOCK_MAX.., .. } if !self.deed.is_of_tree() => {
                wrong("the block is zero, or 1 GiB or more")
            }
            Self { threads: 0, .. } | Self { depth: 0, .. } | Self { batch: 0, .. } => {
                wrong("threads, depth and batch are at least 1")
            }
            Self { threads, depth, .. } if (*threads).max(*depth) > Choice::COUNT_MAX => {
                wrong("threads and depth are at most 4096")
            }
            _ if self.direct && (odd(self.size) || odd(self.block as u64)) => {
                wrong("with O_DIRECT, size and block must be multiples of 512")
            }
            _ if alone && self.threads > 1 => wrong("this method has one thread"),
            _ if self.deed == Deed::AppendSync && self.threads > 1 => wrong("append-sync has one thread"),
            _ if self.deed == Deed::Serve && self.threads > 1 => wrong("the server has one thread"),
            _ if self.deed == Deed::Serve && self.direct => wrong("the server does not read with O_DIRECT"),
            _ => Ok(()),
        }
    }
}

/// Why a sample has no answer.
#[derive(Debug)]
pub enum Failure {
    /// It was asked for something that makes no sense.
    Usage(String),
    /// The method cannot run here.
    Unavailable(Unavailable),
    /// The same, in the walk's words.
    Refused(String),
    /// Something failed: the deed, the file, the cause.
    Io(&'static str, PathBuf, io::Error),
    /// The data of this file is wrong: at this offset.
    Wrong(PathBuf, u64),
}

impl Failure {
    pub(crate) fn io(deed: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Io(deed, path.to_owned(), cause)
    }

    /// The exit status of a process that ends with it (playground/README.md).
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Io(..) | Self::Wrong(..) => 1,
            Self::Usage(_) => 2,
            Self::Unavailable(_) | Self::Refused(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Refused(what) => f.write_str(what),
            Self::Unavailable(why) => why.fmt(f),
            Self::Io(deed, path, cause) => write!(f, "cannot {deed} '{}': {}", path.display(), words(cause)),
            Self::Wrong(path, offset) => {
                write!(f, "cannot verify '{}': page at {offset} is not what was written", path.display())
            }
        }
    }
}

impl std::error::Error for Failure {}

/// The errno's words, without the number that the standard library adds.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Arguments of a sample, as the playground's programs take them, in the order in which they are passed.
#[must_use]
pub fn arguments(spec: &Spec, method: &str) -> Vec<OsString> {
    let wait = match spec.completion {
        Completion::Wait => "wait",
        Completion::Spin => "spin",
        Completion::Adaptive => "adaptive",
    };
    let numbers = [
        ("--size", spec.size.to_string()),
        ("--block", spec.block.to_string()),
        ("--threads", spec.threads.to_string()),
        ("--depth", spec.depth.to_string()),
        ("--batch", spec.batch.to_string()),
        ("--wait", wait.to_owned()),
        ("--direct", if spec.direct { "yes" } else { "no" }.to_owned()),
        ("--seed", spec.seed.to_string()),
        ("--generation", spec.generation.to_string()),
    ];
    let start: [OsString; 6] = [
        "--op".into(),
        spec.deed.name().into(),
        "--method".into(),
        method.into(),
        "--path".into(),
        spec.path.clone().into(),
    ];
    start
        .into_iter()
        .chain(numbers.into_iter().flat_map(|(name, value)| [name.into(), value.into()]))
        .collect()
}
