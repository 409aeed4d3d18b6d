//! The man pages and shell completions, written from the commands' descriptions. Returns text; where it goes
//! is the caller's. `docs/man` and `docs/completions` hold what comes out of here, and a test compares them.

mod bash;
mod fish;
mod roff;
mod zsh;

use crate::bench::table::BENCH;
use crate::command::{FATHOM, IO};
use crate::diff::table::DIFF;
use crate::du::table::DU;
use crate::export::table::EXPORT;
use crate::flag::{Flag, Kind, Value};
use crate::list::table::LIST;
use crate::merge::table::MERGE;
use crate::query::table::QUERY;
use crate::scan::table::SCAN;
use crate::serve::table::SERVE;
use crate::top::table::TOP;

/// The man pages that exist, by name.
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

/// The shells that completions exist for.
pub(crate) const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// The man page `name`, as roff.
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

/// The completion script for `shell`.
pub(crate) fn completions(shell: &str) -> Option<String> {
    let commands = [
        Completed::new("du", DU.brief, DU.flags),
        Completed::new("list", LIST.brief, LIST.flags),
        Completed::new("scan", SCAN.brief, SCAN.flags),
        Completed::new("top", TOP.brief, TOP.flags),
        Completed::new("diff", DIFF.brief, DIFF.flags),
        Completed::new("query", QUERY.brief, QUERY.flags),
        Completed::new("export", EXPORT.brief, EXPORT.flags),
        Completed::new("merge", MERGE.brief, MERGE.flags),
        Completed::new("serve", SERVE.brief, SERVE.flags),
        Completed::new("bench", BENCH.brief, BENCH.flags),
        Completed::new("io", IO.brief, IO.flags),
    ];
    let global: Vec<_> = FATHOM.flags.iter().map(Choice::new).collect();
    match shell {
        "bash" => Some(bash::script(&global, &commands)),
        "fish" => Some(fish::script(&global, &commands)),
        "zsh" => Some(zsh::script(&global, &commands)),
        _ => None,
    }
}

/// A command as a shell sees it.
struct Completed {
    name: &'static str,
    brief: &'static str,
    choices: Vec<Choice>,
}

/// An option as a shell sees it.
struct Choice {
    short: Option<char>,
    long: Option<&'static str>,
    value: Value,
    brief: String,
}

impl Completed {
    fn new<K: Copy>(name: &'static str, brief: &'static str, flags: &'static [Flag<K>]) -> Self {
        Completed { name, brief, choices: flags.iter().map(Choice::new).collect() }
    }
}

impl Choice {
    fn new<K: Copy>(flag: &Flag<K>) -> Self {
        Choice {
            short: flag.short.map(char::from),
            long: flag.long,
            value: flag.value,
            brief: flag.brief.replace('`', ""),
        }
    }

    /// `-d` and `--max-depth`, those that exist.
    fn spellings(&self) -> Vec<String> {
        let short = self.short.map(|short| format!("-{short}"));
        short.into_iter().chain(self.long.map(|long| format!("--{long}"))).collect()
    }

    /// The words the value may be; none if there is no value or it may be anything.
    fn words(&self) -> &'static [&'static str] {
        match self.kind() {
            Some(Kind::Words(words)) => words,
            _ => &[],
        }
    }

    fn kind(&self) -> Option<Kind> {
        match self.value {
            Value::None => None,
            Value::Required(meta) | Value::Optional(meta) | Value::Attached(meta) => Some(meta.kind),
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
