//! The options of `fathom merge`: names and help texts. `mod.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both};

/// The options of `fathom merge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeOption {
    Output,
}

const WRITTEN: &str = "Where it goes";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<MergeOption>] = &[
    both(MergeOption::Output, b'o', "output", WRITTEN, "make the inventory in the new directory OUT")
        .required("OUT", ValueKind::File)
        .more("The directory is called OUT.part until it is complete. An existing OUT is not replaced."),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const MERGE: Command<MergeOption> = Command {
    name: "fathom merge",
    brief: "make one inventory of several",
    usage: &["-o OUT INVENTORY..."],
    about: &[
        "Makes one inventory of the trees of several, in the order given, to be queried as one. The scanned trees are not read, and no INVENTORY is changed. Directories and trees get numbers of their own; so do devices of other \
         machines.",
    ],
    sections: &[WRITTEN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[TOGETHER, STATUS],
    examples: &[
        ("fathom merge -o all.inv home.inv srv.inv", "one inventory of two"),
        ("fathom top all.inv", "what takes the most space in both"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-query"],
};

const TOGETHER: Note = Note {
    title: "What is the same in all",
    text: &[
        "The manifest has the trees of all inventories, the options that they have in common, the time from the first \
         beginning to the last end, and the sums of what is missing. A file that has names in two inventories of one \
         machine counts once. Names of owners are those of the first inventory that has one for a number.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything is in OUT; it may be incomplete, which is said.",
        "1: an inventory cannot be read or is damaged, or OUT cannot be written.",
        "2: the command line was wrong.",
        "130: interrupted; there is no OUT.",
    ],
    man_only: true,
};
