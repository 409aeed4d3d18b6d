//! The roots of a listing, in the given order.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

use fathom_walk::NextRoot;

/// The roots, and the number of roots already passed to the walk.
#[derive(Debug)]
pub(crate) struct RootList {
    paths: Vec<CString>,
    next: usize,
}

impl RootList {
    /// Creates the list of roots, or one root `.` if `words` is empty. `None` if a root is empty or
    /// contains a NUL byte.
    pub(crate) fn new(words: Vec<OsString>) -> Option<Self> {
        let words = if words.is_empty() { vec![OsString::from(".")] } else { words };
        let path = |word: OsString| CString::new(word.into_vec()).ok().filter(|path| !path.is_empty());
        let paths = words.into_iter().map(path).collect::<Option<Vec<_>>>()?;
        Some(Self { paths, next: 0 })
    }

    pub(crate) fn next(&mut self) -> NextRoot {
        let path = self.paths.get(self.next);
        self.next += 1;
        path.map_or(NextRoot::End, |path| NextRoot::Path(path.clone()))
    }

    /// Returns all roots.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().map(|path| path.to_bytes())
    }
}
