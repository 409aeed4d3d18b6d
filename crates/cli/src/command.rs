//! The table of commands: dispatch, help, man pages, completions and cross-references come from it.
//! Also has the descriptions of `fathom` and `fathom io`; the larger commands have theirs beside
//! their option tables.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fathom_text::nearest::nearest;

use crate::docs::{self, Documented};
use crate::models::ALL_MODELS;
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::cmdline::{self, ArgsEnd, Information, exit};
use crate::shared::flag::{self, Flag, Scope, long};
use crate::shared::getopt::{Getopt, OperandOrder};
use crate::shared::{grammar, help, locale, output};
use crate::{
    availability, bench, diff, du, explore, export, grew, history, import, list, merge, query, report, rm,
    scan, serve, top,
};

/// A row of the table of commands.
pub(crate) struct CommandRow {
    /// The name as typed behind `fathom`.
    pub(crate) name: &'static str,
    /// One line for lists of commands.
    pub(crate) brief: &'static str,
    /// The description, for man pages and completions.
    pub(crate) docs: &'static dyn Documented,
    /// The commands below it that have options of their own.
    pub(crate) below: &'static [&'static dyn Documented],
    /// Runs the command with its arguments, and returns the exit status.
    main: fn(Vec<OsString>) -> u8,
}

impl CommandRow {
    const fn new<K: Copy + Sync>(command: &'static Command<K>, main: fn(Vec<OsString>) -> u8) -> Self {
        let (_, name) = command.name.split_at("fathom ".len());
        Self { name, brief: command.brief, docs: command, below: &[], main }
    }

    const fn above(mut self, below: &'static [&'static dyn Documented]) -> Self {
        self.below = below;
        self
    }
}

/// The commands, in the order in which they are listed.
pub(crate) const COMMANDS: [CommandRow; 17] = [
    CommandRow::new(&du::table::DU, |words| du::main(b"fathom du", Scope::Full, words)),
    CommandRow::new(&explore::table::EXPLORE, explore::main),
    CommandRow::new(&list::table::LIST, list::main),
    CommandRow::new(&scan::table::SCAN, scan::main),
    CommandRow::new(&top::table::TOP, top::main),
    CommandRow::new(&report::table::REPORT, report::main),
    CommandRow::new(&diff::table::DIFF, diff::main),
    CommandRow::new(&history::table::HISTORY, history::main),
    CommandRow::new(&grew::table::GREW, grew::main),
    CommandRow::new(&query::table::QUERY, query::main),
    CommandRow::new(&export::table::EXPORT, export::main),
    CommandRow::new(&import::table::IMPORT, import::main),
    CommandRow::new(&merge::table::MERGE, merge::main),
    CommandRow::new(&rm::table::RM, rm::main),
    CommandRow::new(&serve::table::SERVE, serve::main),
    CommandRow::new(&bench::table::BENCH, bench::main).above(&[
        &bench::advise::table::ADVISE,
        &bench::commands::table::COMMANDS_RUN,
        &bench::compare::table::COMPARE,
    ]),
    CommandRow::new(&IO, availability::main),
];

/// Commands for packagers, which are not listed.
const HIDDEN: [CommandRow; 2] = [
    CommandRow::new(&docs::MAN, docs::man_main),
    CommandRow::new(&docs::COMPLETIONS, docs::completions_main),
];

/// The names and briefs of [`COMMANDS`].
const BRIEFS: [(&str, &str); COMMANDS.len()] = {
    let mut briefs = [("", ""); COMMANDS.len()];
    let mut at = 0;
    while at < briefs.len() {
        briefs[at] = (COMMANDS[at].name, COMMANDS[at].brief);
        at += 1;
    }
    briefs
};

/// Runs the command that the command line `words` names. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    match parse(words) {
        Ok(Some((command, words))) => (command.main)(words),
        Ok(None) => {
            output::write_stderr(help::render_commands(&FATHOM).as_bytes());
            exit::MISUSED
        }
        Err(end) => end.answer(&FATHOM),
    }
}

/// Returns the command and its arguments; `None` if there is no command.
fn parse(words: Vec<OsString>) -> Result<Option<(CommandRow, Vec<OsString>)>, ArgsEnd> {
    let getopt = Getopt::new(FATHOM.flags.iter(), words.into_iter(), OperandOrder::RequireOrder);
    let operands = cmdline::parse_from(getopt, locale::current(), |key: NoOption, _| match key {})?;
    let mut words = operands.into_iter();
    let Some(word) = words.next() else { return Ok(None) };
    if word == "help" {
        return Err(Information::Help.into());
    }
    let command = COMMANDS.into_iter().chain(HIDDEN).find(|row| row.name.as_bytes() == word.as_bytes());
    let command = command.ok_or_else(|| unknown(&word))?;
    Ok(Some((command, words.collect())))
}

/// Returns the message about an unknown command, with the nearest one.
fn unknown(word: &OsStr) -> Vec<u8> {
    let meant = word.to_str().and_then(|word| nearest(word, COMMANDS, |row| row.name));
    let meant = meant.map_or_else(String::new, |row| format!(", did you mean '{}'?", row.name));
    [b"unknown command '", word.as_bytes(), b"'", meant.as_bytes()].concat()
}

/// The options of `fathom`: only the options that all commands have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoOption {}

/// The options of `fathom io`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IoOption {
    /// Print JSON.
    Json,
}

pub(crate) const OPTIONS: &str = "Options";

/// `fathom` itself.
pub(crate) const FATHOM: Command<NoOption> = Command {
    name: "fathom",
    brief: "measure, list and serve file trees with the I/O model that fits the storage",
    usage: &["COMMAND [OPTION]... [ARGUMENT]..."],
    about: &[
        "Measures, lists and serves file trees, choosing the I/O method that suits the storage: blocking calls, many \
         threads, an asynchronous runtime or io_uring. `--io` chooses one; by default, fathom adapts while it runs.",
    ],
    sections: &[OPTIONS],
    flags: &[flag::help(OPTIONS), flag::version(OPTIONS)],
    commands: &BRIEFS,
    notes: &[CALLED_AS_DU, grammar::SIZES, grammar::TIMES, grammar::STATUS],
    examples: &[
        ("fathom du -sh ~", "the disk usage of the home directory"),
        ("fathom du --tree .", "the largest directories here, as a tree with bars"),
        ("fathom explore ~", "browse the home directory, and clean up"),
        ("fathom list -n '*.iso' /", "every ISO image"),
        ("fathom io /mnt/nfs", "the I/O models that work on a mount"),
    ],
    see_also: &[],
};

const CALLED_AS_DU: Note = Note {
    title: "Called as du",
    text: &[
        "Called by a link with the name `du`, the program behaves exactly like GNU du: the same options, \
             output, messages and exit statuses, without fathom's additions.",
    ],
    man_only: false,
};

const IO_FLAGS: &[Flag<IoOption>] = &[
    long(IoOption::Json, "json", OPTIONS, "print one JSON object instead of text"),
    flag::help(OPTIONS),
    flag::version(OPTIONS),
];

/// `fathom io`.
pub(crate) const IO: Command<IoOption> = Command {
    name: "fathom io",
    brief: "show which I/O models work on this machine and a path",
    usage: &["[OPTION]... [PATH]"],
    about: &[
        "Shows the kernel, the type of the file system of PATH, the number of CPUs, the limit of open files, and for each I/O \
         model whether it can run here or why not, how it works, and its uses. Without PATH, shows the current directory.",
    ],
    sections: &[OPTIONS],
    flags: IO_FLAGS,
    commands: &[],
    notes: &[ALL_MODELS],
    examples: &[
        ("fathom io", "the models that work in the current directory"),
        ("fathom io --json /mnt/nfs", "the models that work on a mount, as JSON"),
    ],
    see_also: &["fathom", "fathom-du"],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::du::table::{DU, FLAGS};
    use crate::shared::help::{WIDTH, render, spellings};

    #[test]
    fn every_option_is_shown_and_lines_fit() {
        let text = render(&DU, "fathom du", Scope::Full);
        for flag in FLAGS {
            assert!(text.contains(&spellings(flag)), "{flag:?}");
        }
        for text in [text, render(&FATHOM, "fathom", Scope::Full), render(&IO, "fathom io", Scope::Full)] {
            assert!(text.lines().all(|line| line.len() <= WIDTH && line.trim_end() == line), "{text}");
        }
    }

    #[test]
    fn called_as_du_the_additions_are_not_mentioned() {
        let text = render(&DU, "du", Scope::Original);
        assert!(text.starts_with("Usage: du [OPTION]... [FILE]...\n  or:  du [OPTION]... --files0-from=F\n"));
        assert!(!text.contains("fathom"));
        for flag in FLAGS.iter().filter(|flag| flag.added) {
            assert!(!text.contains(spellings(flag).trim()), "{flag:?}");
        }
    }
}
