//! The server of a sample: `fathom serve` in a process of its own, with one worker.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use fathom_io::Model;
use fathom_io::sys::{Usage, children_usage, end_with_parent};

use super::super::spec::{SampleError, SampleSpec};
use super::super::usage_between;

/// The resources that a server used from its start to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerUsage {
    pub(super) usage: Usage,
    /// Peak resident memory; `None` if the kernel does not report it.
    pub(super) memory_bytes: Option<u64>,
}

/// A running server. Dropping the value ends the process, and the kernel ends it with the thread
/// that started it.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    /// The open end of the server's output: a closed pipe would be an error for the server.
    stdout: BufReader<ChildStdout>,
    usage_before: Usage,
}

impl ServerProcess {
    /// Starts `program` as the server of `spec` on a port that the kernel chooses, and waits until
    /// it listens. Returns the address, too.
    ///
    /// # Errors
    /// [`SampleError::Refused`] with the server's message if the server ends instead.
    pub(super) fn start(program: &Path, spec: &SampleSpec) -> Result<(Self, SocketAddr), SampleError> {
        Self::spawn(command(program, spec), &spec.path)
    }

    fn spawn(mut command: Command, path: &Path) -> Result<(Self, SocketAddr), SampleError> {
        let failed = |error| SampleError::io("start a server for", path, error);
        let usage_before = children_usage();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_parent(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let mut server = Self { child, stdout: BufReader::new(stdout), usage_before };
        let mut line = String::new();
        server.stdout.read_line(&mut line).map_err(failed)?;
        match parse_address(&line) {
            Some(address) => Ok((server, address)),
            None => Err(SampleError::Refused(server.message(&line))),
        }
    }

    /// Ends the server and returns its usage.
    pub(super) fn stop(mut self) -> io::Result<ServerUsage> {
        let memory_bytes = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let memory_bytes = memory_bytes.ok().as_deref().and_then(parse_peak_memory);
        self.child.kill()?;
        self.child.wait()?;
        Ok(ServerUsage { usage: usage_between(&self.usage_before, &children_usage()), memory_bytes })
    }

    /// Ends the server and returns the first line of its errors, or `line` if there is none.
    fn message(mut self, line: &str) -> String {
        let mut errors = Vec::new();
        // The server has usually ended. Otherwise its line was not understood, and it is killed so
        // that its standard error has an end. Either call may find the process gone.
        let _ = self.child.kill();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_end(&mut errors);
        }
        let errors = String::from_utf8_lossy(&errors);
        let message = errors.lines().next().unwrap_or(line).trim_end();
        message.strip_prefix("fathom serve: ").unwrap_or(message).to_owned()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only if the process has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command line. `auto` has its usual pool. The environment is empty: the server would
/// read options and the path of a profile from it.
fn command(program: &Path, spec: &SampleSpec) -> Command {
    let model = spec.model.unwrap_or_default();
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--io", model.name()]);
    if model != Model::Auto {
        // Three quarters of the pool's threads may wait for one device.
        command.args(["--pool-threads", &(spec.depth * 4).div_ceil(3).to_string()]);
    }
    command.arg("--root").arg(&spec.path);
    command.env_clear();
    command
}

/// Parses the address in the first line of a server, as in
/// `Serving 'srv' on http://127.0.0.1:8080/`.
fn parse_address(line: &str) -> Option<SocketAddr> {
    let (_, address) = line.rsplit_once(" on http://")?;
    address.strip_suffix("/\n")?.parse().ok()
}

/// Parses the peak resident memory in `/proc/PID/status` (proc_pid_status(5)).
fn parse_peak_memory(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::process::{Pid, Signal, WaitOptions, waitpid};

    use super::*;

    /// Starts a shell that executes `script` in place of the server.
    fn shell(script: &str) -> Result<(ServerProcess, SocketAddr), SampleError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ServerProcess::spawn(command, Path::new("dir"))
    }

    /// A server that never ends by itself.
    const ENDLESS: &str = "echo \"Serving 'x' on http://127.0.0.1:9/\"; kill -STOP $$";

    #[test]
    fn a_server_is_killed_with_the_thread_that_started_it() {
        let forgotten = thread::spawn(|| {
            let (server, _) = shell(ENDLESS).unwrap();
            let pid = Pid::from_child(&server.child);
            std::mem::forget(server);
            pid
        });
        let pid = forgotten.join().unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
        assert_eq!(status.terminating_signal(), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_stopped_server_has_used_memory_and_a_dropped_one_is_gone() {
        let (server, address) = shell(ENDLESS).unwrap();
        assert_eq!(address, SocketAddr::from(([127, 0, 0, 1], 9)));
        assert!(server.stop().unwrap().memory_bytes.is_none_or(|bytes| bytes > 0));
        let (server, _) = shell(ENDLESS).unwrap();
        let pid = Pid::from_child(&server.child);
        drop(server);
        assert_eq!(waitpid(Some(pid), WaitOptions::NOHANG).unwrap_err(), rustix::io::Errno::CHILD);
    }

    #[test]
    fn the_reason_of_a_server_that_does_not_start_is_its_first_error() {
        for (script, said) in [
            (
                "echo 'fathom serve: cannot start: no ring' >&2; echo more >&2; exit 1",
                "cannot start: no ring",
            ),
            ("echo hello; kill -STOP $$", "hello"),
            ("exit 1", ""),
        ] {
            let refusal = shell(script).unwrap_err();
            assert_eq!((refusal.to_string().as_str(), refusal.status()), (said, 3), "{script}");
        }
    }

    #[test]
    fn the_address_is_the_last_in_the_line() {
        let expected = Some(SocketAddr::from(([127, 0, 0, 1], 8080)));
        assert_eq!(parse_address("Serving 'srv' on http://127.0.0.1:8080/\n"), expected);
        assert_eq!(parse_address("Serving 'a on http://b/' on http://127.0.0.1:8080/\n"), expected);
        for line in ["", "Serving 'srv' on http://127.0.0.1:8080/", "Serving 'srv' on unix:/run/x\n"] {
            assert_eq!(parse_address(line), None, "{line}");
        }
    }

    #[test]
    fn peak_memory_is_in_bytes() {
        assert_eq!(parse_peak_memory("VmPeak:\t  9 kB\nVmHWM:\t   12 kB\nVmRSS:\t 5 kB\n"), Some(12 << 10));
        assert_eq!(parse_peak_memory("VmPeak:\t  9 kB\n"), None);
    }
}
