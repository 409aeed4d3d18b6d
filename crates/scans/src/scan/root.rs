//! The spelling of roots, by which later scans of them are recognized.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Component, Path, PathBuf};

use fathom_inventory::store::{Error, Op};

/// Returns the absolute path of a root, without `.`, repeated slashes and slashes at its end. The
/// part before a `..` is resolved, with its links, if it exists. Other links are not. A slash
/// after a link, which asks for its target, stays.
///
/// # Errors
/// If the root is empty, or if it is relative and there is no current directory.
///
/// ```
/// use fathom_scans::history::absolute;
///
/// assert_eq!(absolute(c"/proc//./fs/../none/")?.as_c_str(), c"/proc/none");
/// assert_eq!(absolute(c"/proc/fs/..")?.as_c_str(), c"/proc");
/// assert_eq!(absolute(c"/none/../none")?.as_c_str(), c"/none/../none");
/// assert_eq!(absolute(c"/")?.as_c_str(), c"/");
/// assert!(absolute(c"src")?.to_bytes().ends_with(b"/src"));
/// # Ok::<(), fathom_inventory::store::Error>(())
/// ```
pub fn absolute(root: &CStr) -> Result<CString, Error> {
    let given = Path::new(OsStr::from_bytes(root.to_bytes()));
    let failed = |error: io::Error| Error::new(Op::Read, given, error);
    let absolute = without_parents(&path::absolute(given).map_err(failed)?);
    let is_target = [&b"/"[..], b"/."].iter().any(|end| root.to_bytes().ends_with(end));
    let mut bytes = absolute.as_os_str().as_bytes().to_vec();
    if is_target && absolute.is_symlink() {
        bytes.push(b'/');
    }
    CString::new(bytes).map_err(|error| failed(error.into()))
}

/// Resolves `path` up to its last `..`, so that one tree has one spelling. `..` of a link is the
/// parent of its target (path_resolution(7)), which the kernel has to say.
fn without_parents(path: &Path) -> PathBuf {
    let (above, below) = split_parents(path);
    match above.canonicalize() {
        Ok(above) => above.components().chain(below.components()).collect(),
        _ => path.components().collect(),
    }
}

/// Splits a path behind its last `..`. The first part is empty if there is none.
pub(crate) fn split_parents(path: &Path) -> (PathBuf, PathBuf) {
    let components: Vec<_> = path.components().collect();
    let last = components.iter().rposition(|component| *component == Component::ParentDir);
    let (above, below) = components.split_at(last.map_or(0, |last| last + 1));
    (above.iter().collect(), below.iter().collect())
}
