//! The list of I/O models: their names, their mechanisms and their uses.
//!
//! Every command takes the names that it accepts from this list, in this order.
//!
//! Owns: names, parameters, summaries, uses, and the errors for a name that is unknown and for a
//! model that cannot run. Does not own: the implementations, and the test whether a model can run
//! here ([`availability`](crate::availability)).

use std::fmt;
use std::str::FromStr;

use crate::Errno;

/// An I/O model: the system calls that move data, and the threads that make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Model {
    /// Blocking calls on one thread.
    Sync,
    /// Blocking calls on this number of threads; `None` stands for one thread for each CPU.
    Threads(Option<usize>),
    /// Blocking calls on a pool of threads, with a hand-off for each operation or batch.
    Pool,
    /// Calls that do not wait on the calling thread, the others on a pool of threads.
    Nowait,
    /// Files of tokio.
    Tokio,
    /// Metadata calls of tokio, each awaited before the next.
    AsyncSeq,
    /// Metadata calls of tokio, many at once.
    AsyncPar,
    /// Memory maps.
    Mmap,
    /// The kernel's asynchronous I/O (io_submit(2)), as through libaio.
    Aio,
    /// io_uring with this number of operations in flight in each ring; `None` stands for the
    /// default of the implementation.
    Uring(Option<usize>),
    /// io_uring with registered files and buffers.
    UringRegistered,
    /// io_uring with a kernel thread that polls for submissions (SQPOLL).
    UringPolled,
    /// copy_file_range(2).
    CopyFileRange,
    /// sendfile(2).
    Sendfile,
    /// splice(2) through a pipe.
    Splice,
    /// The calls and the number of threads that fit the storage, adapted during the run.
    #[default]
    Auto,
}

/// A use of a model. A model that reads neither directories nor files for a server is for
/// benchmarks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Use {
    /// Walks of directories with the metadata of their entries.
    Metadata,
    /// Reads and writes of byte ranges of an open file.
    Ranges,
    /// Opens, reads and closes of small files.
    SmallFiles,
    /// Responses of a file server.
    Serve,
    /// Copies of a file.
    Copy,
}

impl Use {
    /// Returns the name in texts for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Ranges => "byte ranges",
            Self::SmallFiles => "small files",
            Self::Serve => "serving",
            Self::Copy => "copying",
        }
    }
}

/// The line of a model in the list.
struct ModelRow {
    name: &'static str,
    summary: &'static str,
    uses: &'static [Use],
}

impl Model {
    /// All models, in the order in which users see them.
    pub const ALL: [Self; 16] = [
        Self::Sync,
        Self::Threads(None),
        Self::Pool,
        Self::Nowait,
        Self::Tokio,
        Self::AsyncSeq,
        Self::AsyncPar,
        Self::Mmap,
        Self::Aio,
        Self::Uring(None),
        Self::UringRegistered,
        Self::UringPolled,
        Self::CopyFileRange,
        Self::Sendfile,
        Self::Splice,
        Self::Auto,
    ];

    /// The largest number of threads, or of operations in flight, that a name may end with.
    pub const COUNT_MAX: usize = 4096;

    const fn row(self) -> ModelRow {
        use Use::{Copy, Metadata, Ranges, Serve, SmallFiles};
        let (name, summary, uses): (_, _, &[Use]) = match self {
            Self::Sync => {
                ("sync", "blocking calls on one thread", &[Metadata, Ranges, SmallFiles, Serve, Copy])
            }
            Self::Threads(_) => (
                "threads",
                "blocking calls on N threads, or else one thread for each CPU",
                &[Metadata, Ranges, SmallFiles],
            ),
            Self::Pool => (
                "pool",
                "blocking calls on a pool of threads, with a hand-off for each operation or batch",
                &[Ranges, SmallFiles, Serve],
            ),
            Self::Nowait => (
                "nowait",
                "calls that do not wait (RWF_NOWAIT) on the calling thread, the others on a pool of threads",
                &[Ranges, SmallFiles, Serve],
            ),
            Self::Tokio => (
                "tokio",
                "files of tokio, with a hand-off to its pool of threads for each call",
                &[Ranges, SmallFiles, Serve],
            ),
            Self::AsyncSeq => ("async-seq", "file calls of tokio, each awaited before the next", &[Metadata]),
            Self::AsyncPar => ("async-par", "file calls of tokio, many at once", &[Metadata]),
            Self::Mmap => ("mmap", "a memory map of the file", &[Ranges]),
            Self::Aio => (
                "aio",
                "the kernel's asynchronous I/O (io_submit), as through libaio; without O_DIRECT it waits",
                &[Ranges],
            ),
            Self::Uring(_) => (
                "uring",
                "rings of io_uring with up to DEPTH operations in flight; directories are read by direct \
                 calls, because io_uring has none for that",
                &[Metadata, Ranges, SmallFiles, Serve],
            ),
            Self::UringRegistered => {
                ("uring-registered", "rings of io_uring with registered files and buffers", &[Ranges])
            }
            Self::UringPolled => (
                "uring-polled",
                "rings of io_uring with a kernel thread that polls for submissions (SQPOLL)",
                &[Ranges],
            ),
            Self::CopyFileRange => ("copy-file-range", "copies by copy_file_range(2)", &[Copy]),
            Self::Sendfile => {
                ("sendfile", "transfers by sendfile(2), without a copy to user space", &[Serve, Copy])
            }
            Self::Splice => {
                ("splice", "transfers by splice(2) through a pipe, without a copy to user space", &[Copy])
            }
            Self::Auto => (
                "auto",
                "blocking calls on threads that are added while calls wait for the storage; a server makes \
                 calls that do not wait on its own threads",
                &[Metadata, SmallFiles, Serve],
            ),
        };
        ModelRow { name, summary, uses }
    }

    /// Returns the name, without a number: the value of `--io` and of `fathom bench --models`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the mechanism in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.row().summary
    }

    /// Returns all uses of the model.
    #[must_use]
    pub const fn uses(self) -> &'static [Use] {
        self.row().uses
    }

    /// Returns the placeholder for the number that may follow the name and `=`, where the model
    /// reads metadata.
    #[must_use]
    pub const fn parameter(self) -> Option<&'static str> {
        match self {
            Self::Threads(_) => Some("N"),
            Self::Uring(_) => Some("DEPTH"),
            _ => None,
        }
    }

    /// Returns the number of threads or of operations in flight, if it was given.
    #[must_use]
    pub const fn count(self) -> Option<usize> {
        match self {
            Self::Threads(count) | Self::Uring(count) => count,
            _ => None,
        }
    }

    /// Returns whether the model has this use.
    #[must_use]
    pub const fn has(self, wanted: Use) -> bool {
        let uses = self.uses();
        let mut at = 0;
        while at < uses.len() {
            // `==` is not available in constants.
            if uses[at] as u8 == wanted as u8 {
                return true;
            }
            at += 1;
        }
        false
    }

    /// Returns the rank of the model among those with the same uses, the simplest first: by the
    /// parts that a program needs for it, and the ways in which they may fail. Equal ranks are
    /// equally complex.
    #[must_use]
    pub const fn complexity(self) -> u8 {
        match self {
            Self::Sync => 0,
            Self::Sendfile => 1,
            Self::CopyFileRange => 2,
            Self::Threads(_) => 3,
            Self::Auto => 4,
            Self::Mmap => 5,
            Self::Pool => 6,
            Self::Nowait => 7,
            Self::Splice => 8,
            Self::Tokio => 9,
            Self::AsyncSeq
            | Self::AsyncPar
            | Self::Aio
            | Self::Uring(_)
            | Self::UringRegistered
            | Self::UringPolled => 10,
        }
    }

    /// Returns whether no command but the benchmark uses the model.
    #[must_use]
    pub const fn is_for_benchmarks_only(self) -> bool {
        !self.has(Use::Metadata) && !self.has(Use::Serve)
    }

    /// Returns the models that have this use, in the order of [`Model::ALL`].
    pub fn with(wanted: Use) -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(move |model| model.has(wanted))
    }

    /// Returns the number of models that have this use.
    #[must_use]
    pub const fn count_with(wanted: Use) -> usize {
        let (mut at, mut count) = (0, 0);
        while at < Self::ALL.len() {
            count += Self::ALL[at].has(wanted) as usize;
            at += 1;
        }
        count
    }

    /// Returns the names of the models that have this use, for tables that are made at compile
    /// time: `N` is [`Model::count_with`] of the use.
    ///
    /// # Panics
    /// If `N` is a smaller number.
    #[must_use]
    pub const fn names_with<const N: usize>(wanted: Use) -> [&'static str; N] {
        let (mut names, mut at, mut count) = ([""; N], 0, 0);
        while at < Self::ALL.len() {
            if Self::ALL[at].has(wanted) {
                names[count] = Self::ALL[at].name();
                count += 1;
            }
            at += 1;
        }
        names
    }

    /// Returns the model that is called `name`, without a number; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Returns the name with its optional parameter, as in `threads[=N]`.
    #[must_use]
    pub fn syntax(self) -> String {
        let parameter = self.parameter().map_or(String::new(), |parameter| format!("[={parameter}]"));
        format!("{}{parameter}", self.name())
    }

    /// Parses the name of a model that has this use. A number may follow the name only for
    /// [`Use::Metadata`].
    ///
    /// # Errors
    /// The names of the models that have this use.
    pub fn parse(text: &str, wanted: Use) -> Result<Self, UnknownModel> {
        let model = match wanted {
            Use::Metadata => text.parse().ok(),
            _ => Self::named(text),
        };
        model.filter(|model| model.has(wanted)).ok_or(UnknownModel { wanted: Some(wanted) })
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            Some(count) => write!(f, "{}={count}", self.name()),
            None => f.pad(self.name()),
        }
    }
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        let (name, count) = match text.split_once('=') {
            Some((name, count)) => (name, Some(parse_count(count).ok_or(UnknownModel { wanted: None })?)),
            None => (text, None),
        };
        match (Self::named(name), count) {
            (Some(Self::Threads(_)), count) => Ok(Self::Threads(count)),
            (Some(Self::Uring(_)), count) => Ok(Self::Uring(count)),
            (Some(model), None) => Ok(model),
            _ => Err(UnknownModel { wanted: None }),
        }
    }
}

fn parse_count(text: &str) -> Option<usize> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|count| digits && (1..=Model::COUNT_MAX).contains(count))
}

/// The error for a name that no model with the wanted use has, or for an invalid number. Its text
/// lists the valid names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    wanted: Option<Use>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_numbers = self.wanted.is_none_or(|wanted| wanted == Use::Metadata);
        let valid = Model::ALL.into_iter().filter(|model| self.wanted.is_none_or(|wanted| model.has(wanted)));
        let names: Vec<_> =
            valid.map(|model| if has_numbers { model.syntax() } else { model.name().to_owned() }).collect();
        write!(f, "valid models are {}", names.join(", "))?;
        if has_numbers {
            write!(f, ", with N and DEPTH from 1 to {}", Model::COUNT_MAX)?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownModel {}

/// The reason why a model cannot run here: the action that failed, its error, and the likely cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The action that failed, as in "set up io_uring".
    pub operation: &'static str,
    /// The error of the action.
    pub errno: Errno,
    /// The likely cause, in a few words.
    pub cause: String,
}

impl Unavailable {
    /// Describes that threads cannot be started.
    #[must_use]
    pub fn no_threads(error: &std::io::Error) -> Self {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::AGAIN);
        let cause = "the limit on processes may be too low".to_owned();
        Self { operation: "start threads", errno, cause }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = std::io::Error::from(self.errno);
        write!(f, "cannot {}: {error} ({})", self.operation, self.cause)
    }
}

impl std::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const USES: [Use; 5] = [Use::Metadata, Use::Ranges, Use::SmallFiles, Use::Serve, Use::Copy];

    #[test]
    fn names_are_unique_and_parse_back() {
        let names: HashSet<_> = Model::ALL.into_iter().map(Model::name).collect();
        assert_eq!(names.len(), Model::ALL.len());
        for model in Model::ALL {
            assert_eq!(model.name().parse(), Ok(model));
            assert_eq!((Model::named(model.name()), model.to_string().as_str()), (Some(model), model.name()));
            assert!(!model.uses().is_empty() && !model.summary().is_empty(), "{model}");
        }
        for text in ["threads=7", "uring=64"] {
            assert_eq!(text.parse::<Model>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn each_use_accepts_its_models_and_lists_them() {
        for wanted in USES {
            assert_eq!(Model::with(wanted).count(), Model::count_with(wanted));
            for model in Model::ALL {
                let parsed = Model::parse(model.name(), wanted);
                assert_eq!(parsed.ok(), model.has(wanted).then_some(model), "{model}: {wanted:?}");
            }
            let listed = Model::parse("zfs", wanted).unwrap_err().to_string();
            for model in Model::ALL {
                let name = if wanted == Use::Metadata { model.syntax() } else { model.name().to_owned() };
                let mut words = listed.split([' ', ',']);
                assert_eq!(words.any(|word| word == name), model.has(wanted), "{model}: {listed}");
            }
        }
        assert_eq!(Model::names_with::<{ Model::count_with(Use::Copy) }>(Use::Copy)[0], "sync");
    }

    #[test]
    fn counts_are_bounded_and_only_where_they_mean_something() {
        for text in [
            "",
            "Sync",
            "threads=",
            "threads=0",
            "threads=+3",
            "threads=4097",
            "uring=x",
            "auto=2",
            "sync=1",
            "blocking",
        ] {
            assert!(text.parse::<Model>().is_err(), "{text}");
        }
        assert_eq!(Model::parse("uring=3", Use::Metadata), Ok(Model::Uring(Some(3))));
        assert!(Model::parse("uring=3", Use::Serve).is_err());
    }
}
