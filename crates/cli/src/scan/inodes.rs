//! The expected number of entries of a scan, for its progress line: the number of inodes in use, if
//! whole filesystems are scanned.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_io::mounts::{self, Mount};

/// The mounts and inode counts of this machine.
struct MountFacts<'f> {
    mounts: &'f [Mount],
    /// Returns the number of inodes in use on the filesystem at a mount point; `None` if the
    /// filesystem does not count inodes.
    used: &'f dyn Fn(&CStr) -> Option<u64>,
}

/// Returns the approximate number of entries at and below `roots`. `None` if it is not known, for
/// example for a part of a filesystem.
pub(super) fn expected(roots: &[CString], one_file_system: bool) -> Option<u64> {
    let mounts = mounts::read().ok()?;
    let whole = |root: &CString| {
        let path = Path::new(OsStr::from_bytes(root.to_bytes()));
        // A scan does not follow a root that is a symbolic link.
        if path.is_symlink() { None } else { Some(path.canonicalize().ok()?.into_os_string()) }
    };
    let roots = roots.iter().map(|root| whole(root).map(|path| path.as_bytes().to_vec()));
    let roots = roots.collect::<Option<Vec<_>>>()?;
    count_inodes(&roots, one_file_system, &MountFacts { mounts: &mounts, used: &inodes_in_use })
}

/// Calls statvfs(3). Some filesystems, such as btrfs, report 0 inodes in all.
fn inodes_in_use(point: &CStr) -> Option<u64> {
    let found = rustix::fs::statvfs(point).ok()?;
    found.f_files.checked_sub(found.f_ffree).filter(|used| *used > 0)
}

fn count_inodes(roots: &[Vec<u8>], one_file_system: bool, facts: &MountFacts<'_>) -> Option<u64> {
    // The last mount on a directory hides the earlier ones.
    let at: BTreeMap<&[u8], &Mount> =
        facts.mounts.iter().map(|mount| (mount.point.to_bytes(), mount)).collect();
    let mut scanned = BTreeSet::new();
    for root in roots {
        scanned.insert(*at.get_key_value(&root[..])?.0);
        if !one_file_system {
            scanned.extend(at.keys().filter(|point| is_below(point, root)));
        }
    }
    let mut devices = BTreeMap::new();
    for (point, mount) in at.into_iter().filter(|(point, _)| scanned.contains(point)) {
        let is_root = roots.iter().any(|root| root == point);
        // A statvfs(3) of an automounter could trigger a mount.
        let may_query = !mount.is_part && mount.kind != b"autofs";
        match Some(&mount.point).filter(|_| may_query).and_then(|point| (facts.used)(point)) {
            Some(used) => {
                devices.insert(mount.dev, used);
            }
            // Mounts below a root without inode counts are usually the kernel's own and small.
            None if is_root => return None,
            None => {}
        }
    }
    (!roots.is_empty()).then(|| devices.into_values().fold(0, u64::saturating_add))
}

fn is_below(point: &[u8], root: &[u8]) -> bool {
    let rest = point.strip_prefix(root);
    rest.is_some_and(|rest| root.ends_with(b"/") && !rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &CStr, dev: u64, is_part: bool) -> Mount {
        let (kind, source, options) = (b"ext4".to_vec(), b"/dev/sda1".to_vec(), b"rw".to_vec());
        Mount { point: point.to_owned(), dev, kind, source, options, is_part }
    }

    fn expected_entries(roots: &[&str], one_file_system: bool) -> Option<u64> {
        let mounts = [
            mount(c"/", 1, false),
            mount(c"/srv", 2, false),
            mount(c"/srv/again", 2, false),
            mount(c"/srvs", 3, false),
            mount(c"/btrfs", 4, false),
            mount(c"/part", 1, true),
        ];
        let used = |point: &CStr| match point.to_bytes() {
            b"/" | b"/part" => Some(1000),
            b"/srv" | b"/srv/again" => Some(200),
            b"/srvs" => Some(30),
            _ => None,
        };
        let roots: Vec<_> = roots.iter().map(|root| root.as_bytes().to_vec()).collect();
        count_inodes(&roots, one_file_system, &MountFacts { mounts: &mounts, used: &used })
    }

    #[test]
    fn inodes_of_whole_filesystems_are_counted_once() {
        assert_eq!(expected_entries(&["/"], true), Some(1000));
        assert_eq!(expected_entries(&["/"], false), Some(1230));
        assert_eq!(expected_entries(&["/srv"], false), Some(200));
        assert_eq!(expected_entries(&["/srv", "/srvs", "/srv/again"], true), Some(230));
    }

    #[test]
    fn parts_of_filesystems_and_uncounted_inodes_give_no_number() {
        for roots in [&["/home"][..], &["/part"], &["/btrfs"], &["/srv", "/home"], &[]] {
            assert_eq!(expected_entries(roots, false), None, "{roots:?}");
        }
    }
}
