//! Resource limits and usage of the process, settings of its allocator, and calls on descriptors:
//! the magic number of a filesystem, the target of a symbolic link.

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use crate::Errno;

/// Resources that a process has used so far, summed over its threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time in user mode and in the kernel.
    pub cpu: Duration,
    /// CPU time in user mode.
    pub cpu_user: Duration,
    /// Number of voluntary context switches, which happen when a thread waits.
    pub waits: u64,
    /// Number of involuntary context switches.
    pub preemptions: u64,
}

/// Returns the resources that this process has used so far (getrusage(2)). They include the
/// resources of kernel threads that serve its rings.
///
/// ```
/// let before = fathom_io::sys::usage();
/// let sum: u64 = (0..1000).sum();
/// assert!(fathom_io::sys::usage().cpu >= before.cpu, "{sum}");
/// ```
#[must_use]
pub fn usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// Returns the resources that terminated and waited-for children of this process have used.
#[must_use]
pub fn children_usage() -> Usage {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(who: libc::c_int) -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a buffer of the call's own type, all zeroes are a valid one, and the call
    // keeps no pointer.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage_from(&usage)
}

pub(super) fn usage_from(usage: &libc::rusage) -> Usage {
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    let cpu_user = duration(usage.ru_utime);
    Usage {
        cpu: cpu_user + duration(usage.ru_stime),
        cpu_user,
        waits: usage.ru_nvcsw.unsigned_abs(),
        preemptions: usage.ru_nivcsw.unsigned_abs(),
    }
}

/// Returns the idle time of this machine since its start, summed over the CPUs, with a resolution
/// of 10 ms (proc_uptime(5)). `None` if the system does not report it.
#[must_use]
pub fn machine_idle() -> Option<Duration> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Makes the allocator of glibc grow its heaps in steps of 1 MiB: each step of a thread's heap is a
/// system call that holds the lock that page faults of all threads need.
pub fn tune_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers; at worst it refuses them.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
    }
}

/// Returns freed memory from the allocator of glibc to the system (malloc_trim(3)), for a thread
/// that has just freed much of it. Takes milliseconds if it is much.
pub fn release_freed_memory() {
    // malloc_trim returns free pages inside of all heaps, but not those at the end of a heap that
    // belongs to a thread. free(3) returns these when it frees a block of at least 64 KiB
    // (FASTBIN_CONSOLIDATION_THRESHOLD), and only then: many small blocks may have come before.
    #[cfg(target_env = "gnu")]
    const BLOCK_BYTES: usize = 65_536;
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) takes an integer and touches nothing that is in use. The block is
    // freed once, and free(3) takes a null pointer too. The compiler may not remove the pair, as
    // `black_box` uses the pointer.
    unsafe {
        libc::malloc_trim(0);
        libc::free(std::hint::black_box(libc::malloc(BLOCK_BYTES)));
    }
}

/// Makes the allocator of glibc keep up to 64 MiB of freed memory, for programs that often allocate
/// large buffers: each page fetched from the system takes a fault, which delays system calls of
/// all threads that change the address space.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers; at worst it refuses them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// Returns whether this process ignores `signal` (sigaction(2)), for example because nohup(1)
/// started it.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only fills `action`, a buffer of its own type that all
    // zeroes are valid for, or fails and leaves it as it is.
    let action = unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Sets the nice value of the calling thread (setpriority(2)) and, since Linux 6.12, its time slice
/// (0.1 to 100 ms). A thread with a shorter slice is scheduled earlier, but gets no larger share.
///
/// If the kernel refuses sched_setattr(2), sets the nice value alone.
///
/// # Errors
/// As setpriority(2).
///
/// ```
/// use std::time::Duration;
///
/// std::thread::spawn(|| fathom_io::sys::lower_priority(19, Duration::from_micros(100)))
///     .join()
///     .unwrap()?;
/// # Ok::<(), fathom_io::Errno>(())
/// ```
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub fn lower_priority(nice: i32, slice: Duration) -> Result<(), Errno> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        // Keep a policy such as SCHED_IDLE or SCHED_BATCH that the parent process has set.
        sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice.as_nanos().try_into().unwrap_or(u64::MAX),
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: sched_setattr(2) reads `size` bytes of its argument, which lives until it returns; 0
    // is the calling thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    match set {
        0 => Ok(()),
        _ => rustix::process::setpriority_process(None, nice),
    }
}

/// Makes the kernel kill the process that `command` starts when the thread that starts it ends
/// (PR_SET_PDEATHSIG(2const)). Systems other than Linux have no such call, and do nothing.
pub fn end_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getpid();
        let set = move || {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // The parent may have ended before the call, which would then have no effect.
            match rustix::process::getppid() {
                Some(found) if found == parent => Ok(()),
                _ => Err(Errno::SRCH.into()),
            }
        };
        // SAFETY: between fork and exec the closure makes two system calls only, and neither
        // allocates memory nor takes a lock.
        unsafe { command.pre_exec(set) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Returns the number of descriptors that this process may have open (the soft limit of
/// `RLIMIT_NOFILE`).
///
/// ```
/// use fathom_io::sys;
///
/// let before = sys::fd_limit();
/// sys::raise_fd_limit();
/// assert!(sys::fd_limit() >= before);
/// ```
#[must_use]
pub fn fd_limit() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Raises the soft limit of `RLIMIT_NOFILE` to the hard limit.
pub fn raise_fd_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // On failure, the limit stays as it is.
    let _ = rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
}

/// Returns the number of CPUs on which this process may run (sched_getaffinity(2)). Ignores the
/// quota of its cgroup, unlike [`std::thread::available_parallelism`], which makes a dozen calls.
#[must_use]
pub fn cpus_allowed() -> usize {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    let count = rustix::thread::sched_getaffinity(None).map_or(0, |cpus| cpus.count() as usize);
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    count.max(1)
}

/// Returns the magic number of the filesystem of `fd` (statfs(2)). `None` if the system does not
/// report it.
#[must_use]
pub fn fs_magic(fd: BorrowedFd<'_>) -> Option<i64> {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    return rustix::fs::fstatfs(fd).ok().map(|statfs| statfs.f_type);
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    {
        let _ = fd;
        None
    }
}

/// Returns the target of the symbolic link `name` in `at`.
///
/// # Errors
/// As readlinkat(2). EINVAL if `name` is not a symbolic link.
///
/// ```
/// use fathom_io::{Errno, sys};
///
/// assert_eq!(sys::read_link(sys::CWD, c"Cargo.toml"), Err(Errno::INVAL));
/// ```
pub fn read_link(at: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::readlinkat(at, name, Vec::new()))
}

#[cfg(all(test, target_os = "linux", not(feature = "posix")))]
mod tests {
    use super::*;

    #[test]
    fn lower_priority_applies_to_the_calling_thread_alone() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let lowered = std::thread::spawn(move || {
            lower_priority(19, Duration::from_micros(100)).unwrap();
            nice()
        });
        assert_eq!((lowered.join().unwrap(), nice()), (19, before));
        let clamped = std::thread::spawn(|| lower_priority(20, Duration::ZERO));
        assert_eq!(clamped.join().unwrap(), Ok(()), "setpriority(2) clamps the value");
    }
}
