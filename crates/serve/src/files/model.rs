//! The I/O models of the server, by name.

use std::fmt;
use std::str::FromStr;

/// An I/O model: which calls open and read files, and on which thread. Only [`Model::Auto`] caches
/// files; the others make the same calls for every request, so a comparison measures the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Model {
    /// The worker reads cached data, the pool the rest, and files are kept open.
    #[default]
    Auto,
    /// The worker opens, stats and reads, and blocks while the disk is busy.
    Sync,
    /// The worker makes the calls that need not wait, the pool the others.
    Nowait,
    /// The pool makes all calls.
    Pool,
    /// tokio's files: a hand-off to its blocking pool for each call.
    Tokio,
    /// The worker opens and stats; sendfile(2) sends the content.
    Sendfile,
    /// io_uring, with a ring for each worker.
    Uring,
}

impl Model {
    /// All models.
    pub const ALL: [Self; 7] =
        [Self::Auto, Self::Sync, Self::Nowait, Self::Pool, Self::Tokio, Self::Sendfile, Self::Uring];

    /// The names of [`ALL`](Self::ALL), in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// Returns the name of the model.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sync => "sync",
            Self::Nowait => "nowait",
            Self::Pool => "pool",
            Self::Tokio => "tokio",
            Self::Sendfile => "sendfile",
            Self::Uring => "uring",
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that no model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownModel;

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a model is one of {}", Model::NAMES.join(", "))
    }
}

impl std::error::Error for UnknownModel {}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|model| model.name() == word).ok_or(UnknownModel)
    }
}
