//! The expected rows, from the standard library's metadata of the tree.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use serde_json::{Value, json};

use crate::query::home::ROOTS;

/// An entry of the tree.
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) parent: Option<Vec<u8>>,
    pub(crate) meta: Metadata,
    pub(crate) target: Option<Vec<u8>>,
}

/// All entries at and below the roots.
pub(crate) struct ExpectedEntries(pub(crate) Vec<Entry>);

impl ExpectedEntries {
    pub(crate) fn of(directory: &Path) -> Self {
        let mut truth = Self(Vec::new());
        for root in ROOTS {
            truth.add(directory, root.to_vec(), root.to_vec(), None);
        }
        truth
    }

    fn add(&mut self, directory: &Path, path: Vec<u8>, name: Vec<u8>, parent: Option<&[u8]>) {
        let full = directory.join(OsStr::from_bytes(&path));
        let Ok(meta) = fs::symlink_metadata(&full) else { return };
        let target = fs::read_link(&full).ok().map(|target| target.as_os_str().as_bytes().to_vec());
        let is_dir = meta.is_dir();
        self.0.push(Entry { path: path.clone(), name, parent: parent.map(<[u8]>::to_vec), meta, target });
        for child in fs::read_dir(&full).into_iter().flatten().filter(|_| is_dir) {
            let name = child.unwrap().file_name().as_bytes().to_vec();
            let between: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
            self.add(directory, [&path, between, &name[..]].concat(), name, Some(&path));
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| !entry.meta.is_dir())
    }

    pub(crate) fn dirs(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| entry.meta.is_dir())
    }

    /// Returns the entries of a directory.
    pub(crate) fn children(&self, dir: &Entry) -> Vec<&Entry> {
        self.0.iter().filter(|entry| entry.parent.as_ref() == Some(&dir.path)).collect()
    }

    /// Returns all entries below a directory, without the directory itself.
    pub(crate) fn below(&self, dir: &Entry) -> Vec<&Entry> {
        let inside = |entry: &&Entry| entry.path.len() > dir.path.len() && entry.path.starts_with(&dir.path);
        let separate = |entry: &&Entry| dir.path.ends_with(b"/") || entry.path[dir.path.len()] == b'/';
        self.0.iter().filter(inside).filter(separate).collect()
    }

    pub(crate) fn at(&self, path: &str) -> &Entry {
        self.0
            .iter()
            .find(|entry| entry.path == path.as_bytes())
            .unwrap_or_else(|| panic!("there is no {path}"))
    }

    /// Returns the bytes allocated to `entries`; each inode counts once.
    pub(crate) fn allocated_once<'a>(entries: impl Iterator<Item = &'a Entry>) -> u64 {
        let inodes: BTreeMap<_, _> =
            entries.map(|entry| ((entry.meta.dev(), entry.meta.ino()), entry.meta.blocks())).collect();
        inodes.values().sum::<u64>() * 512
    }
}

impl Entry {
    pub(crate) fn kind(&self) -> char {
        let kind = self.meta.file_type();
        let kinds = [
            (kind.is_file(), 'f'),
            (kind.is_dir(), 'd'),
            (kind.is_symlink(), 'l'),
            (kind.is_fifo(), 'p'),
            (kind.is_socket(), 's'),
        ];
        kinds.iter().find(|kind| kind.0).expect("the tree has no devices").1
    }

    /// Returns the extension of a name in lower case: at most 16 bytes after the last dot.
    pub(crate) fn ext(&self) -> Option<String> {
        let name = text(&self.name);
        let (before, after) = name.rsplit_once('.')?;
        (!before.is_empty() && !after.is_empty() && after.len() <= 16).then(|| after.to_ascii_lowercase())
    }

    pub(crate) fn path(&self) -> String {
        text(&self.path)
    }

    /// Returns the columns that `files` and `entries` have in common.
    pub(crate) fn row(&self) -> Value {
        let meta = &self.meta;
        let micros = |seconds: i64, nanos: i64| seconds * 1_000_000 + nanos / 1000;
        json!({
            "path": self.path(), "path_raw": raw(&self.path), "name": text(&self.name), "name_raw": raw(&self.name),
            "ext": if meta.is_dir() { None } else { self.ext() }, "type": self.kind().to_string(),
            "dev": meta.dev().cast_signed(), "ino": meta.ino().cast_signed(), "mode": meta.mode(), "uid": meta.uid(),
            "gid": meta.gid(), "nlink": meta.nlink(), "size": meta.size(), "blocks": meta.blocks(),
            "mtime": micros(meta.mtime(), meta.mtime_nsec()), "mtime_ns": meta.mtime_nsec() % 1000,
            "ctime": micros(meta.ctime(), meta.ctime_nsec()), "link_target": self.target.as_deref().map(text),
            "link_raw": self.target.as_deref().and_then(raw), "parent": self.parent.as_deref().map(text),
        })
    }
}

/// The SELECT list that yields rows as [`Entry::row`] does, for a view `v` with the column
/// `dir_id`.
pub(crate) const ROW: &str = "path, hex(path_raw) AS path_raw, name, hex(name_raw) AS name_raw, ext, type, dev, ino, mode, uid, \
     gid, nlink, size, blocks, epoch_us(mtime) AS mtime, mtime_ns, epoch_us(ctime) AS ctime, link_target, \
     hex(link_raw) AS link_raw, (SELECT d.path FROM dirs d WHERE d.dir_id = v.dir_id) AS parent";

/// Returns a name as the inventory encodes it: bytes that are not UTF-8 become `\xNN`, and
/// backslashes are then doubled.
pub(crate) fn text(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.to_owned();
    }
    let chunks = name.utf8_chunks();
    let part = |chunk: std::str::Utf8Chunk<'_>| {
        let invalid: String = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")).collect();
        chunk.valid().replace('\\', "\\\\") + &invalid
    };
    chunks.map(part).collect()
}

/// Returns the bytes of a name that is not UTF-8.
fn raw(name: &[u8]) -> Option<String> {
    std::str::from_utf8(name).is_err().then(|| name.iter().map(|byte| format!("{byte:02X}")).collect())
}

/// Returns the rows as sorted text.
pub(crate) fn sorted(rows: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut lines: Vec<String> = rows.into_iter().map(|row| row.to_string()).collect();
    lines.sort();
    lines
}

/// Asserts that both sides have the same rows. Panics with the rows that only one side has.
#[track_caller]
pub(crate) fn assert_same(found: Vec<Value>, expected: impl IntoIterator<Item = Value>, what: &str) {
    let (found, expected) = (sorted(found), sorted(expected));
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|row| !those.contains(row)).take(5).cloned().collect()
    };
    assert!(
        found == expected,
        "{what}: {} rows, expected {}\nonly found: {:#?}\nonly expected: {:#?}",
        found.len(),
        expected.len(),
        only(&found, &expected),
        only(&expected, &found)
    );
}
