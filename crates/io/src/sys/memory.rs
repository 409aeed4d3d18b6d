//! Exhausted memory: an allocator after whose failure the process exits with a message and status
//! 1, and a query of the remaining address space.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};

/// The allocator of the C library. If an allocation fails, turns off the padding of heaps and tries
/// once more. After the second failure, a process that aborts, as Rust's do then, exits with status
/// 1 instead of by a signal. Callers that handle the failure (`try_reserve`) continue.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: fathom_io::sys::Allocator = fathom_io::sys::Allocator;
///
/// assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Allocator;

impl Allocator {
    /// Calls `allocate`, and if it fails, once more without the padding of heaps. Returns the last
    /// result.
    #[inline]
    fn allocate_or_retry(allocate: impl Fn() -> *mut u8) -> *mut u8 {
        let block = allocate();
        if block.is_null() { Self::retry_without_padding(allocate) } else { block }
    }

    #[cold]
    fn retry_without_padding(allocate: impl Fn() -> *mut u8) -> *mut u8 {
        disable_padding();
        let block = allocate();
        if block.is_null() && !FAILED.swap(true, Ordering::Relaxed) {
            exit_on_abort();
        }
        block
    }
}

/// Whether an allocation has failed twice.
static FAILED: AtomicBool = AtomicBool::new(false);
/// The limit on address space in bytes. 0 if there is none.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Address space counts as exhausted if a mapping of this size fails: less than the stacks of a
/// thread.
const EXHAUSTED_BYTES: usize = 4 << 20;

/// Makes a process with a limit on address space (`RLIMIT_AS`) exit with a message and status 1
/// when it panics or aborts because that limit is reached. Allocations of libraries in C and the
/// signal stacks of new threads do not pass through [`Allocator`]: if they fail, Rust panics or
/// aborts.
///
/// Also reserves a part of the main thread's stack, so it has to be called there, and before other
/// threads are started. Installs a panic hook in front of the current one. Without a limit, does
/// nothing.
///
/// ```
/// fathom_io::sys::exit_when_exhausted();
/// ```
pub fn exit_when_exhausted() {
    let Some(limit) = getrlimit(Resource::As).current else { return };
    LIMIT.store(limit, Ordering::Relaxed);
    exit_on_abort();
    reserve_stack();
    let next = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_exhausted() {
            exit_with_message();
        }
        next(panic);
    }));
}

/// The part of the main thread's stack that is reserved at the start: twice what any command takes,
/// which is 232 KiB in an unoptimised build.
const STACK_BYTES: usize = 512 << 10;

/// Grows the stack of the main thread now, while there is address space for it, or exits with a
/// message. The kernel grows it when it is used, and if the limit forbids that, by then sends
/// SIGSEGV. The stacks of other threads are mapped as a whole when they start.
fn reserve_stack() {
    let limit = getrlimit(Resource::Stack).current;
    let half = limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX));
    let bytes = STACK_BYTES.min(half);
    if !can_map(bytes) {
        exit_with_message();
    }
    touch_stack(bytes);
}

/// Writes to `bytes` of the stack below the caller's frame.
#[inline(never)]
fn touch_stack(bytes: usize) {
    let frame = std::hint::black_box([0_u8; 8 << 10]);
    if let Some(rest) = bytes.checked_sub(frame.len()) {
        touch_stack(rest);
    }
    // Used after the call, so that each call has a frame of its own.
    std::hint::black_box(&frame);
}

/// Installs [`handle_abort`] for the signal of abort(3).
fn exit_on_abort() {
    // SAFETY: the handler makes only calls that are allowed in a signal handler (see there).
    unsafe { libc::signal(libc::SIGABRT, handle_abort as extern "C" fn(libc::c_int) as libc::sighandler_t) };
}

/// Exits with a message and status 1 if memory is exhausted. Otherwise the abort is a defect or was
/// sent from outside, and the default action of the signal ends the process.
extern "C" fn handle_abort(signal: libc::c_int) {
    if is_exhausted() {
        exit_with_message();
    }
    // SAFETY: signal(2) and raise(3) may be called in a signal handler (signal-safety(7)). The
    // signal is blocked while its handler runs, so it takes effect when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn is_exhausted() -> bool {
    FAILED.load(Ordering::Relaxed) || !can_map(EXHAUSTED_BYTES)
}

/// Exits with a message that names the limit, and status 1. Allocates nothing.
fn exit_with_message() -> ! {
    let mut message = StackMessage::default();
    // The buffer is large enough for every limit, and formatting a number allocates nothing.
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

/// Returns whether the process can map `bytes` of address space.
fn can_map(bytes: usize) -> bool {
    // SAFETY: a private mapping at an address of the kernel's choice, which nothing else refers to
    // and which is unmapped here. mmap(2) and munmap(2) are bare system calls, without a lock.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let block = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        let is_mapped = block != libc::MAP_FAILED;
        if is_mapped {
            libc::munmap(block, bytes);
        }
        is_mapped
    }
}

/// A message on the stack, for a signal handler, which may not allocate.
struct StackMessage {
    bytes: [u8; 128],
    len: usize,
}

impl Default for StackMessage {
    fn default() -> Self {
        Self { bytes: [0; 128], len: 0 }
    }
}

impl Write for StackMessage {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

// SAFETY: every call is one of the system allocator with the same arguments, and returns its
// result; a call that fails has changed nothing and may be repeated.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of this function, which is the contract of
        // `System`.
        Self::allocate_or_retry(|| unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Self::allocate_or_retry(|| unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above; after a failure, `block` is unchanged.
        Self::allocate_or_retry(|| unsafe { System.realloc(block, layout, new_size) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Makes the allocator of glibc request no more memory than needed (it adds a megabyte, see
/// [`tune_allocator`](super::tune_allocator)) and use one heap for all threads: a heap of a thread
/// takes 64 MiB of address space.
fn disable_padding() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers; at worst it refuses them.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 0);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns the bytes of address space that this process may still map (`RLIMIT_AS`). `None` without
/// a limit. With a limit, new threads get no heap of their own from this call on.
///
/// ```
/// match fathom_io::sys::address_space_left() {
///     Some(bytes) => println!("{} MiB left", bytes >> 20),
///     None => println!("no limit"),
/// }
/// ```
#[must_use]
pub fn address_space_left() -> Option<usize> {
    let limit = getrlimit(Resource::As).current?;
    disable_padding();
    let taken = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = taken.split(' ').next()?.parse().ok()?;
    let taken = pages.saturating_mul(rustix::param::page_size() as u64);
    Some(usize::try_from(limit.saturating_sub(taken)).unwrap_or(usize::MAX))
}
