//! Every failure of a walk is one message of the gatherer, with path, operation and error, and
//! makes the summary incomplete, for every call that can fail and every error.

use std::ffi::CStr;
use std::fs::{self, Permissions};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::support::calls::{Calls, Native, Over};
use crate::support::tree::{Tree, bushy, fill};
use crate::support::{Watchdog, skip};
use fathom_io::MetadataModel;
use fathom_io::blocking::Blocking;
use fathom_io::sim::{Faults, Rates};
use fathom_io::{Dir, Unavailable};
use fathom_walk::gatherer::{Builder, Failed, Message, Pick, Policy, PolicyEntry};
use fathom_walk::{Errno, Fields, FileType, Follow, Meta, Model, Names, Node, Operation, Summary};

/// Sends every entry with its metadata.
struct SendsMetadata;

impl Policy for SendsMetadata {
    fn wants_metadata(&self, _dir: &Arc<Node>, _file_type: FileType) -> bool {
        true
    }

    fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(0).descend()
    }
}

/// Sends every entry without metadata.
struct NamesOnly;

impl Policy for NamesOnly {
    fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
        Pick::send(0).descend()
    }
}

/// Path, operation and error of a failure in a message.
type ReportedFailure = (Vec<u8>, Operation, Errno);

fn reported(failed: &Failed) -> ReportedFailure {
    let mut path = Vec::new();
    failed.path.write(&mut path);
    (path, failed.operation, failed.errno)
}

/// Walks `root` with the models that `make` returns. Returns the failures in messages, sorted by
/// path, and the summary.
#[track_caller]
fn gather<M: MetadataModel>(
    builder: Builder,
    policy: impl Policy,
    root: &Path,
    make: impl Fn() -> M + Send + Sync + 'static,
) -> (Vec<ReportedFailure>, Summary) {
    let _watchdog = Watchdog::new(root.display());
    let make = move || Ok::<_, Unavailable>(make());
    let (gatherer, mut inboxes) = builder.start_with(policy, make).unwrap();
    gatherer.add_root(root).unwrap();
    let inbox = inboxes.pop().unwrap();
    let reader = std::thread::spawn(move || {
        let errors = inbox.filter_map(|message| match message {
            Message::Error(failed) => Some(reported(&failed)),
            _ => None,
        });
        errors.collect::<Vec<_>>()
    });
    let summary = gatherer.finish().unwrap();
    let mut errors = reader.join().unwrap();
    errors.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(summary.progress.failures, errors.len() as u64, "{errors:?}");
    assert_eq!(summary.complete, errors.is_empty(), "{errors:?}");
    (errors, summary)
}

/// The call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Opening the directory, which exists.
    Open,
    /// Opening the directory, and reading its metadata: it has vanished.
    Vanish,
    /// Reading the metadata of the open directory.
    StatOpen,
    Read,
    /// Reading the metadata of an entry.
    Stat,
}

/// The system calls, one of which fails on one directory or entry.
#[derive(Clone, Debug)]
struct Failing {
    call: Call,
    /// The inode number of the directory, or the name of the entry.
    ino: u64,
    name: &'static CStr,
    errno: Errno,
}

impl Failing {
    fn strikes(&self, call: Call, dir: &Dir) -> Result<(), Errno> {
        let is_it = || Native.stat_dir(dir, Fields::IDENTITY).is_ok_and(|meta| meta.ino == self.ino);
        if self.call == call && is_it() { Err(self.errno) } else { Ok(()) }
    }
}

impl Calls for Failing {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        let dir = Native.open(at, name, follow)?;
        self.strikes(Call::Open, &dir)?;
        self.strikes(Call::Vanish, &dir)?;
        Ok(dir)
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.strikes(Call::Read, dir)?;
        Native.read(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.strikes(Call::Read, dir)?;
        Native.read_some(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        let meta = Native.stat(at, name, follow, fields)?;
        let strikes = match self.call {
            Call::Stat => name == self.name,
            Call::Vanish => meta.ino == self.ino,
            Call::Open | Call::StatOpen | Call::Read => false,
        };
        if strikes { Err(self.errno) } else { Ok(meta) }
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        self.strikes(Call::StatOpen, dir)?;
        Native.stat_dir(dir, fields)
    }
}

fn ino(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).unwrap().ino()
}

/// Returns every error number except those that make a worker retry.
fn errnos() -> impl Iterator<Item = Errno> {
    (1..=133).map(Errno::from_raw_os_error).filter(|errno| !matches!(*errno, Errno::MFILE | Errno::NFILE))
}

#[test]
fn every_call_that_fails_with_any_error_is_reported_once() {
    let tree = Tree::new();
    tree.dir("d/below");
    tree.file("d/f");
    tree.file("g");
    for errno in errnos() {
        for (call, operation) in [
            (Call::Open, Operation::Open),
            (Call::StatOpen, Operation::Open),
            (Call::Vanish, Operation::Access),
            (Call::Read, Operation::Read),
        ] {
            for dir in [tree.root(), tree.path("d")] {
                let failing = Failing { call, ino: ino(&dir), name: c"", errno };
                let builder = Builder::new().workers(2);
                let (errors, _) = gather(builder, NamesOnly, &tree.root(), move || Over(failing.clone()));
                let path = dir.as_os_str().as_bytes().to_vec();
                assert_eq!(errors, [(path, operation, errno)], "{call:?} with {errno}");
            }
        }
        let failing = Failing { call: Call::Stat, ino: 0, name: c"f", errno };
        let (errors, _) =
            gather(Builder::new().workers(2), SendsMetadata, &tree.root(), move || Over(failing.clone()));
        let path = tree.path("d/f").as_os_str().as_bytes().to_vec();
        assert_eq!(errors, [(path, Operation::Stat, errno)], "stat with {errno}");
    }
}

#[test]
fn a_permanent_lack_of_descriptors_is_reported() {
    let tree = Tree::new();
    tree.dir("d/below");
    for errno in [Errno::MFILE, Errno::NFILE] {
        let failing = Failing { call: Call::Open, ino: ino(&tree.path("d")), name: c"", errno };
        let (errors, _) =
            gather(Builder::new().workers(1), NamesOnly, &tree.root(), move || Over(failing.clone()));
        let path = tree.path("d").as_os_str().as_bytes().to_vec();
        assert_eq!(errors, [(path, Operation::Open, errno)]);
    }
}

#[test]
fn an_entry_of_unknown_type_whose_stat_fails_is_reported() {
    let tree = Tree::new();
    tree.dir("d/below");
    let rates = Rates { unknown_type: 1.0, stat_eio: 1.0, ..Rates::default() };
    let faults = Faults::new(1, rates);
    let make = move || faults.over(Blocking);
    let (errors, _) = gather(Builder::new().workers(2), NamesOnly, &tree.root(), make);
    let path = tree.path("d").as_os_str().as_bytes().to_vec();
    assert_eq!(errors, [(path, Operation::Stat, Errno::IO)]);
}

#[test]
fn each_fault_is_reported_as_one_failure() {
    let tree = Tree::new();
    bushy(&tree.dir("bush"), 3, 3);
    fill(&tree.dir("wide"), 9_000);
    for seed in 0..20 {
        let rates =
            Rates { open_eacces: 0.1, read_eio: 0.1, read_part: 0.1, stat_eio: 0.05, ..Rates::default() };
        let faults = Faults::new(seed, rates);
        let shared = faults.clone();
        let make = move || shared.over(Blocking);
        let (errors, _) = gather(Builder::new().workers(4), SendsMetadata, &tree.root(), make);
        // A directory whose open and stat calls both fail is one failure.
        let both = errors.iter().filter(|error| error.1 == Operation::Access).count();
        assert_eq!(errors.len() + both, usize::try_from(faults.counts().failed).unwrap(), "seed {seed}");
    }
}

#[test]
fn loops_are_reported() {
    let tree = Tree::new();
    tree.dir("a/b");
    tree.symlink("..", "a/b/up");
    tree.symlink("nowhere", "dangling");
    for model in [Model::Sync, Model::Threads(Some(3))] {
        let builder = Builder::new().model(model).follow(Follow::Yes);
        let (errors, _) = gather(builder, SendsMetadata, &tree.root(), || Blocking);
        let [up, dangling] = ["a/b/up", "dangling"].map(|name| tree.path(name));
        let expected = [(up, Operation::Descend, Errno::LOOP), (dangling, Operation::Stat, Errno::NOENT)]
            .map(|(path, operation, errno)| (path.as_os_str().as_bytes().to_vec(), operation, errno));
        assert_eq!(errors, expected);
    }
}

#[test]
fn a_failure_without_a_message_still_counts() {
    struct NoMessages;
    impl Policy for NoMessages {
        fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
            Pick::default().descend()
        }

        fn failed(&self, _failure: &fathom_walk::Failure<'_>) -> Option<usize> {
            None
        }
    }
    let tree = Tree::new();
    tree.dir("d");
    let (gatherer, inboxes) = Builder::new().start(NoMessages).unwrap();
    gatherer.add_root(tree.path("missing")).unwrap();
    gatherer.add_root(tree.root()).unwrap();
    let summary = gatherer.finish().unwrap();
    assert_eq!((summary.complete, summary.progress.failures), (false, 1));
    let messages: Vec<Message> = inboxes.into_iter().flatten().collect();
    assert!(messages.iter().all(|message| matches!(message, Message::RootDone(_))), "{messages:?}");
}

#[test]
fn a_failure_is_displayed_as_operation_path_and_cause() {
    let tree = Tree::new();
    let (gatherer, mut inboxes) = Builder::new().start(SendsMetadata).unwrap();
    gatherer.add_root(tree.path("miss\x1b\ning")).unwrap();
    gatherer.finish().unwrap();
    let Some(Message::Error(failed)) = inboxes.pop().unwrap().next() else { panic!("no error") };
    let text = failed.to_string();
    assert!(text.starts_with("cannot access '/"), "{text}");
    assert!(text.contains("miss\\u{1b}\\ning': No such file or directory"), "{text}");
}

/// Directories that the user may not read. Root may read everything, so as root the walk and its
/// workers run on threads of another user.
#[test]
fn unreadable_directories_are_reported() {
    let tree = Tree::new();
    tree.dir("shut/below");
    tree.dir("open/below");
    fs::set_permissions(tree.path("shut"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(tree.root(), Permissions::from_mode(0o755)).unwrap();
    let walk = || {
        if rustix::process::geteuid().is_root() && !become_nobody() {
            return skip("root cannot change its user here");
        }
        let shut = (tree.path("shut").as_os_str().as_bytes().to_vec(), Operation::Open, Errno::ACCESS);
        for workers in [1, 4] {
            for root in [tree.root(), tree.path("shut")] {
                let (errors, _) = gather(Builder::new().workers(workers), SendsMetadata, &root, || Blocking);
                assert_eq!(errors, std::slice::from_ref(&shut), "{workers} workers, {}", root.display());
            }
            let (errors, _) =
                gather(Builder::new().workers(workers), SendsMetadata, &tree.path("open"), || Blocking);
            assert_eq!(errors, []);
        }
    };
    std::thread::scope(|scope| scope.spawn(walk).join().unwrap());
    fs::set_permissions(tree.path("shut"), Permissions::from_mode(0o755)).unwrap();
}

#[cfg(target_os = "linux")]
fn become_nobody() -> bool {
    const NOBODY: u32 = 65534;
    rustix::thread::set_thread_groups(&[]).is_ok()
        && rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn become_nobody() -> bool {
    false
}
