//! The changes between two snapshots of a tree, computed from the standard library's metadata and
//! in-memory maps: slow and memory-hungry, and written from the documented rules alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The identity of an inode: device, inode number, btime.
type InodeIdentity = (u64, u64, std::time::SystemTime);

#[derive(Clone)]
pub(crate) struct SnapshotEntry {
    pub(crate) meta: Metadata,
    link: PathBuf,
}

impl SnapshotEntry {
    fn inode(&self) -> InodeIdentity {
        (self.meta.dev(), self.meta.ino(), self.meta.created().unwrap())
    }

    pub(crate) fn letter(&self) -> &'static str {
        let kind = self.meta.file_type();
        match () {
            () if kind.is_dir() => "d",
            () if kind.is_symlink() => "l",
            () if kind.is_fifo() => "p",
            () => "f",
        }
    }
}

/// All entries at and below a directory, by path.
pub(crate) type Snapshot = BTreeMap<Vec<u8>, SnapshotEntry>;

pub(crate) fn snapshot(base: &Path, root: &str) -> Snapshot {
    let (mut found, mut left) = (Snapshot::new(), vec![PathBuf::from(root)]);
    while let Some(path) = left.pop() {
        let meta = base.join(&path).symlink_metadata().unwrap();
        if meta.is_dir() {
            left.extend(
                fs::read_dir(base.join(&path)).unwrap().map(|entry| path.join(entry.unwrap().file_name())),
            );
        }
        let link = fs::read_link(base.join(&path)).unwrap_or_default();
        found.insert(path.as_os_str().as_bytes().to_vec(), SnapshotEntry { meta, link });
    }
    found
}

/// Path, kind of change, old path, changed fields.
pub(crate) type Change = (Vec<u8>, &'static str, Option<Vec<u8>>, Vec<&'static str>);

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|byte| *byte == b'/').unwrap();
    (&path[..slash], &path[slash + 1..])
}

/// Maps the new path of each directory to its old path.
fn directories(old: &Snapshot, new: &Snapshot) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let dirs = |snapshot: &Snapshot| -> BTreeMap<InodeIdentity, Vec<u8>> {
        let dirs = snapshot.iter().filter(|(_, seen)| seen.meta.is_dir());
        dirs.map(|(path, seen)| (seen.inode(), path.clone())).collect()
    };
    let (were, are) = (dirs(old), dirs(new));
    let mut pairs: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    // Sort by depth, so that parents precede their children.
    let mut paths: Vec<_> = are.iter().collect();
    paths.sort_by_key(|(_, path)| path.iter().filter(|byte| **byte == b'/').count());
    for (inode, path) in paths {
        let found = were.get(inode).cloned().or_else(|| {
            let (above, name) = split(path);
            let namesake = [&pairs.get(above)?[..], b"/", name].concat();
            let was = old.get(&namesake).filter(|was| was.meta.is_dir())?;
            (!are.contains_key(&was.inode())).then_some(namesake)
        });
        if let Some(found) = found {
            pairs.insert(path.clone(), found);
        }
    }
    pairs
}

fn fields(old: &SnapshotEntry, new: &SnapshotEntry) -> Vec<&'static str> {
    let (one, two) = (&old.meta, &new.meta);
    let is_dir = two.is_dir();
    let all = [
        ("type", old.letter() != new.letter()),
        ("size", !is_dir && one.size() != two.size()),
        ("mtime", !is_dir && (one.mtime(), one.mtime_nsec()) != (two.mtime(), two.mtime_nsec())),
        ("mode", one.mode() & 0o7777 != two.mode() & 0o7777),
        ("uid", one.uid() != two.uid()),
        ("gid", one.gid() != two.gid()),
        ("link_target", old.link != new.link),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// Entries of one snapshot without a counterpart so far, by path.
type UnmatchedEntries<'a> = BTreeMap<Vec<u8>, &'a SnapshotEntry>;

/// Returns all changes, sorted by path.
pub(crate) fn changes(old: &Snapshot, new: &Snapshot) -> Vec<Change> {
    let dirs = directories(old, new);
    let back: BTreeMap<_, _> = dirs.iter().map(|(new, old)| (old.clone(), new.clone())).collect();
    let (mut removed, mut created) = (unmatched_directories(old, &back), unmatched_directories(new, &dirs));
    let mut found = directory_changes(old, new, &dirs);
    // The path that an old entry would have now; `None` if its directory is gone.
    let now = |path: &Vec<u8>| {
        let (above, name) = split(path);
        back.get(above).map(|above| [&above[..], b"/", name].concat())
    };
    found.extend(inode_changes(old, new, &now, &mut removed, &mut created));
    for (path, seen) in removed {
        let place = now(&path).filter(|_| !seen.meta.is_dir());
        let place = place.filter(|place| created.get(place).is_some_and(|new| !new.meta.is_dir()));
        let Some(place) = place else {
            found.push((path, "removed", None, Vec::new()));
            continue;
        };
        let fields = fields(seen, created.remove(&place).unwrap());
        if !fields.is_empty() {
            found.push((place, "modified", None, fields));
        }
    }
    found.extend(created.into_keys().map(|path| (path, "created", None, Vec::new())));
    found.sort_by(|one, two| (&one.0, rank(one.1)).cmp(&(&two.0, rank(two.1))));
    found
}

/// Returns the directories that have no counterpart in the other snapshot.
fn unmatched_directories<'a>(
    snapshot: &'a Snapshot,
    pairs: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> UnmatchedEntries<'a> {
    let unmatched_directories =
        snapshot.iter().filter(|(path, seen)| seen.meta.is_dir() && !pairs.contains_key(*path));
    unmatched_directories.map(|(path, seen)| (path.clone(), seen)).collect()
}

fn directory_changes(old: &Snapshot, new: &Snapshot, dirs: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<Change> {
    let mut found = Vec::new();
    for (path, from) in dirs {
        // The root has no parent.
        let is_renamed = path.contains(&b'/') && {
            let ((above, name), (before, was)) = (split(path), split(from));
            name != was || dirs.get(above).map(|above| &above[..]) != Some(before)
        };
        let fields = fields(&old[from], &new[path]);
        if is_renamed {
            found.push((path.clone(), "renamed", Some(from.clone()), fields));
        } else if !fields.is_empty() {
            found.push((path.clone(), "modified", None, fields));
        }
    }
    found
}

/// Groups the names of all entries but directories by inode.
fn files(snapshot: &Snapshot) -> BTreeMap<InodeIdentity, UnmatchedEntries<'_>> {
    let mut names: BTreeMap<_, UnmatchedEntries<'_>> = BTreeMap::new();
    for (path, seen) in snapshot.iter().filter(|(_, seen)| !seen.meta.is_dir()) {
        names.entry(seen.inode()).or_default().insert(path.clone(), seen);
    }
    names
}

/// Returns the changes that the names of inodes prove. Adds the other entries to `removed` and
/// `created`.
fn inode_changes<'a>(
    old: &'a Snapshot,
    new: &'a Snapshot,
    now: &impl Fn(&Vec<u8>) -> Option<Vec<u8>>,
    removed: &mut UnmatchedEntries<'a>,
    created: &mut UnmatchedEntries<'a>,
) -> Vec<Change> {
    let mut found = Vec::new();
    let (mut were, mut are) = (files(old), files(new));
    let inodes: BTreeSet<_> = were.keys().chain(are.keys()).copied().collect();
    for inode in inodes {
        let (mut before, mut after) =
            (were.remove(&inode).unwrap_or_default(), are.remove(&inode).unwrap_or_default());
        let stayed: Vec<_> = before.keys().filter_map(|path| Some((path.clone(), now(path)?))).collect();
        let stayed: Vec<_> = stayed.into_iter().filter(|(_, now)| after.contains_key(now)).collect();
        for (path, now) in &stayed {
            let (old, new) = (before.remove(path).unwrap(), after.remove(now).unwrap());
            let mut fields = fields(old, new);
            let ctime = |seen: &SnapshotEntry| (seen.meta.ctime(), seen.meta.ctime_nsec());
            if fields.is_empty() && old.meta.nlink() == new.meta.nlink() && ctime(old) != ctime(new) {
                fields.push("ctime");
            }
            if !fields.is_empty() {
                found.push((now.clone(), "modified", None, fields));
            }
        }
        while stayed.is_empty() && !before.is_empty() && !after.is_empty() {
            let ((from, old), (path, new)) = (before.pop_first().unwrap(), after.pop_first().unwrap());
            found.push((path, "renamed", Some(from), fields(old, new)));
        }
        removed.extend(before);
        created.extend(after);
    }
    found
}

fn rank(change: &str) -> usize {
    ["removed", "created", "modified", "renamed"].iter().position(|word| *word == change).unwrap()
}
