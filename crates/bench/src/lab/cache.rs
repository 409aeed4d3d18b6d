//! What the page cache has of a file: brought about, and certified by asking the kernel.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use fathom_io::Errno;
use fathom_io::sys::{cached, forget_cached, resident};

/// Bytes of one read while a file is made warm.
const READ_BYTES: usize = 1 << 20;

/// The share of the pages of the file at `path` that are in the page cache, between 0 and 1; `None` where the kernel does not tell.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn share(path: &Path) -> io::Result<Option<f64>> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let pages = len.div_ceil(rustix::param::page_size() as u64);
    if pages == 0 {
        return Ok(None);
    }
    let found = cached(file.as_fd(), 0, len).map(|cached| cached.pages);
    let found =
        found.or_else(|errno| if errno == Errno::NOSYS { resident(file.as_fd(), len) } else { Err(errno) });
    Ok(found.ok().map(|found| found.min(pages) as f64 / pages as f64))
}

/// Reads all of the file.
///
/// # Errors
/// If it cannot be read.
pub(super) fn warm(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Has the page cache forget the file, which is synced first: only what has been written can be forgotten.
///
/// # Errors
/// If it cannot be opened or synced.
pub(super) fn cool(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_data()?;
    Ok(forget_cached(file.as_fd())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_and_cold_are_certified() {
        let temp = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = temp.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        if share(&path).unwrap().is_none() {
            println!("skipped: the kernel does not tell what is in the page cache");
            return;
        }
        warm(&path).unwrap();
        assert_eq!(share(&path).unwrap(), Some(1.0));
        cool(&path).unwrap();
        let left = share(&path).unwrap();
        // A filesystem in memory has nowhere else to keep it.
        if left == Some(1.0) {
            println!("skipped: the source tree's filesystem keeps files in memory");
            return;
        }
        assert_eq!(left, Some(0.0));
        std::fs::write(temp.path().join("empty"), "").unwrap();
        assert_eq!(share(&temp.path().join("empty")).unwrap(), None);
    }
}
