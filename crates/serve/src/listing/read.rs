//! Reads an open directory into entries: names in batches, the metadata of each relative to the directory.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use fathom_io::{Errno, Fields, FileType, Follow, Meta, Names, sys};

use super::{Entry, Tick};

/// Most entries of a listing. A page has some 150 bytes for each: more would be tens of megabytes, which no browser shows and no client
/// should be able to ask for.
pub const ENTRIES_MAX: usize = 100_000;

/// Names read before their metadata is asked for: more than one getdents64 gives, so that no name is read twice.
const BATCH: usize = 4096;

/// The entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// In the order of the directory.
    pub entries: Vec<Entry>,
    /// False when the directory has more names than [`ENTRIES_MAX`]; which ones are missing is the filesystem's affair.
    pub complete: bool,
}

impl Listing {
    /// Returns about how many bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.entries.iter().map(Entry::memory).sum()
    }
}

/// Entries between two ticks: some fifty microseconds where the directory is in memory.
const TICK_EVERY: usize = 32;

/// Reads all entries of `dir`, which may have been opened for its path alone: it is opened once
/// more, so that others who read the same descriptor are not disturbed. Names that begin with a dot
/// are left out unless `dotfiles`.
///
/// `link` gives the metadata of the target of a symbolic link, or nothing when that cannot be had
/// from here, and then the link is left out: neither that it exists nor the size of its target is
/// told. Entries that vanish meanwhile or cannot be looked at are left out, too.
///
/// # Errors
/// As openat(2) and getdents64(2), and as `tick`.
pub fn read(
    dir: BorrowedFd<'_>,
    dotfiles: bool,
    link: impl Fn(&CStr) -> Option<Meta>,
    tick: Tick<'_>,
) -> Result<Listing, Errno> {
    read_at_most(ENTRIES_MAX, dir, dotfiles, link, tick)
}

fn read_at_most(
    limit: usize,
    dir: BorrowedFd<'_>,
    dotfiles: bool,
    link: impl Fn(&CStr) -> Option<Meta>,
    tick: Tick<'_>,
) -> Result<Listing, Errno> {
    let dir = sys::open_dir(dir, c".", Follow::No)?;
    let mut listing = Listing { entries: Vec::new(), complete: true };
    let (mut names, mut memory) = (Names::new(), 0);
    loop {
        let more = sys::read_some_names(&dir, &mut names, BATCH)?;
        let shown = names.iter().filter(|name| dotfiles || !name.name.to_bytes().starts_with(b"."));
        for (at, name) in shown.enumerate() {
            if listing.entries.len() >= limit {
                listing.complete = false;
                return Ok(listing);
            }
            if let Some(entry) = entry(dir.as_fd(), name.name, &link) {
                memory += entry.memory();
                listing.entries.push(entry);
            }
            if at.is_multiple_of(TICK_EVERY) {
                tick(memory)?;
            }
        }
        if !more {
            return Ok(listing);
        }
        names.clear();
    }
}

fn entry(dir: BorrowedFd<'_>, name: &CStr, link: impl Fn(&CStr) -> Option<Meta>) -> Option<Entry> {
    // As stat(2) asks: a size that a network's cache remembers would differ from the length of the body.
    let fields = Fields::SIZE.and(Fields::TIMES).and(Fields::FRESH);
    let own = sys::stat(dir, name, Follow::No, fields).ok()?;
    let meta = if own.file_type() == FileType::Symlink { link(name)? } else { own };
    Some(Entry::new(name.to_bytes(), &meta))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::super::Kind;
    use super::*;

    fn names(listing: &Listing) -> Vec<String> {
        let mut names: Vec<_> =
            listing.entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect();
        names.sort();
        names
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("file"), "12345").unwrap();
        fs::write(dir.path().join(".hidden"), "1").unwrap();
        symlink("file", dir.path().join("inside")).unwrap();
        symlink("/etc/passwd", dir.path().join("outside")).unwrap();
        symlink("nowhere", dir.path().join("broken")).unwrap();
        dir
    }

    fn open(path: &Path) -> File {
        File::open(path).unwrap()
    }

    #[test]
    fn kinds_sizes_and_times_are_those_of_the_files() {
        let tree = tree();
        let listing = read(open(tree.path()).as_fd(), false, |_| None, &mut |_| Ok(())).unwrap();
        assert!(listing.complete);
        assert_eq!(names(&listing), ["file", "sub"]);
        let find = |name: &str| listing.entries.iter().find(|entry| entry.name == name.as_bytes()).unwrap();
        assert_eq!((find("file").kind, find("file").bytes), (Kind::File, 5));
        assert_eq!((find("sub").kind, find("sub").bytes), (Kind::Directory, 0));
        let modified = fs::metadata(tree.path().join("file")).unwrap().modified().unwrap();
        let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
        let stamp = find("file").mtime;
        assert_eq!((stamp.sec as u64, stamp.nsec), (modified.as_secs(), modified.subsec_nanos()));
    }

    #[test]
    fn dotfiles_are_shown_when_allowed() {
        let tree = tree();
        let listing = read(open(tree.path()).as_fd(), true, |_| None, &mut |_| Ok(())).unwrap();
        assert_eq!(names(&listing), [".hidden", "file", "sub"]);
    }

    #[test]
    fn a_link_shows_what_it_leads_to_if_that_may_be_had() {
        let tree = tree();
        let dir = open(tree.path());
        let beneath = |name: &CStr| {
            assert!([c"inside", c"outside", c"broken"].contains(&name), "{name:?}");
            let target = fs::canonicalize(tree.path().join(OsStr::from_bytes(name.to_bytes()))).ok()?;
            target.starts_with(tree.path().canonicalize().unwrap()).then_some(())?;
            sys::stat(dir.as_fd(), name, Follow::Yes, Fields::ALL).ok()
        };
        let listing = read(dir.as_fd(), false, beneath, &mut |_| Ok(())).unwrap();
        assert_eq!(names(&listing), ["file", "inside", "sub"]);
        let inside = listing.entries.iter().find(|entry| entry.name == b"inside").unwrap();
        assert_eq!((inside.kind, inside.bytes), (Kind::File, 5));
    }

    #[test]
    fn a_cut_is_told() {
        let tree = tempfile::tempdir().unwrap();
        [".hidden", "a", "b", "c"]
            .iter()
            .for_each(|name| drop(File::create(tree.path().join(name)).unwrap()));
        for (limit, shown, complete) in [(0, 0, false), (2, 2, false), (3, 3, true), (4, 3, true)] {
            let listing =
                read_at_most(limit, open(tree.path()).as_fd(), false, |_| None, &mut |_| Ok(())).unwrap();
            assert_eq!((listing.entries.len(), listing.complete), (shown, complete), "{limit}");
        }
    }

    #[test]
    fn the_callers_descriptor_stays_where_it_is() {
        let tree = tree();
        let dir = open(tree.path());
        let first = read(dir.as_fd(), false, |_| None, &mut |_| Ok(())).unwrap();
        assert_eq!(read(dir.as_fd(), false, |_| None, &mut |_| Ok(())).unwrap(), first);
        assert_eq!(rustix::fs::tell(&dir).unwrap(), 0);
    }

    #[test]
    fn many_names_are_read_in_batches() {
        let tree = tempfile::tempdir().unwrap();
        (0..2 * BATCH).for_each(|index| drop(File::create(tree.path().join(format!("{index:05}"))).unwrap()));
        let listing = read(open(tree.path()).as_fd(), false, |_| None, &mut |_| Ok(())).unwrap();
        let expected: Vec<_> = (0..2 * BATCH).map(|index| format!("{index:05}")).collect();
        assert_eq!((names(&listing), listing.complete), (expected, true));
    }

    #[test]
    fn memory_is_counted_and_a_limit_ends_it() {
        let tree = tempfile::tempdir().unwrap();
        (0..1000).for_each(|index| drop(File::create(tree.path().join(format!("{index:05}"))).unwrap()));
        let mut most = 0;
        let mut count = |held| {
            most = held;
            Ok(())
        };
        read(open(tree.path()).as_fd(), false, |_| None, &mut count).unwrap();
        assert!(most > 900 * size_of::<Entry>(), "{most}");
        let mut limited = |held| if held > most / 2 { Err(Errno::NOMEM) } else { Ok(()) };
        let refused = read(open(tree.path()).as_fd(), false, |_| None, &mut limited);
        assert_eq!(refused.unwrap_err(), Errno::NOMEM);
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(read(file.as_fd(), false, |_| None, &mut |_| Ok(())).unwrap_err(), Errno::NOTDIR);
    }
}
