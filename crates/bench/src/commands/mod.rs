//! Commands of the user's own, measured in the same shuffled blocks as the arms of this program.
//!
//! Owns: preparations of samples, the check of outputs, and a [`Row`] for each sample. Does not
//! own: the schedule of samples (`runner`), statistics and reports.

mod cases;
mod cold;
mod output;
mod process;
mod requirement;

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Deserializer};

pub use cases::{CasesFile, CommandCase, CommandOutput, SameOutput};
pub use output::OutputSum;
use process::{ProcessEnd, Standard};
pub use requirement::{CommandRequirement, RequirementLimit};

use crate::fixture::CpuTicks;
use crate::runner::Executor;
use crate::{ArmName, Error, Op, Row};

/// The value of [`Row::lang`] and [`Row::model`] of a command.
pub const LANG: &str = "command";
/// The value of [`Row::workload`] of a command.
pub const WORKLOAD: &str = "run";

/// A command to measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CommandArm {
    /// Its name in reports, unique in a case.
    pub name: String,
    /// The program and its arguments.
    #[serde(rename = "run", deserialize_with = "words_of_file")]
    pub words: Vec<OsString>,
    /// Text for sh(1), which runs before each sample and is not measured.
    #[serde(default, deserialize_with = "text_of_file")]
    pub prepare: Option<OsString>,
    /// A word by which requirements mean several commands.
    #[serde(default)]
    pub group: Option<String>,
    /// The number of blocks, from the first on, in which it runs; `None` for all.
    #[serde(default)]
    pub blocks: Option<u32>,
    /// Whether the run goes on without the command if it fails.
    #[serde(default, rename = "optional")]
    pub is_optional: bool,
}

fn words_of_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
    cases::CommandWords::deserialize(deserializer).map(Vec::from)
}

fn text_of_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OsString>, D::Error> {
    String::deserialize(deserializer).map(|text| Some(text.into()))
}

/// Returns the words that run `text` by sh(1); none for an empty one.
#[must_use]
pub fn shell_words(text: &OsStr) -> Vec<OsString> {
    if text.is_empty() {
        return Vec::new();
    }
    ["sh", "-c"].map(OsString::from).into_iter().chain([text.to_owned()]).collect()
}

/// Executes the commands of a case as samples.
#[derive(Debug)]
pub struct CommandExecutor<'a> {
    case: &'a CommandCase,
    stop: &'a AtomicBool,
    /// The bytes that each command wrote when its output was checked.
    checked: Vec<Option<OutputSum>>,
    notes: Vec<String>,
}

impl<'a> CommandExecutor<'a> {
    /// Executes the commands of `case`. If `stop` becomes true, a command is killed with its
    /// descendants.
    #[must_use]
    pub fn new(case: &'a CommandCase, stop: &'a AtomicBool) -> Self {
        Self { case, stop, checked: vec![None; case.commands.len()], notes: Vec::new() }
    }

    /// Executes the command with the number `index` once, unmeasured, and keeps the sum of its
    /// output. Returns the sum and the seconds that it took.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn check(&mut self, index: usize) -> Result<(OutputSum, f64), Error> {
        let end = self.run(&self.case.commands[index], true)?;
        let sum = end.output.unwrap_or_default();
        self.checked[index] = Some(sum);
        Ok((sum, end.seconds))
    }

    /// Returns what was noticed so far, one sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Prepares for a sample of `arm` and executes it. Its output is always read if `checks`.
    fn run(&self, arm: &CommandArm, checks: bool) -> Result<ProcessEnd, Error> {
        // A run goes on without an arm that cannot be started.
        let op = if arm.is_optional { Op::Start } else { Op::Execute };
        let prepared = self.prepare(arm, checks);
        prepared.map_err(|error| if arm.is_optional { Error::new(op, &arm.name, error) } else { error })?;
        let standard = match (checks, self.case.output) {
            (true, _) => Standard::Summed,
            (false, CommandOutput::Null) => Standard::Discarded,
            (false, CommandOutput::Pipe) => Standard::Counted,
        };
        let end = self.process(&arm.words, standard).map_err(|error| Error::new(op, &arm.name, error))?;
        if !self.case.ignore_failure {
            end.check_status().map_err(|cause| Error::new(op, &arm.name, cause))?;
        }
        Ok(end)
    }

    fn prepare(&self, arm: &CommandArm, checks: bool) -> Result<(), Error> {
        if let Some(text) = &arm.prepare {
            let failed = |cause: String| Error::new(Op::Prepare, text.to_string_lossy(), cause);
            let end = self.process(&shell_words(text), Standard::Discarded);
            let end = end.map_err(|error| Error::new(Op::Prepare, text.to_string_lossy(), error))?;
            end.check_status().map_err(failed)?;
        }
        if self.case.cold && !checks {
            let dropped = cold::make_cold(&arm.words[0], self.case.directory.as_deref());
            dropped.map_err(|error| Error::new(Op::Prepare, &arm.name, error))?;
        }
        Ok(())
    }

    fn process(&self, words: &[OsString], standard: Standard) -> io::Result<ProcessEnd> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if let Some(directory) = &self.case.directory {
            command.current_dir(directory);
        }
        process::run(&mut command, standard, self.case.timeout(), self.stop)
    }

    /// Adds a note, unless one has the same beginning.
    fn note_once(&mut self, beginning: &str, rest: &str) {
        if !self.notes.iter().any(|note| note.starts_with(beginning)) {
            self.notes.push(format!("{beginning}{rest}"));
        }
    }

    /// Notes facts that a reader of the sample's numbers has to know.
    fn notice(&mut self, index: usize, end: &ProcessEnd) {
        let name = &self.case.commands[index].name;
        let (known, now) = (self.checked[index].map(|sum| sum.bytes), end.output.map(|sum| sum.bytes));
        if let (Some(known), Some(now)) = (known, now)
            && known != now
        {
            let rest = format!("is not the same each time: {known} bytes, and {now}");
            self.note_once(&format!("the output of '{name}' "), &rest);
        }
        // The peak of a child begins with its parent's (exec_mmap of Linux).
        if end.used.peak_memory_bytes <= end.memory_floor_bytes {
            let floor = end.memory_floor_bytes as f64 / 1e6;
            let rest =
                format!("is {floor:.1} MB or less: the kernel counts what the program which started it has");
            self.note_once(&format!("the peak memory of '{name}' "), &rest);
        }
        if end.migrations.is_none() {
            let rest = "run as root, or set /proc/sys/kernel/perf_event_paranoid to 1 or less";
            self.note_once("migrations are not counted: ", rest);
        }
    }

    fn row(&self, arm: &CommandArm, block: u32, end: &ProcessEnd, steal: f64) -> Row {
        let used = &end.used;
        let (cpu, cpu_user) = (used.usage.cpu.as_secs_f64(), used.usage.cpu_user.as_secs_f64());
        Row {
            workload: WORKLOAD.to_owned(),
            lang: LANG.to_owned(),
            method: arm.name.clone(),
            model: LANG.to_owned(),
            threads: 1,
            depth: 1,
            cache: if self.case.cold { "cold" } else { "none" }.to_owned(),
            sync: "none".to_owned(),
            block,
            seconds: end.seconds,
            cpu_s: cpu,
            cpu_user_s: cpu_user,
            cpu_sys_s: cpu - cpu_user,
            ops: 1,
            ops_per_s: 1.0 / end.seconds.max(1e-9),
            in_flight_max: 1,
            switches: Some(used.usage.waits),
            switches_forced: Some(used.usage.preemptions),
            memory_bytes: Some(used.peak_memory_bytes),
            faults: Some(used.minor_faults),
            faults_major: Some(used.major_faults),
            migrations: end.migrations,
            read_bytes: Some(used.read_bytes),
            written_bytes: Some(used.written_bytes),
            steal,
            verified: true,
            cell: self.case.name.clone(),
            ..Row::default()
        }
    }
}

impl Executor for CommandExecutor<'_> {
    fn execute(&mut self, name: &ArmName, block: u32) -> Result<Row, Error> {
        let case = self.case;
        let index = case.commands.iter().position(|arm| arm.name == name.method);
        let index = index.ok_or_else(|| Error::new(Op::Execute, name.to_string(), "there is no such arm"))?;
        let ticks = CpuTicks::now();
        let end = self.run(&case.commands[index], false)?;
        let steal = CpuTicks::now().stolen_since(ticks);
        self.notice(index, &end);
        Ok(self.row(&case.commands[index], block, &end, steal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(name: &str, words: &[&str], prepare: Option<&str>) -> CommandArm {
        let words = match words {
            [text] if text.contains(' ') => shell_words(OsStr::new(text)),
            words => words.iter().map(OsString::from).collect(),
        };
        CommandArm {
            name: name.to_owned(),
            words,
            prepare: prepare.map(OsString::from),
            ..CommandArm::default()
        }
    }

    fn case(commands: impl Into<Vec<CommandArm>>) -> CommandCase {
        CommandCase { name: "run".to_owned(), commands: commands.into(), ..CommandCase::default() }
    }

    #[test]
    fn a_row_has_what_the_process_used() {
        let stop = AtomicBool::new(false);
        let text = "dd if=/dev/zero of=/dev/null bs=96M count=1 status=none; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo x";
        let case = case([arm("dd", &[text], None)]);
        let mut executor = CommandExecutor::new(&case, &stop);
        assert_eq!(executor.check(0).unwrap().0.bytes, 2);
        let row = executor.execute(&ArmName::new(LANG, "dd"), 3).unwrap();
        assert!(row.seconds > 0.0 && row.cpu_s > 0.0 && row.cpu_s < row.seconds * 64.0, "{row:?}");
        assert!(row.memory_bytes.unwrap() > 96 << 20 && row.faults.unwrap() > 2048, "{row:?}");
        assert_eq!((row.block, row.ops, row.verified, row.method.as_str()), (3, 1, true, "dd"));
        assert!(executor.notes().iter().all(|note| note.starts_with("migrations")), "{:?}", executor.notes());
    }

    #[test]
    fn words_are_arguments_and_run_in_the_directory_of_the_case() {
        let stop = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let arms = [
            arm("words", &["printf", "%s-", "a b", "$HOME"], Some("pwd >place")),
            arm("text", &["cat place"], None),
        ];
        let case = CommandCase { directory: Some(dir.path().to_owned()), ..case(arms) };
        let mut executor = CommandExecutor::new(&case, &stop);
        assert_eq!(executor.check(0).unwrap().0, OutputSum::of(b"a b-$HOME-"));
        let place = format!("{}\n", dir.path().canonicalize().unwrap().display());
        assert_eq!(executor.check(1).unwrap().0, OutputSum::of(place.as_bytes()));
    }

    #[test]
    fn a_command_is_prepared_each_time_and_its_failures_are_said() {
        let stop = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let append = format!("echo x >>{}", log.display());
        let mut case = case([
            arm("true", &["true"], Some(&append)),
            arm("fails", &["echo first >&2; echo second >&2; exit 3"], None),
            arm("absent", &["no-such-program-here"], None),
            arm("killed", &["kill -9 $$"], None),
            arm("unprepared", &["true"], Some("echo why >&2; exit 1")),
        ]);
        let mut executor = CommandExecutor::new(&case, &stop);
        executor.check(0).unwrap();
        executor.execute(&ArmName::new(LANG, "true"), 1).unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\nx\n");
        let said: Vec<String> = (1..5).map(|index| executor.check(index).unwrap_err().to_string()).collect();
        let expected = [
            "cannot execute 'fails': exit status: 3: first",
            "cannot execute 'absent': No such file or directory",
            "cannot execute 'killed': signal: 9 (SIGKILL)",
            "cannot prepare 'echo why >&2; exit 1': exit status: 1: why",
        ];
        assert_eq!(said, expected);
        case.commands[1].is_optional = true;
        assert!(CommandExecutor::new(&case, &stop).check(1).unwrap_err().is_unavailable());
        case.ignore_failure = true;
        assert!(CommandExecutor::new(&case, &stop).check(1).is_ok());
    }

    #[test]
    fn an_output_that_changes_is_noted_once_and_a_small_process_has_its_own_memory() {
        let stop = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let text = format!("cd {} && echo x >>log && cat log", dir.path().display());
        let case = case([arm("grows", &[&text], None)]);
        let mut executor = CommandExecutor::new(&case, &stop);
        executor.check(0).unwrap();
        let rows: Vec<Row> =
            (1..4).map(|block| executor.execute(&ArmName::new(LANG, "grows"), block).unwrap()).collect();
        let changes = executor.notes().iter().filter(|note| note.contains("not the same each time"));
        assert_eq!(changes.count(), 1, "{:?}", executor.notes());
        // The program of this test is larger than a shell, and was counted for it.
        let own = crate::machine::own_peak_memory_bytes();
        assert!(rows.iter().all(|row| row.memory_bytes.unwrap() < own / 2), "{own} {rows:?}");
    }
}
