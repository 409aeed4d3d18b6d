//! `slowfs`: a read-only FUSE view of a directory in which every operation takes as long as you say.
//! It stands in for a slow mount in fathom's tests and benchmarks. Owns mounting, signals and the exit status.

mod args;
mod delay;
mod nodes;
mod source;
mod view;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::Options;
use crate::delay::Delay;
use crate::source::Source;
use crate::view::View;

/// Threads that read requests from the kernel: they only queue.
const READERS: usize = 2;
/// Threads that carry out requests when they are due; see [`Delay::start`].
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

/// Every directory a reader has open is open here too, and readers of slow mounts open many.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Mounts, serves until unmounted, and leaves no mount behind.
fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    let (source, mountpoint) = (options.source.display(), options.mountpoint.display());
    // Both before mounting: from then on a signal must unmount.
    let signals = Signals::new([SIGINT, SIGTERM])?;
    raise_descriptor_limit();
    if options.die_with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    }
    let path =
        options.mountpoint.canonicalize().map_err(|error| format!("cannot use '{mountpoint}': {error}"))?;
    let tree = Source::open(&options.source).map_err(|error| format!("cannot open '{source}': {error}"))?;
    let view = View::new(tree, Delay::start(options.delay, WORKERS)?, options.ttl);
    let mut session = Session::new(view, &path, &config(options))
        .map_err(|error| format!("cannot mount '{mountpoint}': {error}"))?;
    let unmounter = session.unmount_callable();
    thread::Builder::new().name("signals".to_owned()).spawn(move || unmount_on(signals, unmounter, &path))?;
    // A caller that does not listen still gets its mount.
    let _ = writeln!(std::io::stdout(), "mounted {mountpoint}");
    session.run().map_err(|error| format!("cannot serve '{mountpoint}': {error}"))?;
    Ok(())
}

fn config(options: &Options) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("slowfs".to_owned()),
        MountOption::Subtype("slowfs".to_owned()),
        MountOption::RO,
        MountOption::NoDev,
        MountOption::NoSuid,
    ];
    if options.allow_other {
        // Without the kernel's checks, others would read with this process's rights.
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    config.n_threads = Some(READERS);
    config
}

/// Waits for a signal. An unused mount goes at once, and `Session::run` then returns; one in use is detached, and
/// the process ends under its users' feet: they get ENOTCONN.
fn unmount_on(mut signals: Signals, mut unmounter: SessionUnmounter, mountpoint: &Path) {
    if signals.forever().next().is_none() || unmounter.unmount().is_ok() {
        return;
    }
    let detach = rustix::mount::UnmountFlags::DETACH;
    if rustix::mount::unmount(mountpoint, detach).is_err() {
        let _ = Command::new("fusermount3").args(["-u", "-q", "-z", "--"]).arg(mountpoint).status();
    }
    std::process::exit(0);
}
