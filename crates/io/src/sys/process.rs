//! What the process may use and has used, what kind of filesystem a descriptor is on, and what a symbolic link holds.

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use crate::Errno;

/// What this process has used so far, all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time, in user mode and in the kernel.
    pub cpu: Duration,
    /// Of this, in user mode.
    pub cpu_user: Duration,
    /// How often a thread gave up its CPU because it had to wait.
    pub waits: u64,
    /// How often it was taken from one.
    pub preemptions: u64,
}

/// What this process has used so far (getrusage(2)). The kernel's own threads that work for its rings are threads of the process.
#[must_use]
pub fn usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// The same of its children that have ended and been waited for.
#[must_use]
pub fn children_usage() -> Usage {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(who: libc::c_int) -> Usage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a buffer of the call's own type, all zeroes are a valid one, and the call keeps no pointer.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
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

/// How long the CPUs of this machine have been idle, added up over all of them, in steps of 10 ms (proc_uptime(5)); `None` where
/// nobody says.
#[must_use]
pub fn machine_idle() -> Option<Duration> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Has the C library's allocator grow its heaps in large steps: each step of a thread's heap is a system call that
/// holds up page faults of all threads.
pub fn tune_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers; at worst it refuses them.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
    }
}

/// Gives back to the system what the allocator keeps of freed memory, for a program that has just freed much of it for a while. Takes
/// milliseconds where there is much.
pub fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) takes an integer and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has the C library's allocator keep what is freed, up to 64 MiB, where large buffers come and go all the time: to get each from the
/// system takes a fault a page, which holds up the system calls of all threads.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes two integers; at worst it refuses them.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
    }
}

/// Whether this process ignores `signal` (sigaction(2)), as it does after nohup(1) until it says
/// otherwise.
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

/// Has this thread give way to others: by `nice`, as setpriority(2) has it, and in slices of `slice` at a time where the kernel takes
/// suggestions (Linux 6.12, 0.1 to 100 ms; before, all threads have the same). Shorter slices are due earlier, but not more often.
///
/// Where the kernel is too old for that, or refuses it, by `nice` alone.
///
/// # Errors
/// As setpriority(2).
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub fn give_way(nice: i32, slice: Duration) -> Result<(), Errno> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        // It stays idle or a batch where whoever started it wants that.
        sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice.as_nanos().try_into().unwrap_or(u64::MAX),
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: sched_setattr(2) reads `size` bytes of its argument, which lives until it returns; 0 is the calling thread.
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

/// How many descriptors this process may have open (RLIMIT_NOFILE, soft).
#[must_use]
pub fn fd_limit() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Lets this process have as many descriptors open as it is allowed to at all (the hard limit).
pub fn raise_fd_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Where that is refused, there are as many as before.
    let _ = rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
}

/// CPUs this process may run on (sched_getaffinity(2)), whatever share of them it may have: for that, which is a dozen calls,
/// ask [`std::thread::available_parallelism`].
#[must_use]
pub fn cpus_allowed() -> usize {
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    let count = rustix::thread::sched_getaffinity(None).map_or(0, |cpus| cpus.count() as usize);
    #[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    count.max(1)
}

/// The filesystem's magic number (statfs(2)); `None` where it cannot be told.
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

/// What the symbolic link `name` in `at` holds.
pub fn read_link(at: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::readlinkat(at, name, Vec::new()))
}

#[cfg(all(test, target_os = "linux", not(feature = "posix")))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_and_others_do_not() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let gives = std::thread::spawn(move || {
            give_way(19, Duration::from_micros(100)).unwrap();
            nice()
        });
        assert_eq!((gives.join().unwrap(), nice()), (19, before));
        let refused = std::thread::spawn(|| give_way(20, Duration::ZERO));
        assert_eq!(refused.join().unwrap(), Ok(()), "as setpriority(2), it takes the nearest");
    }
}
