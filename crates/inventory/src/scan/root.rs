//! The spelling of roots, by which later scans of them are recognized.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};

use crate::store::{Error, Op};

/// Returns the absolute path of a root, without `.`, repeated slashes and slashes at its end. It
/// stays as it is otherwise: links are not resolved. A slash after a link, which asks for its
/// target, stays.
///
/// # Errors
/// If the root is empty, or if it is relative and there is no current directory.
///
/// ```
/// use fathom_inventory::history::absolute;
///
/// assert_eq!(absolute(c"/usr//./bin/../lib/none/")?.as_c_str(), c"/usr/bin/../lib/none");
/// assert_eq!(absolute(c"/")?.as_c_str(), c"/");
/// assert!(absolute(c"src")?.to_bytes().ends_with(b"/src"));
/// # Ok::<(), fathom_inventory::store::Error>(())
/// ```
pub fn absolute(root: &CStr) -> Result<CString, Error> {
    let given = Path::new(OsStr::from_bytes(root.to_bytes()));
    let failed = |error: io::Error| Error::new(Op::Read, given, error);
    let absolute: PathBuf = path::absolute(given).map_err(failed)?.components().collect();
    let is_target = [&b"/"[..], b"/."].iter().any(|end| root.to_bytes().ends_with(end));
    let mut bytes = absolute.as_os_str().as_bytes().to_vec();
    if is_target && absolute.is_symlink() {
        bytes.push(b'/');
    }
    CString::new(bytes).map_err(|error| failed(error.into()))
}
