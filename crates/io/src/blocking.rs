//! Blocking calls on the worker's own thread: the models `sync` and `threads`, and what `auto` runs.

use std::ffi::CStr;
use std::future::Future;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::calls::{Calls, Native};
use crate::model::block_on;
use crate::{Dir, Errno, Fields, Follow, Meta, Model, Names};

/// The blocking model over the calls `C`.
#[derive(Clone, Debug, Default)]
pub struct Blocking<C = Native> {
    calls: C,
}

impl<C: Calls> Blocking<C> {
    /// Over `calls`.
    pub fn new(calls: C) -> Self {
        Self { calls }
    }
}

impl<C: Calls> Model for Blocking<C> {
    const DIRECT: bool = C::DIRECT;

    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        self.calls.open(at, name, follow)
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.calls.read(dir, names, limit)
    }

    async fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.calls.read_some(dir, names, limit)
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        self.calls.stat_dir(dir, fields)
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        out.clear();
        out.extend(
            names.range(range).map(|name| name.stat.then(|| self.calls.stat(at, name.name, follow, fields))),
        );
    }

    fn enter(&self, dir: BorrowedFd<'_>) -> bool {
        self.calls.enter(dir)
    }

    fn magic(&self, dir: &Dir) -> Option<i64> {
        self.calls.magic(dir)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}
