//! Child processes: what one has used when it ends, and how often the kernel moved it.

use std::io;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use super::process::{Usage, usage_from};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
use crate::Errno;

/// Resources that a child process and the descendants for which it has waited have used
/// (getrusage(2)).
#[derive(Clone, Copy, Debug, Default)]
pub struct ChildUsage {
    /// CPU time and context switches.
    pub usage: Usage,
    /// Peak resident memory of the largest of these processes, in bytes. Linux counts the memory of
    /// the process which started the child as well.
    pub peak_memory_bytes: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Bytes that devices read for these processes.
    pub read_bytes: u64,
    /// Bytes that these processes have left for devices to write.
    pub written_bytes: u64,
}

/// Has `command` start its process by fork(2), where it would take posix_spawn(3).
///
/// The kernel counts the memory that a process has before it becomes another program in its peak
/// memory. That is all memory of this process after a vfork(2), which posix_spawn(3) uses, and its
/// private memory alone after a fork(2).
///
/// ```
/// let mut command = std::process::Command::new("true");
/// fathom_io::sys::start_by_fork(&mut command);
/// assert!(command.status()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn start_by_fork(command: &mut Command) {
    // SAFETY: the closure does nothing, so it does nothing that is not allowed between fork(2) and
    // exec(2).
    unsafe { command.pre_exec(|| Ok(())) };
}

/// Waits until `child` has ended (wait4(2)). Its standard input is not closed.
///
/// # Errors
/// As wait4(2).
///
/// ```
/// use std::process::Command;
///
/// let child = Command::new("sh").args(["-c", "exit 3"]).spawn()?;
/// let (status, used) = fathom_io::sys::wait_for_child(child)?;
/// assert_eq!(status.code(), Some(3));
/// assert!(used.peak_memory_bytes > 0 && used.minor_faults > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn wait_for_child(child: Child) -> io::Result<(ExitStatus, ChildUsage)> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are to values of the call's own types that live until it returns, and
    // the call keeps neither.
    while unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: all zeroes are a valid `rusage`, and the call has filled it.
    Ok((ExitStatus::from_raw(status), child_usage(&unsafe { usage.assume_init() })))
}

fn child_usage(usage: &libc::rusage) -> ChildUsage {
    /// The unit of `ru_inblock` and `ru_oublock` on Linux, whatever the device's blocks.
    const BLOCK_BYTES: u64 = 512;
    /// The unit of `ru_maxrss`.
    const MEMORY_UNIT: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    ChildUsage {
        usage: usage_from(usage),
        peak_memory_bytes: usage.ru_maxrss.unsigned_abs() * MEMORY_UNIT,
        minor_faults: usage.ru_minflt.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        read_bytes: usage.ru_inblock.unsigned_abs() * BLOCK_BYTES,
        written_bytes: usage.ru_oublock.unsigned_abs() * BLOCK_BYTES,
    }
}

/// Counts how often the kernel moves a process to another CPU, for the children that the calling
/// thread starts and all their descendants.
#[cfg(all(target_os = "linux", not(feature = "posix")))]
#[derive(Debug)]
pub struct MigrationCounter {
    /// The thread and what it starts.
    all: OwnedFd,
    /// The thread alone.
    own: OwnedFd,
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
impl MigrationCounter {
    /// Starts to count (perf_event_open(2)).
    ///
    /// # Errors
    /// As perf_event_open(2). EACCES or EPERM if `/proc/sys/kernel/perf_event_paranoid` forbids
    /// ordinary users to count.
    pub fn start() -> Result<Self, Errno> {
        Ok(Self { all: count_migrations(true)?, own: count_migrations(false)? })
    }

    /// Returns the number of migrations of processes that have ended.
    ///
    /// # Errors
    /// As read(2).
    pub fn of_children(&self) -> Result<u64, Errno> {
        Ok(read_count(&self.all)?.saturating_sub(read_count(&self.own)?))
    }
}

/// The first 64 bytes of `struct perf_event_attr`, its first version (perf_event_open(2)).
#[cfg(all(target_os = "linux", not(feature = "posix")))]
#[derive(Default)]
#[repr(C)]
struct CounterAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    config1: u64,
}

/// Opens a counter of the migrations of the calling thread, and, if `inherits`, of all that it
/// starts.
#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn count_migrations(inherits: bool) -> Result<OwnedFd, Errno> {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_CPU_MIGRATIONS: u64 = 4;
    /// The bit `inherit` of the flags.
    const INHERIT: u64 = 1 << 1;
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
    let attributes = CounterAttributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<CounterAttributes>() as u32,
        config: PERF_COUNT_SW_CPU_MIGRATIONS,
        flags: if inherits { INHERIT } else { 0 },
        ..CounterAttributes::default()
    };
    // SAFETY: perf_event_open(2) reads `size` bytes of its first argument, which lives until it
    // returns; 0 is the calling thread, the first -1 any CPU, the second no group.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)
    };
    match libc::c_int::try_from(fd) {
        // SAFETY: the call has returned a new descriptor, which nothing else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn read_count(counter: &OwnedFd) -> Result<u64, Errno> {
    let mut count = [0; 8];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(counter.as_fd(), &mut count))?;
    if read == count.len() { Ok(u64::from_ne_bytes(count)) } else { Err(Errno::IO) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn blocks_and_faults_are_those_of_the_child() {
        let file = std::env::temp_dir().join(format!("fathom-io-child-{}", std::process::id()));
        let write = format!("of={}", file.display());
        let child = Command::new("dd")
            .args(["if=/dev/zero", &write, "bs=64K", "count=16", "status=none"])
            .spawn()
            .unwrap();
        let (status, used) = wait_for_child(child).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(status.success() && used.peak_memory_bytes > 64 << 10 && used.minor_faults > 0, "{used:?}");
        assert!(used.usage.cpu >= used.usage.cpu_user && used.usage.waits + used.usage.preemptions < 1 << 20);
        // A filesystem in memory leaves nothing for a device.
        assert!(used.written_bytes == 0 || used.written_bytes >= 1 << 20, "{used:?}");
    }

    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    #[test]
    fn a_child_that_moves_between_cpus_is_counted() {
        let cpus = rustix::thread::sched_getaffinity(None).unwrap();
        let allowed: Vec<usize> = (0..1024).filter(|cpu| cpus.is_set(*cpu)).take(2).collect();
        let ([one, two], Ok(counter)) = (&allowed[..], MigrationCounter::start()) else {
            println!("skipped: one CPU alone, or no right to count");
            return;
        };
        let moves = format!("for i in 1 2 3 4 5 6 7 8; do taskset -cp {one} $$; taskset -cp {two} $$; done");
        let (status, _) = wait_for_child(
            Command::new("sh").args(["-c", &moves]).stdout(std::process::Stdio::null()).spawn().unwrap(),
        )
        .unwrap();
        assert!(status.success());
        let count = counter.of_children().unwrap();
        assert!(count >= 8, "{count} migrations");
    }
}
