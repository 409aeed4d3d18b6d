//! The arguments of `fathom bench run`: the commands, their names and preparations.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use fathom_bench::commands::{CommandArm, CommandRules};

use super::{BenchParser, ReportTargets};
use crate::bench::shell_words;

/// The number of repetitions unless `--blocks` says it.
const BLOCKS: u32 = 10;

/// The requirement on the outputs of the commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SameOutput {
    /// A difference is noted.
    #[default]
    Noted,
    /// They have the same bytes, or nothing is measured.
    Bytes,
    /// They have the same lines in any order, or nothing is measured.
    Lines,
}

/// The arguments of `run`.
#[derive(Debug)]
pub(crate) struct CommandsArgs {
    /// At least one, with unique names.
    pub(crate) arms: Vec<CommandArm>,
    pub(crate) rules: CommandRules,
    pub(crate) same_output: SameOutput,
    pub(crate) blocks: u32,
    /// The time within which to answer.
    pub(crate) time: Option<Duration>,
    pub(crate) seed: Option<u64>,
    pub(crate) targets: ReportTargets,
}

impl BenchParser {
    /// Checks the arguments of `run`. `words` follow the first `--`, and each further `--` begins a
    /// command.
    pub(super) fn commands(self, words: Option<Vec<OsString>>) -> Result<CommandsArgs, Vec<u8>> {
        self.refuse(&[self.of_advice(), self.of_one_workload()].concat(), "run, which measures commands")?;
        self.targets.check()?;
        let words = words.unwrap_or_default();
        let commands: Vec<&[OsString]> = words.split(|word| word == "--").collect();
        if commands.iter().any(|command| command.is_empty()) {
            return Err(b"missing operand: commands, each after a '--'".to_vec());
        }
        let names = self.command_names(&commands)?;
        let prepared = |at: usize| self.prepare.get(at).or(self.prepare.first()).cloned();
        if self.prepare.len() > 1 && self.prepare.len() != commands.len() {
            return Err(count_error("--prepare", "all commands, or ", self.prepare.len(), commands.len()));
        }
        let arms = names.into_iter().zip(&commands).enumerate();
        let arms =
            arms.map(|(at, (name, words))| CommandArm { name, words: words.to_vec(), prepare: prepared(at) });
        Ok(CommandsArgs {
            arms: arms.collect(),
            rules: self.rules,
            same_output: self.same_output,
            blocks: self.blocks.unwrap_or(BLOCKS),
            time: self.time,
            seed: self.seed,
            targets: self.targets,
        })
    }

    /// Returns the names of the commands: from `--name`, or the commands themselves, with a number
    /// if they occur again.
    fn command_names(&self, commands: &[&[OsString]]) -> Result<Vec<String>, Vec<u8>> {
        let mut names: Vec<String> = if self.names.is_empty() {
            commands.iter().map(|words| name_of(words)).collect()
        } else {
            self.names.clone()
        };
        if names.len() != commands.len() {
            return Err(count_error("--name", "", names.len(), commands.len()));
        }
        for at in 1..names.len() {
            let (before, rest) = names.split_at_mut(at);
            let same = before.iter().filter(|name| **name == rest[0]).count();
            if same > 0 {
                if !self.names.is_empty() {
                    return Err(format!("--name is given twice as '{}'", rest[0]).into_bytes());
                }
                rest[0] = format!("{} #{}", rest[0], at + 1);
            }
        }
        Ok(names)
    }
}

/// Text for the shell is its own name.
fn name_of(words: &[OsString]) -> String {
    match words {
        [text] => text.to_string_lossy().into_owned(),
        words => shell_words(words.iter().map(OsString::as_os_str)),
    }
}

fn count_error(option: &str, or: &str, given: usize, commands: usize) -> Vec<u8> {
    format!("{option} is for {or}each command: {given} are given for {commands} commands").into_bytes()
}

/// Splits `words` before their first `--`, which is in neither part.
pub(super) fn split(mut words: Vec<OsString>) -> (Vec<OsString>, Option<Vec<OsString>>) {
    let at = words.iter().position(|word| word == OsStr::new("--"));
    let rest = at.map(|at| words.split_off(at).split_off(1));
    (words, rest)
}
