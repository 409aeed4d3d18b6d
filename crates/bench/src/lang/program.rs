//! One program: what it offers here, and one run of it. Nothing that it prints is trusted.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::build::stopped;
use super::{Answer, Arm, Lang, Method, child};
use crate::error::{Error, Op};

/// As in the pattern.
const PAGE_BYTES: u64 = 4096;
/// Characters of a program's reason that are shown.
const REASON_MAX: usize = 500;
/// The exit status of a method that cannot run here.
const UNAVAILABLE: i32 = 3;

/// A program that has been built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    lang: Lang,
    command: Vec<OsString>,
    search: OsString,
}

/// What is done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It is made, or truncated, and written.
    Write,
    /// It has the pattern and is read.
    Read,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is done.
    pub deed: Deed,
    /// How.
    pub arm: Arm,
    /// The file.
    pub path: &'a Path,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes of one operation.
    pub block_bytes: u64,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// What the pattern comes from.
    pub seed: u64,
    /// Which file of that seed it is.
    pub generation: u64,
}

/// A method of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The method.
    pub method: Method,
    /// Why it cannot run here; nothing if it can.
    pub unavailable: Option<String>,
}

impl Program {
    /// The program of `lang` that `command` starts, its first word being the executable; `search` is its PATH.
    ///
    /// # Panics
    /// If `command` is empty.
    #[must_use]
    pub fn new(lang: Lang, command: Vec<OsString>, search: &OsStr) -> Self {
        assert!(!command.is_empty(), "a command has a first word");
        Self { lang, command, search: search.to_owned() }
    }

    /// The program's language.
    #[must_use]
    pub fn lang(&self) -> Lang {
        self.lang
    }

    /// Asks what can run here. What the program does not list is not in it.
    ///
    /// # Errors
    /// With [`Op::Start`] if the program does not answer as agreed; with [`Op::Execute`] if `stop` became true.
    pub fn list(&self, stop: &AtomicBool) -> Result<Vec<Offer>, Error> {
        let failed = |cause: String| Error::new(Op::Start, self.lang.name(), cause);
        let mut command = self.command();
        command.arg("--list");
        let ended = child::run(&mut command, stop).map_err(|error| failed(error.to_string()))?;
        let ended = ended.ok_or_else(|| stopped(self.lang))?;
        if !ended.status.success() {
            return Err(failed(reason(&ended)));
        }
        offers(self.lang, &ended.stdout).map_err(failed)
    }

    /// Runs the program once, until it ends or `stop` becomes true, when it is killed with all it has started.
    ///
    /// # Errors
    /// With [`Op::Start`] and the program's reason if the method cannot run here, or if the program cannot be started; with
    /// [`Op::Execute`] if an operation failed, it printed anything but the row that was agreed on, or it was stopped.
    pub fn run(&self, request: &Request<'_>, stop: &AtomicBool) -> Result<Answer, Error> {
        let what = format!("{} {}", self.lang, request.arm);
        let mut command = self.command();
        command.args(words(request));
        let answer = execute(&mut command, &what, stop)?;
        check(request, &answer).map_err(|cause| Error::new(Op::Execute, what, cause))?;
        Ok(answer)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("PATH", &self.search);
        command
    }
}

/// Runs a program that behaves as playground/README.md has it, with its arguments. `what` is what errors call it.
///
/// # Errors
/// As [`Program::run`].
pub fn execute(command: &mut Command, what: &str, stop: &AtomicBool) -> Result<Answer, Error> {
    let failed = |op, cause: String| Error::new(op, what, cause);
    let ended = child::run(command, stop).map_err(|error| failed(Op::Start, error.to_string()))?;
    let ended = ended.ok_or_else(|| failed(Op::Execute, "stopped".to_owned()))?;
    match ended.status.code() {
        Some(0) => {}
        Some(UNAVAILABLE) => return Err(failed(Op::Start, reason(&ended))),
        _ => return Err(failed(Op::Execute, reason(&ended))),
    }
    Answer::parse(&ended.stdout).map_err(|cause| failed(Op::Execute, cause))
}

fn words(request: &Request<'_>) -> Vec<OsString> {
    let Request { deed, arm, path, size_bytes, block_bytes, direct, seed, generation } = request;
    let options: [(&str, OsString); 12] = [
        ("--op", if *deed == Deed::Write { "write" } else { "read" }.into()),
        ("--method", arm.method.name().into()),
        ("--path", path.into()),
        ("--size", size_bytes.to_string().into()),
        ("--block", block_bytes.to_string().into()),
        ("--threads", arm.threads.to_string().into()),
        ("--depth", arm.depth.to_string().into()),
        ("--batch", arm.batch.to_string().into()),
        ("--wait", if arm.spins { "spin" } else { "wait" }.into()),
        ("--direct", if *direct { "yes" } else { "no" }.into()),
        ("--seed", seed.to_string().into()),
        ("--generation", generation.to_string().into()),
    ];
    options.into_iter().flat_map(|(name, value)| [name.into(), value]).collect()
}

/// Whether all of the work was done, and no more of it at once than asked for.
fn check(request: &Request<'_>, answer: &Answer) -> Result<(), String> {
    let size = request.size_bytes;
    let pages = if request.deed == Deed::Read { size.div_ceil(PAGE_BYTES) } else { 0 };
    let bound = u64::from(request.arm.threads) * u64::from(request.arm.depth);
    if answer.bytes != size {
        Err(format!("{} bytes were moved instead of {size}", answer.bytes))
    } else if answer.pages_ok != pages {
        Err(format!("{} pages were right instead of {pages}", answer.pages_ok))
    } else if !(1..=bound).contains(&answer.in_flight_max) {
        Err(format!("{} operations were in flight instead of up to {bound}", answer.in_flight_max))
    } else {
        Ok(())
    }
}

fn offers(lang: Lang, stdout: &[u8]) -> Result<Vec<Offer>, String> {
    let text = String::from_utf8_lossy(stdout);
    let offers: Vec<Offer> = text.lines().map(|line| offer(lang, line)).collect::<Result<_, _>>()?;
    let distinct: HashSet<Method> = offers.iter().map(|offer| offer.method).collect();
    if offers.is_empty() || distinct.len() < offers.len() {
        return Err(format!("{} methods, {} of them distinct, in its list", offers.len(), distinct.len()));
    }
    Ok(offers)
}

fn offer(lang: Lang, line: &str) -> Result<Offer, String> {
    let known = |name| lang.methods().iter().copied().find(|method| method.name() == name);
    let method = line.split_once('\t').and_then(|(name, verdict)| Some((known(name)?, verdict)));
    match method {
        Some((_, "")) | None => Err(format!("no method and its verdict in the line '{}'", shown(line))),
        Some((method, "ok")) => Ok(Offer { method, unavailable: None }),
        Some((method, reason)) => Ok(Offer { method, unavailable: Some(shown(reason)) }),
    }
}

/// What a program that failed said first, without its own name.
fn reason(ended: &child::Ended) -> String {
    let text = String::from_utf8_lossy(&ended.stderr);
    let line = text.lines().next().unwrap_or_default().trim();
    let own_name = |(name, _): &(&str, &str)| !name.contains([' ', '\'']);
    let said = line.split_once(": ").filter(own_name).map_or(line, |(_, rest)| rest);
    if said.is_empty() { format!("{}, without a word", ended.status) } else { shown(said) }
}

fn shown(text: &str) -> String {
    printable(&text.chars().take(REASON_MAX).collect::<String>())
}

/// The text of others, which shall not speak to the terminal: what would is escaped, but for ends of lines.
pub(super) fn printable(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() && c != '\n' { c.escape_default().collect() } else { String::from(c) }
    };
    text.chars().map(escaped).collect()
}
