//! The parser for the buffer of getdents64(2): `struct linux_dirent64` records, each length
//! checked.
//!
//! The kernel writes the buffer, but names and numbers in it may come from a FUSE daemon or a
//! network server.

use std::fmt;

use crate::Names;
use crate::meta::FileType;

/// Offsets in `struct linux_dirent64` (getdents64(2)): `d_ino`, `d_off`, `d_reclen`, `d_type`,
/// `d_name`.
const INO: usize = 0;
const OFF: usize = 8;
const RECLEN: usize = 16;
const TYPE: usize = 18;
const NAME: usize = 19;

/// A record that is too short or extends past the end of the buffer, or whose name is empty, has a
/// slash, or has no NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedDirent;

impl fmt::Display for MalformedDirent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed directory entry")
    }
}

impl std::error::Error for MalformedDirent {}

/// Appends the entries in `buffer` to `names`, without `.` and `..`, until `names` has `limit`
/// entries. Sets the cookie of `names` to the position after the last record parsed.
///
/// Returns whether all of `buffer` was parsed.
///
/// # Errors
/// [`MalformedDirent`] at the first invalid record. The entries before it are in `names`.
///
/// ```
/// use fathom_io::{FileType, Names, parse_dirents};
///
/// // d_ino, d_off, d_reclen, d_type and d_name, padded to a multiple of eight bytes.
/// let mut record = [7_u64.to_ne_bytes(), 1_u64.to_ne_bytes()].concat();
/// record.extend_from_slice(&24_u16.to_ne_bytes());
/// record.extend_from_slice(b"\x08file\0");
/// record.resize(24, 0);
/// let mut names = Names::new();
/// assert_eq!(parse_dirents(&record, &mut names, 100), Ok(true));
/// let name = names.get(0);
/// assert_eq!((name.name, name.ino, name.file_type), (c"file", 7, FileType::Regular));
/// // The record is cut off.
/// assert!(parse_dirents(&record[..20], &mut names, 100).is_err());
/// ```
pub fn parse(mut buffer: &[u8], names: &mut Names, limit: usize) -> Result<bool, MalformedDirent> {
    names.reserve(buffer.len());
    while !buffer.is_empty() {
        if names.len() >= limit {
            return Ok(false);
        }
        let header: &[u8; NAME] = buffer.first_chunk().ok_or(MalformedDirent)?;
        let record_len = usize::from(u16::from_ne_bytes([header[RECLEN], header[RECLEN + 1]]));
        let name = buffer.get(NAME..record_len).ok_or(MalformedDirent)?;
        let dots = name.first() == Some(&b'.') && (name.starts_with(b".\0") || name.starts_with(b"..\0"));
        if !dots && !names.push_field(name, word(header, INO), FileType::from_dirent(header[TYPE])) {
            return Err(MalformedDirent);
        }
        names.cookie = word(header, OFF);
        buffer = buffer.get(record_len..).ok_or(MalformedDirent)?;
    }
    Ok(true)
}

fn word(header: &[u8; NAME], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    u64::from_ne_bytes(bytes)
}
