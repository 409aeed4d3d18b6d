//! The description of a command, in one place for `--help`, the man pages and the completions. This
//! module has those of `fathom` and `fathom io`; the larger commands have theirs beside their
//! option tables.

use crate::flag::{Flag, long};
use crate::models::ALL_MODELS;

/// The description of a command. Texts mark `code` with backticks.
#[derive(Debug)]
pub(crate) struct Command<K: 'static> {
    /// The name as typed: `fathom du`.
    pub(crate) name: &'static str,
    /// One line for lists of commands.
    pub(crate) brief: &'static str,
    /// The synopsis behind the name, one form per item.
    pub(crate) usage: &'static [&'static str],
    /// The description, in paragraphs.
    pub(crate) about: &'static [&'static str],
    /// Headings of the options, in display order.
    pub(crate) sections: &'static [&'static str],
    /// The options, in the order in which messages list them.
    pub(crate) flags: &'static [Flag<K>],
    /// The subcommands, with their briefs.
    pub(crate) commands: &'static [(&'static str, &'static str)],
    /// Sections behind the options.
    pub(crate) notes: &'static [Note],
    /// Command lines and what they do.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// Related man pages, without the section number, which is always 1.
    pub(crate) see_also: &'static [&'static str],
}

/// A heading and its paragraphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    /// The heading, capitalised as in running text.
    pub(crate) title: &'static str,
    /// The paragraphs.
    pub(crate) text: &'static [&'static str],
    /// Whether `--help` omits the note.
    pub(crate) man_only: bool,
}

/// The options of `fathom` and `fathom io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FathomOption {
    /// Print JSON.
    Json,
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
}

pub(crate) const OPTIONS: &str = "Options";

const HELP: Flag<FathomOption> = long(FathomOption::Help, "help", OPTIONS, "show this help and end");
const VERSION: Flag<FathomOption> =
    long(FathomOption::Version, "version", OPTIONS, "show the version and end");

/// `fathom` itself.
pub(crate) const FATHOM: Command<FathomOption> = Command {
    name: "fathom",
    brief: "measure, list and serve file trees with the I/O model that fits the storage",
    usage: &["COMMAND [OPTION]... [ARGUMENT]..."],
    about: &[
        "Measures, lists and serves file trees, with the way of doing input and output that suits the storage they are on: \
         blocking calls, many threads, an asynchronous runtime or io_uring. `--io` names one; without it \
         fathom adapts while it runs.",
    ],
    sections: &[OPTIONS],
    flags: &[HELP, VERSION],
    commands: &[
        ("du", crate::du::table::DU.brief),
        ("list", crate::list::table::LIST.brief),
        ("scan", crate::scan::table::SCAN.brief),
        ("top", crate::top::table::TOP.brief),
        ("diff", crate::diff::table::DIFF.brief),
        ("query", crate::query::table::QUERY.brief),
        ("export", crate::export::table::EXPORT.brief),
        ("merge", crate::merge::table::MERGE.brief),
        ("serve", crate::serve::table::SERVE.brief),
        ("bench", crate::bench::table::BENCH.brief),
        ("io", IO.brief),
    ],
    notes: &[Note {
        title: "Called as du",
        text: &["A link to the program with the name `du` does what GNU du does and nothing else: the same \
             options, output, messages and exit status, without fathom's additions."],
        man_only: false,
    }],
    examples: &[
        ("fathom du -sh ~", "how much space the home directory takes"),
        ("fathom du --tree .", "where it goes, largest first"),
        ("fathom list -n '*.iso' /", "every name that ends like this"),
        ("fathom io /mnt/nfs", "which I/O models work here"),
    ],
    see_also: &[
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
    ],
};

/// `fathom io`.
pub(crate) const IO: Command<FathomOption> = Command {
    name: "fathom io",
    brief: "show which I/O models this machine and a path offer",
    usage: &["[OPTION]... [PATH]"],
    about: &[
        "Shows what PATH, or else the current directory, offers to the other commands: the kernel, the type \
         of the file system, the number of CPUs, the limit of open files, and for each I/O model whether it \
         can run here or why it cannot, how it works, and the uses that it has.",
    ],
    sections: &[OPTIONS],
    flags: &[long(FathomOption::Json, "json", OPTIONS, "one JSON object instead of text"), HELP, VERSION],
    commands: &[],
    notes: &[ALL_MODELS],
    examples: &[
        ("fathom io", "what the current directory's file system offers"),
        ("fathom io --json /mnt/nfs", "the same for a mount, for programs"),
    ],
    see_also: &["fathom", "fathom-du"],
};
