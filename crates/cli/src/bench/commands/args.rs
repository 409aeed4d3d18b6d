//! The arguments of `fathom bench run`: the commands, their names and preparations.

use std::ffi::{OsStr, OsString};

use fathom_bench::commands::{CommandArm, CommandRules};
use fathom_text::quote::Charset;

use super::table::{COMMANDS_RUN, CommandsOption, OUTPUT_WORDS, SAME_OUTPUT_WORDS};
use crate::bench::measuring::RunArgs;
use crate::bench::reports::ReportTargets;
use crate::bench::{shell_words, values};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

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
#[derive(Debug, Default)]
pub(crate) struct CommandsArgs {
    /// At least one, with unique names.
    pub(crate) arms: Vec<CommandArm>,
    pub(crate) rules: CommandRules,
    pub(crate) same_output: SameOutput,
    pub(crate) run: RunArgs,
    pub(crate) targets: ReportTargets,
}

/// Parses the command line behind `run`. Error messages do not contain the program name.
pub(super) fn parse(words: Vec<OsString>, charset: Charset) -> Result<CommandsArgs, ArgsEnd> {
    let (words, rest) = split(words);
    let mut parser = CommandsParser::default();
    let operands =
        cmdline::parse(&COMMANDS_RUN, words.into_iter(), charset, |key, value| parser.apply(key, &value))?;
    no_more(operands, charset)?;
    Ok(parser.finish(&rest)?)
}

/// Splits `words` before their first `--`, which is in neither part.
fn split(mut words: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let at = words.iter().position(|word| word == OsStr::new("--"));
    let rest = at.map_or_else(Vec::new, |at| words.split_off(at).split_off(1));
    (words, rest)
}

/// The options parsed so far.
#[derive(Default)]
struct CommandsParser {
    args: CommandsArgs,
    names: Vec<String>,
    prepare: Vec<OsString>,
}

impl CommandsParser {
    fn apply(&mut self, key: CommandsOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        let args = &mut self.args;
        match key {
            CommandsOption::Run(key) => args.run.apply(key, option)?,
            CommandsOption::Report(key) => args.targets.apply(key, option)?,
            CommandsOption::Name => self.names.push(String::from_utf8_lossy(option.bytes()).into_owned()),
            CommandsOption::Prepare => self.prepare.push(values::os_string(option.bytes())),
            CommandsOption::Output => {
                let discards = |word: &[u8]| value::one_of(word, OUTPUT_WORDS, &[false, true]);
                args.rules.discards_output = option.read(discards)?;
            }
            CommandsOption::IgnoreFailure => args.rules.ignores_failure = true,
            CommandsOption::SameOutput if option.given.is_none() => args.same_output = SameOutput::Bytes,
            CommandsOption::SameOutput => {
                let rules = [SameOutput::Bytes, SameOutput::Lines];
                args.same_output = option.read(|word| value::one_of(word, SAME_OUTPUT_WORDS, &rules))?;
            }
        }
        Ok(())
    }

    /// Adds the commands: each `--` of `words` begins another one.
    fn finish(mut self, words: &[OsString]) -> Result<CommandsArgs, Vec<u8>> {
        self.args.targets.check()?;
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
        self.args.arms = arms.collect();
        Ok(self.args)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::parsed;

    fn read(line: &str) -> Result<CommandsArgs, String> {
        parsed(line, parse)
    }

    #[test]
    fn commands_follow_dashes_and_have_the_names_that_they_are() {
        let line = "--blocks 3 --prepare sync -- du -s . -- find . -name x'y -- du -s .";
        let args = read(line).expect("it makes sense");
        let names: Vec<&str> = args.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["du -s .", "find . -name 'x'\\''y'", "du -s . #3"]);
        assert!(args.arms.iter().all(|arm| arm.prepare.as_deref() == Some("sync".as_ref())));
        assert_eq!((args.arms[1].words.len(), args.run.blocks), (4, Some(3)));
        assert_eq!(args.same_output, SameOutput::Noted);
        let line = "--name a --name b --prepare x --prepare y --same-output=lines -- true -- false";
        let args = read(line).expect("it makes sense");
        let prepared = |at: usize| args.arms[at].prepare.as_deref().and_then(|text| text.to_str());
        assert_eq!((args.arms[1].name.as_str(), prepared(0), prepared(1)), ("b", Some("x"), Some("y")));
        assert_eq!(args.same_output, SameOutput::Lines);
        let args = read("--same-output --csv=plain.csv -- true").expect("it makes sense");
        assert_eq!(args.same_output, SameOutput::Bytes);
    }

    #[test]
    fn senseless_command_lines_are_rejected() {
        for (line, cause) in [
            ("", "missing operand: commands, each after a '--'"),
            ("--", "missing operand: commands, each after a '--'"),
            ("-- -- true", "missing operand: commands, each after a '--'"),
            ("true -- false", "extra operand 'true'"),
            ("--size 1M -- true", "unrecognized option '--size'"),
            ("--validate -- true", "unrecognized option '--validate'"),
            ("--name a -- true -- false", "--name is for each command: 1 are given for 2 commands"),
            ("--name a --name a -- true -- false", "--name is given twice as 'a'"),
            (
                "--prepare a --prepare b -- true",
                "--prepare is for all commands, or each command: 2 are given for 1 commands",
            ),
            ("--output=x -- true", "invalid argument 'x'"),
            ("--csv=plain:x -- true", "--csv=plain is for workloads"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.starts_with(cause), "{line}: {said}");
        }
    }
}
