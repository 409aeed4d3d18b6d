//! State of the process that Rust's runtime changes before `main`: it opens /dev/null in place of a
//! closed standard stream, and ignores SIGPIPE. A replacement of a C program needs the original
//! state of both.

use std::sync::atomic::{AtomicBool, Ordering};

static STDIN_CLOSED: AtomicBool = AtomicBool::new(false);
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);
static STDERR_CLOSED: AtomicBool = AtomicBool::new(false);
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls every function in this section once, before `main`, with the C library
// ready (gABI, "Initialization and Termination Functions"); the function ignores arguments that the
// loader may pass.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static RECORD: extern "C" fn() = record;

extern "C" fn record() {
    let mut streams = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the array has as many elements as the argument says. The timeout is 0, so the call
    // does not wait.
    let polled = unsafe { libc::poll(streams.as_mut_ptr(), 3, 0) };
    for (stream, closed) in streams.iter().zip([&STDIN_CLOSED, &STDOUT_CLOSED, &STDERR_CLOSED]) {
        let is_closed = match polled {
            // poll(2) fails if RLIMIT_NOFILE is below 3.
            // SAFETY: F_GETFD takes no pointer and changes nothing.
            ..0 => unsafe { libc::fcntl(stream.fd, libc::F_GETFD) < 0 },
            _ => stream.revents & libc::POLLNVAL != 0,
        };
        closed.store(is_closed, Ordering::Relaxed);
    }
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null new action the call only writes the old one, to a buffer of its own type.
    let queried = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed is a valid sigaction, whether or not the call filled it.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    SIGPIPE_IGNORED.store(queried == 0 && handler == libc::SIG_IGN, Ordering::Relaxed);
}

/// Returns whether standard input was closed when the process started.
///
/// ```
/// use fathom_io::sys;
///
/// if sys::stdin_was_closed() {
///     eprintln!("standard input is closed");
/// }
/// ```
#[must_use]
pub fn stdin_was_closed() -> bool {
    STDIN_CLOSED.load(Ordering::Relaxed)
}

/// Returns whether standard output was closed when the process started.
#[must_use]
pub fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(Ordering::Relaxed)
}

/// Returns whether standard error was closed when the process started.
#[must_use]
pub fn stderr_was_closed() -> bool {
    STDERR_CLOSED.load(Ordering::Relaxed)
}

/// Restores the default action of SIGPIPE, so that a write to a closed pipe ends the process as it
/// ends a C program. Does nothing if SIGPIPE was ignored when the process started.
///
/// ```
/// fathom_io::sys::restore_sigpipe();
/// // A server has many peers, and must survive each of them.
/// fathom_io::sys::ignore_sigpipe();
/// assert!(fathom_io::sys::is_ignored(13));
/// ```
pub fn restore_sigpipe() {
    if !SIGPIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: SIG_DFL runs no code of this process.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}

/// Ignores SIGPIPE, so that a write to a closed pipe or socket fails with EPIPE. For servers.
pub fn ignore_sigpipe() {
    // SAFETY: SIG_IGN runs no code of this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
