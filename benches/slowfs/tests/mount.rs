//! Mounts a small tree and compares the mount with the source. Requires /dev/fuse and permission to
//! mount (root, or fusermount3); otherwise the tests report that they are skipped.

#![allow(clippy::unwrap_used)] // In a test a panic is the report; the lint's own exception misses helper functions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

struct Mount {
    server: Child,
    scratch: tempfile::TempDir,
}

impl Mount {
    /// Mounts the tree that `build` creates, or reports why this machine cannot mount.
    fn new(delay_us: u32, build: impl FnOnce(&Path)) -> Option<Mount> {
        Mount::with(&[], delay_us, build)
    }

    /// Mounts likewise, with these options.
    fn with(options: &[&str], delay_us: u32, build: impl FnOnce(&Path)) -> Option<Mount> {
        let scratch = tempfile::tempdir().unwrap();
        for directory in ["source", "mount"] {
            fs::create_dir(scratch.path().join(directory)).unwrap();
        }
        build(&scratch.path().join("source"));
        let mut server = Command::new(env!("CARGO_BIN_EXE_slowfs"))
            .args([scratch.path().join("source"), scratch.path().join("mount")])
            .args(["--delay-us", &delay_us.to_string(), "--die-with-parent"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.starts_with("mounted ") {
            return Some(Mount { server, scratch });
        }
        let mut reason = String::new();
        server.stderr.take().unwrap().read_to_string(&mut reason).unwrap();
        assert!(server.wait().unwrap().code() == Some(1), "it failed, but not as an error: {reason}");
        assert!(!may_mount(), "this machine can mount, yet: {reason}");
        eprintln!("skipped: {}", reason.trim());
        None
    }

    fn source(&self) -> PathBuf {
        self.scratch.path().join("source")
    }

    fn mount(&self) -> PathBuf {
        self.scratch.path().join("mount")
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.server.wait().unwrap().success());
        let left = fs::read_dir(self.mount()).unwrap().count();
        assert_eq!(left, 0, "unmounted: the empty directory below is back");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        // Fails if the server has unmounted already.
        let _ = rustix::mount::unmount(self.mount(), rustix::mount::UnmountFlags::DETACH);
    }
}

fn may_mount() -> bool {
    rustix::process::geteuid().is_root()
        && Path::new("/dev/fuse").exists()
        && fs::File::open("/dev/fuse").is_ok()
}

fn small_tree(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::write(root.join("a/file"), vec![7; 300_000]).unwrap();
    fs::hard_link(root.join("a/file"), root.join("a/b/linked")).unwrap();
    std::os::unix::fs::symlink("../file", root.join("a/b/link")).unwrap();
    let mut sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.seek(SeekFrom::Start(1 << 30)).unwrap();
    sparse.write_all(b"end").unwrap();
    for index in 0..2000 {
        fs::write(root.join(format!("a/b/c/{index}")), b"").unwrap();
    }
}

/// Returns the metadata of all files below `root`, by relative path.
fn facts(root: &Path) -> BTreeMap<PathBuf, Vec<u64>> {
    let mut facts = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let m = fs::symlink_metadata(&path).unwrap();
        let fields = vec![
            m.ino(),
            m.nlink(),
            m.mode().into(),
            m.size(),
            m.blocks(),
            m.uid().into(),
            m.mtime() as u64,
            m.mtime_nsec() as u64,
            m.ctime_nsec() as u64,
        ];
        facts.insert(path.strip_prefix(root).unwrap().to_owned(), fields);
        if m.is_dir() {
            pending.extend(names(&path).into_iter().map(|name| path.join(name)));
        }
    }
    facts
}

fn names(directory: &Path) -> Vec<OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn the_mount_shows_what_the_source_holds() {
    let Some(mount) = Mount::new(10, small_tree) else { return };
    assert_eq!(facts(&mount.mount()), facts(&mount.source()));
    let wide = Path::new("a/b/c");
    assert_eq!(names(&mount.mount().join(wide)), names(&mount.source().join(wide)), "same order");
    assert_eq!(fs::read(mount.mount().join("a/b/link")).unwrap(), vec![7; 300_000]);
    assert_eq!(fs::read_link(mount.mount().join("a/b/link")).unwrap(), Path::new("../file"));
    let error = fs::write(mount.mount().join("new"), b"").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert!(fs::metadata(mount.mount().join("none")).is_err());
    mount.end();
}

#[test]
fn entries_are_removed_on_request_and_nothing_else_is_changed() {
    let Some(mount) = Mount::with(&["--removable"], 10, small_tree) else { return };
    let error = fs::remove_dir(mount.mount().join("a/b")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    fs::remove_dir_all(mount.mount().join("a/b")).unwrap();
    fs::remove_file(mount.mount().join("a/file")).unwrap();
    assert!(fs::write(mount.mount().join("new"), b"").is_err());
    assert!(fs::rename(mount.mount().join("a"), mount.mount().join("new")).is_err());
    assert_eq!(names(&mount.source().join("a")), [""; 0]);
    assert_eq!(names(&mount.mount()).len(), 2, "a and sparse");
    mount.end();
}

#[test]
fn d_types_and_inode_numbers_in_a_listing_are_the_sources() {
    use std::os::unix::fs::DirEntryExt;
    let Some(mount) = Mount::new(10, small_tree) else { return };
    let listing = |root: PathBuf| {
        let entries = fs::read_dir(root.join("a/b")).unwrap().map(Result::unwrap);
        entries.map(|e| (e.file_name(), e.ino(), e.file_type().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(listing(mount.mount()), listing(mount.source()));
    mount.end();
}

#[test]
fn every_operation_is_delayed_and_delays_overlap() {
    let delay = Duration::from_millis(100);
    let Some(mount) = Mount::new(100_000, small_tree) else { return };
    let wide = mount.mount().join("a/b/c");
    let start = Instant::now();
    fs::symlink_metadata(&wide).unwrap();
    assert!(start.elapsed() >= delay * 3, "three names to look up, each time");
    let start = Instant::now();
    let stats: Vec<_> = (0..64)
        .map(|index| {
            let path = wide.join(index.to_string());
            thread::spawn(move || fs::symlink_metadata(path).unwrap().ino())
        })
        .collect();
    assert!(stats.into_iter().all(|thread| thread.join().unwrap() > 0));
    // One after another, 64 files of 4 names each would take 25 s.
    assert!(start.elapsed() < delay * 64, "{:?}", start.elapsed());
    mount.end();
}

#[test]
fn a_busy_mount_is_detached_when_the_server_exits() {
    let Some(mount) = Mount::new(10, small_tree) else { return };
    let open = fs::File::open(mount.mount().join("a/file")).unwrap();
    mount.end();
    assert!(open.metadata().is_err(), "its server is gone");
}
