//! The forms of sizes and times on every command line, and the exit statuses: fathom(1) describes
//! them, and the other pages refer to it.

use super::cmdline::description::Note;

/// The form of a size, which `fathom_text::number` parses.
pub(crate) const SIZE: &str = "A SIZE is a number, a unit or both: `10K` is 10 * 1024. K, M, G, T, P and E, also \
                               written KiB, MiB and so on, are powers of 1024; KB, MB and so on are powers of 1000.";

/// The note about sizes.
pub(crate) const SIZES: Note = Note { title: "Sizes", text: &[SIZE], man_only: true };

/// The note about times, which `fathom_text::duration` parses.
pub(crate) const TIMES: Note = Note {
    title: "Times",
    text: &[
        "A TIME is one or several numbers with units, the longest unit first: `500ms`, `10s`, `1.5h`, `1h30m`, `2d`. The \
         units are `us`, `ms`, `s`, `m` or `min`, `h`, `d` and `w`. A number without a unit is in seconds; an age needs a unit.",
    ],
    man_only: true,
};

/// The note about exit statuses, which are in `shared::cmdline::exit`.
pub(crate) const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: done.",
        "1: something failed, and the rest is done. For `fathom diff`: something differs. `fathom du` has no other status for \
         failures, like GNU du.",
        "2: the command line is wrong, or nothing could be done.",
        "130: interrupted by Ctrl-C; the results so far are kept.",
        "The manual pages of the commands have the details.",
    ],
    man_only: true,
};
