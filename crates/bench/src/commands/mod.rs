//! Commands of the user's own, measured in the same shuffled blocks as the arms of this program.
//!
//! Owns: preparations of samples, the check of outputs, and a [`Row`] for each sample. Does not
//! own: the schedule of samples (`runner`), statistics and reports.

mod output;
mod process;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::sync::atomic::AtomicBool;

pub use output::OutputSum;
use process::{ProcessEnd, Standard};

use crate::fixture::CpuTicks;
use crate::runner::Executor;
use crate::{ArmName, Error, Op, Row};

/// The value of [`Row::lang`] and [`Row::model`] of a command.
pub const LANG: &str = "command";
/// The value of [`Row::workload`] of a command.
pub const WORKLOAD: &str = "run";

/// A command to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandArm {
    /// Its name in reports, unique in a run.
    pub name: String,
    /// The program and its arguments. A single word with a space in it is text for sh(1).
    pub words: Vec<OsString>,
    /// Text for sh(1), which runs before each sample and is not measured.
    pub prepare: Option<OsString>,
}

/// The treatment of the outputs and statuses of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandRules {
    /// Whether the standard output is `/dev/null` and not a pipe that is read. Some programs do
    /// less work then.
    pub discards_output: bool,
    /// Whether a command may end with a status other than 0.
    pub ignores_failure: bool,
}

/// Executes commands as samples.
#[derive(Debug)]
pub struct CommandExecutor<'a> {
    arms: &'a [CommandArm],
    rules: CommandRules,
    cell: String,
    stop: &'a AtomicBool,
    /// The bytes that each command wrote when its output was checked.
    checked: Vec<Option<OutputSum>>,
    notes: Vec<String>,
}

impl CommandArm {
    fn command(&self) -> Command {
        let words: &[OsString] = &self.words;
        match words {
            [text] if text.as_bytes().contains(&b' ') => shell(text),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            [] => shell(OsStr::new("")),
        }
    }
}

fn shell(text: &OsStr) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text);
    command
}

impl<'a> CommandExecutor<'a> {
    /// Executes `arms` for the cell called `cell`. If `stop` becomes true, a command is killed with
    /// its descendants.
    #[must_use]
    pub fn new(arms: &'a [CommandArm], rules: CommandRules, cell: &str, stop: &'a AtomicBool) -> Self {
        let checked = vec![None; arms.len()];
        Self { arms, rules, cell: cell.to_owned(), stop, checked, notes: Vec::new() }
    }

    /// Executes the command with the number `index` once, unmeasured, and keeps the sum of its
    /// output. Returns the sum and the seconds that it took.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn check(&mut self, index: usize) -> Result<(OutputSum, f64), Error> {
        let arms = self.arms;
        let end = self.run(&arms[index], true)?;
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
        if let Some(text) = &arm.prepare {
            let what = text.to_string_lossy();
            let end = process::run(&mut shell(text), Standard::Discarded, self.stop);
            let end = end.map_err(|error| Error::new(Op::Prepare, what.clone(), error))?;
            end.check_status().map_err(|cause| Error::new(Op::Prepare, what, cause))?;
        }
        let standard = match (checks, self.rules.discards_output) {
            (true, _) => Standard::Summed,
            (false, true) => Standard::Discarded,
            (false, false) => Standard::Counted,
        };
        let failed = |cause: String| Error::new(Op::Execute, &arm.name, cause);
        let end = process::run(&mut arm.command(), standard, self.stop)
            .map_err(|error| Error::new(Op::Execute, &arm.name, error))?;
        if !self.rules.ignores_failure {
            end.check_status().map_err(failed)?;
        }
        Ok(end)
    }

    /// Adds a note, unless one has the same beginning.
    fn note_once(&mut self, beginning: &str, rest: &str) {
        if !self.notes.iter().any(|note| note.starts_with(beginning)) {
            self.notes.push(format!("{beginning}{rest}"));
        }
    }

    /// Notes facts that a reader of the sample's numbers has to know.
    fn notice(&mut self, index: usize, end: &ProcessEnd) {
        let name = &self.arms[index].name;
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
                format!("is {floor:.1} MB or less: the kernel counts that of the program which started it");
            self.note_once(&format!("the peak memory of '{name}' "), &rest);
        }
        if end.migrations.is_none() {
            let rest = "/proc/sys/kernel/perf_event_paranoid has to be 1 or less, or the user root";
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
            cache: "none".to_owned(),
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
            cell: self.cell.clone(),
            ..Row::default()
        }
    }
}

impl Executor for CommandExecutor<'_> {
    fn execute(&mut self, name: &ArmName, block: u32) -> Result<Row, Error> {
        let arms = self.arms;
        let index = arms.iter().position(|arm| arm.name == name.method);
        let index = index.ok_or_else(|| Error::new(Op::Execute, name.to_string(), "there is no such arm"))?;
        let ticks = CpuTicks::now();
        let end = self.run(&arms[index], false)?;
        let steal = CpuTicks::now().stolen_since(ticks);
        self.notice(index, &end);
        Ok(self.row(&arms[index], block, &end, steal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(name: &str, words: &[&str], prepare: Option<&str>) -> CommandArm {
        let words = words.iter().map(OsString::from).collect();
        CommandArm { name: name.to_owned(), words, prepare: prepare.map(OsString::from) }
    }

    #[test]
    fn a_row_has_what_the_process_used() {
        let stop = AtomicBool::new(false);
        let text = "dd if=/dev/zero of=/dev/null bs=96M count=1 status=none; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo x";
        let arms = [arm("dd", &[text], None)];
        let mut executor = CommandExecutor::new(&arms, CommandRules::default(), "run", &stop);
        assert_eq!(executor.check(0).unwrap().0.bytes, 2);
        let row = executor.execute(&ArmName::new(LANG, "dd"), 3).unwrap();
        assert!(row.seconds > 0.0 && row.cpu_s > 0.0 && row.cpu_s < row.seconds * 64.0, "{row:?}");
        assert!(row.memory_bytes.unwrap() > 96 << 20 && row.faults.unwrap() > 2048, "{row:?}");
        assert_eq!((row.block, row.ops, row.verified, row.method.as_str()), (3, 1, true, "dd"));
        assert!(executor.notes().iter().all(|note| note.starts_with("migrations")), "{:?}", executor.notes());
    }

    #[test]
    fn words_are_arguments_and_text_is_for_the_shell() {
        let stop = AtomicBool::new(false);
        let arms = [
            arm("words", &["printf", "%s-", "a b", "$HOME"], None),
            arm("text", &["printf %s- 'a b' | cat"], None),
        ];
        let mut executor = CommandExecutor::new(&arms, CommandRules::default(), "run", &stop);
        let sums = [0, 1].map(|index| executor.check(index).unwrap().0);
        assert_eq!(sums, [OutputSum::of(b"a b-$HOME-"), OutputSum::of(b"a b-")]);
    }

    #[test]
    fn a_command_is_prepared_each_time_and_its_failures_are_said() {
        let stop = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let append = format!("echo x >>{}", log.display());
        let arms = [
            arm("true", &["true"], Some(&append)),
            arm("fails", &["echo first >&2; echo second >&2; exit 3"], None),
            arm("absent", &["no-such-program-here"], None),
            arm("killed", &["kill -9 $$"], None),
            arm("unprepared", &["true"], Some("echo why >&2; exit 1")),
        ];
        let rules = CommandRules::default();
        let mut executor = CommandExecutor::new(&arms, rules, "run", &stop);
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
        let rules = CommandRules { ignores_failure: true, ..rules };
        assert!(CommandExecutor::new(&arms, rules, "run", &stop).check(1).is_ok());
    }

    #[test]
    fn an_output_that_changes_and_a_small_process_are_noted_once() {
        let stop = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let text = format!("cd {} && echo x >>log && cat log", dir.path().display());
        let arms = [arm("grows", &[&text], None)];
        let mut executor = CommandExecutor::new(&arms, CommandRules::default(), "run", &stop);
        executor.check(0).unwrap();
        for block in 1..4 {
            executor.execute(&ArmName::new(LANG, "grows"), block).unwrap();
        }
        let changes = executor.notes().iter().filter(|note| note.contains("not the same each time"));
        assert_eq!(changes.count(), 1, "{:?}", executor.notes());
        let small = executor.notes().iter().filter(|note| note.starts_with("the peak memory of 'grows'"));
        assert_eq!(small.count(), 1, "{:?}", executor.notes());
    }
}
