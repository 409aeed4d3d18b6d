//! Memory where there is little of it: an allocator after whose failure a process ends with a
//! message and an exit status, and how much address space is left.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, getrlimit};

/// The C library's allocator. A failed allocation is repeated once in thrifty mode, in which the
/// allocator takes no more from the system than it needs. From the first final failure on, a
/// process that aborts, as Rust's do then, ends with status 1 in place of a signal; callers that
/// can do without the memory (`try_reserve`) continue.
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
        static FAILED: AtomicBool = AtomicBool::new(false);
        be_thrifty();
        let block = allocate();
        if block.is_null() && !FAILED.swap(true, Ordering::Relaxed) {
            exit_on_abort();
        }
        block
    }
}

/// Has abort(3) end the process with status 1 and a message.
fn exit_on_abort() {
    extern "C" fn end(_signal: libc::c_int) {
        const MESSAGE: &[u8] = b"fathom: memory exhausted\n";
        // SAFETY: write(2) and _exit(2) may be called in a signal handler (signal-safety(7)); the
        // message is a constant.
        unsafe {
            libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(1)
        }
    }
    // SAFETY: the handler makes none but safe calls and does not return.
    unsafe { libc::signal(libc::SIGABRT, end as extern "C" fn(libc::c_int) as libc::sighandler_t) };
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
pub fn room() -> Option<usize> {
    let limit = getrlimit(Resource::As).current?;
    be_thrifty();
    let taken = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = taken.split(' ').next()?.parse().ok()?;
    let taken = pages.saturating_mul(rustix::param::page_size() as u64);
    Some(usize::try_from(limit.saturating_sub(taken)).unwrap_or(usize::MAX))
}
