//! The description of a command, in one place for `--help`, the man pages and the completions.

use super::flag::Flag;

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
