//! The options that `fathom du` adds to GNU du's.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use fathom_io::Model;

use super::table::BY_WORDS;
use crate::shared::cmdline::flag::Scope;
use crate::shared::value::{ShowWhen, ValueError, one_of};

/// The options that GNU du does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Additions {
    /// The I/O model.
    pub(crate) model: Model,
    /// The fixed number of threads; `None` to adapt it.
    pub(crate) threads: Option<NonZeroUsize>,
    /// The view of the result.
    pub(crate) view: ViewKind,
    /// The inventory to read instead of the filesystem.
    pub(crate) from: Option<PathBuf>,
    /// Whether the output is JSON.
    pub(crate) json: bool,
    /// When progress is shown on standard error.
    pub(crate) progress: ShowWhen,
    /// When colours are used.
    pub(crate) color: ShowWhen,
    /// Whether a summary of the run is printed on standard error.
    pub(crate) verbose: bool,
}

impl Additions {
    /// Returns the defaults. Without additions, nothing of them is visible.
    pub(crate) fn new(scope: Scope) -> Self {
        let when = if scope == Scope::Full { ShowWhen::Auto } else { ShowWhen::Never };
        Additions {
            model: Model::Auto,
            threads: None,
            view: ViewKind::Lines,
            from: None,
            json: false,
            progress: when,
            color: when,
            verbose: false,
        }
    }
}

/// The view of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// GNU du's lines.
    Lines,
    /// A sorted tree with bars.
    Tree,
    /// The largest files and directories.
    Top(NonZeroU64),
    /// Totals by a property of files.
    By(GroupProperty),
}

impl ViewKind {
    /// Returns the option that selects the view; `None` for the default.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            ViewKind::Lines => None,
            ViewKind::Tree => Some("--tree"),
            ViewKind::Top(_) => Some("--top"),
            ViewKind::By(_) => Some("--by"),
        }
    }
}

/// The property by which files are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupProperty {
    /// The part of the name behind the last dot.
    Extension,
    /// The owner.
    User,
    /// The owning group.
    Group,
    /// The time since the last modification.
    Age,
    /// Regular file, directory, symbolic link and so on.
    Type,
}

/// Parses the value of `--by`.
pub(crate) fn property(word: &[u8]) -> Result<GroupProperty, ValueError> {
    use GroupProperty::{Age, Extension, Group, Type, User};
    one_of(word, BY_WORDS, &[Extension, User, Group, Age, Type])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_may_be_cut_short() {
        assert_eq!(property(b"t"), Ok(GroupProperty::Type));
        assert_eq!(property(b"ext"), Ok(GroupProperty::Extension));
    }
}
