//! Thread start under limits on threads and address space (`RLIMIT_NPROC`, `RLIMIT_AS`,
//! setrlimit(2)).
//!
//! tokio panics if its pool cannot start the first thread. A probe thread is started before, and
//! [`start_lock`] is held until tokio's thread runs, so that no other thread of this process is
//! started in between.

use std::any::Any;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

use crate::sys;

/// Address space that a thread takes besides its stack: guard pages, the signal stack that Rust
/// maps on the thread itself, and allocations of both threads during the start.
const AROUND_STACK_BYTES: usize = 1 << 20;

/// Acquires the lock that serializes thread starts. A caller that has checked the limits holds it
/// until its thread has started, so that no other thread of this process uses the last resources.
///
/// ```
/// let lock = fathom_io::threads::start_lock();
/// let thread = std::thread::Builder::new().spawn(|| 1).unwrap();
/// drop(lock);
/// assert_eq!(thread.join().unwrap(), 1);
/// ```
pub fn start_lock() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread if the limit on address space (`RLIMIT_AS`) allows it and `bytes` more. Returns
/// once the thread runs: Rust aborts the process if a new thread cannot map its signal stack, so no
/// other thread may use that address space before.
///
/// # Errors
/// If no thread can be started. The text of the error names the limit.
///
/// ```
/// let thread = fathom_io::threads::spawn("adder", 64 * 1024, 0, || 1 + 1)?;
/// assert_eq!(thread.join().unwrap(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _lock = start_lock();
    if !has_address_space(stack_bytes.saturating_add(bytes)) {
        return Err(refused("the limit on address space, RLIMIT_AS, leaves too little room"));
    }
    let (running, started) = mpsc::sync_channel(1);
    let work = move || {
        // The receiver waits for this message, so the send does not fail.
        let _ = running.send(());
        work()
    };
    let thread = Builder::new().name(name.to_owned()).stack_size(stack_bytes).spawn(work);
    let thread = thread.map_err(|_error| refused(&limit()))?;
    // An error means that the thread has already ended.
    let _ = started.recv();
    Ok(thread)
}

/// Returns the message of a panic with `payload`.
#[must_use]
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn refused(why: &str) -> io::Error {
    io::Error::other(format!("no thread can be started: {why}"))
}

/// Returns whether the limit on address space (`RLIMIT_AS`) allows a thread that takes `bytes` with
/// its stack.
///
/// ```
/// use fathom_io::threads;
///
/// const STACK_BYTES: usize = 256 * 1024;
/// if threads::has_address_space(STACK_BYTES) {
///     let _lock = threads::start_lock();
///     std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| ())?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn has_address_space(bytes: usize) -> bool {
    sys::address_space_left().is_none_or(|room| room >= bytes.saturating_add(AROUND_STACK_BYTES))
}

/// Checks that one more thread can be started, by starting a thread that ends immediately.
///
/// # Errors
/// As pthread_create(3).
#[cfg(feature = "tokio")]
pub(crate) fn probe() -> io::Result<()> {
    let id = Builder::new().stack_size(64 * 1024).spawn(thread_id)?;
    let Some(id) = id.join().ok().flatten() else { return Ok(()) };
    // The kernel counts a thread until its entry in /proc is gone, which is after `join` returns.
    let entry = format!("/proc/self/task/{id}");
    while std::fs::symlink_metadata(&entry).is_ok() {
        std::thread::yield_now();
    }
    Ok(())
}

/// Returns the number of the calling thread in /proc. `None` on systems without one.
#[cfg(feature = "tokio")]
fn thread_id() -> Option<i32> {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    return Some(rustix::thread::gettid().as_raw_nonzero().get());
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    None
}

/// Returns whether the calling thread is the first one of its process. False on systems where that
/// is not known.
///
/// ```
/// assert!(!std::thread::spawn(fathom_io::threads::is_main_thread).join().unwrap());
/// ```
#[must_use]
pub fn is_main_thread() -> bool {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    return rustix::thread::gettid() == rustix::process::getpid();
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    false
}

/// Describes the limit on threads and processes of this user, for messages.
pub(crate) fn limit() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    limit.map_or_else(
        || "memory or the system's limit on threads may be used up".to_owned(),
        |limit| format!("the limit on processes, RLIMIT_NPROC, is {limit}"),
    )
}
