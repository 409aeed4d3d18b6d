//! The options of `fathom merge`. Only names and texts; what they do is `mod.rs`'s.

use crate::command::{Command, Note};
use crate::flag::{Flag, Kind, both, long};

/// The setting or action that an option stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Output,
    Help,
    Version,
}

const WRITTEN: &str = "Where it goes";
const ABOUT: &str = "About the program";

/// Every option.
pub(crate) const FLAGS: &[Flag<Key>] = &[
    both(Key::Output, b'o', "output", WRITTEN, "make the inventory in the new directory OUT")
        .required("OUT", Kind::File)
        .more("While it is made it is called OUT.part. What is there is not replaced."),
    long(Key::Help, "help", ABOUT, "show this help and end"),
    long(Key::Version, "version", ABOUT, "show the version and end"),
];

/// The command.
pub(crate) const MERGE: Command<Key> = Command {
    name: "fathom merge",
    brief: "make one inventory of several",
    usage: &["-o OUT INVENTORY..."],
    about: &[
        "Makes one inventory of the trees of several, in the order given, to be asked as one. Nothing of what was scanned is \
         looked at, and no INVENTORY is changed. Directories and trees get numbers of their own; so do devices of other \
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
