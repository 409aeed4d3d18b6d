//! The parameters of a sample, and its errors.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fathom_io::uring::Completion;
use fathom_io::{Errno, Model, Unavailable, Use};

use super::hint::AccessHint;
use super::read_choice::ReadChoice;
use crate::Workload;
use crate::error::os_error_text;
use crate::workload::NULL;

/// Returns whether samples of `workload` can use `model`; `None` stands for the loop without I/O
/// calls, whose reads return the generation that its writes have.
fn supports(model: Option<Model>, workload: Workload) -> bool {
    match model {
        None => workload.wanted() == Use::Ranges && workload != Workload::Mixed,
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
    /// The hint to the kernel.
    pub hint: AccessHint,
    /// The percentage of blocks that [`Workload::Mixed`] reads.
    pub read_percent: u8,
    /// The seed of the data pattern, of random orders and of the blocks that are read.
    pub seed: u64,
    /// The generation of the data pattern.
    pub generation: u64,
    /// Whether the file has the pattern, whose stamps are checked. A user's own file has not.
    pub has_pattern: bool,
    /// Messages that may wait for the consumer of a gatherer; 0 for a walk without a consumer.
    pub backlog: usize,
    /// Requests a second of [`Workload::Serve`]; 0 for requests that follow responses.
    pub rate: u32,
    /// A file for the latencies of each kind of call.
    pub calls: Option<PathBuf>,
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

    /// Returns the choice between reading and writing each block; `None` if all blocks have the
    /// same operation.
    pub(super) fn read_choice(&self) -> Option<ReadChoice> {
        let is_mixed = self.workload == Workload::Mixed;
        is_mixed.then(|| ReadChoice::new(self.blocks(), self.read_percent, self.seed))
    }

    /// Checks that the parameters are valid and consistent.
    pub(super) fn check(&self) -> Result<(), SampleError> {
        let wrong = |what: &str| Err(SampleError::Usage(what.to_owned()));
        let refused = |why: &str| Err(SampleError::Refused(why.to_owned()));
        let odd = |bytes: u64| !bytes.is_multiple_of(512);
        let alone = matches!(self.model, None | Some(Model::Sync | Model::Mmap));
        match self {
            _ if !supports(self.model, self.workload) => wrong("the workload does not have this method"),
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
            Self { has_pattern: false, .. }
                if !matches!(self.workload, Workload::Read | Workload::RandomRead)
                    && !self.workload.is_of_tree() =>
            {
                wrong("a file without the pattern requires read or random-read")
            }
            Self { backlog: 1.., .. }
                if !(self.workload.is_of_tree() && matches!(self.model, Some(Model::Threads(_)))) =>
            {
                wrong("a backlog requires walk or stat with threads")
            }
            Self { rate: 1.., .. } if self.workload != Workload::Serve => wrong("a rate requires serve"),
            Self { read_percent: 101.., .. } => wrong("the percentage of reads is at most 100"),
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
            Self { hint, .. } if hint.is_of_calls() && self.model != Some(Model::Sync) => {
                wrong("this advice is for the method sync")
            }
            Self { hint: AccessHint::WillNeed, .. } if self.workload != Workload::Read => {
                wrong("the advice willneed is for read")
            }
            Self { direct: false, hint: AccessHint::HighPriority, .. } => {
                wrong("the advice hipri is for O_DIRECT")
            }
            Self { direct: true, hint, .. } if hint.is_of_page_cache() => {
                refused("a hint is for the page cache, which O_DIRECT bypasses")
            }
            Self { direct: true, model: Some(Model::Mmap), .. } => {
                refused("a mapping is of the page cache, which O_DIRECT bypasses")
            }
            Self { direct: true, model: Some(Model::Tokio), .. } => {
                refused("tokio moves data through buffers of its own, which are not aligned for O_DIRECT")
            }
            _ => Ok(()),
        }
    }

    /// Converts the error `errno` of the action `action` on the file. With `O_DIRECT`, EINVAL says
    /// that the filesystem or the device does not support it, or not with this block (open(2)).
    ///
    /// With `RWF_DONTCACHE`, EOPNOTSUPP says that the kernel or the filesystem does not support the
    /// flag; kernels before 4.6 have no flags (EINVAL).
    pub(super) fn error(&self, action: &'static str, errno: Errno) -> SampleError {
        if self.hint == AccessHint::DontCache && matches!(errno, Errno::OPNOTSUPP | Errno::INVAL) {
            let path = self.path.display();
            let cause = "the kernel (from Linux 6.14) or the file system does not support RWF_DONTCACHE";
            return SampleError::Refused(format!("cannot {action} '{path}' without caching it: {cause}"));
        }
        if self.direct && errno == Errno::INVAL {
            let path = self.path.display();
            return SampleError::Refused(format!("cannot {action} '{path}' with O_DIRECT: Invalid argument"));
        }
        SampleError::io(action, &self.path, errno.into())
    }
}

/// The error of a sample.
#[derive(Debug)]
pub enum SampleError {
    /// The parameters are invalid.
    Usage(String),
    /// The method cannot run on this machine.
    Unavailable(Unavailable),
    /// The method cannot run here, for the given reason.
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
    let values = [
        ("--size", spec.size.to_string()),
        ("--block", spec.block.to_string()),
        ("--threads", spec.threads.to_string()),
        ("--depth", spec.depth.to_string()),
        ("--batch", spec.batch.to_string()),
        ("--wait", wait.to_owned()),
        ("--direct", if spec.direct { "yes" } else { "no" }.to_owned()),
        ("--advice", spec.hint.name().to_owned()),
        ("--read", spec.read_percent.to_string()),
        ("--backlog", spec.backlog.to_string()),
        ("--rate", spec.rate.to_string()),
        ("--pattern", if spec.has_pattern { "yes" } else { "no" }.to_owned()),
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
        .chain(values.into_iter().flat_map(|(name, value)| [name.into(), value.into()]))
        .chain(spec.calls.iter().flat_map(|path| ["--calls".into(), path.into()]))
        .collect()
}
