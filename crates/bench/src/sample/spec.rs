//! The parameters of a sample, and its errors.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fathom_io::uring::Completion;
use fathom_io::{Model, Unavailable, Use};

use crate::error::os_error_text;

/// The workload of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Writes each block once, in ascending order.
    Write,
    /// Reads each block once, in ascending order.
    Read,
    /// Reads each block once, in random order.
    RandomRead,
    /// Appends blocks, each followed by an fdatasync before the next.
    AppendSync,
    /// Reads all names of a tree.
    Walk,
    /// Reads all names of a tree and the metadata of every entry.
    Stat,
    /// Opens, reads and closes files of one block each.
    SmallFiles,
    /// Requests files of one block each from a static file server, each once, in random order.
    Serve,
    /// Copies the file.
    Copy,
}

impl Workload {
    /// All workloads.
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

    /// Returns whether the workload writes the file.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AppendSync)
    }

    /// Returns whether the workload walks a tree.
    #[must_use]
    pub fn is_of_tree(self) -> bool {
        matches!(self, Self::Walk | Self::Stat)
    }

    /// Returns whether the workload reads many files of one block.
    #[must_use]
    pub fn is_of_small_files(self) -> bool {
        matches!(self, Self::SmallFiles | Self::Serve)
    }

    /// Returns the use that a model must have for the workload.
    #[must_use]
    pub fn wanted(self) -> Use {
        match self {
            Self::Walk | Self::Stat => Use::Metadata,
            Self::Write | Self::Read | Self::RandomRead | Self::AppendSync => Use::Ranges,
            Self::SmallFiles => Use::SmallFiles,
            Self::Serve => Use::Serve,
            Self::Copy => Use::Copy,
        }
    }

    /// Returns the name on the command line and in reports.
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

    /// Returns the workload called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }
}

/// The value of `--method` for the loop without I/O calls, which measures its own cost.
pub const NULL: &str = "null";

/// Returns whether samples of `workload` can use `model`; `None` stands for the loop without I/O
/// calls.
fn supports(model: Option<Model>, workload: Workload) -> bool {
    match model {
        None => workload.wanted() == Use::Ranges,
        Some(model) => model.has(workload.wanted()),
    }
}

/// The parameters of a sample.
#[derive(Clone, Debug)]
pub struct SampleSpec {
    /// The workload.
    pub workload: Workload,
    /// The I/O model; `None` for the loop without I/O calls.
    pub model: Option<Model>,
    /// The file, or the directory of the tree.
    pub path: PathBuf,
    /// Bytes of the file, or of all small files.
    pub size: u64,
    /// Bytes of one operation.
    pub block: usize,
    /// Threads, with one partition each.
    pub threads: usize,
    /// Operations each thread keeps in flight.
    pub depth: usize,
    /// Operations submitted at once.
    pub batch: usize,
    /// The way of waiting for completions.
    pub completion: Completion,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// The seed of the data pattern and of random orders.
    pub seed: u64,
    /// The generation of the data pattern.
    pub generation: u64,
}

/// Blocks must be smaller than this: read(2) and write(2) transfer at most 0x7ffff000 bytes.
const BLOCK_MAX: usize = 1 << 30;

impl SampleSpec {
    /// Returns the value of `--method`.
    fn method(&self) -> &'static str {
        self.model.map_or(NULL, Model::name)
    }

    /// Returns the number of blocks of the file.
    pub(super) fn blocks(&self) -> u64 {
        self.size.div_ceil(self.block as u64)
    }

    /// Checks that the parameters are valid and consistent.
    pub(super) fn check(&self) -> Result<(), SampleError> {
        let wrong = |what: &str| Err(SampleError::Usage(what.to_owned()));
        let odd = |bytes: u64| !bytes.is_multiple_of(512);
        let alone = matches!(self.model, None | Some(Model::Sync | Model::Mmap));
        match self {
            _ if !supports(self.model, self.workload) => wrong("this method is not for this workload"),
            Self { size: 0, .. } if !self.workload.is_of_tree() => wrong("the size is zero"),
            Self { block: 0 | BLOCK_MAX.., .. } if !self.workload.is_of_tree() => {
                wrong("the block is zero, or 1 GiB or more")
            }
            Self { threads: 0, .. } | Self { depth: 0, .. } | Self { batch: 0, .. } => {
                wrong("threads, depth and batch are at least 1")
            }
            Self { threads, depth, .. } if (*threads).max(*depth) > Model::COUNT_MAX => {
                wrong("threads and depth are at most 4096")
            }
            _ if self.direct && (odd(self.size) || odd(self.block as u64)) => {
                wrong("with O_DIRECT, size and block must be multiples of 512")
            }
            _ if alone && self.threads > 1 => wrong("this method has one thread"),
            _ if self.workload == Workload::AppendSync && self.threads > 1 => {
                wrong("append-sync has one thread")
            }
            _ if self.workload == Workload::Serve && self.threads > 1 => wrong("the server has one thread"),
            _ if self.workload == Workload::Serve && self.direct => {
                wrong("the server does not read with O_DIRECT")
            }
            _ => Ok(()),
        }
    }
}

/// The error of a sample.
#[derive(Debug)]
pub enum SampleError {
    /// The parameters are invalid.
    Usage(String),
    /// The method cannot run on this machine.
    Unavailable(Unavailable),
    /// The walk cannot run on this machine, for the given reason.
    Refused(String),
    /// An operation failed: its name, the file, the cause.
    Io(&'static str, PathBuf, io::Error),
    /// The data of this file is wrong in the page at this offset.
    Wrong(PathBuf, u64),
}

impl SampleError {
    pub(crate) fn io(action: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Io(action, path.to_owned(), cause)
    }

    /// Returns the exit status of a process that ends with this error (playground/README.md).
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Io(..) | Self::Wrong(..) => 1,
            Self::Usage(_) => 2,
            Self::Unavailable(_) | Self::Refused(_) => 3,
        }
    }
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Refused(what) => f.write_str(what),
            Self::Unavailable(why) => why.fmt(f),
            Self::Io(action, path, cause) => {
                write!(f, "cannot {action} '{}': {}", path.display(), os_error_text(cause))
            }
            Self::Wrong(path, offset) => {
                write!(f, "cannot verify '{}': page at {offset} is not what was written", path.display())
            }
        }
    }
}

impl std::error::Error for SampleError {}

/// Returns the command line options of a sample. The playground's programs have the same options.
#[must_use]
pub fn arguments(spec: &SampleSpec) -> Vec<OsString> {
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
        spec.workload.name().into(),
        "--method".into(),
        spec.method().into(),
        "--path".into(),
        spec.path.clone().into(),
    ];
    start
        .into_iter()
        .chain(numbers.into_iter().flat_map(|(name, value)| [name.into(), value.into()]))
        .collect()
}
