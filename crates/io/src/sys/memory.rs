//! Memory where there is little of it: an allocator after whose failure a process ends with a
//! message and an exit status, and how much address space is left.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};

/// The C library's allocator. A failed allocation is repeated once in thrifty mode, in which the
/// allocator takes no more from the system than it needs. After the first final failure, a process
/// that aborts, as Rust's do then, ends with status 1 in place of a signal; callers that can do
/// without the memory (`try_reserve`) continue.
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

impl Allocator {
    /// Calls `allocate`, and if it fails, calls it once more in thrifty mode. Returns the last
    /// result.
    #[inline]
    fn insist(allocate: impl Fn() -> *mut u8) -> *mut u8 {
        let block = allocate();
        if block.is_null() { Self::insist_thriftily(allocate) } else { block }
    }

    #[cold]
    fn insist_thriftily(allocate: impl Fn() -> *mut u8) -> *mut u8 {
        be_thrifty();
        let block = allocate();
        if block.is_null() && !FAILED.swap(true, Ordering::Relaxed) {
            end_on_abort();
        }
        block
    }
}

/// Whether an allocation has failed for good.
static FAILED: AtomicBool = AtomicBool::new(false);
/// The limit on address space in bytes; 0 where there is none.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Address space that is exhausted has no room for this: no more than a thread's stacks.
const NOTHING_BYTES: usize = 4 << 20;

/// Has a process with a limit on address space (RLIMIT_AS) end with a message and status 1 when it
/// panics or aborts because that limit is reached. Allocations of libraries in C and the signal
/// stacks of new threads do not pass through [`Allocator`]: where they fail, Rust panics, or aborts
/// at once.
pub fn exit_when_exhausted() {
    let Some(limit) = getrlimit(Resource::As).current else { return };
    LIMIT.store(limit, Ordering::Relaxed);
    end_on_abort();
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_exhausted() {
            end_exhausted();
        }
        others(panic);
    }));
}

/// Has abort(3) call [`end`].
fn end_on_abort() {
    // SAFETY: the handler makes none but safe calls (see there).
    unsafe { libc::signal(libc::SIGABRT, end as extern "C" fn(libc::c_int) as libc::sighandler_t) };
}

/// Ends the process with a message and status 1 if memory is exhausted. Otherwise the abort is a
/// defect or was sent from outside, and the signal ends the process as ever.
extern "C" fn end(signal: libc::c_int) {
    if is_exhausted() {
        end_exhausted();
    }
    // SAFETY: signal(2) and raise(3) may be called in a signal handler (signal-safety(7)). The
    // signal is blocked while its handler runs, so it takes effect when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn is_exhausted() -> bool {
    FAILED.load(Ordering::Relaxed) || !has(NOTHING_BYTES)
}

/// Ends the process with a message that names the limit, and status 1. Allocates nothing.
fn end_exhausted() -> ! {
    let mut message = Message::default();
    // A message has room for every limit, and formatting a number allocates nothing.
    let _ = match LIMIT.load(Ordering::Relaxed) {
        0 => writeln!(message, "fathom: memory exhausted"),
        limit => writeln!(
            message,
            "fathom: memory exhausted: the limit on address space, RLIMIT_AS, is {} KiB",
            limit / 1024
        ),
    };
    // SAFETY: write(2) and _exit(2) may be called in a signal handler (signal-safety(7)); the bytes
    // are on the stack and were written.
    unsafe {
        libc::write(2, message.bytes.as_ptr().cast(), message.len);
        libc::_exit(1)
    }
}

/// Whether so many bytes of address space can be had.
fn has(bytes: usize) -> bool {
    // SAFETY: a private mapping at an address of the kernel's choice, which nothing else refers to
    // and which is taken away again. mmap(2) and munmap(2) are bare system calls, without a lock.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let block = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        let is_there = block != libc::MAP_FAILED;
        if is_there {
            libc::munmap(block, bytes);
        }
        is_there
    }
}

/// A message in a signal handler, which may not allocate.
struct Message {
    bytes: [u8; 128],
    len: usize,
}

impl Default for Message {
    fn default() -> Self {
        Self { bytes: [0; 128], len: 0 }
    }
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

// SAFETY: every call is the system allocator's own with the same arguments, and so is what it
// returns; a call that fails has changed nothing and may be repeated.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that `System` asks for.
        Self::insist(|| unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Self::insist(|| unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above; where it fails, `block` stays as it was.
        Self::insist(|| unsafe { System.realloc(block, layout, new_size) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Has the C library's allocator ask the system for no more than is needed (it adds a megabyte, see
/// [`tune_allocator`](super::tune_allocator)), and give no thread a heap of its own, which takes 64
/// MiB of address space.
fn be_thrifty() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers; at worst it refuses them.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 0);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Bytes of address space this process may still take (RLIMIT_AS); `None` where that has no limit.
/// Where there is one, threads get no heaps of their own from now on.
#[must_use]
pub fn address_space_left() -> Option<usize> {
    let limit = getrlimit(Resource::As).current?;
    be_thrifty();
    let taken = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = taken.split(' ').next()?.parse().ok()?;
    let taken = pages.saturating_mul(rustix::param::page_size() as u64);
    Some(usize::try_from(limit.saturating_sub(taken)).unwrap_or(usize::MAX))
}
