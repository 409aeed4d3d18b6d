//! Creation of rings: the flags and operations of this kernel, and the likely cause of a failure.

use std::io;

use io_uring::{Builder, IoUring, Probe, opcode};
use rustix::process::{Resource, getrlimit};

use crate::{Errno, Unavailable};

/// Operations that the metadata model needs. All exist since Linux 5.6.
const FOR_METADATA: [(u8, &str); 3] =
    [(opcode::OpenAt::CODE, "openat"), (opcode::Statx::CODE, "statx"), (opcode::Close::CODE, "close")];
/// Operations that the data models need.
const FOR_DATA: [(u8, &str); 4] = [
    (opcode::Read::CODE, "read"),
    (opcode::Write::CODE, "write"),
    (opcode::Fsync::CODE, "fsync"),
    (opcode::AsyncCancel::CODE, "cancel"),
];
/// Time in milliseconds that a kernel thread polls without submissions before it sleeps.
const POLL_IDLE_MS: u32 = 50;

/// The way in which the kernel runs completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingMode {
    /// On the submitting thread, in its next system call on the ring, which takes the fewest
    /// interrupts.
    Deferred,
    /// Immediately, independent of the thread's system calls.
    Prompt,
    /// A kernel thread polls for submissions.
    Polled,
}

/// Creates a metadata ring with at least `depth` entries, and checks that it works.
pub(super) fn ring(depth: usize) -> Result<IoUring, Unavailable> {
    let entries = u32::try_from(depth).unwrap_or(u32::MAX);
    let ring = build(entries, RingMode::Deferred).map_err(|error| refused("set up io_uring", &error))?;
    probe(&ring, &FOR_METADATA)?;
    // The default limit is four kernel threads for each CPU, which on slow storage would be the
    // actual depth. Before Linux 5.15 it cannot be changed.
    let _ = ring.submitter().register_iowq_max_workers(&mut [entries, 0]);
    Ok(ring)
}

/// Creates a data ring with at least `depth` entries, and checks that it works. Keeps the default
/// limit of kernel threads.
pub(super) fn data_ring(depth: usize, mode: RingMode) -> Result<IoUring, Unavailable> {
    let entries = u32::try_from(depth).unwrap_or(u32::MAX);
    let ring = build(entries, mode).map_err(|error| refused("set up io_uring", &error))?;
    probe(&ring, &FOR_DATA)?;
    Ok(ring)
}

/// Creates a ring with the newest flags that the kernel supports. They save interrupts of the
/// thread that uses the ring.
fn build(entries: u32, mode: RingMode) -> io::Result<IoUring> {
    let [mut since_6_1, mut since_5_19, mut plain] = [(); 3].map(|()| IoUring::builder());
    since_6_1.setup_submit_all().setup_single_issuer().setup_defer_taskrun();
    since_5_19.setup_submit_all().setup_coop_taskrun();
    let build = |builder: &mut Builder| builder.dontfork().build(entries);
    let unknown_flag = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    match mode {
        RingMode::Deferred => {}
        RingMode::Prompt => return build(&mut plain),
        RingMode::Polled => return build(plain.setup_sqpoll(POLL_IDLE_MS)),
    }
    for builder in [&mut since_6_1, &mut since_5_19] {
        match build(builder) {
            Err(error) if unknown_flag(&error) => {}
            built => return built,
        }
    }
    build(&mut plain)
}

fn probe(ring: &IoUring, needed: &[(u8, &str)]) -> Result<(), Unavailable> {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(|error| refused("use io_uring", &error))?;
    if let Some((_, missing)) = needed.iter().find(|(code, _)| !probe.is_supported(*code)) {
        let cause = format!("kernel {} has no {missing} for it", release());
        return Err(Unavailable { operation: "use io_uring", errno: Errno::NOSYS, cause });
    }
    // A seccomp filter may allow rings to be created but not used.
    // SAFETY: no argument is passed, so the kernel reads none.
    let entered = unsafe { ring.submitter().enter::<()>(0, 0, 0, None) };
    entered.map(drop).map_err(|error| refused("use io_uring", &error))
}

pub(super) fn refused(operation: &'static str, error: &io::Error) -> Unavailable {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    Unavailable { operation, errno, cause: cause(errno, &release(), disabled().as_deref()) }
}

/// Returns the likely cause of `errno` on the kernel `release`. `disabled` is the value of the
/// sysctl `kernel.io_uring_disabled`.
fn cause(errno: Errno, release: &str, disabled: Option<&str>) -> String {
    match (errno, disabled) {
        (Errno::NOSYS | Errno::INVAL, _) if version(release).is_some_and(|version| version < (5, 6)) => {
            format!("kernel {release} is older than 5.6")
        }
        (Errno::NOSYS, _) => format!("kernel {release} was built without it, or a seccomp filter hides it"),
        (Errno::PERM | Errno::ACCESS, Some(value)) if value != "0" => {
            format!("sysctl kernel.io_uring_disabled is {value}")
        }
        (Errno::PERM | Errno::ACCESS, _) => "a seccomp filter or security module forbids it".to_string(),
        (Errno::NOMEM, _) => format!("the memlock limit, {}, may be too low", memlock()),
        (Errno::MFILE | Errno::NFILE, _) => "no descriptor is left for the ring".to_string(),
        _ => "the kernel refuses the ring".to_string(),
    }
}

fn disabled() -> Option<String> {
    let value = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?;
    Some(value.trim().to_string())
}

fn memlock() -> String {
    match getrlimit(Resource::Memlock).current {
        Some(bytes) => format!("{} KiB", bytes / 1024),
        None => "unlimited".to_string(),
    }
}

/// Returns the first two numbers of a release such as `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_names_the_kernel_the_sysctl_or_the_limit() {
        assert_eq!(cause(Errno::NOSYS, "4.19.0-27-amd64", None), "kernel 4.19.0-27-amd64 is older than 5.6");
        assert!(cause(Errno::INVAL, "5.5", None).contains("older"));
        assert!(cause(Errno::NOSYS, "6.1.0", None).contains("seccomp"));
        assert_eq!(cause(Errno::PERM, "6.1.0", Some("2")), "sysctl kernel.io_uring_disabled is 2");
        assert!(cause(Errno::PERM, "6.1.0", Some("0")).contains("seccomp"));
        assert!(cause(Errno::ACCESS, "6.1.0", None).contains("seccomp"));
        assert!(cause(Errno::NOMEM, "6.1.0", Some("0")).contains(&memlock()));
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("5.10.0-28-amd64"), Some((5, 10)));
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("6"), None);
        assert!(version("5.10") > version("5.6"));
    }
}
