//! A tree of unusual files, its entries as the standard library sees them, and the system's answers
//! to the lookups of a format.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_inventory::{Entry, LinkTarget, Lookup};
use fathom_walk::{Fields, FileTime, FileType, Meta};
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, mknodat, utimensat};

/// Modification times, one for each of the `time` files. A filesystem keeps them as far as it can.
const TIMES: [(i64, i64); 10] = [
    (0, 0),
    (-2, 750_000_000),
    (1_700_000_000, 1),
    (1_720_000_000, 999_999_999),
    (-2_147_483_648, 0),
    (15_032_385_535, 0),
    (253_402_300_800, 0),
    (-62_135_596_801, 0),
    (i64::MAX, 0),
    (i64::MIN, 0),
];

pub(crate) struct Tree {
    temp: tempfile::TempDir,
    /// Whether find on this machine knows creation times, which not every build does.
    pub(crate) has_btimes: bool,
}

impl Tree {
    /// Creates the tree, which is `tree` in a temporary directory.
    pub(crate) fn new() -> Tree {
        let mut tree = Tree { temp: tempfile::tempdir().unwrap(), has_btimes: false };
        let at = |name: &[u8]| tree.path().join("tree").join(OsStr::from_bytes(name));
        fs::create_dir_all(at(b"sub/deeper")).unwrap();
        for name in
            [&b"file"[..], b"a b", b"line\nbreak", b"\xff\xfe", "é".as_bytes(), b".hidden", b"sub/deeper/x"]
        {
            fs::write(at(name), name).unwrap();
        }
        fs::write(at(b"empty"), b"").unwrap();
        fs::write(at(b"full"), vec![b'x'; 10_000]).unwrap();
        sparse(&at(b"sparse"));
        fs::hard_link(at(b"file"), at(b"hard")).unwrap();
        let links = [
            ("sub", "to-dir"),
            ("file", "to-file"),
            ("no/such", "dangling"),
            ("loop", "loop"),
            ("file/x", "through"),
        ];
        links.iter().for_each(|(target, name)| symlink(target, at(name.as_bytes())).unwrap());
        mknodat(CWD, at(b"fifo"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o620), 0).unwrap();
        drop(UnixListener::bind(at(b"socket")).unwrap());
        for mode in [0o4755, 0o4644, 0o2711, 0o2604, 0o1777, 0o1000, 0o7777, 0o7000, 0, 0o111] {
            let path = at(format!("mode{mode:o}").as_bytes());
            fs::write(&path, b"").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        for (place, (sec, nsec)) in TIMES.into_iter().enumerate() {
            let path = at(format!("time{place}").as_bytes());
            fs::write(&path, b"").unwrap();
            let stamp = Timespec { tv_sec: sec, tv_nsec: nsec };
            let stamps = Timestamps { last_access: stamp, last_modification: stamp };
            utimensat(CWD, &path, &stamps, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
        // Only root may change owners; for other users the calls fail and do no harm.
        fs::write(at(b"foreign"), b"").unwrap();
        let _ = chown(at(b"foreign"), Some(54_321), Some(4_294_967_294));
        let _ = lchown(at(b"dangling"), Some(1), Some(2));
        // Read directories and links once, so that later reads do not change their access times
        // within a day.
        let read = Command::new("find").current_dir(tree.path()).args([".", "-printf", "%l%Y%Bs"]).output();
        let read = read.expect("find, which these tests compare with");
        tree.has_btimes = read.stdout.iter().any(u8::is_ascii_digit);
        tree
    }

    pub(crate) fn path(&self) -> &Path {
        self.temp.path()
    }

    /// Returns all entries from `root` on, which is absolute or relative to the temporary
    /// directory.
    pub(crate) fn entries(&self, root: &str) -> Vec<OwnedEntry> {
        let mut entries = Vec::new();
        let (dir, name) = (Vec::new(), root.as_bytes().to_vec());
        self.collect(dir, name, root.len(), 0, &mut entries);
        entries
    }

    fn collect(
        &self,
        dir: Vec<u8>,
        name: Vec<u8>,
        root_len: usize,
        depth: usize,
        entries: &mut Vec<OwnedEntry>,
    ) {
        let slash: &[u8] = if dir.is_empty() || dir.ends_with(b"/") { b"" } else { b"/" };
        let path = [&dir[..], slash, &name].concat();
        let real = self.path().join(OsStr::from_bytes(&path));
        let metadata = fs::symlink_metadata(&real).unwrap();
        let is_dir = metadata.is_dir();
        entries.push(OwnedEntry { dir, name, root_len, depth, meta: meta(&metadata, self.has_btimes) });
        if is_dir {
            for child in fs::read_dir(&real).unwrap() {
                let name = child.unwrap().file_name().into_vec();
                self.collect(path.clone(), name, root_len, depth + 1, entries);
            }
        }
    }
}

fn sparse(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    file.seek(SeekFrom::Start(3_000_001)).unwrap();
    file.write_all(b"end").unwrap();
}

/// An entry that owns its parts.
pub(crate) struct OwnedEntry {
    dir: Vec<u8>,
    name: Vec<u8>,
    root_len: usize,
    depth: usize,
    meta: Meta,
}

impl OwnedEntry {
    pub(crate) fn entry(&self) -> Entry<'_> {
        let OwnedEntry { dir, name, root_len, depth, meta } = self;
        let file_type = FileType::Unknown;
        Entry { dir, name, root_len: *root_len, depth: *depth, file_type, meta: Some(meta) }
    }
}

fn meta(metadata: &Metadata, has_btime: bool) -> Meta {
    let stamp = |sec, nsec: i64| FileTime { sec, nsec: u32::try_from(nsec).unwrap() };
    let created = metadata.created().ok().filter(|_| has_btime);
    let since = created.map(|time| time.duration_since(std::time::UNIX_EPOCH).unwrap());
    Meta {
        dev: metadata.dev(),
        ino: metadata.ino(),
        size: metadata.size().cast_signed(),
        blocks: metadata.blocks(),
        mode: metadata.mode(),
        nlink: metadata.nlink(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        atime: stamp(metadata.atime(), metadata.atime_nsec()),
        mtime: stamp(metadata.mtime(), metadata.mtime_nsec()),
        ctime: stamp(metadata.ctime(), metadata.ctime_nsec()),
        btime: since.map(|time| FileTime { sec: time.as_secs().cast_signed(), nsec: time.subsec_nanos() }),
        mount_root: None,
        attributes: None,
        fields: Fields::ALL.union(if has_btime { Fields::BIRTH } else { Fields::IDENTITY }),
    }
}

/// Answers lookups by system calls.
pub(crate) struct System {
    base: PathBuf,
    /// The device and the filesystem type of each line of mountinfo.
    mounts: Vec<(String, String)>,
}

impl System {
    pub(crate) fn new(tree: &Tree) -> System {
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = |line: &str| {
            let (before, after) = line.split_once(" - ")?;
            Some((before.split(' ').nth(2)?.to_owned(), after.split(' ').next()?.to_owned()))
        };
        let mounts = text.lines().filter_map(mount).collect();
        System { base: tree.path().to_owned(), mounts }
    }

    fn path(&self, entry: &Entry<'_>) -> PathBuf {
        let mut path = Vec::new();
        entry.write_path(&mut path);
        self.base.join(OsStr::from_bytes(&path))
    }
}

impl Lookup for System {
    fn link(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        fs::read_link(self.path(entry)).ok().map(|target| target.into_os_string().into_vec())
    }

    fn target(&mut self, entry: &Entry<'_>) -> LinkTarget {
        match fs::metadata(self.path(entry)) {
            Ok(metadata) => LinkTarget::Type(FileType::from_mode(metadata.mode())),
            Err(error) => match rustix::io::Errno::from_io_error(&error) {
                Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => LinkTarget::Missing,
                Some(rustix::io::Errno::LOOP) => LinkTarget::Loop,
                _ => LinkTarget::Unknown,
            },
        }
    }

    fn filesystem(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let dev = entry.meta?.dev;
        let device = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
        let mount = self.mounts.iter().find(|(known, _)| *known == device);
        mount.map(|(_, name)| name.as_bytes().to_vec())
    }

    fn context(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let mut buffer = [0; 1024];
        let len = rustix::fs::lgetxattr(self.path(entry), "security.selinux", &mut buffer).ok()?;
        Some(buffer[..len].strip_suffix(b"\0").unwrap_or(&buffer[..len]).to_vec())
    }
}
