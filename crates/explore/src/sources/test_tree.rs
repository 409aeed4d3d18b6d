//! Random trees on disk for tests, and facts about them from the standard library.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fathom_io::{FileTime, FileType, Random};

use crate::source::{Amount, Place, Row, RowState, Source};

pub(crate) static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// A temporary tree.
pub(crate) struct TestTree {
    top: tempfile::TempDir,
}

impl TestTree {
    /// Creates a tree with files, holes, hard links, symbolic links and names of any bytes.
    pub(crate) fn random(seed: u64) -> Self {
        let tree = Self { top: tempfile::tempdir().unwrap() };
        fs::create_dir(tree.root()).unwrap();
        tree.grow(&mut Random::new(seed), &tree.root(), 3);
        tree
    }

    /// Creates a tree in which each inode but directories has one name.
    pub(crate) fn without_links(seed: u64) -> Self {
        let tree = Self::random(seed);
        for below in tree.dirs() {
            for path in fs::read_dir(tree.path(&below)).unwrap().map(|entry| entry.unwrap().path()) {
                let found = path.symlink_metadata().unwrap();
                if !found.is_dir() && found.nlink() > 1 {
                    fs::remove_file(path).unwrap();
                }
            }
        }
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.top.path().join("root")
    }

    /// Returns a path beside the root.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub(crate) fn c_root(&self) -> CString {
        CString::new(self.root().as_os_str().as_bytes()).unwrap()
    }

    fn grow(&self, random: &mut Random, dir: &Path, depth: usize) {
        let names: [&[u8]; 8] = [b"a.rs", b"b.TXT", b"c", b"\xff\x01.rs", b"e e", b".f", b"g.rs", b"h.o"];
        let count = random.below(names.len());
        for (at, name) in names.into_iter().enumerate().take(count) {
            let path = dir.join(std::ffi::OsStr::from_bytes(name));
            match random.below(6) {
                0 => symlink("nowhere", &path).unwrap(),
                1 => File::create(&path).unwrap().set_len(1 << (10 + at)).unwrap(),
                2 => {
                    let linked = self.beside("linked");
                    if random.below(3) == 0 || !linked.exists() {
                        let _ = fs::remove_file(&linked);
                        fs::write(&linked, random.bytes(5000)).unwrap();
                    }
                    fs::hard_link(&linked, &path).unwrap();
                }
                _ => fs::write(&path, vec![7; random.below(20_000)]).unwrap(),
            }
        }
        for number in 0..random.below(4) * usize::from(depth > 0) {
            let below = dir.join(format!("d{number}"));
            fs::create_dir(&below).unwrap();
            self.grow(random, &below, depth - 1);
        }
    }

    /// Returns all directories at and below the root, as paths below it.
    pub(crate) fn dirs(&self) -> Vec<Vec<u8>> {
        let (mut found, mut at) = (vec![Vec::new()], 0);
        while let Some(below) = found.get(at).cloned() {
            let path = self.path(&below);
            for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    found.push(super::joined(&below, entry.file_name().as_bytes()));
                }
            }
            at += 1;
        }
        found
    }

    pub(crate) fn path(&self, below: &[u8]) -> PathBuf {
        self.root().join(std::ffi::OsStr::from_bytes(below))
    }

    /// Returns the sums of the tree: the sizes of each inode once, or of each name.
    pub(crate) fn sums(&self, count_links: bool) -> Amount<u64> {
        self.sums_below(b"", count_links)
    }

    /// Returns the sums of a directory: the sizes of each inode once, or of each name.
    pub(crate) fn sums_below(&self, top: &[u8], count_links: bool) -> Amount<u64> {
        let (mut sums, mut seen) = (sizes(&self.path(top)), HashSet::new());
        let is_below = |dir: &Vec<u8>| top.is_empty() || dir == top || dir.starts_with(&[top, b"/"].concat());
        for below in self.dirs().into_iter().filter(is_below) {
            for entry in fs::read_dir(self.path(&below)).unwrap().map(|entry| entry.unwrap().path()) {
                let found = entry.symlink_metadata().unwrap();
                let is_first = count_links || found.is_dir() || seen.insert((found.dev(), found.ino()));
                let sizes = if is_first { sizes(&entry) } else { Amount::default() };
                sums.add(&sizes.with_itself());
            }
        }
        sums
    }

    /// Returns the number of inodes that are not directories.
    pub(crate) fn files(&self) -> u64 {
        let dirs = self.dirs().into_iter();
        let entries = dirs.flat_map(|below| fs::read_dir(self.path(&below)).unwrap());
        let found = entries.map(|entry| entry.unwrap().path().symlink_metadata().unwrap());
        let files = found.filter(|found| !found.is_dir());
        files.map(|found| (found.dev(), found.ino())).collect::<HashSet<_>>().len() as u64
    }

    /// Returns the number that `du` with these options prints for the root.
    pub(crate) fn du(&self, options: &[&str]) -> u64 {
        let output = Command::new("du").args(options).arg(self.root()).output().expect("GNU du runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split('\t').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

pub(crate) fn sizes(path: &Path) -> Amount<u64> {
    let found = path.symlink_metadata().unwrap();
    let has_length = found.is_file() || found.is_symlink();
    Amount {
        apparent: if has_length { found.size() } else { 0 },
        allocated: found.blocks() * 512,
        entries: 0,
    }
}

pub(crate) fn top() -> Place {
    Place { root: 0, below: Vec::new() }
}

pub(crate) fn at(below: &[u8]) -> Place {
    Place { root: 0, below: below.to_vec() }
}

/// Returns the rows of a directory, by name.
pub(crate) fn listed(source: &mut dyn Source, below: &[u8]) -> Vec<Row> {
    let mut rows = source.list(&at(below), &NOT_CANCELLED).unwrap();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

/// Asserts that the rows of every directory have the facts of the standard library.
pub(crate) fn assert_facts(source: &mut dyn Source, tree: &TestTree) {
    for below in tree.dirs() {
        let rows = listed(source, &below);
        let mut names: Vec<_> =
            fs::read_dir(tree.path(&below)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(rows.len(), names.len(), "{below:?}");
        for (row, name) in rows.iter().zip(names) {
            let path = tree.path(&below).join(&name);
            let found = path.symlink_metadata().unwrap();
            assert_eq!(&row.name[..], name.as_bytes());
            assert_eq!(
                (row.identity.dev, row.identity.ino, row.links),
                (found.dev(), found.ino(), found.nlink())
            );
            assert_eq!((row.uid, row.gid, row.growth), (Some(found.uid()), found.gid(), None));
            let ctime = FileTime { sec: found.ctime(), nsec: found.ctime_nsec() as u32 };
            let is_known = !found.is_dir() && found.nlink() == 1;
            assert_eq!(row.ctime, is_known.then_some(ctime));
            assert_eq!(row.file_type, FileType::from_mode(found.mode()));
            if row.file_type != FileType::Directory {
                assert_eq!((row.amount, row.newest_mtime_s), (sizes(&path), Some(found.mtime())));
            }
            assert_eq!(row.state, RowState::Complete);
        }
    }
}

/// Asserts that the sums of every directory have the sizes of each inode below it once.
pub(crate) fn assert_sums(source: &mut dyn Source, tree: &TestTree) {
    for below in tree.dirs() {
        let expected = tree.sums_below(&below, false);
        assert_eq!(sums_of(source, &below), expected, "{below:?}");
        assert_eq!(source.row_sums(Some(&at(&below))).total, Some(expected), "{below:?}");
    }
    assert_eq!(source.row_sums(None).total, Some(tree.sums(false)));
}

/// Returns the sums of a directory, from the row in its parent.
pub(crate) fn sums_of(source: &mut dyn Source, below: &[u8]) -> Amount<u64> {
    if below.is_empty() {
        return source.roots()[0].amount;
    }
    let slash = below.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = slash.map_or((&b""[..], below), |at| (&below[..at], &below[at + 1..]));
    let rows = listed(source, parent);
    rows.iter().find(|row| &row.name[..] == name).expect("a row for each directory").amount
}
