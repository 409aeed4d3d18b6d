//! Whether the kernel hands a ring's buffered writes to a thread of its own: it does where the filesystem cannot write without waiting.

use std::fs::File;
use std::io::IoSlice;
use std::path::Path;

use rustix::io::{Errno, ReadWriteFlags, pwritev2};

/// Whether all of them are handed over, on the filesystem of `dir`, which must be the caller's own; `None` if some may be.
///
/// A ring first tries without waiting (`IOCB_NOWAIT`), as `RWF_NOWAIT` does; EOPNOTSUPP means that this is never possible.
pub(crate) fn writes_are_handed_over(dir: &Path) -> Option<bool> {
    let path = dir.join("probe");
    let file = File::create_new(&path).ok()?;
    let tried = pwritev2(&file, &[IoSlice::new(b"x")], 0, ReadWriteFlags::NOWAIT);
    // It is removed with the directory otherwise.
    let _ = std::fs::remove_file(&path);
    match tried {
        Err(Errno::OPNOTSUPP) => Some(true),
        Ok(_) => Some(false),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_gives_the_same_answer_twice_and_keeps_no_probe() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(writes_are_handed_over(temp.path()), writes_are_handed_over(temp.path()));
        assert_eq!(temp.path().read_dir().unwrap().count(), 0);
        assert_eq!(writes_are_handed_over(Path::new("/no/such/place")), None);
    }
}
