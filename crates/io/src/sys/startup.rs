//! What the process was started with and Rust's runtime changes before `main`: it opens /dev/null where a standard
//! stream was closed, and ignores SIGPIPE. A program that stands in for a C one has to know both.

use std::sync::atomic::{AtomicBool, Ordering};

static STDIN_CLOSED: AtomicBool = AtomicBool::new(false);
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);
static STDERR_CLOSED: AtomicBool = AtomicBool::new(false);
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls every function in this section once, before `main`, with the C library ready (gABI,
// "Initialization and Termination Functions"); arguments it may pass are not looked at.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static RECORD: extern "C" fn() = record;

extern "C" fn record() {
    let mut streams = [0, 1, 2].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the array has as many elements as the call is told. With no time to wait it does not.
    let polled = unsafe { libc::poll(streams.as_mut_ptr(), 3, 0) };
    for (stream, closed) in streams.iter().zip([&STDIN_CLOSED, &STDOUT_CLOSED, &STDERR_CLOSED]) {
        let is_closed = match polled {
            // More descriptors than the process may have (RLIMIT_NOFILE).
            // SAFETY: F_GETFD takes no pointer and changes nothing.
            ..0 => unsafe { libc::fcntl(stream.fd, libc::F_GETFD) < 0 },
            _ => stream.revents & libc::POLLNVAL != 0,
        };
        closed.store(is_closed, Ordering::Relaxed);
    }
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; the old one is written to a buffer of its own type.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed is a valid sigaction, whether or not the call filled it.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    SIGPIPE_IGNORED.store(asked == 0 && handler == libc::SIG_IGN, Ordering::Relaxed);
}

/// Whether there was no standard input when the process started.
#[must_use]
pub fn stdin_was_closed() -> bool {
    STDIN_CLOSED.load(Ordering::Relaxed)
}

/// Whether there was no standard output when the process started.
#[must_use]
pub fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(Ordering::Relaxed)
}

/// Whether there was no standard error when the process started.
#[must_use]
pub fn stderr_was_closed() -> bool {
    STDERR_CLOSED.load(Ordering::Relaxed)
}

/// Lets a write to a closed pipe end the process, as it would a C program, unless whoever started it had it ignored.
pub fn restore_sigpipe() {
    if !SIGPIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: SIG_DFL runs no code of this process.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}

/// Makes a write to a closed pipe or socket an error (EPIPE), for a program that serves many of them.
pub fn ignore_sigpipe() {
    // SAFETY: SIG_IGN runs no code of this process.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
