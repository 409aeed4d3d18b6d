//! Trees that a test creates, walks and removes, and the lines that a walk should report about
//! them, computed with the standard library.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use fathom_io::{filesystem, sys};
use fathom_walk::{Errno, FileType, Found, Meta};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use tempfile::TempDir;

use super::record::{enter_line, item_line};

/// A temporary directory that is removed when the value is dropped.
pub(crate) struct Tree {
    temp: TempDir,
}

impl Tree {
    /// Creates the tree in the directory of temporary files.
    pub(crate) fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// Creates the tree in memory if there is room for many files: creating them takes less time,
    /// and only the walk is measured.
    pub(crate) fn in_memory() -> Self {
        const FILES: u64 = 1_000_000;
        const BYTES: u64 = 1 << 30;
        let shm = Path::new("/dev/shm");
        let roomy = rustix::fs::statvfs(shm)
            .is_ok_and(|stat| stat.f_favail > FILES && stat.f_bavail * stat.f_bsize > BYTES);
        let made = if roomy { tempfile::tempdir_in(shm).ok() } else { None };
        Self::of(made.unwrap_or_else(|| tempfile::tempdir().unwrap()))
    }

    fn of(temp: TempDir) -> Self {
        // Some tests walk the tree as another user.
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(temp.path().join("t")).unwrap();
        Self { temp }
    }

    /// Returns the directory to walk.
    pub(crate) fn root(&self) -> PathBuf {
        self.beside("t")
    }

    /// Returns a path outside the root.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Returns a path below the root.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn file(&self, name: &str) {
        fs::write(self.path(name), name).unwrap();
    }

    pub(crate) fn symlink(&self, to: &str, name: &str) {
        symlink(to, self.path(name)).unwrap();
    }
}

/// Fills `dir` with `count` hard links to few files: a walk sees `count` entries, and links are
/// faster to create than files.
pub(crate) fn fill(dir: &Path, count: usize) {
    // ext4 allows at most 65,000 links to a file.
    const LINKS: usize = 10_000;
    for start in (0..count).step_by(LINKS) {
        let first = dir.join(format!("file-{start}"));
        fs::write(&first, b"").unwrap();
        for number in start + 1..count.min(start + LINKS) {
            fs::hard_link(&first, dir.join(format!("file-{number}"))).unwrap();
        }
    }
}

/// Creates the directory `wide`: the first names that are read belong to files, and the others
/// include directories with `levels` levels.
pub(crate) fn late_directories(tree: &Tree, levels: usize) {
    const FIRST: usize = 17_000;
    let wide = tree.dir("wide");
    fill(&wide, 45_000);
    for number in 0..100 {
        // The siblings of the directory on each level still need the descriptor of that level.
        for level in 1..levels {
            for name in ["a", "z"] {
                tree.dir(&format!("wide/dir-{number}/{}{name}", "d/".repeat(level - 1)));
            }
        }
        tree.dir(&format!("wide/dir-{number}/{}", "d/".repeat(levels - 1)));
    }
    let mut early: Vec<_> = fs::read_dir(&wide).unwrap().take(FIRST).map(Result::unwrap).collect();
    early.retain(|entry| entry.file_type().unwrap().is_dir());
    early.iter().for_each(|entry| fs::remove_dir_all(entry.path()).unwrap());
}

/// Creates `width` directories in each directory, on `levels` levels, and a file in each.
pub(crate) fn bushy(dir: &Path, width: usize, levels: usize) {
    fs::write(dir.join("f"), b"").unwrap();
    for number in 0..if levels == 0 { 0 } else { width } {
        let below = dir.join(format!("d{number}"));
        fs::create_dir(&below).unwrap();
        bushy(&below, width, levels - 1);
    }
}

/// Creates files of every type that needs no privilege, names of every byte, and symbolic links to
/// files, directories, ancestors, themselves and missing paths.
pub(crate) fn mixed(tree: &Tree) {
    for name in ["a/b/c", "a/empty", "z"] {
        tree.dir(name);
    }
    for name in ["a/f", "a/b/g", "a/b/c/h", "last"] {
        tree.file(name);
    }
    for (to, name) in [
        ("b", "a/to-dir"),
        ("f", "a/to-file"),
        ("nowhere", "a/dangling"),
        (".", "a/itself"),
        ("..", "a/b/up"),
        ("knot", "knot"),
        ("../..", "a/b/top"),
    ] {
        tree.symlink(to, name);
    }
    fs::hard_link(tree.path("last"), tree.path("a/same")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, tree.path("fifo"), rustix::fs::FileType::Fifo, Mode::RUSR, 0)
        .unwrap();
    drop(UnixListener::bind(tree.path("socket")).unwrap());
    for byte in (1..=255).filter(|byte| !b"/.".contains(byte)) {
        let name = std::ffi::OsString::from_vec(vec![byte]);
        fs::write(tree.path("z").join(name), b"").unwrap();
    }
}

/// A chain of nested directories. Each contains the next one and the directories `siblings`.
pub(crate) struct Chain {
    tree: Tree,
    siblings: &'static [&'static CStr],
}

const LINK: &CStr = c"m";
const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Chain {
    /// Creates `depth` levels. The next directory is called `m`, and every name has one byte, so
    /// siblings sort before or after the next directory.
    pub(crate) fn new(depth: usize, siblings: &'static [&'static CStr]) -> Self {
        let tree = Tree::in_memory();
        let mut dir = OwnedFd::from(File::open(tree.root()).unwrap());
        for _ in 0..depth {
            for name in siblings.iter().copied().chain([LINK]) {
                mkdirat(&dir, name, Mode::RWXU).unwrap();
            }
            dir = openat(&dir, LINK, DIR_FLAGS, Mode::empty()).unwrap();
        }
        Self { tree, siblings }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.tree.root()
    }
}

impl Drop for Chain {
    /// Removes the directories from the deepest one upwards: a path would be too long and a
    /// recursion too deep.
    fn drop(&mut self) {
        let Ok(root) = File::open(self.tree.root()) else { return };
        let mut dir = OwnedFd::from(root);
        let mut depth = 0;
        while let Ok(next) = openat(&dir, LINK, DIR_FLAGS, Mode::empty()) {
            (dir, depth) = (next, depth + 1);
        }
        for _ in 0..depth {
            let Ok(up) = openat(&dir, c"..", DIR_FLAGS, Mode::empty()) else { return };
            dir = up;
            for name in self.siblings.iter().copied().chain([LINK]) {
                // A directory that cannot be removed is left to the cleanup of temporary files.
                let _ = unlinkat(&dir, name, AtFlags::REMOVEDIR);
            }
        }
    }
}

/// Returns the lines that a walk should report about the tree below `root`, without following
/// links: in the order of readdir(3), except for very wide directories where inode order pays.
pub(crate) fn expected(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    below(root, root.as_os_str().as_bytes(), 0, &mut lines);
    lines
}

fn below(dir: &Path, name: &[u8], depth: usize, lines: &mut Vec<String>) {
    let meta = fs::symlink_metadata(dir).unwrap();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap();
            let line = enter_line(name, depth, meta.ino(), Found::Unreadable);
            lines.push(format!("{line}: error {}", errno.raw_os_error()));
            lines.push("leave".to_owned());
            return;
        }
    };
    lines.push(enter_line(name, depth, meta.ino(), Found::Readable));
    let mut entries: Vec<_> = entries.map(Result::unwrap).collect();
    // The rule of gnulib's fts: it reads 100,000 names at a time and sorts a batch of more than
    // 10,000.
    let ordered = sys::fs_magic(File::open(dir).unwrap().as_fd()).is_none_or(filesystem::inode_sort_pays);
    for batch in entries.chunks_mut(100_000).filter(|batch| ordered && batch.len() > 10_000) {
        batch.sort_by_key(DirEntryExt::ino);
    }
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        if entry.file_type().unwrap().is_dir() {
            below(&path, name.as_bytes(), depth + 1, lines);
        } else {
            let found = fs::symlink_metadata(&path);
            let meta =
                found.map(|found| fields(&found)).map_err(|error| Errno::from_io_error(&error).unwrap());
            let listed = listed(entry.file_type().unwrap());
            lines.push(item_line(name.as_bytes(), listed, Some(meta)));
        }
    }
    lines.push("leave".to_owned());
}

fn fields(found: &fs::Metadata) -> Meta {
    let size = i64::try_from(found.size()).unwrap();
    Meta { dev: found.dev(), ino: found.ino(), size, mode: found.mode(), ..Meta::default() }
}

fn listed(file_type: fs::FileType) -> FileType {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if file_type.is_symlink() => FileType::Symlink,
        () if file_type.is_fifo() => FileType::Fifo,
        () if file_type.is_socket() => FileType::Socket,
        () => FileType::Regular,
    }
}

/// Returns the path with a terminating NUL.
pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}
