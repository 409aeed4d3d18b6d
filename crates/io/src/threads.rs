//! Starting threads where few or none may be started (`RLIMIT_NPROC`, see setrlimit(2)).
//!
//! tokio panics where its pool cannot start the first thread, so that thread's room is made sure of
//! before, and no other thread of this process is started in between.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

use crate::sys;

/// Address space that a thread takes besides its stack: guard pages, the signal stack that Rust maps
/// on the thread itself, and what both threads allocate meanwhile.
const AROUND_STACK_BYTES: usize = 1 << 20;

/// Acquires the lock that serializes thread starts. A caller that has made sure that a thread can
/// be started holds it until that thread has started, so that no other thread takes its room.
pub fn start_lock() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread where the limit on address space (RLIMIT_AS) leaves room for it and `bytes` more.
/// Returns once the thread runs: Rust aborts the process if a new thread cannot map its signal
/// stack, so no other thread may take that room before.
///
/// # Errors
/// Where no thread can be started; the text names the limit.
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _turn = start_lock();
    if !has_address_space(stack_bytes.saturating_add(bytes)) {
        return Err(refused("the limit on address space, RLIMIT_AS, leaves too little room"));
    }
    let (running, started) = mpsc::sync_channel(1);
    let work = move || {
        // The send fails only if the receiver is gone, which waits for it.
        let _ = running.send(());
        work()
    };
    let thread = Builder::new().name(name.to_owned()).stack_size(stack_bytes).spawn(work);
    let thread = thread.map_err(|_error| refused(&limit()))?;
    // An error says that the thread has ended already.
    let _ = started.recv();
    Ok(thread)
}

fn refused(why: &str) -> io::Error {
    io::Error::other(format!("no thread can be started: {why}"))
}

/// Whether the limit on address space leaves room for a thread that takes `bytes` with its stack.
#[must_use]
pub fn has_address_space(bytes: usize) -> bool {
    sys::address_space_left().is_none_or(|room| room >= bytes.saturating_add(AROUND_STACK_BYTES))
}

/// Makes sure that one more thread can be started, by starting one that ends at once.
///
/// # Errors
/// As pthread_create(3).
#[cfg(feature = "tokio")]
pub(crate) fn probe() -> io::Result<()> {
    let id = Builder::new().stack_size(64 * 1024).spawn(thread_id)?;
    let Some(id) = id.join().ok().flatten() else { return Ok(()) };
    // The kernel counts a thread until it is gone from /proc, which is later than its end can be
    // seen by joining it.
    let entry = format!("/proc/self/task/{id}");
    while std::fs::symlink_metadata(&entry).is_ok() {
        std::thread::yield_now();
    }
    Ok(())
}

/// The number of the calling thread in /proc, where that is known.
#[cfg(feature = "tokio")]
fn thread_id() -> Option<i32> {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    return Some(rustix::thread::gettid().as_raw_nonzero().get());
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    None
}

/// The limit on threads and processes of this user, for messages.
pub(crate) fn limit() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    limit.map_or_else(
        || "memory or the system's limit on threads may be used up".to_owned(),
        |limit| format!("the limit on processes, RLIMIT_NPROC, is {limit}"),
    )
}
