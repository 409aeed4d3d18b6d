//! Files that change continuously, each in its own way.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::content::bytes;
use crate::server::Server;

/// Number of files.
pub(crate) const FILES: u64 = 96;
/// Lengths of the files, used in turn.
const LENGTHS: [u64; 8] = [700, 4096, 0, 20_000, 65_536, 65_537, 300_000, 2_000_000];
/// Pause between two changes.
const PAUSE: Duration = Duration::from_millis(3);
/// Number of changes of a file that are remembered: more than happen during one response.
const CHANGES_MAX: usize = 64;
/// Length above which a file that is appended to is replaced by a new version.
const APPENDED_MAX: u64 = 3_000_000;

/// The way in which a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// The file never changes.
    Never,
    /// A new file is renamed over it.
    Replaced,
    /// The file is removed and later created again.
    Removed,
    /// The file is truncated to 0 and written again.
    Rewritten,
    /// The file is overwritten in place without being truncated.
    Overwritten,
    /// The file is truncated and later extended again.
    Truncated,
    /// The file is appended to.
    Appended,
}

const CHANGE_KINDS: [ChangeKind; 7] = [
    ChangeKind::Never,
    ChangeKind::Replaced,
    ChangeKind::Removed,
    ChangeKind::Rewritten,
    ChangeKind::Overwritten,
    ChangeKind::Truncated,
    ChangeKind::Appended,
];

impl ChangeKind {
    pub(crate) fn of(file: u64) -> ChangeKind {
        CHANGE_KINDS[(file % CHANGE_KINDS.len() as u64) as usize]
    }

    /// Whether the length of each version is known in advance.
    pub(crate) fn has_lengths(self) -> bool {
        matches!(self, ChangeKind::Never | ChangeKind::Replaced | ChangeKind::Removed)
    }
}

/// Returns the length of `version` of `file`.
pub(crate) fn length(file: u64, version: u64) -> u64 {
    let place = file / CHANGE_KINDS.len() as u64 + version * 3;
    LENGTHS[(place % LENGTHS.len() as u64) as usize]
}

/// All files, and the latest version of each.
pub(crate) struct ChangingFiles {
    dir: PathBuf,
    versions: Vec<AtomicU64>,
    changes: Mutex<Vec<VecDeque<FileChange>>>,
}

/// One change of a file.
#[derive(Clone, Copy, Debug)]
struct FileChange {
    begin: Instant,
    /// `None` while the change is in progress.
    end: Option<Instant>,
}

impl ChangingFiles {
    /// Creates the files in `dir`.
    pub(crate) fn make(dir: &Path) -> ChangingFiles {
        let versions = (0..FILES).map(|_| AtomicU64::new(0)).collect();
        let now = Instant::now();
        let made = FileChange { begin: now, end: Some(now) };
        let changes = Mutex::new(vec![VecDeque::from([made]); FILES as usize]);
        let files = ChangingFiles { dir: dir.to_owned(), versions, changes };
        for file in 0..FILES {
            // A file that never changes needs contents from the start.
            fs::write(files.path(file), bytes(file, 0, 0, length(file, 0) as usize)).unwrap();
        }
        files
    }

    fn path(&self, file: u64) -> PathBuf {
        self.dir.join(file.to_string())
    }

    /// Returns the latest version that `file` may have.
    pub(crate) fn latest(&self, file: u64) -> u64 {
        // Pairs with the increment in `write`, which precedes the write(2) of the new version,
        // while this load follows the read(2) of the body: the version in a body is never later
        // than the result. With a weaker ordering, either access could move across its system call
        // and a correct body would be reported as wrong.
        self.versions[file as usize].load(Ordering::SeqCst)
    }

    /// Whether a change of `file` overlaps the time from `start` to `end`.
    pub(crate) fn was_written(&self, file: u64, start: Instant, end: Instant) -> bool {
        let changes = self.changes.lock().unwrap();
        let meets =
            |change: &FileChange| change.begin <= end && change.end.is_none_or(|ended| ended >= start);
        changes[file as usize].iter().any(meets)
    }

    /// Changes `file` and records the time of the change.
    fn change(&self, file: u64, turn: u64) -> io::Result<()> {
        let begin = Instant::now();
        let note =
            |note: &dyn Fn(&mut VecDeque<FileChange>)| note(&mut self.changes.lock().unwrap()[file as usize]);
        note(&|changes| {
            changes.push_back(FileChange { begin, end: None });
            while changes.len() > CHANGES_MAX {
                changes.pop_front();
            }
        });
        let changed = self.write(file, turn);
        note(&|changes| {
            changes.iter_mut().for_each(|change| change.end = change.end.or(Some(Instant::now())))
        });
        changed
    }

    /// Starts a thread that changes one file after another until `end`.
    pub(crate) fn keep_changing(self: &Arc<ChangingFiles>, end: Instant) -> JoinHandle<()> {
        let files = Arc::clone(self);
        std::thread::spawn(move || {
            for turn in 0.. {
                let file = (turn * 5 + turn / FILES) % FILES;
                if Instant::now() >= end {
                    break;
                }
                // Leave each file alone for seconds now and then, so that the servers cache it.
                if !(turn / (FILES * 20) + file / 7).is_multiple_of(3) {
                    files.change(file, turn).unwrap();
                }
                sleep(PAUSE);
            }
        })
    }

    fn write(&self, file: u64, turn: u64) -> io::Result<()> {
        let path = self.path(file);
        let kind = ChangeKind::of(file);
        // Increment the version before the write(2) of its content. Pairs with the load in
        // `latest`: a client that receives the new version must find it there.
        let next = |by| self.versions[file as usize].fetch_add(by, Ordering::SeqCst) + by;
        match kind {
            ChangeKind::Never => Ok(()),
            ChangeKind::Removed if turn.is_multiple_of(2) && path.exists() => fs::remove_file(&path),
            ChangeKind::Replaced | ChangeKind::Removed => self.replace(file, next(1)),
            ChangeKind::Rewritten => {
                let version = next(1);
                fs::write(&path, bytes(file, version, 0, length(file, version) as usize))
            }
            ChangeKind::Overwritten => {
                let len = fs::metadata(&path)?.len() as usize;
                let version = next(1);
                OpenOptions::new().write(true).open(&path)?.write_all_at(&bytes(file, version, 0, len), 0)
            }
            ChangeKind::Truncated => {
                let (version, open) = (self.latest(file), OpenOptions::new().write(true).open(&path)?);
                let (whole, now) = (length(file, 6), open.metadata()?.len());
                match now < whole {
                    true => open.write_all_at(&bytes(file, version, now, (whole - now) as usize), now),
                    false => open.set_len(whole * (turn % 7) / 7),
                }
            }
            ChangeKind::Appended => {
                let now = fs::metadata(&path)?.len();
                if now > APPENDED_MAX {
                    return self.replace(file, next(1));
                }
                let mut open = OpenOptions::new().append(true).open(&path)?;
                open.write_all(&bytes(file, self.latest(file), now, 1 + (turn % 5000) as usize))
            }
        }
    }

    fn replace(&self, file: u64, version: u64) -> io::Result<()> {
        let beside = self.dir.join(format!(".{file}"));
        let len = length(file, version) as usize;
        File::create(&beside)?.write_all(&bytes(file, version, 0, len))?;
        fs::rename(beside, self.path(file))
    }

    /// Asserts that `server` serves the current content of each file.
    pub(crate) fn check_all(&self, server: &Server) {
        // Wait until the servers' cached attributes have expired.
        sleep(Duration::from_millis(500));
        for file in 0..FILES {
            let (status, body) = server.get(&format!("/{file}"));
            match fs::read(self.path(file)) {
                Ok(content) => assert!(status == 200 && body == content, "file {file}: {status}"),
                Err(_) => assert_eq!(status, 404, "file {file}"),
            }
        }
    }
}
