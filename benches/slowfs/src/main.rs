//! `slowfs`: a FUSE view of a directory that delays every operation by a given time. It replaces a
//! slow mount in fathom's tests and benchmarks. Entries can be removed on request; nothing else can
//! be changed. This file owns mounting, signals and the exit status.

mod args;
mod delay_queue;
mod filesystem;
mod nodes;
mod source;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::mount::UnmountFlags;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::Options;
use crate::delay_queue::DelayQueue;
use crate::filesystem::SlowFilesystem;
use crate::source::Source;

/// Threads that receive requests from the kernel and queue them.
const READERS: usize = 2;
/// Threads that execute requests when they are due; see [`DelayQueue::start`].
const WORKERS: usize = 4;

fn main() -> ExitCode {
    let options = match args::parse(std::env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return print_help(),
        Err(mistake) => {
            eprintln!("slowfs: {mistake}\nTry 'slowfs --help'.");
            return ExitCode::from(2);
        }
    };
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slowfs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_help() -> ExitCode {
    match std::io::stdout().write_all(args::HELP.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Raises the limit of file descriptors. Each directory or file that a client has open holds a
/// descriptor of this process too.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Mounts, serves until the filesystem is unmounted, and leaves no mount behind.
fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    let (source, mountpoint) = (options.source.display(), options.mountpoint.display());
    // Install the signal handlers before mounting: a signal must unmount from then on.
    let signals = Signals::new([SIGINT, SIGTERM])?;
    raise_descriptor_limit();
    if options.die_with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    }
    let path =
        options.mountpoint.canonicalize().map_err(|error| format!("cannot use '{mountpoint}': {error}"))?;
    let source_dir =
        Source::open(&options.source).map_err(|error| format!("cannot open '{source}': {error}"))?;
    let filesystem = SlowFilesystem::new(source_dir, DelayQueue::start(options.delay, WORKERS)?, options.ttl);
    let session = Session::new(filesystem, &path, &config(options))
        .map_err(|error| format!("cannot mount '{mountpoint}': {error}"))?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || unmount_on(signals, &path))?;
    // Ignore a closed standard output: the mount is still of use.
    let _ = writeln!(std::io::stdout(), "mounted {mountpoint}");
    session.run().map_err(|error| format!("cannot serve '{mountpoint}': {error}"))?;
    Ok(())
}

fn config(options: &Options) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("slowfs".to_owned()),
        MountOption::Subtype("slowfs".to_owned()),
        if options.removable { MountOption::RW } else { MountOption::RO },
        MountOption::NoDev,
        MountOption::NoSuid,
    ];
    if options.allow_other {
        // Without `default_permissions`, other users would have this process's access rights.
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    config.n_threads = Some(READERS);
    config
}

/// Unmounts on a signal. An idle mount is unmounted at once, and `Session::run` then returns. A
/// busy mount is detached and the process exits; its clients get ENOTCONN.
///
/// The session's own way to unmount detaches a busy mount, too, if this user is not root, and
/// returns no error: the session then lasts until the last client leaves.
fn unmount_on(mut signals: Signals, mountpoint: &Path) {
    let idle = (UnmountFlags::empty(), &["-u", "-q", "--"][..]);
    let busy = (UnmountFlags::DETACH, &["-u", "-q", "-z", "--"][..]);
    if signals.forever().next().is_none() || is_unmounted(mountpoint, idle) {
        return;
    }
    is_unmounted(mountpoint, busy);
    std::process::exit(0);
}

/// Unmounts with the right to do so, or by fusermount3(1). Returns whether that succeeded.
fn is_unmounted(mountpoint: &Path, (flags, words): (UnmountFlags, &[&str])) -> bool {
    let by_program = || Command::new("fusermount3").args(words).arg(mountpoint).status();
    rustix::mount::unmount(mountpoint, flags).is_ok() || by_program().is_ok_and(|status| status.success())
}
