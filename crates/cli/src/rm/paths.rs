//! The paths that are removed: operands, or a file of paths that end in NUL bytes, which is read
//! while the removal runs.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_io::FileTime;
use fathom_remove::{Identity, RemovalCause, Target};

use super::args::{PathList, PathSource};
use crate::shared::input::standard_input;

/// Maximum length of a path in a file, in bytes.
const PATH_BYTES_MAX: u64 = 16 << 20;

/// A failure to read the file of paths.
#[derive(Debug)]
pub(crate) enum PathsError {
    /// A read failed.
    Read(io::Error),
    /// A path has no bytes.
    Empty,
    /// A path is too long.
    TooLong,
    /// A path has no device, inode number and time before it.
    NoId,
}

/// A target, or a path of the list that is none, and why.
pub(crate) type ListedTarget = Result<Target, (Vec<u8>, RemovalCause)>;

/// The paths, one after the other. A failure ends them, and is kept for later.
pub(crate) struct Paths<'f> {
    source: Source,
    failure: &'f RefCell<Option<PathsError>>,
}

enum Source {
    Operands(std::vec::IntoIter<PathBuf>),
    List(PathList, BufReader<Box<dyn Read>>),
}

impl<'f> Paths<'f> {
    /// Opens the source of the paths.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn open(source: PathSource, failure: &'f RefCell<Option<PathsError>>) -> io::Result<Self> {
        let source = match source {
            PathSource::Operands(paths) => Source::Operands(paths.into_iter()),
            PathSource::From0(list) => {
                let reader: Box<dyn Read> = match list.is_standard_input() {
                    true => Box::new(standard_input()?),
                    false => Box::new(File::open(&list.file)?),
                };
                Source::List(list, BufReader::new(reader))
            }
        };
        Ok(Self { source, failure })
    }
}

impl Iterator for Paths<'_> {
    type Item = ListedTarget;

    fn next(&mut self) -> Option<ListedTarget> {
        match &mut self.source {
            Source::Operands(paths) => paths.next().map(|path| Ok(Target::path(path))),
            Source::List(..) if self.failure.borrow().is_some() => None,
            Source::List(list, reader) => next_target(list, reader).unwrap_or_else(|error| {
                *self.failure.borrow_mut() = Some(error);
                None
            }),
        }
    }
}

fn next_target(list: &PathList, reader: &mut impl BufRead) -> Result<Option<ListedTarget>, PathsError> {
    let Some(record) = next_record(reader)? else { return Ok(None) };
    let (id, path) = if list.has_ids {
        let (identity, ctime, path) = split_record(&record).ok_or(PathsError::NoId)?;
        (Some((identity, ctime)), path.to_vec())
    } else {
        (None, record)
    };
    let target = match &list.root {
        None => Ok(Target::listed(&path[..])),
        Some(root) => Target::listed_below(root, &path[..]),
    };
    let target = target.map_err(|cause| (path, cause));
    Ok(Some(target.map(|target| match id {
        None => target,
        Some((identity, ctime)) => target.identity(identity).ctime(ctime),
    })))
}

/// Splits a record into the inode, its time of change and the path: `%D %i %C@ %p` of find(1).
fn split_record(record: &[u8]) -> Option<(Identity, FileTime, &[u8])> {
    let mut words = record.splitn(4, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let (dev, ino) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let (sec, fraction) = word()?.split_once('.')?;
    let (sec, nsec) = (sec.parse().ok()?, fraction.get(..9)?.parse().ok()?);
    // Before 1970 the fraction is below zero, as in find(1): such a time is no time of change.
    let ctime = FileTime { sec, nsec };
    let path = words.next().filter(|path| !path.is_empty())?;
    Some((Identity { dev, ino }, ctime, path))
}

fn next_record(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>, PathsError> {
    let mut path = Vec::new();
    let read = reader.take(PATH_BYTES_MAX).read_until(0, &mut path).map_err(PathsError::Read)?;
    let is_ended = path.pop_if(|last| *last == 0).is_some();
    match (read, path.is_empty()) {
        (0, _) => Ok(None),
        (_, true) => Err(PathsError::Empty),
        (read, _) if !is_ended && read as u64 == PATH_BYTES_MAX => Err(PathsError::TooLong),
        _ => Ok(Some(path)),
    }
}

/// Returns the path of a file for messages.
pub(crate) fn file_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut text: &[u8]) -> (Vec<Vec<u8>>, Option<PathsError>) {
        let mut found = Vec::new();
        loop {
            match next_record(&mut text) {
                Ok(Some(path)) => found.push(path),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[test]
    fn paths_end_in_nul_bytes_and_the_last_one_need_not() {
        let (found, error) = read(b"a\0-rf\n*\0\xff/\x1b[2J");
        assert_eq!(found, [&b"a"[..], b"-rf\n*", b"\xff/\x1b[2J"]);
        assert!(error.is_none());
        assert!(matches!(read(b""), (found, None) if found.is_empty()));
    }

    #[test]
    fn an_inode_and_a_time_stand_before_the_path() {
        let found = split_record(b"66305 12 1795893200.0123456789 a b\xff/c").unwrap();
        let time = FileTime { sec: 1_795_893_200, nsec: 12_345_678 };
        assert_eq!(found, (Identity { dev: 66305, ino: 12 }, time, &b"a b\xff/c"[..]));
        for wrong in [
            "",
            "a/b",
            "1 2 a",
            "1 2 3 a",
            "1 2 3.4 a",
            "-1 2 3.0000000000 a",
            "1 2 3.0000000000 ",
            "1 2 3.0000000000",
        ] {
            assert_eq!(split_record(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn an_empty_path_and_an_endless_one_end_the_list() {
        let (found, error) = read(b"a\0\0b\0");
        assert!(found.len() == 1 && matches!(error, Some(PathsError::Empty)));
        let (found, error) = read(&vec![b'x'; PATH_BYTES_MAX as usize + 1]);
        assert!(found.is_empty() && matches!(error, Some(PathsError::TooLong)));
    }
}
