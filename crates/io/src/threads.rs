//! Starting threads where few or none may be started (`RLIMIT_NPROC`, see setrlimit(2)).
//!
//! tokio panics where its pool cannot start the first thread, so that thread's room is made sure of
//! before, and no other thread of this process is started in between.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Acquires the lock that serializes thread starts. A caller that has made sure that a thread can
/// be started holds it until that thread has started, so that no other thread takes its room.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes sure that one more thread can be started, by starting one that ends at once.
///
/// # Errors
/// As pthread_create(3).
pub(crate) fn probe() -> std::io::Result<()> {
    let id = std::thread::Builder::new().stack_size(64 * 1024).spawn(thread_id)?;
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
fn thread_id() -> Option<i32> {
    #[cfg(all(target_os = "linux", not(fathom_posix)))]
    return Some(rustix::thread::gettid().as_raw_nonzero().get());
    #[cfg(not(all(target_os = "linux", not(fathom_posix))))]
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
