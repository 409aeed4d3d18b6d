//! Parses what getdents64(2) wrote: `struct linux_dirent64` records, with every length checked.
//!
//! The buffer comes from the kernel, but the kernel may be passing on what a FUSE daemon or a network server said.

use std::fmt;

use crate::Names;
use crate::meta::FileType;

/// Offsets in `struct linux_dirent64` (getdents64(2)): `d_ino`, `d_off`, `d_reclen`, `d_type`, `d_name`.
const INO: usize = 0;
const OFF: usize = 8;
const RECLEN: usize = 16;
const TYPE: usize = 18;
const NAME: usize = 19;

/// A record that cannot be: too short, past the buffer's end, a name without its NUL, or one that is empty or has a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedDirent;

impl fmt::Display for MalformedDirent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed directory entry")
    }
}

impl std::error::Error for MalformedDirent {}

/// Appends the entries in `buffer` to `names`, `.` and `..` left out, until `names` holds `limit`.
///
/// Returns whether all of `buffer` was taken. `names` then knows where reading goes on.
///
/// # Errors
/// [`MalformedDirent`] at the first record that cannot be; the ones before it are in `names`.
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
