//! The man pages and shell completions, generated from the commands' descriptions. Returns text;
//! the caller writes it. A test compares `docs/man` and `docs/completions` with this module's
//! output.

mod bash;
mod fish;
mod roff;
mod zsh;

use crate::bench::table::BENCH;
use crate::command::{FATHOM, IO};
use crate::diff::table::DIFF;
use crate::du::table::DU;
use crate::export::table::EXPORT;
use crate::list::table::LIST;
use crate::merge::table::MERGE;
use crate::query::table::QUERY;
use crate::scan::table::SCAN;
use crate::serve::table::SERVE;
use crate::shared::flag::{Flag, ValueKind, ValueSpec};
use crate::top::table::TOP;

/// The names of all man pages.
pub(crate) const MAN_PAGES: [&str; 12] = [
    "fathom",
    "fathom-du",
    "fathom-list",
    "fathom-scan",
    "fathom-top",
    "fathom-diff",
    "fathom-query",
    "fathom-export",
    "fathom-merge",
    "fathom-serve",
    "fathom-bench",
    "fathom-io",
];

/// The shells with a completion script.
pub(crate) const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// Renders the man page `name` as roff. `None` for an unknown name.
pub(crate) fn man_page(name: &str) -> Option<String> {
    match name {
        "fathom" => Some(roff::page(&FATHOM)),
        "fathom-du" => Some(roff::page(&DU)),
        "fathom-list" => Some(roff::page(&LIST)),
        "fathom-scan" => Some(roff::page(&SCAN)),
        "fathom-top" => Some(roff::page(&TOP)),
        "fathom-diff" => Some(roff::page(&DIFF)),
        "fathom-query" => Some(roff::page(&QUERY)),
        "fathom-export" => Some(roff::page(&EXPORT)),
        "fathom-merge" => Some(roff::page(&MERGE)),
        "fathom-serve" => Some(roff::page(&SERVE)),
        "fathom-bench" => Some(roff::page(&BENCH)),
        "fathom-io" => Some(roff::page(&IO)),
        _ => None,
    }
}

/// Renders the completion script for `shell`. `None` for an unknown shell.
pub(crate) fn completions(shell: &str) -> Option<String> {
    let commands = [
        CompletionCommand::new("du", DU.brief, DU.flags),
        CompletionCommand::new("list", LIST.brief, LIST.flags),
        CompletionCommand::new("scan", SCAN.brief, SCAN.flags),
        CompletionCommand::new("top", TOP.brief, TOP.flags),
        CompletionCommand::new("diff", DIFF.brief, DIFF.flags),
        CompletionCommand::new("query", QUERY.brief, QUERY.flags),
        CompletionCommand::new("export", EXPORT.brief, EXPORT.flags),
        CompletionCommand::new("merge", MERGE.brief, MERGE.flags),
        CompletionCommand::new("serve", SERVE.brief, SERVE.flags),
        CompletionCommand::new("bench", BENCH.brief, BENCH.flags),
        CompletionCommand::new("io", IO.brief, IO.flags),
    ];
    let global: Vec<_> = FATHOM.flags.iter().map(CompletionOption::new).collect();
    match shell {
        "bash" => Some(bash::script(&global, &commands)),
        "fish" => Some(fish::script(&global, &commands)),
        "zsh" => Some(zsh::script(&global, &commands)),
        _ => None,
    }
}

/// The part of a command's description that completion scripts need.
struct CompletionCommand {
    name: &'static str,
    brief: &'static str,
    options: Vec<CompletionOption>,
}

/// The part of an option's description that completion scripts need.
struct CompletionOption {
    short: Option<char>,
    long: Option<&'static str>,
    value: ValueSpec,
    brief: String,
}

impl CompletionCommand {
    fn new<K: Copy>(name: &'static str, brief: &'static str, flags: &'static [Flag<K>]) -> Self {
        CompletionCommand { name, brief, options: flags.iter().map(CompletionOption::new).collect() }
    }
}

impl CompletionOption {
    fn new<K: Copy>(flag: &Flag<K>) -> Self {
        CompletionOption {
            short: flag.short.map(char::from),
            long: flag.long,
            value: flag.value,
            brief: flag.brief.replace('`', ""),
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

    #[test]
    fn each_page_and_each_shell_listed_exists_and_no_other() {
        for name in MAN_PAGES {
            assert!(man_page(name).is_some_and(|page| page.starts_with(".TH ")), "{name}");
        }
        for shell in SHELLS {
            assert!(completions(shell).is_some_and(|script| script.contains("files0-from")), "{shell}");
        }
        assert_eq!(man_page("du"), None);
        assert_eq!(completions("csh"), None);
    }
}
