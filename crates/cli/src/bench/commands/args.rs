//! The arguments of `fathom bench run`: the commands, their names and preparations.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fathom_bench::ArmName;
use fathom_bench::commands::{
    CasesFile, CommandArm, CommandCase, CommandOutput, SameOutput, shell_words as by_shell,
};
use fathom_text::quote::Charset;

use super::table::{COMMANDS_RUN, CommandsOption, OUTPUT_WORDS, SAME_OUTPUT_WORDS};
use crate::bench::measuring::RunArgs;
use crate::bench::reports::ReportTargets;
use crate::bench::{shell_words, values};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

/// The arguments of `run`.
#[derive(Debug, Default)]
pub(crate) struct CommandsArgs {
    /// The cases of a file, or one of the commands on the command line.
    pub(crate) cases: Vec<CommandCase>,
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
    /// The file of cases.
    file: Option<PathBuf>,
    /// The case of the command line, as far as options tell.
    case: CommandCase,
    /// The first option about commands, which a file of cases has itself.
    about_commands: Option<&'static str>,
    names: Vec<String>,
    prepare: Vec<OsString>,
}

impl CommandsParser {
    fn apply(&mut self, key: CommandsOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        let case = &mut self.case;
        let name = match key {
            CommandsOption::Run(key) => return self.args.run.apply(key, option),
            CommandsOption::Report(key) => return self.args.targets.apply(key, option),
            CommandsOption::Cases => {
                self.file = Some(values::path(option.bytes())?);
                return Ok(());
            }
            CommandsOption::Name => {
                self.names.push(String::from_utf8_lossy(option.bytes()).into_owned());
                "--name"
            }
            CommandsOption::Prepare => {
                self.prepare.push(values::os_string(option.bytes()));
                "--prepare"
            }
            CommandsOption::Cold => {
                case.cold = true;
                "--cold"
            }
            CommandsOption::Output => {
                let outputs = [CommandOutput::Pipe, CommandOutput::Null];
                case.output = option.read(|word| value::one_of(word, OUTPUT_WORDS, &outputs))?;
                "--output"
            }
            CommandsOption::IgnoreFailure => {
                case.ignore_failure = true;
                "--ignore-failure"
            }
            CommandsOption::SameOutput => {
                let rules = [SameOutput::Bytes, SameOutput::Lines, SameOutput::Any];
                case.same_output = match option.given {
                    None => SameOutput::Bytes,
                    Some(_) => option.read(|word| value::one_of(word, SAME_OUTPUT_WORDS, &rules))?,
                };
                "--same-output"
            }
        };
        self.about_commands.get_or_insert(name);
        Ok(())
    }

    /// Reads the file of cases, or adds the commands: each `--` of `words` begins another one.
    fn finish(mut self, words: &[OsString]) -> Result<CommandsArgs, Vec<u8>> {
        self.args.targets.check()?;
        let Some(file) = self.file.take() else {
            let case = self.case_of(words)?;
            self.args.cases.push(case);
            return Ok(self.args);
        };
        if let Some(option) = self.about_commands {
            return Err(format!("{option} cannot be combined with --cases: the file has its own settings")
                .into_bytes());
        }
        if !words.is_empty() {
            return Err(b"--cases excludes commands on the command line".to_vec());
        }
        self.args.cases = CasesFile::read(&file).map_err(|error| error.to_string().into_bytes())?.cases;
        Ok(self.args)
    }

    fn case_of(&self, words: &[OsString]) -> Result<CommandCase, Vec<u8>> {
        let commands: Vec<&[OsString]> = words.split(|word| word == "--").collect();
        if commands.iter().any(|command| command.is_empty()) {
            return Err(b"missing operand: commands, each after '--'".to_vec());
        }
        let names = self.command_names(&commands)?;
        if let Some(name) = names.iter().find(|name| ArmName::is_reserved(name)) {
            return Err(format!("the name '{name}' is reserved: give another one with --name").into_bytes());
        }
        let prepared = |at: usize| self.prepare.get(at).or(self.prepare.first()).cloned();
        if self.prepare.len() > 1 && self.prepare.len() != commands.len() {
            return Err(count_error("--prepare", "all commands, or ", self.prepare.len(), commands.len()));
        }
        let arm = |(at, (name, words)): (usize, (String, &&[OsString]))| {
            let words = words_of(words);
            CommandArm { name, words, prepare: prepared(at), ..CommandArm::default() }
        };
        let commands: Vec<_> = names.into_iter().zip(&commands).enumerate().map(arm).collect();
        Ok(CommandCase { name: label(&commands), commands, ..self.case.clone() })
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

/// Returns the words of a command. A single word with a space in it is text for sh(1).
fn words_of(words: &[OsString]) -> Vec<OsString> {
    match words {
        [text] if text.as_bytes().contains(&b' ') => by_shell(text),
        words => words.to_vec(),
    }
}

/// Names the cell of commands on the command line, the same in runs that can be compared.
fn label(commands: &[CommandArm]) -> String {
    let first = &commands[0].prepare;
    let is_shared = commands.iter().all(|arm| arm.prepare == *first);
    match first {
        None => "commands".to_owned(),
        Some(text) if is_shared => format!("commands, each after '{}'", text.to_string_lossy()),
        Some(_) => "commands, each after a preparation of its own".to_owned(),
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
        let arms = &args.cases[0].commands;
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["du -s .", "find . -name 'x'\\''y'", "du -s . #3"]);
        assert!(arms.iter().all(|arm| arm.prepare.as_deref() == Some("sync".as_ref())));
        assert_eq!((arms[1].words.len(), args.run.blocks), (4, Some(3)));
        assert_eq!(args.cases[0].same_output, SameOutput::Noted);
        let line = "--name a --name b --prepare x --prepare y --same-output=lines -- true -- false";
        let args = read(line).expect("it makes sense");
        let prepared =
            |at: usize| args.cases[0].commands[at].prepare.as_deref().and_then(|text| text.to_str());
        assert_eq!(
            (args.cases[0].commands[1].name.as_str(), prepared(0), prepared(1)),
            ("b", Some("x"), Some("y"))
        );
        assert_eq!(args.cases[0].same_output, SameOutput::Lines);
        let args = read("--same-output --csv=plain.csv -- true").expect("it makes sense");
        assert_eq!(args.cases[0].same_output, SameOutput::Bytes);
    }

    #[test]
    fn senseless_command_lines_are_rejected() {
        for (line, cause) in [
            ("", "missing operand: commands, each after '--'"),
            ("--", "missing operand: commands, each after '--'"),
            ("-- -- true", "missing operand: commands, each after '--'"),
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
            ("--cases no-such-file", "cannot read 'no-such-file': No such file or directory"),
            ("--cases f -- true", "--cases excludes commands on the command line"),
            ("--cold --cases f", "--cold cannot be combined with --cases: the file has its own settings"),
            ("--name null -- true", "the name 'null' is reserved: give another one with --name"),
            ("--csv=plain:x -- true", "--csv=plain requires a workload"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.starts_with(cause), "{line}: {said}");
        }
    }
}
