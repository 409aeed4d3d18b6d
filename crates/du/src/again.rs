//! Which files could be met again, and so are looked up before they count.
//!
//! With several operands GNU du looks up every inode. All inodes in one table are one thread's work, though, and most
//! cannot be met again: a file with one link is in one directory, and no directory is entered twice. What is left
//! is known before the run: files that are operands themselves, and files mounted on others.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use fathom_walk::mounts::{self, Mount};
use fathom_walk::{Errno, Meta, lstat, stat};

/// What is known of the operands before the run.
#[derive(Clone, Debug)]
pub enum Operands {
    /// There is one at most.
    One,
    /// These, and others that cannot be measured.
    Several(Vec<CString>),
    /// Any number of any.
    Unknown,
}

/// File systems (proc_pid_mountinfo(5)) whose link counts are true and whose device numbers are their own.
const TRUE_COUNTS: [&[u8]; 8] = [b"ext2", b"ext3", b"ext4", b"xfs", b"f2fs", b"jfs", b"tmpfs", b"ramfs"];

/// Operands looked at beforehand: more take longer than they can save.
const OPERANDS_MAX: usize = 10_000;

/// The rule for files; directories are the caller's.
#[derive(Clone, Debug)]
pub(crate) enum Again {
    /// Those with several links.
    Linked,
    /// The same on these devices, but for these files, and everything elsewhere.
    Known {
        devs: Arc<[u64]>,
        files: Arc<HashSet<(u64, u64)>>,
    },
    /// Those with several links, and these.
    Named(Arc<HashSet<(u64, u64)>>),
    All,
}

impl Again {
    /// For these operands; links among them are followed if `follow`.
    pub(crate) fn among(operands: &Operands, follow: bool) -> Self {
        match operands {
            Operands::One => Self::Linked,
            Operands::Several(paths) if paths.len() <= OPERANDS_MAX => {
                Self::known(paths, follow, &mounts::read().unwrap_or_default()).unwrap_or(Self::All)
            }
            Operands::Several(_) | Operands::Unknown => Self::All,
        }
    }

    /// `None` if an operand is on another kind of file system: looking at the rest could take long there.
    fn known(paths: &[CString], follow: bool, mounts: &[Mount]) -> Option<Self> {
        let mounts = || mounts.iter().filter(|mount| TRUE_COUNTS.contains(&mount.kind.as_slice()));
        let devs: Arc<[u64]> = mounts().map(|mount| mount.dev).collect();
        let look: fn(&CStr) -> Result<Meta, Errno> = if follow { stat } else { lstat };
        let mut files = HashSet::new();
        for path in paths {
            match look(path) {
                Ok(meta) if !devs.contains(&meta.dev) => return None,
                Ok(meta) => drop(files.insert(meta.id())),
                // It will not be measured, unless it turns up meanwhile.
                Err(_) => {}
            }
        }
        let parts = mounts().filter(|mount| mount.is_part).filter_map(|mount| stat(&mount.point).ok());
        files.extend(parts.map(|meta| meta.id()));
        Some(Self::Known { devs, files: Arc::new(files) })
    }

    /// Whether this file could be met again.
    pub(crate) fn may_be(&self, meta: &Meta) -> bool {
        meta.nlink > 1
            || match self {
                Self::Linked => false,
                Self::Known { devs, files } => !devs.contains(&meta.dev) || files.contains(&meta.id()),
                Self::Named(files) => files.contains(&meta.id()),
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

    fn may(again: &Again, metas: &[Meta]) -> Vec<bool> {
        metas.iter().map(|meta| again.may_be(meta)).collect()
    }

    #[test]
    fn a_file_with_one_link_is_looked_up_where_it_could_be_met_again() {
        let metas = [meta(1, 5, 1), meta(1, 5, 2), meta(1, 6, 1), meta(2, 5, 1)];
        assert_eq!(may(&Again::Linked, &metas), [false, true, false, false]);
        let known = Again::Known { devs: [1].into(), files: Arc::new(HashSet::from([(1, 6)])) };
        assert_eq!(may(&known, &metas), [false, true, true, true]);
        assert_eq!(may(&Again::All, &metas), [true; 4]);
    }

    #[test]
    fn operands_on_other_file_systems_leave_nothing_known() {
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
        assert!(Again::known(&paths, true, &[mount(b"nfs4")]).is_none());
        let known = Again::known(&paths, true, &[mount(b"ext4")]).unwrap();
        assert_eq!(may(&known, &[meta(root.dev, root.ino, 1), meta(root.dev, 0, 1)]), [true, false]);
    }

    #[test]
    fn what_is_not_known_beforehand_is_all_looked_up() {
        assert!(matches!(Again::among(&Operands::Unknown, false), Again::All));
        let many = Operands::Several(vec![c"/".to_owned(); OPERANDS_MAX + 1]);
        assert!(matches!(Again::among(&many, false), Again::All));
    }
}
