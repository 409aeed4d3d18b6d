//! The descriptions of `fathom` and `fathom io`. The larger commands have theirs beside their option
//! tables.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{Flag, long};

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
         can run here or why it cannot.",
    ],
    sections: &[OPTIONS],
    flags: &[long(FathomOption::Json, "json", OPTIONS, "one JSON object instead of text"), HELP, VERSION],
    commands: &[],
    notes: &[MODELS],
    examples: &[
        ("fathom io", "what the current directory's file system offers"),
        ("fathom io --json /mnt/nfs", "the same for a mount, for programs"),
    ],
    see_also: &["fathom", "fathom-du"],
};

/// The values of `--io`.
pub(crate) const MODELS: Note = Note {
    title: "I/O models",
    text: &[
        "`sync`: one thread, blocking system calls.",
        "`threads` or `threads=N`: N threads with blocking calls; without N, one a CPU.",
        "`async-seq`: an asynchronous runtime (tokio), one operation after another.",
        "`async-par`: the same runtime, many operations in flight.",
        "`uring` or `uring=DEPTH`: calls through io_uring, with up to DEPTH operations in flight in each \
         ring. Reading a directory is not among io_uring's operations and is done by a direct call.",
        "`auto`: one thread a CPU at the start, and more while they mostly wait for the storage and that \
         makes the work faster. The default. The number it starts with on a measured file system comes from a saved profile, if that has not expired \
         and kernel and number of CPUs are unchanged.",
        "The profile is `fathom/io-profile.json` in XDG_CONFIG_HOME or else in `~/.config`, or the file that \
         FATHOM_PROFILE names; if that is empty, none is read. A damaged profile is ignored with a warning.",
        "All of them give the same output. If a named model cannot run here, the command ends with the likely cause; only `auto` falls back to \
         another model.",
    ],
    man_only: true,
};
