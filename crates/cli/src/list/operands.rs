//! The roots of a listing, in the order given.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

use fathom_walk::NextRoot;

/// Roots, and how many have been handed out.
#[derive(Debug)]
pub(crate) struct Operands {
    paths: Vec<CString>,
    next: usize,
}

impl Operands {
    /// The current directory if there are none; `None` if one is empty, which no path is.
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

    /// All of them.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().map(|path| path.to_bytes())
    }

    /// The path of a root handed out.
    pub(crate) fn path(&self, root: usize) -> &[u8] {
        self.paths[root].to_bytes()
    }
}
