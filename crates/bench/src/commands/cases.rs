//! Files of cases: commands that are measured against each other, and the requirements on them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{CommandArm, CommandRequirement};
use crate::{ArmName, Error, Op};

/// The cases of a file, at least one.
///
/// ```
/// use fathom_bench::commands::CasesFile;
///
/// let text = r#"
///     [[case]]
///     name = "names of a small tree"
///     blocks = 20
///     command = [
///         { name = "find", run = ["find", "src"] },
///         { name = "fathom", run = "fathom list src | cat" },
///     ]
///     require = [{ command = "fathom", than = "find", time = 0.9 }]
/// "#;
/// let file = CasesFile::parse(text, "cases.toml".as_ref())?;
/// assert_eq!(file.cases[0].commands.len(), 2);
/// let text = text.replace("than = \"find\"", "than = \"ls\"");
/// let error = CasesFile::parse(&text, "cases.toml".as_ref()).unwrap_err();
/// assert!(error.to_string().ends_with("case 'names of a small tree': no command or group 'ls'"));
/// # Ok::<(), fathom_bench::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CasesFile {
    /// The cases, with unique names.
    #[serde(rename = "case")]
    pub cases: Vec<CommandCase>,
}

/// Commands that are measured against each other.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CommandCase {
    /// The label of the cell.
    pub name: String,
    /// How often each command is measured; `None` for the default.
    #[serde(default)]
    pub blocks: Option<u32>,
    /// The directory in which the commands run, relative to the file; `None` for the directory of
    /// this process.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// Whether the caches of the kernel are dropped before each sample, which needs root.
    #[serde(default)]
    pub cold: bool,
    /// The use of the standard outputs.
    #[serde(default)]
    pub output: CommandOutput,
    /// The rule for the outputs.
    #[serde(default)]
    pub same_output: SameOutput,
    /// Whether a command may end with a status other than 0.
    #[serde(default)]
    pub ignore_failure: bool,
    /// The time after which a command is killed, which is a failure; `None` for none.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// The commands, of which the first is the baseline, with unique names.
    #[serde(rename = "command")]
    pub commands: Vec<CommandArm>,
    /// The requirements.
    #[serde(default, rename = "require")]
    pub requirements: Vec<CommandRequirement>,
}

/// The use of the standard output of a command. Some programs do less work if it is discarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandOutput {
    /// It is a pipe that is read.
    #[default]
    Pipe,
    /// It is `/dev/null`.
    Null,
}

/// The rule for the outputs of the commands of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SameOutput {
    /// A difference is noted.
    #[default]
    Noted,
    /// They are not compared.
    Any,
    /// They have the same bytes.
    Bytes,
    /// They have the same lines in any order.
    Lines,
}

/// The words of a command in a file: a list, or text for sh(1).
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum CommandWords {
    Text(String),
    Words(Vec<String>),
}

impl From<CommandWords> for Vec<OsString> {
    fn from(words: CommandWords) -> Self {
        match words {
            CommandWords::Text(text) => super::shell_words(text.as_ref()),
            CommandWords::Words(words) => words.into_iter().map(OsString::from).collect(),
        }
    }
}

impl CasesFile {
    /// Reads the file `path`.
    ///
    /// # Errors
    /// [`Op::Read`] if it cannot be read, is not TOML, or has cases that cannot be measured.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| Error::new(Op::Read, path.display().to_string(), error))?;
        Self::parse(&text, path)
    }

    /// Parses the text of the file `path`.
    ///
    /// # Errors
    /// As [`CasesFile::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let refused = |cause: String| Error::new(Op::Read, path.display().to_string(), cause);
        let mut file: Self = toml::from_str(text).map_err(|error| refused(cause_of(&error, text)))?;
        file.check().map_err(refused)?;
        let base = path.parent().filter(|base| !base.as_os_str().is_empty());
        for directory in file.cases.iter_mut().filter_map(|case| case.directory.as_mut()) {
            *directory = base.map_or_else(|| directory.clone(), |base| base.join(&*directory));
        }
        Ok(file)
    }

    fn check(&self) -> Result<(), String> {
        if self.cases.is_empty() {
            return Err("the file has no case".to_owned());
        }
        if let Some(name) = twice(self.cases.iter().map(|case| &case.name)) {
            return Err(format!("two cases '{name}'"));
        }
        self.cases
            .iter()
            .try_for_each(|case| case.check().map_err(|cause| format!("case '{}': {cause}", case.name)))
    }
}

impl CommandCase {
    fn check(&self) -> Result<(), String> {
        if self.commands.is_empty() {
            return Err("no command".to_owned());
        }
        if self.blocks == Some(0) || self.commands.iter().any(|command| command.blocks == Some(0)) {
            return Err("blocks must be at least 1".to_owned());
        }
        if let Some(name) = twice(self.commands.iter().map(|command| &command.name)) {
            return Err(format!("two commands '{name}'"));
        }
        for command in &self.commands {
            command.check().map_err(|cause| format!("command '{}': {cause}", command.name))?;
        }
        if self.timeout_seconds.is_some_and(|seconds| seconds.is_nan() || seconds <= 0.0) {
            return Err("timeout-seconds: above 0".to_owned());
        }
        let names = self.requirements.iter().flat_map(CommandRequirement::names);
        let unknown = names.into_iter().find(|name| self.members(name).next().is_none());
        unknown.map_or(Ok(()), |name| Err(format!("no command or group '{name}'")))
    }

    /// Returns the time that a command may take.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Iterates over the commands that `name` means: one, or a group.
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a CommandArm> {
        self.commands
            .iter()
            .filter(move |command| command.name == name || command.group.as_deref() == Some(name))
    }
}

impl CommandArm {
    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("no name".to_owned());
        }
        if ArmName::is_reserved(&self.name) {
            return Err("the name is reserved".to_owned());
        }
        if self.words.iter().all(|word| word.is_empty()) || self.words[0].is_empty() {
            return Err("nothing to run".to_owned());
        }
        Ok(())
    }
}

fn twice<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Returns what is wrong in `text`, with its line.
fn cause_of(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
    line.map_or_else(|| error.message().to_owned(), |line| format!("line {line}: {}", error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let error = CasesFile::parse(text, "c.toml".as_ref()).expect_err(text);
        error.to_string().strip_prefix("cannot read 'c.toml': ").expect("it names the file").to_owned()
    }

    #[test]
    fn a_case_has_everything_that_the_command_line_has() {
        let text = r#"
            [[case]]
            name = "a"
            blocks = 7
            directory = "sub"
            cold = true
            output = "null"
            same-output = "lines"
            ignore-failure = true

            [[case.command]]
            name = "x"
            run = "echo $HOME"
            prepare = "sync"
            group = "rival"
            blocks = 3
            optional = true

            [[case.command]]
            name = "y"
            run = ["echo", "a b"]

            [[case.require]]
            command = "y"
            than = "rival"
            memory = 1
        "#;
        let file = CasesFile::parse(text, "dir/c.toml".as_ref()).expect("it makes sense");
        let case = &file.cases[0];
        assert_eq!((case.blocks, case.cold, case.ignore_failure), (Some(7), true, true));
        assert_eq!((case.output, case.same_output), (CommandOutput::Null, SameOutput::Lines));
        assert_eq!(case.directory.as_deref(), Some("dir/sub".as_ref()));
        let [x, y] = &case.commands[..] else { panic!("two commands") };
        assert_eq!(x.words, ["sh", "-c", "echo $HOME"]);
        assert_eq!(
            (x.prepare.as_deref(), x.group.as_deref(), x.blocks),
            (Some("sync".as_ref()), Some("rival"), Some(3))
        );
        assert_eq!((x.is_optional, y.is_optional, &y.words[1]), (true, false, &"a b".into()));
        assert_eq!(case.members("rival").map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["x"]);
    }

    #[test]
    fn senseless_files_are_refused_with_the_place() {
        let case = "[[case]]\nname = 'a'\ncommand = [{ name = 'x', run = 'true' }]\n";
        for (text, cause) in [
            ("", "line 1: missing field `case`"),
            ("case = []", "the file has no case"),
            ("[[case]]\nname = 'a'\ncommand = []", "case 'a': no command"),
            (
                "[[case]]\nname = 'a'\ncommand = [{ name = 'x', run = [] }]",
                "case 'a': command 'x': nothing to run",
            ),
            (&case.replace("'true'", "['']"), "case 'a': command 'x': nothing to run"),
            (&case.replace("'true'", "''"), "case 'a': command 'x': nothing to run"),
            (&case.replace("'x'", "'x (again)'"), "case 'a': command 'x (again)': the name is reserved"),
            (&format!("{case}timeout-seconds = 0"), "case 'a': timeout-seconds: above 0"),
            (
                &format!("{case}require = [{{ command = 'x', seconds = -1 }}]"),
                "line 4: the limit must be a number above 0",
            ),
            ("[[case]]\nname = 'a'\nnames = 1", "line 3: unknown field `names`"),
            ("\n\n[[case]", "line 3: "),
            (&case.repeat(2), "two cases 'a'"),
            (&format!("{case}blocks = 0"), "case 'a': blocks must be at least 1"),
            (
                &format!("{case}require = [{{ command = 'z', seconds = 1 }}]"),
                "case 'a': no command or group 'z'",
            ),
            (&format!("{case}require = [{{ command = 'x' }}]"), "line 4: expected exactly one of"),
            (&format!("{case}require = [{{ command = 'x', time = 1 }}]"), "line 4: 'time' needs 'than'"),
        ] {
            let said = refusal(text);
            assert!(said.starts_with(cause), "{text}: {said}");
        }
    }
}
