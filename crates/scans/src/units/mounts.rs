//! The filesystems at and below the operands, by which a machine determines whether it sees what
//! the driver sees.
//!
//! A machine that lacks a mount reads the empty directory below it, and one with another mount
//! reads something else. Neither is an error of any call, so the mounts are compared.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use fathom_walk::mounts::{self, Mount};
use rustix::fs::{AtFlags, StatxFlags};
use serde::{Deserialize, Serialize};

use super::job::HexBytes;

/// The filesystems at and below an operand, as a machine sees them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SeenFilesystems {
    /// The identity of the operand; `None` if it does not exist.
    operand: Option<MountIdentity>,
    /// The mount points below it, as paths relative to it. `None` if there is no mount table.
    below: Option<MountsBelow>,
    /// The mount namespace and the boot. Within one, all processes see the same mounts.
    namespace: Option<String>,
}

/// The identity of the root of a mount, or of an operand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MountIdentity {
    filesystem_type: i64,
    /// The filesystem's number; 0 if it has none.
    filesystem: u64,
    ino: u64,
    /// The creation time, in seconds and nanoseconds, if the filesystem has it.
    btime: Option<(i64, u32)>,
}

/// The mount points below an operand, as paths relative to it.
type MountsBelow = BTreeMap<HexBytes, Option<MountIdentity>>;

impl SeenFilesystems {
    /// Returns what this machine has at and below the absolute path `operand`. With
    /// `one_file_system` the mounts below are not entered, so only their places count.
    pub(super) fn of(operand: &CString, one_file_system: bool) -> Self {
        let below = mounts_below(operand, one_file_system);
        Self { operand: MountIdentity::of(operand), below, namespace: namespace() }
    }

    /// Returns the path, relative to the operand, at which this machine has something else than
    /// the driver. `has_begun` tells that it had the same before: an operand that was removed since
    /// is a finding of the scan.
    pub(super) fn difference(
        &self,
        operand: &CString,
        one_file_system: bool,
        has_begun: bool,
    ) -> Option<PathBuf> {
        let found = MountIdentity::of(operand);
        if has_begun && found.is_none() {
            return None;
        }
        if !is_same(self.operand.as_ref(), found.as_ref()) {
            return Some(PathBuf::new());
        }
        if self.namespace.is_some() && self.namespace == namespace() {
            // A filesystem that is mounted while the scan runs is seen by all of its processes.
            return None;
        }
        difference_below(self.below.as_ref()?, &mounts_below(operand, one_file_system)?)
    }
}

fn mounts_below(operand: &CString, one_file_system: bool) -> Option<MountsBelow> {
    let identity = |point: &CString| if one_file_system { None } else { MountIdentity::of(point) };
    let points = points_below(&mounts::read().ok()?, &canonical(operand)).into_iter();
    Some(points.map(|(relative, point)| (HexBytes(relative), identity(&point))).collect())
}

fn difference_below(known: &MountsBelow, found: &MountsBelow) -> Option<PathBuf> {
    let differs = |(path, identity): (&HexBytes, &Option<MountIdentity>), other: &MountsBelow| {
        let is_same = other.get(path).is_some_and(|other| is_same(identity.as_ref(), other.as_ref()));
        (!is_same).then(|| PathBuf::from(OsStr::from_bytes(&path.0)))
    };
    let missing = known.iter().find_map(|mount| differs(mount, found));
    missing.or_else(|| found.iter().find_map(|mount| differs(mount, known)))
}

impl MountIdentity {
    fn of(path: &CString) -> Option<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found =
            rustix::fs::statx(rustix::fs::CWD, path, flags, StatxFlags::INO | StatxFlags::BTIME).ok()?;
        let filesystem = rustix::fs::statvfs(path).ok()?.f_fsid;
        let filesystem_type = rustix::fs::statfs(path).ok()?.f_type;
        let has_btime = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let btime = has_btime.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec));
        Some(Self { filesystem_type: filesystem_type as i64, filesystem, ino: found.stx_ino, btime })
    }
}

/// Returns whether both may be the same. Network filesystems have numbers only on some clients.
fn is_same(one: Option<&MountIdentity>, other: Option<&MountIdentity>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    let differ = |one: u64, other: u64| one != 0 && other != 0 && one != other;
    one.filesystem_type == other.filesystem_type
        && one.ino == other.ino
        && !differ(one.filesystem, other.filesystem)
        && one.btime.zip(other.btime).is_none_or(|(one, other)| one == other)
}

/// Returns the path of an operand as the mount table has it. A link that is an operand is not
/// followed.
fn canonical(operand: &CString) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(operand.as_bytes()));
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if is_link { path.to_owned() } else { path.canonicalize().unwrap_or_else(|_| path.to_owned()) }
}

/// Returns the mount points below `top`, relative to it, and whole. Those at and below a mount of
/// the automounter come and go, so they are left out.
fn points_below(table: &[Mount], top: &Path) -> BTreeMap<Vec<u8>, CString> {
    let path = |mount: &Mount| PathBuf::from(OsString::from_vec(mount.point.to_bytes().to_vec()));
    let automounts: Vec<PathBuf> = table.iter().filter(|mount| mount.kind == b"autofs").map(&path).collect();
    let is_lasting = |point: &Path| !automounts.iter().any(|mount| point.starts_with(mount));
    let relative = |mount: &Mount| {
        let point = path(mount);
        let below = point.strip_prefix(top).ok()?.as_os_str().as_bytes().to_vec();
        (!below.is_empty() && is_lasting(&point)).then(|| (below, mount.point.clone()))
    };
    table.iter().filter_map(relative).collect()
}

fn namespace() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let mounts = fs::read_link("/proc/self/ns/mnt").ok()?;
    Some(format!("{} {}", boot.trim_end(), mounts.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, kind: &str) -> Mount {
        Mount {
            point: CString::new(point).unwrap(),
            dev: 1,
            kind: kind.as_bytes().to_vec(),
            source: Vec::new(),
            options: Vec::new(),
            is_part: false,
        }
    }

    fn identity(ino: u64) -> Option<MountIdentity> {
        Some(MountIdentity { filesystem_type: 1, filesystem: 0, ino, btime: None })
    }

    fn below(mounts: &[(&str, u64)]) -> MountsBelow {
        mounts.iter().map(|(path, ino)| (HexBytes(path.as_bytes().to_vec()), identity(*ino))).collect()
    }

    #[test]
    fn points_below_are_those_of_lasting_mounts() {
        let table = [
            mount("/", "ext4"),
            mount("/srv", "nfs"),
            mount("/srv/a/big", "tmpfs"),
            mount("/srvother", "nfs"),
            mount("/srv/home", "autofs"),
            mount("/srv/home/ann", "nfs"),
        ];
        let below = |top: &str| -> Vec<String> {
            let found = points_below(&table, Path::new(top));
            found.into_keys().map(|path| String::from_utf8(path).unwrap()).collect()
        };
        assert_eq!(below("/srv"), ["a/big"]);
        assert_eq!(below("/"), ["srv", "srv/a/big", "srvother"]);
        assert_eq!(below("/srv/a/big"), [""; 0]);
    }

    #[test]
    fn mounts_below_that_are_missing_other_or_more_differ() {
        let known = below(&[("a/big", 1), ("b", 1)]);
        let differs = |found: &[(&str, u64)]| difference_below(&known, &below(found));
        assert_eq!(differs(&[("a/big", 1), ("b", 1)]), None);
        assert_eq!(differs(&[("b", 1)]), Some("a/big".into()), "missing");
        assert_eq!(differs(&[("a/big", 1), ("b", 9)]), Some("b".into()), "another one");
        assert_eq!(differs(&[("a/big", 1), ("b", 1), ("c", 1)]), Some("c".into()), "one more");
    }

    #[test]
    fn only_another_mount_table_is_compared() {
        let temp = tempfile::tempdir().unwrap();
        let operand = CString::new(temp.path().as_os_str().as_bytes()).unwrap();
        let here = SeenFilesystems::of(&operand, false);
        let later = SeenFilesystems { below: Some(below(&[("new", 1)])), ..here.clone() };
        assert_eq!(later.difference(&operand, false, true), None, "it is the same, later");
        let elsewhere = SeenFilesystems { namespace: None, ..later };
        assert_eq!(elsewhere.difference(&operand, false, true), Some("new".into()));
        let no_table = SeenFilesystems { below: None, ..elsewhere };
        assert_eq!(no_table.difference(&operand, false, true), None);
    }
}
