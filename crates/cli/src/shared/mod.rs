//! The room of what several commands share: command lines, values of options, the terminal, JSON,
//! output files, progress, signals, names of owners, and the starting point of `--io auto`.

pub(crate) mod cmdline;
pub(crate) mod getent;
pub(crate) mod grammar;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod inventory;
pub(crate) mod json;
pub(crate) mod locale;
pub(crate) mod patterns;
pub(crate) mod progress;
pub(crate) mod removal;
pub(crate) mod screen;
pub(crate) mod start;
pub(crate) mod temporary;
pub(crate) mod value;

pub(crate) use cmdline::{flag, getopt, help, output};
