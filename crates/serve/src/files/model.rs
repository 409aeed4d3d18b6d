//! The ways of reading files, by name.

use std::fmt;
use std::str::FromStr;

/// A way of reading files. The caches are [`Model::Auto`]'s; the others make the same calls for every request, so that what is compared
/// is the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Model {
    /// What is in memory on the worker, the rest by the pool, and files are kept open.
    #[default]
    Auto,
    /// open, fstat, read on the worker, whoever has to wait for that.
    Sync,
    /// The worker does what does not have to wait, the pool the rest.
    Nowait,
    /// The pool does everything.
    Pool,
    /// The runtime's files: a hand-off to its pool for each call.
    Tokio,
    /// open and fstat on the worker, sendfile for the rest.
    Sendfile,
    /// io_uring: a ring for each worker.
    Uring,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Auto, Self::Sync, Self::Nowait, Self::Pool, Self::Tokio, Self::Sendfile, Self::Uring];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// Its name.
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

/// No model has that name.
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
