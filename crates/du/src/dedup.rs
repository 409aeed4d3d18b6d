//! Selects the inodes that are looked up in the set of counted inodes before they count.
//!
//! With several operands GNU du looks up every inode. One table of all inodes would make the lookup
//! single-threaded, and most inodes can be reached only once: a file with one link is in one
//! directory, and no directory is entered twice. The exceptions are known before the run: files
//! that are operands themselves, and files that are mount points.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use fathom_walk::mounts::{self, Mount};
use fathom_walk::{Errno, Meta, lstat, stat};

/// The operands, as far as they are known before the run.
///
/// ```
/// use fathom_du::dedup::KnownOperands;
///
/// // `du a b` knows its operands; `du --files0-from=-` does not.
/// let listed = KnownOperands::Listed(vec![c"a".into(), c"b".into()]);
/// let unknown = KnownOperands::Unknown;
/// ```
#[derive(Clone, Debug)]
pub enum KnownOperands {
    /// At most one operand.
    AtMostOne,
    /// These operands, and further ones that cannot be measured.
    Listed(Vec<CString>),
    /// Any operands; none is known yet.
    Unknown,
}

/// Filesystem types (proc_pid_mountinfo(5)) with exact link counts and with device numbers of their
/// own.
const EXACT_LINK_COUNTS: [&[u8]; 8] =
    [b"ext2", b"ext3", b"ext4", b"xfs", b"f2fs", b"jfs", b"tmpfs", b"ramfs"];

/// The number of operands up to which each is checked with a stat(2) before the run. For more, the
/// calls take longer than they save.
const OPERANDS_MAX: usize = 10_000;

/// The rule for files. The caller decides about directories.
#[derive(Clone, Debug)]
pub(crate) enum DedupRule {
    /// Files with several links.
    HardLinked,
    /// Files with several links, the files in `files`, and every file on a device that is not in
    /// `devs`.
    KnownDevices { devs: Arc<[u64]>, files: Arc<HashSet<(u64, u64)>> },
    /// Files with several links, and the files in this set.
    HardLinkedAnd(Arc<HashSet<(u64, u64)>>),
    /// Every file.
    All,
}

impl DedupRule {
    /// Chooses the rule for these operands. `follow` tells whether operands that are symbolic links
    /// are followed.
    pub(crate) fn for_operands(operands: &KnownOperands, follow: bool) -> Self {
        match operands {
            KnownOperands::AtMostOne => Self::HardLinked,
            KnownOperands::Listed(paths) if paths.len() <= OPERANDS_MAX => {
                Self::for_known_devices(paths, follow, &mounts::read().unwrap_or_default())
                    .unwrap_or(Self::All)
            }
            KnownOperands::Listed(_) | KnownOperands::Unknown => Self::All,
        }
    }

    /// Returns `None` if an operand is on a filesystem of another type: a stat(2) of the other
    /// operands could take long there.
    fn for_known_devices(paths: &[CString], follow: bool, mounts: &[Mount]) -> Option<Self> {
        let mounts = || mounts.iter().filter(|mount| EXACT_LINK_COUNTS.contains(&mount.kind.as_slice()));
        let devs: Arc<[u64]> = mounts().map(|mount| mount.dev).collect();
        let look: fn(&CStr) -> Result<Meta, Errno> = if follow { stat } else { lstat };
        let mut files = HashSet::new();
        for path in paths {
            match look(path) {
                Ok(meta) if !devs.contains(&meta.dev) => return None,
                Ok(meta) => drop(files.insert(meta.id())),
                // The operand will not be measured, unless it is created before its turn.
                Err(_) => {}
            }
        }
        let parts = mounts().filter(|mount| mount.is_part).filter_map(|mount| stat(&mount.point).ok());
        files.extend(parts.map(|meta| meta.id()));
        Some(Self::KnownDevices { devs, files: Arc::new(files) })
    }

    /// Returns whether the file must be looked up before it counts.
    pub(crate) fn applies_to(&self, meta: &Meta) -> bool {
        meta.nlink > 1
            || match self {
                Self::HardLinked => false,
                Self::KnownDevices { devs, files } => !devs.contains(&meta.dev) || files.contains(&meta.id()),
                Self::HardLinkedAnd(files) => files.contains(&meta.id()),
                Self::All => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(dev: u64, ino: u64, nlink: u64) -> Meta {
        Meta { dev, ino, nlink, ..Meta::default() }
    }

    fn applies(rule: &DedupRule, metas: &[Meta]) -> Vec<bool> {
        metas.iter().map(|meta| rule.applies_to(meta)).collect()
    }

    #[test]
    fn files_with_one_link_are_looked_up_if_they_may_be_reached_twice() {
        let metas = [meta(1, 5, 1), meta(1, 5, 2), meta(1, 6, 1), meta(2, 5, 1)];
        assert_eq!(applies(&DedupRule::HardLinked, &metas), [false, true, false, false]);
        let known = DedupRule::KnownDevices { devs: [1].into(), files: Arc::new(HashSet::from([(1, 6)])) };
        assert_eq!(applies(&known, &metas), [false, true, true, true]);
        assert_eq!(applies(&DedupRule::All, &metas), [true; 4]);
    }

    #[test]
    fn operands_on_other_filesystem_types_require_all_lookups() {
        let root = stat(c"/").unwrap();
        let mount = |kind: &[u8]| Mount {
            point: c"/".to_owned(),
            dev: root.dev,
            kind: kind.to_vec(),
            source: b"none".to_vec(),
            options: b"rw".to_vec(),
            is_part: true,
        };
        let paths = [c"/".to_owned(), c"/nowhere at all".to_owned()];
        assert!(DedupRule::for_known_devices(&paths, true, &[mount(b"nfs4")]).is_none());
        let known = DedupRule::for_known_devices(&paths, true, &[mount(b"ext4")]).unwrap();
        assert_eq!(applies(&known, &[meta(root.dev, root.ino, 1), meta(root.dev, 0, 1)]), [true, false]);
    }

    #[test]
    fn unknown_or_too_many_operands_require_all_lookups() {
        assert!(matches!(DedupRule::for_operands(&KnownOperands::Unknown, false), DedupRule::All));
        let many = KnownOperands::Listed(vec![c"/".to_owned(); OPERANDS_MAX + 1]);
        assert!(matches!(DedupRule::for_operands(&many, false), DedupRule::All));
    }
}
