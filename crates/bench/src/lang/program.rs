//! A playground program: its list of methods, and one run of it. Its output is untrusted.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::build::stopped_error;
use super::{Lang, Measurement, PlaygroundArm, PlaygroundMethod, child};
use crate::Workload;
use crate::error::{Error, Op};

/// The page size of the data pattern.
const PAGE_BYTES: u64 = 4096;
/// Characters of a program's error message that are quoted.
const REASON_MAX: usize = 500;
/// Exit status of a program whose method is unavailable on this machine.
const UNAVAILABLE: i32 = 3;

/// A built program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    lang: Lang,
    command: Vec<OsString>,
    search: OsString,
}

/// Parameters of one run.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'a> {
    /// The operation.
    pub workload: Workload,
    /// The method and its parameters.
    pub arm: PlaygroundArm,
    /// The file, or the directory of the tree.
    pub path: &'a Path,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// Bytes of one operation.
    pub block_bytes: u64,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// Whether the kernel is told not to read ahead (POSIX_FADV_RANDOM).
    pub no_read_ahead: bool,
    /// Seed of the data pattern.
    pub seed: u64,
    /// Generation of the data pattern.
    pub generation: u64,
}

/// A method of a program and whether it is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodAvailability {
    /// The method.
    pub method: PlaygroundMethod,
    /// The reason why it cannot run on this machine; `None` if it can.
    pub unavailable: Option<String>,
}

impl Program {
    /// Wraps the program of `lang`, which `command` (executable and arguments) starts with `search`
    /// as its PATH.
    ///
    /// # Panics
    /// If `command` is empty.
    #[must_use]
    pub fn new(lang: Lang, command: Vec<OsString>, search: &OsStr) -> Self {
        assert!(!command.is_empty(), "a command has a first word");
        Self { lang, command, search: search.to_owned() }
    }

    /// Returns the program's language.
    #[must_use]
    pub fn lang(&self) -> Lang {
        self.lang
    }

    /// Queries which methods can run `workload` on this machine. A method that the program does not
    /// list is absent.
    ///
    /// # Errors
    /// With [`Op::Start`] if the program violates the protocol; with [`Op::Execute`] if `stop`
    /// became true.
    pub fn list(&self, workload: Workload, stop: &AtomicBool) -> Result<Vec<MethodAvailability>, Error> {
        let failed = |cause: String| Error::new(Op::Start, self.lang.name(), cause);
        let mut command = self.command();
        command.args(["--list", workload.name()]);
        let output = child::run(&mut command, stop).map_err(|error| failed(error.to_string()))?;
        let output = output.ok_or_else(|| stopped_error(self.lang))?;
        if !output.status.success() {
            return Err(failed(failure_reason(&output)));
        }
        parse_list(self.lang, &output.stdout).map_err(failed)
    }

    /// Runs the program once. If `stop` becomes true, kills it with all its descendants.
    ///
    /// # Errors
    /// With [`Op::Start`] if the method is unavailable (with the program's reason) or the program
    /// cannot be started; with [`Op::Execute`] if an operation failed, the output is not a valid
    /// row, or the run was stopped.
    pub fn run(&self, request: &RunRequest<'_>, stop: &AtomicBool) -> Result<Measurement, Error> {
        let what = format!("{} {}", self.lang, request.arm.name());
        let mut command = self.command();
        // libuv has 4 threads otherwise, for any number of promises, and at most 1024 (libuv,
        // Thread pool work scheduling).
        command.args(options(request)).env("UV_THREADPOOL_SIZE", request.arm.depth.to_string());
        let answer = execute(&mut command, &what, stop).map_err(|error| as_unavailable(request, error))?;
        check(request, &answer).map_err(|cause| Error::new(Op::Execute, what, cause))?;
        Ok(answer)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("PATH", &self.search);
        command
    }
}

/// Runs a program that follows the protocol of playground/README.md. `what` names it in errors.
///
/// # Errors
/// As [`Program::run`].
pub fn execute(command: &mut Command, what: &str, stop: &AtomicBool) -> Result<Measurement, Error> {
    let failed = |op, cause: String| Error::new(op, what, cause);
    let output = child::run(command, stop).map_err(|error| failed(Op::Start, error.to_string()))?;
    let output = output.ok_or_else(|| failed(Op::Execute, "stopped".to_owned()))?;
    match output.status.code() {
        Some(0) => {}
        Some(UNAVAILABLE) => return Err(failed(Op::Start, failure_reason(&output))),
        _ => return Err(failed(Op::Execute, failure_reason(&output))),
    }
    Measurement::parse(&output.stdout).map_err(|cause| failed(Op::Execute, cause))
}

/// With `O_DIRECT`, EINVAL says that the filesystem or the device does not support it, or not with
/// this block (open(2)): the method cannot run.
fn as_unavailable(request: &RunRequest<'_>, error: Error) -> Error {
    let cause = error.cause();
    let is_unsupported = request.direct && cause.ends_with(": Invalid argument");
    if is_unsupported { Error::new(Op::Start, error.thing().to_owned(), cause) } else { error }
}

fn options(request: &RunRequest<'_>) -> Vec<OsString> {
    let RunRequest { workload, arm, path, size_bytes, block_bytes, direct, .. } = request;
    let options: [(&str, OsString); 13] = [
        ("--op", workload.name().into()),
        ("--method", arm.method.name().into()),
        ("--path", path.into()),
        ("--size", size_bytes.to_string().into()),
        ("--block", block_bytes.to_string().into()),
        ("--threads", arm.threads.to_string().into()),
        ("--depth", arm.depth.to_string().into()),
        ("--batch", arm.batch.to_string().into()),
        ("--wait", if arm.spins { "spin" } else { "wait" }.into()),
        ("--direct", if *direct { "yes" } else { "no" }.into()),
        ("--advice", if request.no_read_ahead { "random" } else { "normal" }.into()),
        ("--seed", request.seed.to_string().into()),
        ("--generation", request.generation.to_string().into()),
    ];
    options.into_iter().flat_map(|(name, value)| [name.into(), value]).collect()
}

/// Checks that the program moved all bytes and kept to the limit of operations in flight.
fn check(request: &RunRequest<'_>, answer: &Measurement) -> Result<(), String> {
    let (size, of_tree) = (request.size_bytes, request.workload.is_of_tree());
    let pages = if of_tree || request.workload.writes() { 0 } else { size.div_ceil(PAGE_BYTES) };
    let bound = u64::from(request.arm.threads) * u64::from(request.arm.depth);
    if !of_tree && answer.bytes != size {
        Err(format!("{} bytes were moved instead of {size}", answer.bytes))
    } else if answer.pages_ok != pages {
        Err(format!("{} pages were right instead of {pages}", answer.pages_ok))
    } else if !(1..=bound).contains(&answer.in_flight_max) {
        Err(format!("{} operations were in flight instead of up to {bound}", answer.in_flight_max))
    } else {
        Ok(())
    }
}

fn parse_list(lang: Lang, stdout: &[u8]) -> Result<Vec<MethodAvailability>, String> {
    let text = String::from_utf8_lossy(stdout);
    let methods: Vec<MethodAvailability> =
        text.lines().map(|line| parse_list_line(lang, line)).collect::<Result<_, _>>()?;
    let distinct: HashSet<PlaygroundMethod> = methods.iter().map(|listed| listed.method).collect();
    if methods.is_empty() || distinct.len() < methods.len() {
        return Err(format!("{} methods, {} of them distinct, in its list", methods.len(), distinct.len()));
    }
    Ok(methods)
}

fn parse_list_line(lang: Lang, line: &str) -> Result<MethodAvailability, String> {
    let known = |name| lang.methods().iter().copied().find(|method| method.name() == name);
    let method = line.split_once('\t').and_then(|(name, verdict)| Some((known(name)?, verdict)));
    match method {
        Some((_, "")) | None => Err(format!("no method and its verdict in the line '{}'", quoted(line))),
        Some((method, "ok")) => Ok(MethodAvailability { method, unavailable: None }),
        Some((method, reason)) => Ok(MethodAvailability { method, unavailable: Some(quoted(reason)) }),
    }
}

/// Returns the first line of a failed program's standard error, without the program's name.
fn failure_reason(output: &child::ChildOutput) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().next().unwrap_or_default().trim();
    let own_name = |(name, _): &(&str, &str)| !name.contains([' ', '\'']);
    let message = line.split_once(": ").filter(own_name).map_or(line, |(_, rest)| rest);
    if message.is_empty() { format!("{}, and printed nothing", output.status) } else { quoted(message) }
}

fn quoted(text: &str) -> String {
    printable(&text.chars().take(REASON_MAX).collect::<String>())
}

/// Escapes control characters of untrusted text, except line feeds, so that it cannot control the
/// terminal.
pub(super) fn printable(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() && c != '\n' { c.escape_default().collect() } else { String::from(c) }
    };
    text.chars().map(escaped).collect()
}
