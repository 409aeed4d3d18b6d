//! The texts of `--help` and `--version`, from a command's description. Returns text; the caller
//! prints it.

use super::description::Command;
use super::flag::{Flag, Scope};
use super::model_text::with_models;

/// The number of columns of a help text.
pub(crate) const WIDTH: usize = 80;
/// The column of the descriptions of options.
const COLUMN: usize = 30;

/// Renders the help text of `command`, which was called as `name`.
pub(crate) fn render<K: Copy>(command: &Command<K>, name: &str, scope: Scope) -> String {
    let mut text = usage(command, name);
    command.about.iter().for_each(|paragraph| text += &wrap(&quoted(paragraph), "", 0));
    text += &commands(command);
    let flags: Vec<_> = command.flags.iter().filter(|flag| scope.covers(flag)).collect();
    for section in command.sections {
        text += &self::section(section, flags.iter().copied().filter(|flag| flag.section == *section));
    }
    for note in command.notes.iter().filter(|note| !note.man_only) {
        text += &format!("\n{}:\n", note.title);
        let paragraphs = note.text.iter().map(|text| quoted(text)).collect::<Vec<_>>().join("\n");
        paragraphs.lines().for_each(|paragraph| text += &wrap(paragraph, "  ", 2));
    }
    text + &examples(command, name, scope)
}

/// Renders the short help of a command with subcommands: how it is used, and which there are.
pub(crate) fn render_commands<K: Copy>(command: &Command<K>) -> String {
    let name = command.name;
    let hint = format!("\nTry '{name} --help' for more information.\n");
    usage(command, name) + &commands(command) + &hint
}

fn usage<K: Copy>(command: &Command<K>, name: &str) -> String {
    let heads = std::iter::once("Usage:").chain(std::iter::repeat("  or: "));
    heads.zip(command.usage).map(|(head, usage)| format!("{head} {name} {usage}\n")).collect()
}

fn commands<K: Copy>(command: &Command<K>) -> String {
    let heading = if command.commands.is_empty() { "" } else { "\nCommands:\n" };
    let lines = command.commands.iter().map(|(name, brief)| two_columns(&format!("  {name}"), brief));
    heading.to_owned() + &lines.collect::<String>()
}

/// Renders the text of `--version`.
pub(crate) fn version(name: &str) -> String {
    format!("{name} {}\n", env!("CARGO_PKG_VERSION"))
}

fn section<'f, K: Copy + 'static>(title: &str, flags: impl Iterator<Item = &'f Flag<K>>) -> String {
    let lines: String = flags.map(|flag| two_columns(&spellings(flag), &quoted(flag.brief))).collect();
    if lines.is_empty() { lines } else { format!("\n{title}:\n{lines}") }
}

fn examples<K: Copy>(command: &Command<K>, name: &str, scope: Scope) -> String {
    let added = |line: &str| {
        let mut added = command.flags.iter().filter(|flag| flag.added).filter_map(|flag| flag.long);
        added.any(|long| line.contains(&format!("--{long}")))
    };
    let shown = command.examples.iter().filter(|(line, _)| scope == Scope::Full || !added(line));
    let mut text = String::new();
    for (line, what) in shown {
        text += &format!("  {}\n      {}\n", line.replace(command.name, name), quoted(what));
    }
    if text.is_empty() { text } else { format!("\nExamples:\n{text}") }
}

/// Returns the spellings of an option and its placeholder, as the help text shows them.
pub(crate) fn spellings<K: Copy>(flag: &Flag<K>) -> String {
    let placeholder = flag.placeholder();
    match (flag.short, flag.long) {
        (Some(short), Some(long)) => format!("  -{}, --{long}{placeholder}", char::from(short)),
        (Some(short), None) => format!("  -{}{placeholder}", char::from(short)),
        (None, long) => format!("      --{}{placeholder}", long.unwrap_or_default()),
    }
}

/// Puts `right`, wrapped, beside `left`, or below it if `left` is too wide.
fn two_columns(left: &str, right: &str) -> String {
    let indent = " ".repeat(COLUMN);
    if left.len() + 2 > COLUMN {
        return format!("{left}\n{}", wrap(right, &indent, COLUMN));
    }
    wrap(right, &format!("{left:COLUMN$}"), COLUMN)
}

/// Wraps `text` to [`WIDTH`] columns. The first line begins with `start`, the others with `indent`
/// spaces.
pub(crate) fn wrap(text: &str, start: &str, indent: usize) -> String {
    let mut wrapped = String::from(start);
    let mut column = start.len();
    let mut fresh = true;
    for word in text.split(' ') {
        let width = word.chars().count();
        if !fresh && column + 1 + width > WIDTH {
            wrapped += &format!("\n{}", " ".repeat(indent));
            (column, fresh) = (indent, true);
        }
        if !fresh {
            wrapped.push(' ');
            column += 1;
        }
        wrapped += word;
        (column, fresh) = (column + width, false);
    }
    wrapped.push('\n');
    wrapped
}

fn quoted(text: &str) -> String {
    with_models(text).replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_split_and_the_next_line_is_indented() {
        let long = "x".repeat(72);
        assert_eq!(
            wrap(&format!("a {long} bcd {long}"), "  -a  ", 6),
            format!("  -a  a {long}\n      bcd\n      {long}\n")
        );
        assert_eq!(two_columns("  -a", "text"), format!("  -a{}text\n", " ".repeat(26)));
        let wide = "      --a-very-long-option=VALUE";
        assert_eq!(two_columns(wide, "text"), format!("{wide}\n{}text\n", " ".repeat(30)));
    }

    #[test]
    fn the_version_is_the_packages() {
        assert_eq!(version("du (fathom)"), format!("du (fathom) {}\n", env!("CARGO_PKG_VERSION")));
    }
}
