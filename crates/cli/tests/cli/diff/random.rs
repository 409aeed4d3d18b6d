//! Random trees with random changes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::diff::truth::{self, Change, Snapshot};
use crate::diff::{diff, objects, path, scan};
use crate::support::Tree;
use crate::support::random::Random;

const NAMES: [&[u8]; 12] = [
    b"a",
    b"b",
    b"c.txt",
    b"-d",
    b"e e",
    b"new\nline",
    b"\xff\xfe",
    b"q'\"\\",
    "\u{e9}".as_bytes(),
    b".hidden",
    b"a-b",
    b"\\xff",
];

/// Number of changes made to each tree.
const CHANGES_PER_TREE: usize = 30;

/// A random tree, and the generator that changes it.
struct ChangingTree {
    tree: Tree,
    random: Random,
}

impl ChangingTree {
    fn new(seed: u64) -> Self {
        let (tree, random) = (Tree::parse("s/"), Random::new(seed));
        let mut forest = Self { tree, random };
        for _ in 0..60 {
            forest.make();
        }
        forest
    }

    fn snapshot(&self) -> Snapshot {
        truth::snapshot(self.tree.path(), "s")
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        self.tree.path().join(OsStr::from_bytes(path))
    }

    /// Returns a random entry other than the root for which `wanted` is true.
    fn any(&mut self, wanted: impl Fn(&fs::Metadata) -> bool) -> Option<PathBuf> {
        let snapshot = self.snapshot();
        let found: Vec<_> =
            snapshot.iter().filter(|(path, seen)| path.contains(&b'/') && wanted(&seen.meta)).collect();
        let place = self.random.below(found.len().max(1));
        found.get(place).map(|(path, _)| self.at(path))
    }

    /// Returns a path that does not exist.
    fn free(&mut self) -> PathBuf {
        loop {
            let above = self.any(fs::Metadata::is_dir);
            let above = above.filter(|_| self.random.chance(80)).unwrap_or_else(|| self.at(b"s"));
            let path = above.join(OsStr::from_bytes(self.random.pick(&NAMES)));
            if path.symlink_metadata().is_err() {
                return path;
            }
            let more = format!("n{}", self.random.below(10_000));
            if above.join(&more).symlink_metadata().is_err() {
                return above.join(more);
            }
        }
    }

    fn make(&mut self) {
        let path = self.free();
        match self.random.below(8) {
            0..3 => fs::create_dir(path).unwrap(),
            3 => symlink(["x", "yy"][self.random.below(2)], path).unwrap(),
            4 => self.link(&path),
            _ => fs::write(path, vec![b'x'; self.random.below(6000)]).unwrap(),
        }
    }

    fn link(&mut self, path: &Path) {
        if let Some(file) = self.any(|meta| !meta.is_dir()) {
            fs::hard_link(file, path).unwrap();
        }
    }

    fn change(&mut self) {
        let is_file = fs::Metadata::is_file;
        let path = match self.random.below(3) {
            0 => self.any(fs::Metadata::is_dir),
            _ => self.any(|meta| !meta.is_dir()),
        };
        let Some(path) = path else { return self.make() };
        let meta = path.symlink_metadata().unwrap();
        match self.random.below(12) {
            0 | 1 => self.make(),
            2 if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
            2 | 3 if !meta.is_dir() => fs::remove_file(path).unwrap(),
            4 | 5 => self.rename(&path),
            6 => self.swap(&path),
            7 if !meta.is_symlink() => {
                let mode = meta.permissions().mode() ^ [0o020, 0o004, 0][self.random.below(3)];
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
            8 => self.replace(&path),
            9 => self.save(),
            10 if is_file(&meta) => fs::write(&path, vec![b'y'; self.random.below(6000)]).unwrap(),
            _ => {
                let free = self.free();
                self.link(&free);
            }
        }
    }

    fn rename(&mut self, path: &Path) {
        let to = self.free();
        if !to.starts_with(path) {
            fs::rename(path, to).unwrap();
        }
    }

    fn swap(&mut self, path: &Path) {
        let Some(other) = self.any(|_| true) else { return };
        if !other.starts_with(path) && !path.starts_with(&other) {
            let aside = self.tree.path().join("aside");
            fs::rename(path, &aside).unwrap();
            fs::rename(&other, path).unwrap();
            fs::rename(aside, other).unwrap();
        }
    }

    /// Replaces an entry by one of the other type (file or directory) or of the same type.
    fn replace(&mut self, path: &Path) {
        if path.symlink_metadata().unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        match self.random.below(3) {
            0 => fs::write(path, b"other").unwrap(),
            1 => symlink("other", path).unwrap(),
            _ => fs::create_dir(path).unwrap(),
        }
    }

    /// Saves a file as editors do: a copy with the same contents and mtime is renamed over it.
    fn save(&mut self) {
        let Some(path) = self.any(fs::Metadata::is_file) else { return };
        let aside = self.tree.path().join("aside");
        fs::copy(&path, &aside).unwrap();
        if self.random.chance(50) {
            let times = fs::FileTimes::new().set_modified(path.metadata().unwrap().modified().unwrap());
            fs::File::options().write(true).open(&aside).unwrap().set_times(times).unwrap();
        }
        fs::rename(aside, path).unwrap();
    }
}

fn found(object: &Value) -> Change {
    let words = ["removed", "created", "modified", "renamed"];
    let verb = words.into_iter().find(|word| object["change"] == **word).unwrap();
    let known = ["type", "size", "mtime", "mode", "uid", "gid", "link_target", "ctime"];
    let field = |word: &Value| known.into_iter().find(|known| word == known).unwrap();
    let fields = object["fields"].as_array().map_or(Vec::new(), |words| words.iter().map(field).collect());
    (path(object, "path").unwrap(), verb, path(object, "old_path"), fields)
}

/// Asserts that the object describes the entry of each side as its snapshot has it.
#[track_caller]
fn assert_describes(object: &Value, old: &Snapshot, new: &Snapshot) {
    let place = path(object, "path").unwrap();
    let was = path(object, "old_path").unwrap_or_else(|| place.clone());
    for (side, seen) in [("old", old.get(&was)), ("new", new.get(&place))] {
        let facts = &object[side];
        let Some(seen) = seen.filter(|_| !facts.is_null()) else { continue };
        let inode = facts["ino"].as_u64().unwrap();
        if object["old_path"].is_null() && side == "old" && inode != seen.meta.ino() {
            // An entry of a renamed directory: its own name in the old snapshot is a different
            // path.
            continue;
        }
        assert_eq!(inode, seen.meta.ino(), "{object}");
        assert_eq!(facts["type"], seen.letter(), "{object}");
        assert_eq!(facts["size"].as_u64().unwrap(), seen.meta.size(), "{object}");
        assert_eq!(facts["nlink"].as_u64().unwrap(), seen.meta.nlink(), "{object}");
        assert_eq!(facts["mode"], format!("{:04o}", seen.meta.mode() & 0o7777), "{object}");
    }
}

#[test]
fn random_changes_are_reported() {
    let (mut kinds, mut trees) = ([0; 4], 0);
    for seed in fathom_cases::seeds(40) {
        trees += 1;
        let mut forest = ChangingTree::new(seed);
        let old = forest.snapshot();
        if old.values().any(|seen| seen.meta.created().is_err()) {
            return crate::support::skip("needs a file system that says when a file was made");
        }
        scan(&forest.tree, "old");
        for _ in 0..CHANGES_PER_TREE {
            forest.change();
        }
        let new = forest.snapshot();
        scan(&forest.tree, "new");
        let expected = truth::changes(&old, &new);
        let (objects, last) = objects(&diff(&forest.tree, &["--json"], i32::from(!expected.is_empty())));
        let all: Vec<_> = objects.iter().map(found).collect();
        for (found, expected) in all.iter().zip(&expected) {
            assert_eq!(found, expected, "seed {seed}");
        }
        assert_eq!(all.len(), expected.len(), "seed {seed}");
        objects.iter().for_each(|object| assert_describes(object, &old, &new));
        for (count, word) in kinds.iter_mut().zip(["removed", "created", "modified", "renamed"]) {
            let here = all.iter().filter(|change| change.1 == word).count();
            assert_eq!(last["total"][word], here);
            *count += here;
        }
        let paths: Vec<_> = all.iter().flat_map(|change| [&change.0[..], b"\0"]).collect();
        assert_eq!(diff(&forest.tree, &["-0"], i32::from(!all.is_empty())), paths.concat(), "seed {seed}");
    }
    assert!(trees == 1 || kinds.iter().all(|count| *count > 2 * trees), "{kinds:?}");
}
