//! Whether the newest inventory of some trees may be of something else: of the empty directory
//! below a filesystem that is not mounted, for example. Such a scan is complete, and the inventory
//! before it has the data.

use super::store::Snapshot;
use fathom_inventory::store::{Manifest, ManifestRoot};

/// An inventory with this many times fewer entries than an earlier one may be of something else.
const FEWER: u64 = 100;

/// How an inventory differs so much from an earlier one of the same trees that it may be of
/// something else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replacement {
    /// A root is on another filesystem.
    Filesystem {
        /// The path of the root. Bytes that are not UTF-8 are replaced.
        root: String,
        /// The types of the filesystems, then and now.
        types: [String; 2],
    },
    /// It has far fewer entries.
    Entries {
        /// The numbers of entries, then and now.
        counts: [u64; 2],
    },
}

impl Replacement {
    /// Returns how `now` differs from `then`, of the same trees; `None` if it is what one expects.
    ///
    /// ```
    /// use fathom_scans::history::Replacement;
    /// use fathom_scans::scan::{Scan, scan};
    /// use fathom_inventory::store::Manifest;
    ///
    /// # let temp = tempfile::tempdir()?;
    /// let out = temp.path().join("src.inv");
    /// scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
    /// let then = Manifest { entries: 1000, ..Manifest::read(&out)? };
    /// let now = Manifest { entries: 1, ..then.clone() };
    /// assert_eq!(Replacement::of(&then, &then), None);
    /// let counts = [then.entries, 1];
    /// assert_eq!(Replacement::of(&then, &now), Some(Replacement::Entries { counts }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(then: &Manifest, now: &Manifest) -> Option<Self> {
        let mut roots = then.roots.iter().zip(&now.roots);
        if let Some((then, now)) = roots.find(|(then, now)| !may_be_one_filesystem(then, now)) {
            let types = [then, now].map(|root| root.filesystem.clone().unwrap_or_default());
            return Some(Self::Filesystem { root: now.path.clone(), types });
        }
        let is_fewer = now.entries.saturating_mul(FEWER) <= then.entries;
        is_fewer.then_some(Self::Entries { counts: [then.entries, now.entries] })
    }
}

fn may_be_one_filesystem(one: &ManifestRoot, other: &ManifestRoot) -> bool {
    let agree =
        |one: &Option<String>, other: &Option<String>| one.is_none() || other.is_none() || one == other;
    agree(&one.filesystem, &other.filesystem) && agree(&one.filesystem_id, &other.filesystem_id)
}

/// Returns the newest of `before`, inventories of the same trees with the oldest first, that may
/// have what `now` lacks, and the difference. If the roots are on a filesystem again on which they
/// were before, nothing is lacking because of that.
#[must_use]
pub fn replaced<'a>(before: &[&'a Snapshot], now: &Manifest) -> Option<(&'a Snapshot, Replacement)> {
    let was_there = |older: &[&Snapshot]| {
        let is_one = |then: &Manifest| {
            then.roots.iter().zip(&now.roots).all(|(then, now)| may_be_one_filesystem(then, now))
        };
        older.iter().filter_map(|snapshot| snapshot.ended()).any(is_one)
    };
    (0..before.len()).rev().find_map(|at| {
        let difference = Replacement::of(before[at].ended()?, now)?;
        let is_back = matches!(difference, Replacement::Filesystem { .. }) && was_there(&before[..at]);
        (!is_back).then_some((before[at], difference))
    })
}

impl std::fmt::Display for Replacement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Filesystem { root, types: [then, now] } if then == now => {
                write!(f, "'{}' is on another file system ({now}) than before", root.escape_debug())
            }
            Self::Filesystem { root, types: [then, now] } => {
                write!(f, "'{}' is on {now} and was on {then}", root.escape_debug())
            }
            Self::Entries { counts: [then, now] } => write!(f, "there are {now} entries and were {then}"),
        }
    }
}
