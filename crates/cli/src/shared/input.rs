//! Standard input as a file.

use std::fs::File;
use std::io;

/// Returns standard input. [`std::io::stdin`] takes a descriptor that cannot be read, because it
/// was closed or is open for writing only, for an empty file.
///
/// # Errors
/// EBADF if it was closed when the program started.
pub(crate) fn standard_input() -> io::Result<File> {
    if fathom_io::sys::stdin_was_closed() {
        return Err(fathom_io::Errno::BADF.into());
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0).map(File::from)?)
}
