//! Command lines, for all programs of this crate: tables of options, their parser, help texts, and
//! the standard streams.

pub(crate) mod description;
pub(crate) mod flag;
pub(crate) mod getopt;
pub(crate) mod help;
pub(crate) mod output;
