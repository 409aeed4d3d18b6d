//! Builds the trees that programs are compared on, and removes them whatever their permissions and
//! depth.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps, mkdirat, mknodat, openat, utimensat,
};

/// Number of lines that [`Tree::listing`] shows.
const LISTING_MAX: usize = 60;
/// Number of bytes that it shows of a line.
const LISTING_LINE_MAX: usize = 150;

/// A temporary directory, removed with its contents when dropped. The programs run in `path()`, one
/// level below the directory that is removed, so that `..` is small and private too.
/// `FATHOM_KEEP=1` keeps the directory.
pub(crate) struct Tree {
    outer: PathBuf,
    inner: PathBuf,
}

impl Tree {
    /// Returns an empty tree on the file system of temporary files.
    pub(crate) fn new() -> Tree {
        Tree::inside(&std::env::temp_dir())
    }

    /// Returns an empty tree on tmpfs, which supports sizes up to 2^63 - 1 and any time stamp. Its
    /// directories are not read in inode order.
    pub(crate) fn on_tmpfs() -> Tree {
        Tree::inside(Path::new("/dev/shm"))
    }

    fn inside(base: &Path) -> Tree {
        let everyone = fs::Permissions::from_mode(0o755);
        let made = tempfile::Builder::new().prefix("fathom-").permissions(everyone).tempdir_in(base);
        let outer = made.unwrap_or_else(|error| panic!("{base:?}: {error}")).keep();
        let inner = outer.join("t");
        fs::create_dir(&inner).expect("the directory above was just made");
        Tree { outer, inner }
    }

    /// Returns a tree with the entries of `spec`, which are separated by commas: `d/` is a
    /// directory, `f` an empty file, `f 4096` a file with that much data, `f ~8G` a file that is
    /// one hole, `f = other` a hard link, `l -> target` a symbolic link, `p |` a fifo, `s %` a
    /// socket. Missing parent directories are created.
    pub(crate) fn parse(spec: &str) -> Tree {
        Tree::new().with(spec)
    }

    /// Adds the entries of `spec`, in the format of [`Tree::parse`].
    pub(crate) fn with(self, spec: &str) -> Tree {
        for entry in spec.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let words: Vec<&str> = entry.split_whitespace().collect();
            match words[..] {
                [dir] if dir.ends_with('/') => self.dir(dir),
                [file] => self.file(file, 0),
                [file, "="] | [file, "->"] => panic!("{file} without a target"),
                [fifo, "|"] => self.node(fifo, FileType::Fifo),
                [socket, "%"] => self.node(socket, FileType::Socket),
                [file, size] => match size.strip_prefix('~') {
                    Some(length) => self.hole(file, bytes(length)),
                    None => self.file(file, bytes(size)),
                },
                [name, "=", other] => self.hard_link(name, other),
                [name, "->", target] => self.symlink(name, target),
                _ => panic!("cannot read {entry:?}"),
            }
        }
        self
    }

    /// The directory in which programs run.
    pub(crate) fn path(&self) -> &Path {
        &self.inner
    }

    /// Whether the tree stays when it is dropped.
    pub(crate) fn is_kept(&self) -> bool {
        std::env::var_os("FATHOM_KEEP").is_some()
    }

    /// Whether the tree is on tmpfs.
    pub(crate) fn is_on_tmpfs(&self) -> bool {
        const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
        rustix::fs::statfs(&self.inner).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
    }

    /// Returns the path of `name`.
    pub(crate) fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.inner.join(Path::new(name.as_ref()))
    }

    fn ready(&self, name: impl AsRef<OsStr>) -> PathBuf {
        let path = self.at(name);
        let above = path.parent().expect("it is below the tree's directory");
        fs::create_dir_all(above).unwrap_or_else(|error| panic!("{above:?}: {error}"));
        path
    }

    /// Creates a directory.
    pub(crate) fn dir(&self, name: impl AsRef<OsStr>) {
        let path = self.ready(name);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }

    /// Creates a file with `length` bytes of data.
    pub(crate) fn file(&self, name: impl AsRef<OsStr>, length: u64) {
        let path = self.ready(name);
        let data = vec![b'x'; usize::try_from(length).expect("data of a test fits in memory")];
        let made = File::create(&path).and_then(|mut file| file.write_all(&data));
        made.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }

    /// Creates a file that holds `bytes`.
    pub(crate) fn holding(&self, name: impl AsRef<OsStr>, bytes: impl AsRef<[u8]>) {
        let path = self.ready(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }

    /// Creates a file of `length` bytes that is one hole.
    pub(crate) fn hole(&self, name: impl AsRef<OsStr>, length: u64) {
        let path = self.ready(name);
        let made = File::create(&path).and_then(|file| file.set_len(length));
        made.unwrap_or_else(|error| panic!("{path:?}: {length}: {error}"));
    }

    /// Creates `name` as a hard link to `other`, which may be a symbolic link.
    pub(crate) fn hard_link(&self, name: impl AsRef<OsStr>, other: impl AsRef<OsStr>) {
        let (path, other) = (self.ready(name), self.at(other));
        fs::hard_link(&other, &path).unwrap_or_else(|error| panic!("{path:?} = {other:?}: {error}"));
    }

    /// Creates a symbolic link.
    pub(crate) fn symlink(&self, name: impl AsRef<OsStr>, target: impl AsRef<OsStr>) {
        let path = self.ready(name);
        symlink(Path::new(target.as_ref()), &path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }

    /// Creates a fifo or a socket.
    pub(crate) fn node(&self, name: impl AsRef<OsStr>, kind: FileType) {
        let path = self.ready(name);
        let made = mknodat(CWD, &path, kind, Mode::from_raw_mode(0o644), 0);
        made.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }

    /// Sets permission bits.
    pub(crate) fn mode(self, name: impl AsRef<OsStr>, bits: u32) -> Tree {
        let path = self.at(name);
        let set = fs::set_permissions(&path, fs::Permissions::from_mode(bits));
        set.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        self
    }

    /// Sets the atime and the mtime, given as seconds and nanoseconds. Does not follow a symbolic
    /// link.
    pub(crate) fn times(&self, name: impl AsRef<OsStr>, accessed: (i64, i64), modified: (i64, i64)) {
        let stamp = |(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec };
        let times = Timestamps { last_access: stamp(accessed), last_modification: stamp(modified) };
        let path = self.at(name);
        let set = utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW);
        set.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }

    /// Sets atime and mtime of `name` to the same second.
    pub(crate) fn time(self, name: impl AsRef<OsStr>, second: i64) -> Tree {
        self.times(name, (second, 0), (second, 0));
        self
    }

    /// Creates a chain of `depth` directories with names of `length` bytes in `name`, and a file in
    /// the innermost. The path may be longer than `PATH_MAX`.
    pub(crate) fn deep(self, name: impl AsRef<OsStr>, depth: usize, length: usize) -> Tree {
        let path = self.ready(name);
        fs::create_dir_all(&path).expect("the directory above was just made");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = openat(CWD, &path, flags, Mode::empty()).expect("it was just made");
        let link = PathBuf::from("d".repeat(length));
        for _ in 0..depth {
            mkdirat(&here, &link, Mode::from_raw_mode(0o755)).expect("names of this length are allowed");
            here = openat(&here, &link, flags, Mode::empty()).expect("it was just made");
        }
        mknodat(&here, "f", FileType::RegularFile, Mode::from_raw_mode(0o644), 0)
            .expect("it is a new directory");
        self
    }

    /// Creates `count` empty files in the directory `name`.
    pub(crate) fn wide(self, name: impl AsRef<OsStr>, count: usize) -> Tree {
        let path = self.ready(name);
        fs::create_dir_all(&path).expect("the directory above was just made");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = openat(CWD, &path, flags, Mode::empty()).expect("it was just made");
        for number in 0..count {
            let file = format!("f{number}");
            let made = mknodat(&here, file, FileType::RegularFile, Mode::from_raw_mode(0o644), 0);
            made.unwrap_or_else(|error| panic!("{path:?}: file {number}: {error}"));
        }
        self
    }

    /// Returns a listing of the tree for a failure message.
    pub(crate) fn listing(&self) -> String {
        let format = "%i %b %s %n %M %p %l\\n";
        let output = Command::new("find").args([".", "-printf", format]).current_dir(&self.inner).output();
        let Ok(output) = output else { return "(no find to list it)".to_string() };
        let line = |line: &[u8]| line[..line.len().min(LISTING_LINE_MAX)].escape_ascii().to_string();
        let lines: Vec<String> = output.stdout.split(|&byte| byte == b'\n').map(line).collect();
        let shown = lines.len().min(LISTING_MAX);
        let rest =
            if lines.len() > shown { format!("\n.. {} more", lines.len() - shown) } else { String::new() };
        lines[..shown].join("\n") + &rest
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.is_kept() {
            println!("kept: {}", self.inner.display());
            return;
        }
        // rm(1) and chmod(1) handle trees of any depth and directories without any permission.
        if !rustix::process::geteuid().is_root() {
            let _ = Command::new("chmod").args(["-Rf", "u+rwx"]).arg(&self.outer).status();
        }
        let _ = Command::new("rm").arg("-rf").arg(&self.outer).status();
    }
}

/// Parses a size: a number with an optional K, M, G or T for powers of 1024.
fn bytes(text: &str) -> u64 {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits.parse::<u64>().unwrap_or_else(|error| panic!("{text}: {error}")) << shift
}

/// Returns a file name from bytes.
pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
