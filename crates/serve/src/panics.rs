//! Panics that end one connection or one call instead of the server.
//!
//! A panic unwinds to the task or pool job that it happened in. The values of that task are
//! dropped, and with them its connection, its charges and its place in queues; the state of the
//! worker is in `Cell`s and short `RefCell` borrows that hold between any two calls.
//!
//! Owns: the count and the report of caught panics. Does not own: the panic hook, which belongs to
//! the program and knows the place in the source.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_io::threads::panic_message;

use crate::log::{ErrorCategory, ErrorReporter};

/// Counts and reports panics. Clones share the count.
#[derive(Clone)]
pub(crate) struct PanicReporter {
    errors: ErrorReporter,
    count: Arc<AtomicU64>,
}

impl PanicReporter {
    pub(crate) fn new(errors: ErrorReporter) -> Self {
        Self { errors, count: Arc::default() }
    }

    /// Counts a panic with `payload` and reports it. `ended` is the thing that it ended.
    pub(crate) fn report(&self, ended: &str, payload: &(dyn Any + Send)) {
        // Relaxed: no other data depends on the counter.
        self.count.fetch_add(1, Ordering::Relaxed);
        let message = panic_message(payload);
        self.errors
            .report(ErrorCategory::Panics, || format!("a bug has ended {ended}: it panicked: {message}"));
    }

    /// Returns the number of panics so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
