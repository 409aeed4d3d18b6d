//! The working directory and everything that contains it.

use std::os::fd::AsFd;

use fathom_io::{Errno, beneath};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::retry_on_intr;

use crate::identity::Identity;

/// Returns the working directory of the process and all directories that contain it, up to the root
/// directory.
///
/// # Errors
/// As openat(2) and fstat(2).
///
/// ```
/// // At least the root directory and the directory of this crate.
/// assert!(fathom_remove::working_directories()?.len() >= 2);
/// # Ok::<(), fathom_remove::Errno>(())
/// ```
pub fn working_directories() -> Result<Vec<Identity>, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = retry_on_intr(|| openat(CWD, c".", flags, Mode::empty()))?;
    let mut found = Vec::new();
    loop {
        let (dev, ino) = beneath::stat(here.as_fd())?.id();
        // The root directory is its own parent.
        if found.last() == Some(&Identity { dev, ino }) {
            return Ok(found);
        }
        found.push(Identity { dev, ino });
        here = retry_on_intr(|| openat(&here, c"..", flags, Mode::empty()))?;
    }
}
