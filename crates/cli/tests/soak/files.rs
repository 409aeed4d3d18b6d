//! Files that change: each in its own way, all the time.

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

/// How many there are.
pub(crate) const COUNT: u64 = 96;
/// Lengths that they are given, in turn.
const LENGTHS: [u64; 8] = [700, 4096, 0, 20_000, 65_536, 65_537, 300_000, 2_000_000];
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(3);
/// As many changes of a file are remembered; no response takes longer than so many do.
const CHANGES: usize = 64;
/// As long as a file gets that is appended to.
const APPENDED_MAX: u64 = 3_000_000;

/// How a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Not at all.
    Never,
    /// Another is renamed over it.
    Replaced,
    /// It is removed, and made anew later.
    Removed,
    /// It is made empty and written again.
    Rewritten,
    /// It is written over without becoming shorter first.
    Overwritten,
    /// It is made shorter, and gets its end back later.
    Truncated,
    /// It gets longer.
    Appended,
}

const WAYS: [Way; 7] = [
    Way::Never,
    Way::Replaced,
    Way::Removed,
    Way::Rewritten,
    Way::Overwritten,
    Way::Truncated,
    Way::Appended,
];

impl Way {
    pub(crate) fn of(file: u64) -> Way {
        WAYS[(file % WAYS.len() as u64) as usize]
    }

    /// Whether a version has one length, which is known beforehand.
    pub(crate) fn has_lengths(self) -> bool {
        matches!(self, Way::Never | Way::Replaced | Way::Removed)
    }
}

/// The length of a `version` of `file`.
pub(crate) fn length(file: u64, version: u64) -> u64 {
    let place = file / WAYS.len() as u64 + version * 3;
    LENGTHS[(place % LENGTHS.len() as u64) as usize]
}

/// All files, and the latest version that each may have.
pub(crate) struct Files {
    dir: PathBuf,
    versions: Vec<AtomicU64>,
    changes: Mutex<Vec<VecDeque<Change>>>,
}

/// One change of a file.
#[derive(Clone, Copy, Debug)]
struct Change {
    begin: Instant,
    /// Nothing while it is under way.
    end: Option<Instant>,
}

impl Files {
    /// Makes them in `dir`.
    pub(crate) fn make(dir: &Path) -> Files {
        let versions = (0..COUNT).map(|_| AtomicU64::new(0)).collect();
        let now = Instant::now();
        let made = Change { begin: now, end: Some(now) };
        let changes = Mutex::new(vec![VecDeque::from([made]); COUNT as usize]);
        let files = Files { dir: dir.to_owned(), versions, changes };
        for file in 0..COUNT {
            // Those that stay as they are begin with something to read.
            fs::write(files.path(file), bytes(file, 0, 0, length(file, 0) as usize)).unwrap();
        }
        files
    }

    fn path(&self, file: u64) -> PathBuf {
        self.dir.join(file.to_string())
    }

    /// The latest version that `file` may have.
    pub(crate) fn latest(&self, file: u64) -> u64 {
        self.versions[file as usize].load(Ordering::SeqCst)
    }

    /// Whether somebody was writing to `file` at some time from `start` to `end`.
    pub(crate) fn was_written(&self, file: u64, start: Instant, end: Instant) -> bool {
        let changes = self.changes.lock().unwrap();
        let meets = |change: &Change| change.begin <= end && change.end.is_none_or(|ended| ended >= start);
        changes[file as usize].iter().any(meets)
    }

    /// Changes `file`, and remembers when.
    fn change(&self, file: u64, turn: u64) -> io::Result<()> {
        let begin = Instant::now();
        let note =
            |note: &dyn Fn(&mut VecDeque<Change>)| note(&mut self.changes.lock().unwrap()[file as usize]);
        note(&|changes| {
            changes.push_back(Change { begin, end: None });
            while changes.len() > CHANGES {
                changes.pop_front();
            }
        });
        let changed = self.write(file, turn);
        note(&|changes| {
            changes.iter_mut().for_each(|change| change.end = change.end.or(Some(Instant::now())))
        });
        changed
    }

    /// Changes one after the other until `end`, and then makes those whole that are not.
    pub(crate) fn keep_changing(self: &Arc<Files>, end: Instant) -> JoinHandle<()> {
        let files = Arc::clone(self);
        std::thread::spawn(move || {
            for turn in 0.. {
                let file = (turn * 5 + turn / COUNT) % COUNT;
                if Instant::now() >= end {
                    break;
                }
                // Each rests for seconds now and then, so that the servers come to trust it.
                if !(turn / (COUNT * 20) + file / 7).is_multiple_of(3) {
                    files.change(file, turn).unwrap();
                }
                sleep(PAUSE);
            }
        })
    }

    fn write(&self, file: u64, turn: u64) -> io::Result<()> {
        let path = self.path(file);
        let way = Way::of(file);
        // Whoever reads the new version must find it known.
        let next = |by| self.versions[file as usize].fetch_add(by, Ordering::SeqCst) + by;
        match way {
            Way::Never => Ok(()),
            Way::Removed if turn.is_multiple_of(2) && path.exists() => fs::remove_file(&path),
            Way::Replaced | Way::Removed => self.replace(file, next(1)),
            Way::Rewritten => {
                let version = next(1);
                fs::write(&path, bytes(file, version, 0, length(file, version) as usize))
            }
            Way::Overwritten => {
                let len = fs::metadata(&path)?.len() as usize;
                let version = next(1);
                OpenOptions::new().write(true).open(&path)?.write_all_at(&bytes(file, version, 0, len), 0)
            }
            Way::Truncated => {
                let (version, open) = (self.latest(file), OpenOptions::new().write(true).open(&path)?);
                let (whole, now) = (length(file, 6), open.metadata()?.len());
                match now < whole {
                    true => open.write_all_at(&bytes(file, version, now, (whole - now) as usize), now),
                    false => open.set_len(whole * (turn % 7) / 7),
                }
            }
            Way::Appended => {
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

    /// That `server` has of all files what is there now.
    pub(crate) fn check_all(&self, server: &Server) {
        // Older than anything that a server believes without looking.
        sleep(Duration::from_millis(500));
        for file in 0..COUNT {
            let (status, body) = server.get(&format!("/{file}"));
            match fs::read(self.path(file)) {
                Ok(content) => assert!(status == 200 && body == content, "file {file}: {status}"),
                Err(_) => assert_eq!(status, 404, "file {file}"),
            }
        }
    }
}
