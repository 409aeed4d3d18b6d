//! Temporary directories.

use tempfile::TempDir;

/// Makes a directory whose name begins with `prefix` where temporary files go (`TMPDIR`). Only its
/// user may enter it, and it is removed on drop.
///
/// # Errors
/// A message without the name of the program.
pub(crate) fn directory(prefix: &str) -> Result<TempDir, Vec<u8>> {
    let made = tempfile::Builder::new().prefix(prefix).tempdir();
    made.map_err(|error| format!("cannot create a temporary directory: {error}").into_bytes())
}
