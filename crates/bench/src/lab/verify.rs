//! An independent reader of what a sample has written: plain reads, every byte compared.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::pattern::Pattern;

/// Bytes of one read, a multiple of a page.
const READ_BYTES: usize = 1 << 20;

/// What is wrong with the file at `path`, which should have `size` bytes of `pattern`, or zeros; `None` if nothing is.
///
/// # Errors
/// If it cannot be read.
pub(super) fn wrong(path: &Path, size: u64, pattern: Option<&Pattern>) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let found = file.metadata()?.len();
    if found != size {
        return Ok(Some(format!("it has {found} bytes instead of {size}")));
    }
    let (mut offset, mut buffer) = (0, vec![0; READ_BYTES]);
    while offset < size {
        let len = READ_BYTES.min(usize::try_from(size - offset).unwrap_or(READ_BYTES));
        file.read_exact(&mut buffer[..len])?;
        let bytes = &buffer[..len];
        let zeros = || bytes.iter().position(|byte| *byte != 0).map(|index| offset + index as u64);
        if let Some(byte) = pattern.map_or_else(zeros, |pattern| pattern.first_wrong(offset, bytes)) {
            return Ok(Some(format!("byte {byte} is not what was to be written")));
        }
        offset += len as u64;
    }
    Ok(None)
}

/// Writes the file a sample is to read.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(path: &Path, size: u64, pattern: &Pattern) -> io::Result<()> {
    use std::io::Write;
    let (mut file, mut buffer, mut offset) = (File::create(path)?, vec![0; READ_BYTES], 0);
    while offset < size {
        let len = READ_BYTES.min(usize::try_from(size - offset).unwrap_or(READ_BYTES));
        pattern.fill(offset, &mut buffer[..len]);
        file.write_all(&buffer[..len])?;
        offset += len as u64;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_a_short_file_and_an_old_one_are_found() {
        let temp = tempfile::tempdir().unwrap();
        let (path, pattern, size) = (temp.path().join("file"), Pattern::new(3, 4), 3_000_001);
        write(&path, size, &pattern).unwrap();
        assert_eq!(wrong(&path, size, Some(&pattern)).unwrap(), None);
        assert!(wrong(&path, size + 1, Some(&pattern)).unwrap().unwrap().contains("3000001 bytes"));
        assert!(wrong(&path, size, Some(&Pattern::new(3, 5))).unwrap().unwrap().contains("byte 8 "));
        assert!(wrong(&path, size, None).unwrap().unwrap().contains("byte 8 "), "zeros");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[2_999_999] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(wrong(&path, size, Some(&pattern)).unwrap().unwrap().contains("byte 2999999 "));
    }
}
