//! Reads an open directory into entries: names in batches, and the metadata of each name relative
//! to the directory.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use fathom_io::{Errno, Fields, FileType, Follow, Meta, Names, sys};

use super::entry::ListingEntry;
use super::tick::Tick;

/// The maximum entries of a listing. A page has some 150 bytes for each: more would be tens of
/// megabytes, which no browser displays and no client should be able to request.
pub const ENTRIES_MAX: usize = 100_000;

/// The maximum names that a filter looks at: some seconds of work.
const NAMES_MAX: usize = 10_000_000;

/// The names of a batch: more than one getdents64(2) returns, so that no name is read twice.
const BATCH: usize = 4096;

/// The entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries in the order of the directory.
    pub entries: Vec<ListingEntry>,
    /// False if there are more than [`ENTRIES_MAX`] entries, or if the directory has more names
    /// than a filter looks at; which of them are missing depends on the filesystem.
    pub complete: bool,
}

impl Listing {
    /// Returns an estimate of its memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.entries.iter().map(ListingEntry::memory).sum()
    }
}

/// Entries between two ticks: some fifty microseconds for a cached directory.
const TICK_EVERY: usize = 32;

/// Reads all entries of `dir`, which may have been opened with O_PATH. The directory is opened
/// again, so that concurrent readers of the descriptor do not share its offset. Names that begin
/// with a dot are omitted unless `dotfiles`, and so are those that `wanted` refuses.
///
/// `link` returns the metadata of the target of a symbolic link, or nothing if the target is not
/// accessible. Then the link is omitted: the listing discloses neither its existence nor the size
/// of its target. Entries that vanish or cannot be examined are omitted as well.
///
/// # Errors
/// The errors of openat(2), getdents64(2) and `tick`.
///
/// ```
/// use std::fs::File;
/// use std::os::fd::AsFd;
/// use fathom_serve::listing::{ListingView, json, read};
///
/// let dir = File::open("src")?;
/// // No link is followed, and no call takes so long that another task has to run.
/// let listing = read(dir.as_fd(), false, |_| true, |_| None, &mut |_| Ok(()))?;
/// assert!(listing.complete && listing.entries.iter().any(|entry| entry.name == b"lib.rs"));
/// let view = ListingView::default();
/// let page = listing.page(b"", &view, &mut |_| Ok(()))?.expect("the first page exists");
/// let text = json(&page, &mut |_| Ok(()))?;
/// assert!(String::from_utf8_lossy(&text).contains("\"lib.rs\""));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read(
    dir: BorrowedFd<'_>,
    dotfiles: bool,
    wanted: impl Fn(&[u8]) -> bool,
    link: impl Fn(&CStr) -> Option<Meta>,
    tick: Tick<'_>,
) -> Result<Listing, Errno> {
    let shows = |name: &[u8]| (dotfiles || !name.starts_with(b".")) && wanted(name);
    read_at_most(ENTRIES_MAX, NAMES_MAX, dir, shows, link, tick)
}

/// Reads up to a number of entries, among the first names of a directory.
fn read_at_most(
    entries_max: usize,
    names_max: usize,
    dir: BorrowedFd<'_>,
    shows: impl Fn(&[u8]) -> bool,
    link: impl Fn(&CStr) -> Option<Meta>,
    tick: Tick<'_>,
) -> Result<Listing, Errno> {
    let dir = sys::open_dir(dir, c".", Follow::No)?;
    let mut listing = Listing { entries: Vec::new(), complete: true };
    let (mut names, mut memory, mut looked_at) = (Names::new(), 0, 0);
    loop {
        let more = sys::read_some_names(&dir, &mut names, BATCH)?;
        for name in names.iter() {
            let is_shown = shows(name.name.to_bytes());
            if looked_at >= names_max || is_shown && listing.entries.len() >= entries_max {
                listing.complete = false;
                return Ok(listing);
            }
            if let Some(entry) = is_shown.then(|| entry(dir.as_fd(), name.name, &link)).flatten() {
                memory += entry.memory();
                listing.entries.push(entry);
            }
            if looked_at.is_multiple_of(TICK_EVERY) {
                tick(memory)?;
            }
            looked_at += 1;
        }
        if !more {
            return Ok(listing);
        }
        names.clear();
    }
}

fn entry(dir: BorrowedFd<'_>, name: &CStr, link: impl Fn(&CStr) -> Option<Meta>) -> Option<ListingEntry> {
    // Fresh attributes: a size that a network filesystem has cached could differ from the length of
    // the body.
    let fields = Fields::SIZE.union(Fields::TIMES).union(Fields::FRESH);
    let own = sys::stat(dir, name, Follow::No, fields).ok()?;
    let meta = if own.file_type() == FileType::Symlink { link(name)? } else { own };
    Some(ListingEntry::new(name.to_bytes(), &meta))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::super::EntryKind;
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
        let listing = read(open(tree.path()).as_fd(), false, |_| true, |_| None, &mut |_| Ok(())).unwrap();
        assert!(listing.complete);
        assert_eq!(names(&listing), ["file", "sub"]);
        let find = |name: &str| listing.entries.iter().find(|entry| entry.name == name.as_bytes()).unwrap();
        assert_eq!((find("file").kind, find("file").bytes), (EntryKind::File, 5));
        assert_eq!((find("sub").kind, find("sub").bytes), (EntryKind::Directory, 0));
        let modified = fs::metadata(tree.path().join("file")).unwrap().modified().unwrap();
        let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
        let stamp = find("file").mtime;
        assert_eq!((stamp.sec as u64, stamp.nsec), (modified.as_secs(), modified.subsec_nanos()));
    }

    #[test]
    fn dotfiles_are_shown_when_allowed() {
        let tree = tree();
        let listing = read(open(tree.path()).as_fd(), true, |_| true, |_| None, &mut |_| Ok(())).unwrap();
        assert_eq!(names(&listing), [".hidden", "file", "sub"]);
    }

    #[test]
    fn a_link_shows_its_target_if_that_is_accessible() {
        let tree = tree();
        let dir = open(tree.path());
        let beneath = |name: &CStr| {
            assert!([c"inside", c"outside", c"broken"].contains(&name), "{name:?}");
            let target = fs::canonicalize(tree.path().join(OsStr::from_bytes(name.to_bytes()))).ok()?;
            target.starts_with(tree.path().canonicalize().unwrap()).then_some(())?;
            sys::stat(dir.as_fd(), name, Follow::Yes, Fields::ALL).ok()
        };
        let listing = read(dir.as_fd(), false, |_| true, beneath, &mut |_| Ok(())).unwrap();
        assert_eq!(names(&listing), ["file", "inside", "sub"]);
        let inside = listing.entries.iter().find(|entry| entry.name == b"inside").unwrap();
        assert_eq!((inside.kind, inside.bytes), (EntryKind::File, 5));
    }

    #[test]
    fn a_cut_is_told() {
        let tree = tempfile::tempdir().unwrap();
        [".hidden", "a", "b", "c"]
            .iter()
            .for_each(|name| drop(File::create(tree.path().join(name)).unwrap()));
        for (limit, shown, complete) in [(0, 0, false), (2, 2, false), (3, 3, true), (4, 3, true)] {
            let shows = |name: &[u8]| !name.starts_with(b".");
            let dir = open(tree.path());
            let listing = read_at_most(limit, 9, dir.as_fd(), shows, |_| None, &mut |_| Ok(())).unwrap();
            assert_eq!((listing.entries.len(), listing.complete), (shown, complete), "{limit}");
        }
        // A filter looks at more names than are shown, but not at all of a directory without end.
        for (names_max, complete) in [(4, true), (1, false)] {
            let shows = |name: &[u8]| name != b".hidden";
            let dir = open(tree.path());
            let listing = read_at_most(9, names_max, dir.as_fd(), shows, |_| None, &mut |_| Ok(())).unwrap();
            assert_eq!(listing.complete, complete, "{names_max}");
        }
    }

    #[test]
    fn the_callers_descriptor_stays_where_it_is() {
        let tree = tree();
        let dir = open(tree.path());
        let first = read(dir.as_fd(), false, |_| true, |_| None, &mut |_| Ok(())).unwrap();
        assert_eq!(read(dir.as_fd(), false, |_| true, |_| None, &mut |_| Ok(())).unwrap(), first);
        assert_eq!(rustix::fs::tell(&dir).unwrap(), 0);
    }

    #[test]
    fn many_names_are_read_in_batches() {
        let tree = tempfile::tempdir().unwrap();
        (0..2 * BATCH).for_each(|index| drop(File::create(tree.path().join(format!("{index:05}"))).unwrap()));
        let listing = read(open(tree.path()).as_fd(), false, |_| true, |_| None, &mut |_| Ok(())).unwrap();
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
        read(open(tree.path()).as_fd(), false, |_| true, |_| None, &mut count).unwrap();
        assert!(most > 900 * size_of::<ListingEntry>(), "{most}");
        let mut limited = |held| if held > most / 2 { Err(Errno::NOMEM) } else { Ok(()) };
        let refused = read(open(tree.path()).as_fd(), false, |_| true, |_| None, &mut limited);
        assert_eq!(refused.unwrap_err(), Errno::NOMEM);
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(
            read(file.as_fd(), false, |_| true, |_| None, &mut |_| Ok(())).unwrap_err(),
            Errno::NOTDIR
        );
    }
}
