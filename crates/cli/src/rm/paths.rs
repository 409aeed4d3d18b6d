//! The paths that are removed: operands, or a file of paths that end in NUL bytes, which is read
//! while the removal runs.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use fathom_remove::Target;

use super::args::PathSource;

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
}

/// The paths, one after the other. A failure ends them, and is kept for later.
pub(crate) struct Paths<'f> {
    source: Source,
    failure: &'f RefCell<Option<PathsError>>,
}

enum Source {
    Operands(std::vec::IntoIter<PathBuf>),
    File(BufReader<Box<dyn Read>>),
}

impl<'f> Paths<'f> {
    /// Opens the source of the paths.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn open(source: PathSource, failure: &'f RefCell<Option<PathsError>>) -> io::Result<Self> {
        let source = match source {
            PathSource::Operands(paths) => Source::Operands(paths.into_iter()),
            PathSource::From0(path) if path == Path::new("-") => {
                Source::File(BufReader::new(Box::new(io::stdin())))
            }
            PathSource::From0(path) => Source::File(BufReader::new(Box::new(File::open(path)?))),
        };
        Ok(Self { source, failure })
    }
}

impl Iterator for Paths<'_> {
    type Item = Target;

    fn next(&mut self) -> Option<Target> {
        let path = match &mut self.source {
            Source::Operands(paths) => paths.next(),
            Source::File(_) if self.failure.borrow().is_some() => None,
            Source::File(reader) => next_path(reader).unwrap_or_else(|error| {
                *self.failure.borrow_mut() = Some(error);
                None
            }),
        };
        path.map(Target::path)
    }
}

fn next_path(reader: &mut impl BufRead) -> Result<Option<PathBuf>, PathsError> {
    let mut path = Vec::new();
    let read = reader.take(PATH_BYTES_MAX).read_until(0, &mut path).map_err(PathsError::Read)?;
    let is_ended = path.pop_if(|last| *last == 0).is_some();
    match (read, path.is_empty()) {
        (0, _) => Ok(None),
        (_, true) => Err(PathsError::Empty),
        (read, _) if !is_ended && read as u64 == PATH_BYTES_MAX => Err(PathsError::TooLong),
        _ => Ok(Some(OsString::from_vec(path).into())),
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
            match next_path(&mut text) {
                Ok(Some(path)) => found.push(path.into_os_string().into_vec()),
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
    fn an_empty_path_and_an_endless_one_end_the_list() {
        let (found, error) = read(b"a\0\0b\0");
        assert!(found.len() == 1 && matches!(error, Some(PathsError::Empty)));
        let (found, error) = read(&vec![b'x'; PATH_BYTES_MAX as usize + 1]);
        assert!(found.is_empty() && matches!(error, Some(PathsError::TooLong)));
    }
}
