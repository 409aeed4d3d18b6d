//! Names of owners that are not in this machine's files: users of LDAP, SSSD or systemd, as
//! reported by getent(1).
//!
//! The program is linked statically, so it cannot load the modules of nsswitch.conf(5), but getent
//! can. It is called a limited number of times per run, for a few seconds in total, and at most
//! once for each owner.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fathom_inventory::{NameService, OwnerKind, Owners};
use fathom_text::owners::names;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The paths of getent, on all systems that have it.
const PROGRAMS: [&str; 2] = ["/usr/bin/getent", "/bin/getent"];
/// The time limit for all calls of a run together. [`CALLS`] limits their number.
const TIME: Duration = Duration::from_secs(5);
const CALLS: usize = 256;
/// The maximum number of owners in one call.
const IDS: usize = 500;
/// The maximum size of a plausible answer for that number of owners.
const ANSWER_BYTES: usize = 1 << 20;

/// Returns the resolver for owner names: the files of this machine, then getent.
pub(crate) fn owners() -> Owners {
    match PROGRAMS.into_iter().find(|program| Path::new(program).exists()) {
        Some(program) => Owners::read().with_service(Arc::new(Getent::new(program.into(), TIME))),
        None => Owners::read(),
    }
}

#[derive(Debug)]
struct Getent {
    program: std::path::PathBuf,
    budget: Mutex<CallBudget>,
}

/// The time and the number of calls that remain for the run.
#[derive(Debug)]
struct CallBudget {
    time: Duration,
    calls: usize,
}

impl Getent {
    fn new(program: std::path::PathBuf, time: Duration) -> Self {
        Self { program, budget: Mutex::new(CallBudget { time, calls: CALLS }) }
    }

    fn query(&self, kind: OwnerKind, ids: &[u32], budget: &mut CallBudget) -> Vec<u8> {
        if budget.time.is_zero() || budget.calls == 0 {
            return Vec::new();
        }
        budget.calls -= 1;
        let start = Instant::now();
        let answer = self.run(kind, ids, start + budget.time).unwrap_or_default();
        budget.time = budget.time.saturating_sub(start.elapsed());
        answer
    }

    fn run(&self, kind: OwnerKind, ids: &[u32], deadline: Instant) -> io::Result<Vec<u8>> {
        let database = match kind {
            OwnerKind::User => "passwd",
            OwnerKind::Group => "group",
        };
        let mut command = Command::new(&self.program);
        command.arg(database).args(ids.iter().map(u32::to_string)).env_clear();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let answer = answer(&mut child, deadline);
        // Do not wait for a process that has not exited by now.
        let _ = child.kill();
        child.wait()?;
        answer
    }
}

/// Reads the standard output of `child` up to its end or [`ANSWER_BYTES`].
///
/// # Errors
/// `TimedOut` at the deadline.
fn answer(child: &mut Child, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while answer.len() < ANSWER_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let ready = poll(&mut [PollFd::new(&stdout.as_fd(), PollFlags::IN)], Some(&timeout));
        match ready {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        match stdout.read(&mut buffer)? {
            0 => break,
            len => answer.extend_from_slice(&buffer[..len]),
        }
    }
    Ok(answer)
}

impl NameService for Getent {
    fn names(&self, kind: OwnerKind, ids: &[u32]) -> HashMap<u32, Vec<u8>> {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = HashMap::new();
        for ids in ids.chunks(IDS) {
            let mut answer = names(&self.query(kind, ids, &mut budget));
            found.extend(ids.iter().filter_map(|id| answer.remove_entry(id)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A getent that runs this script.
    fn getent(script: &str, time: Duration) -> (tempfile::TempDir, Getent) {
        let temp = tempfile::tempdir().unwrap();
        let program = temp.path().join("getent");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        (temp, Getent::new(program, time))
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn names_come_from_getent() {
        let script =
            "test $1 = passwd || exit 2; shift; for id; do echo \"u$id:x:$id:7::/:\"; done; echo other:x:9:9";
        let (_temp, getent) = getent(script, LONG);
        let expected = HashMap::from([(5, b"u5".to_vec()), (70_000, b"u70000".to_vec())]);
        assert_eq!(getent.names(OwnerKind::User, &[5, 70_000]), expected);
        assert_eq!(getent.names(OwnerKind::Group, &[5]), HashMap::new());
        let many: Vec<u32> = (1000..3000).collect();
        assert_eq!(getent.names(OwnerKind::User, &many).len(), 2000);
    }

    #[test]
    fn implausible_answers_are_ignored() {
        for script in ["head -c 3000000 /dev/zero", "echo :::; echo a:b; echo x:x:-1:", "exit 1"] {
            let (_temp, getent) = getent(script, LONG);
            assert_eq!(getent.names(OwnerKind::User, &[5]), HashMap::new(), "{script}");
        }
        let missing = Getent::new("/nonexistent/getent".into(), LONG);
        assert_eq!(missing.names(OwnerKind::User, &[5]), HashMap::new());
    }

    #[test]
    fn a_hanging_getent_is_killed_and_not_called_again() {
        let (temp, getent) = getent("echo >>$0.calls; exec sleep 1000", Duration::from_millis(300));
        (0..50).for_each(|id| assert_eq!(getent.names(OwnerKind::User, &[id]), HashMap::new()));
        let calls = std::fs::read(temp.path().join("getent.calls")).unwrap_or_default();
        assert!(calls.len() <= 1, "{calls:?}");
    }

    #[test]
    fn the_number_of_calls_is_limited() {
        let (temp, getent) = getent("echo >>$0.calls", LONG);
        getent.budget.lock().unwrap().calls = 3;
        (0..20).for_each(|id| drop(getent.names(OwnerKind::User, &[id])));
        assert_eq!(std::fs::read(temp.path().join("getent.calls")).unwrap().len(), 3);
    }
}
