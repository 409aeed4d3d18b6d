//! How many entries a scan will find, about: where all of a filesystem is scanned, as many as it says it has inodes in use.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_io::mounts::{self, Mount};

/// What the system knows of a scan's roots.
struct Facts<'f> {
    mounts: &'f [Mount],
    /// Inodes in use on the filesystem that has this mounted on it; none if it does not count them.
    used: &'f dyn Fn(&CStr) -> Option<u64>,
}

/// About so many entries will be found at and below `roots`; none if that cannot be told, as of a part of a filesystem.
pub(super) fn expected(roots: &[CString], one_file_system: bool) -> Option<u64> {
    let mounts = mounts::read().ok()?;
    let whole = |root: &CString| {
        let path = Path::new(OsStr::from_bytes(root.to_bytes()));
        // A link is not followed by the scan.
        if path.is_symlink() { None } else { Some(path.canonicalize().ok()?.into_os_string()) }
    };
    let roots = roots.iter().map(|root| whole(root).map(|path| path.as_bytes().to_vec()));
    let roots = roots.collect::<Option<Vec<_>>>()?;
    count(&roots, one_file_system, &Facts { mounts: &mounts, used: &used })
}

/// statvfs(3); btrfs, for one, says 0 for all inodes.
fn used(point: &CStr) -> Option<u64> {
    let found = rustix::fs::statvfs(point).ok()?;
    found.f_files.checked_sub(found.f_ffree).filter(|used| *used > 0)
}

fn count(roots: &[Vec<u8>], one_file_system: bool, facts: &Facts<'_>) -> Option<u64> {
    // What was mounted last on a directory is what is there.
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
        // To ask an automounter is to have it mount something.
        let asked = !mount.is_part && mount.kind != b"autofs";
        match Some(&mount.point).filter(|_| asked).and_then(|point| (facts.used)(point)) {
            Some(used) => {
                devices.insert(mount.dev, used);
            }
            // What is mounted further below is small, as a rule, where it is not counted: the kernel's own.
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

    fn told(roots: &[&str], one_file_system: bool) -> Option<u64> {
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
        count(&roots, one_file_system, &Facts { mounts: &mounts, used: &used })
    }

    #[test]
    fn of_whole_filesystems_the_inodes_in_use_are_counted_once() {
        assert_eq!(told(&["/"], true), Some(1000));
        assert_eq!(told(&["/"], false), Some(1230));
        assert_eq!(told(&["/srv"], false), Some(200));
        assert_eq!(told(&["/srv", "/srvs", "/srv/again"], true), Some(230));
    }

    #[test]
    fn of_parts_and_of_what_is_not_counted_nothing_is_known() {
        for roots in [&["/home"][..], &["/part"], &["/btrfs"], &["/srv", "/home"], &[]] {
            assert_eq!(told(roots, false), None, "{roots:?}");
        }
    }
}
