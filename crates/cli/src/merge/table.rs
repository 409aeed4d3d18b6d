//! The options of `fathom merge`: names and help texts. `mod.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both};

/// The options of `fathom merge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeOption {
    Output,
}

const WRITTEN: &str = "Output";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<MergeOption>] = &[
    both(MergeOption::Output, b'o', "output", WRITTEN, "write the inventory to the new directory OUT")
        .required("OUT", ValueKind::File)
        .more("The directory is called OUT.part until it is complete. An existing OUT is not replaced."),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const MERGE: Command<MergeOption> = Command {
    name: "fathom merge",
    brief: "merge several inventories into one",
    usage: &["-o OUT INVENTORY..."],
    about: &[
        "Merges inventories into a new one, with their trees in the order given. The scanned trees are not \
         read, and no INVENTORY is changed. Directories and trees are renumbered, and so are devices of \
         other machines.",
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
    title: "The merged inventory",
    text: &["The manifest has the trees of all inventories, the options that they have in common, the time \
         from the first start to the last end, and the sums of what is missing. A file that has names in \
         two inventories of one machine counts once. Names of owners are taken from the first inventory \
         that has a name for the number."],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything is in OUT; standard error says if it is incomplete.",
        "1: an inventory cannot be read or is damaged, or OUT cannot be written.",
        "2: the command line is wrong.",
        "130: interrupted; OUT was not written.",
    ],
    man_only: true,
};
