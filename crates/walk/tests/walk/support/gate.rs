//! A gate that blocks calls of the walk until a test opens it, and counts the blocked calls: a call
//! that a test has to observe in flight stays in flight until then.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex};

use super::calls::{Calls, Native};
use fathom_io::Dir;
use fathom_walk::{Errno, Fields, Follow, Meta, Names};

#[derive(Default)]
struct State {
    waiting: usize,
    is_open: bool,
}

/// A gate, closed at first. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<State>, Condvar)>);

impl Gate {
    /// Waits until the gate is open. Opens it if `opens` returns true for the number of waiting
    /// calls.
    pub(crate) fn pass_or_open(&self, opens: impl Fn(usize) -> bool) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        state.waiting += 1;
        state.is_open |= opens(state.waiting);
        changed.notify_all();
        while !state.is_open {
            state = changed.wait(state).unwrap();
        }
        state.waiting -= 1;
    }

    /// Waits until the gate is open.
    pub(crate) fn pass(&self) {
        self.pass_or_open(|_| false);
    }

    /// Returns the number of calls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.0.0.lock().unwrap().waiting
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.0.lock().unwrap().is_open
    }

    pub(crate) fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }
}

/// Calls that wait at a gate, after a number of calls that do not.
#[derive(Clone)]
pub(crate) struct Gated {
    pub(crate) gate: Gate,
    /// Number of further calls that do not wait.
    free: Arc<Mutex<usize>>,
}

impl Gated {
    pub(crate) fn after(calls: usize) -> Self {
        Self { gate: Gate::default(), free: Arc::new(Mutex::new(calls)) }
    }

    fn wait(&self) {
        let is_free = {
            let mut free = self.free.lock().unwrap();
            let is_free = *free > 0;
            *free = free.saturating_sub(1);
            is_free
        };
        if !is_free {
            self.gate.pass();
        }
    }
}

impl Calls for Gated {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        self.wait();
        Native.open(at, name, follow)
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.wait();
        Native.read(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.wait();
        Native.read_some(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        self.wait();
        Native.stat(at, name, follow, fields)
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        Native.stat_dir(dir, fields)
    }
}
