//! `fathom man` and `fathom completions`: the man pages and shell completions, generated from the
//! commands' descriptions. `tools/docs.sh` writes all of them into a directory.

mod bash;
mod fish;
mod powershell;
mod roff;
mod zsh;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::command::{COMMANDS, CommandRow, FATHOM, NoOption};
use crate::shared::cmdline::description::Command;
use crate::shared::cmdline::model_text::with_models;
use crate::shared::cmdline::{self, ArgsEnd, no_more};
use crate::shared::flag::{self, Flag, ValueKind, ValueSpec};
use crate::shared::{locale, output};

/// A description of a command, whatever its options.
pub(crate) trait Documented: Sync {
    /// Returns the name as typed behind `fathom`.
    fn name(&self) -> &'static str;

    /// Returns the words that the first operand may be, with their briefs.
    fn words(&self) -> &'static [(&'static str, &'static str)];

    /// Renders the man page as roff.
    fn man_page(&self) -> String;

    /// Returns the options as completion scripts need them.
    fn options(&self) -> Vec<CompletionOption>;
}

impl<K: Copy + Sync> Documented for Command<K> {
    fn name(&self) -> &'static str {
        self.name.strip_prefix("fathom ").unwrap_or(self.name)
    }

    fn words(&self) -> &'static [(&'static str, &'static str)] {
        self.commands
    }

    fn man_page(&self) -> String {
        roff::page(self)
    }

    fn options(&self) -> Vec<CompletionOption> {
        self.flags.iter().map(CompletionOption::new).collect()
    }
}

/// The shells with a completion script.
const SHELLS: [&str; 4] = ["bash", "fish", "powershell", "zsh"];

const OPTIONS: &str = "Options";
const FLAGS: &[Flag<NoOption>] = &[flag::help(OPTIONS), flag::version(OPTIONS)];

/// `fathom man`.
pub(crate) const MAN: Command<NoOption> = Command {
    name: "fathom man",
    brief: "print a man page, for packagers",
    usage: &["[PAGE]"],
    about: &["Prints the man page PAGE as roff, or without PAGE the names of all pages, one a line."],
    sections: &[OPTIONS],
    flags: FLAGS,
    commands: &[],
    notes: &[],
    examples: &[("fathom man fathom-du", "the man page of fathom du")],
    see_also: &["fathom"],
};

/// `fathom completions`.
pub(crate) const COMPLETIONS: Command<NoOption> = Command {
    name: "fathom completions",
    brief: "print a completion script, for packagers",
    usage: &["[SHELL]"],
    about: &[
        "Prints the completion script for SHELL: `bash`, `fish`, `powershell` or `zsh`; without SHELL these names, one a line. \
         A profile of PowerShell loads it by `fathom completions powershell | Out-String | Invoke-Expression`.",
    ],
    sections: &[OPTIONS],
    flags: FLAGS,
    commands: &[],
    notes: &[],
    examples: &[("fathom completions bash", "the script for bash")],
    see_also: &["fathom"],
};

/// Runs `fathom man`. Returns the exit status.
pub(crate) fn man_main(words: Vec<OsString>) -> u8 {
    print_document(words, &MAN, "page", &man_pages(), man_page)
}

/// Runs `fathom completions`. Returns the exit status.
pub(crate) fn completions_main(words: Vec<OsString>) -> u8 {
    print_document(words, &COMPLETIONS, "shell", &SHELLS.map(str::to_owned), completions)
}

/// Prints the document that the operand names, which is one of `names`, or all of these.
fn print_document(
    words: Vec<OsString>,
    command: &Command<NoOption>,
    kind: &str,
    names: &[String],
    render: fn(&str) -> Option<String>,
) -> u8 {
    let charset = locale::current();
    let rendered = || {
        let operands = cmdline::parse(command, words.into_iter(), charset, |key, _| match key {})?;
        let mut operands = operands.into_iter();
        let Some(name) = operands.next() else { return Ok(names.join("\n") + "\n") };
        no_more(operands, charset)?;
        let text = name.to_str().and_then(render).ok_or_else(|| {
            let valid = names.join(", ");
            [b"unknown ", kind.as_bytes(), b" '", name.as_bytes(), b"', one of ", valid.as_bytes()].concat()
        })?;
        Ok::<_, ArgsEnd>(text)
    };
    match rendered() {
        Ok(text) => output::print(command.name, &text),
        Err(end) => end.answer(command),
    }
}

/// Returns all commands, each before those below it.
fn documented() -> impl Iterator<Item = &'static dyn Documented> {
    COMMANDS.iter().flat_map(|row| std::iter::once(row.docs).chain(row.below.iter().copied()))
}

/// Returns the name of the man page of `fathom COMMAND`.
fn page_name(command: &str) -> String {
    format!("fathom-{}", command.replace(' ', "-"))
}

/// Returns the names of all man pages.
fn man_pages() -> Vec<String> {
    let own = documented().map(|docs| page_name(docs.name()));
    std::iter::once("fathom".to_owned()).chain(own).collect()
}

/// Renders the man page `name` as roff. `None` for an unknown name.
fn man_page(name: &str) -> Option<String> {
    if name == "fathom" {
        return Some(roff::page(&FATHOM));
    }
    documented().find(|docs| page_name(docs.name()) == name).map(|docs| docs.man_page())
}

/// Renders the completion script for `shell`. `None` for an unknown shell.
fn completions(shell: &str) -> Option<String> {
    let commands: Vec<_> = COMMANDS.iter().map(CompletionCommand::new).collect();
    let global: Vec<_> = FATHOM.flags.iter().map(CompletionOption::new).collect();
    match shell {
        "bash" => Some(bash::script(&global, &commands)),
        "fish" => Some(fish::script(&global, &commands)),
        "powershell" => Some(powershell::script(&global, &commands)),
        "zsh" => Some(zsh::script(&global, &commands)),
        _ => None,
    }
}

/// The part of a command's description that completion scripts need.
struct CompletionCommand {
    name: &'static str,
    brief: &'static str,
    options: Vec<CompletionOption>,
    /// The words that the first operand may be, with their briefs.
    words: &'static [(&'static str, &'static str)],
    /// The names and options of the commands below it.
    below: Vec<(&'static str, Vec<CompletionOption>)>,
}

impl CompletionCommand {
    fn new(row: &CommandRow) -> Self {
        let below = row.below.iter().map(|docs| {
            let (_, name) = docs.name().split_once(' ').unwrap_or_default();
            (name, docs.options())
        });
        Self {
            name: row.name,
            brief: row.brief,
            options: row.docs.options(),
            words: row.docs.words(),
            below: below.collect(),
        }
    }
}

/// The part of an option's description that completion scripts need.
pub(crate) struct CompletionOption {
    short: Option<char>,
    long: Option<&'static str>,
    value: ValueSpec,
    brief: String,
}

impl CompletionOption {
    fn new<K: Copy>(flag: &Flag<K>) -> Self {
        CompletionOption {
            short: flag.short.map(char::from),
            long: flag.long,
            value: flag.value,
            brief: with_models(flag.brief).replace('`', ""),
        }
    }

    /// Returns the spellings that exist: `-d`, `--max-depth`.
    fn spellings(&self) -> Vec<String> {
        let short = self.short.map(|short| format!("-{short}"));
        short.into_iter().chain(self.long.map(|long| format!("--{long}"))).collect()
    }

    /// Returns the valid words of the value; empty if there is no value or any text is valid.
    fn words(&self) -> &'static [&'static str] {
        match self.kind() {
            Some(ValueKind::Words(words)) => words,
            _ => &[],
        }
    }

    fn kind(&self) -> Option<ValueKind> {
        match self.value {
            ValueSpec::None => None,
            ValueSpec::Required(meta) | ValueSpec::Optional(meta) | ValueSpec::Attached(meta) => {
                Some(meta.kind)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verbs with which the help of an option may begin.
    const VERBS: &[&str] = &[
        "accept", "add", "allow", "answer", "append", "ask", "bypass", "check", "choose", "close", "colour",
        "compare", "compress", "continue", "copy", "count", "create", "delete", "descend", "disable", "do",
        "draw", "drop", "enable", "end", "estimate", "exclude", "exit", "expect", "fail", "follow", "force",
        "ignore", "include", "keep", "leave", "let", "limit", "list", "listen", "log", "make", "measure",
        "merge", "move", "name", "never", "omit", "prefix", "print", "queue", "read", "record", "redirect",
        "remove", "repeat", "report", "require", "run", "save", "seed", "send", "serve", "set", "show",
        "skip", "sort", "stay", "stop", "submit", "test", "then", "try", "use", "verify", "write",
    ];

    #[test]
    fn the_help_of_an_option_begins_with_a_verb() {
        let mut wrong = Vec::new();
        for docs in documented() {
            for option in docs.options() {
                let first = option.brief.split([' ', ',']).next().unwrap_or_default();
                if !VERBS.contains(&first) && !option.brief.starts_with("same as ") {
                    wrong.push(format!("{} {:?}: {}", docs.name(), option.spellings(), option.brief));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn each_page_and_each_shell_listed_exists_and_no_other() {
        for name in man_pages() {
            assert!(man_page(&name).is_some_and(|page| page.starts_with(".TH ")), "{name}");
        }
        for shell in SHELLS {
            assert!(completions(shell).is_some_and(|script| script.contains("files0-from")), "{shell}");
        }
        assert_eq!(man_page("du"), None);
        assert_eq!(completions("csh"), None);
    }
}
