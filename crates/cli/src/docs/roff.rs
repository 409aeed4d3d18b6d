//! The man page of a command, in the man macros. Option names and code are bold, placeholders
//! italic.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::cmdline::model_text::with_models;
use crate::shared::flag::{Flag, ValueSpec};
use crate::shared::help;

/// Renders the page of `command`.
pub(super) fn page<K: Copy>(command: &Command<K>) -> String {
    let title = command.name.replace(' ', "-");
    let version = env!("CARGO_PKG_VERSION");
    // No date: the output must be reproducible.
    let mut page = format!(".TH {} 1 \"\" \"fathom {version}\" \"User Commands\"\n", title.to_uppercase());
    page += &format!(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", escape(&title), escape(command.brief));
    for (at, usage) in command.usage.iter().enumerate() {
        page += if at == 0 { "" } else { ".br\n" };
        page += &format!("\\fB{}\\fR {}\n", escape(command.name), self::usage(usage));
    }
    page += ".SH DESCRIPTION\n";
    page += &paragraphs(command.about);
    page += &commands(command.commands);
    page += &options(command);
    command.notes.iter().for_each(|note| page += &self::note(note));
    page += &examples(command.examples);
    let own = command.commands.iter().map(|(name, _)| format!("{title}-{name}"));
    let own = own.filter(|name| super::man_pages().contains(name));
    let others = command.see_also.iter().map(ToString::to_string).chain(own);
    let others: Vec<_> = others.map(|name| format!("\\fB{}\\fR(1)", escape(&name))).collect();
    page + &format!(".SH \"SEE ALSO\"\n{}\n", others.join(",\n"))
}

fn commands(commands: &[(&str, &str)]) -> String {
    let heading = if commands.is_empty() { "" } else { ".SH COMMANDS\n" };
    let lines = commands
        .iter()
        .map(|(name, brief)| format!(".TP\n\\fB{}\\fR\n{}\n", escape(name), line(&format!("{brief}."))));
    heading.to_string() + &lines.collect::<String>()
}

fn options<K: Copy>(command: &Command<K>) -> String {
    let mut text = String::from(".SH OPTIONS\n");
    for section in command.sections {
        // A single section needs no heading of its own.
        if command.sections.len() > 1 {
            text += &format!(".SS \"{section}\"\n");
        }
        command.flags.iter().filter(|flag| flag.section == *section).for_each(|flag| text += &option(flag));
    }
    text
}

fn option<K: Copy>(flag: &Flag<K>) -> String {
    let short = flag.short.map(|short| format!("\\fB\\-{}\\fR", char::from(short)));
    let long = flag.long.map(|long| format!("\\fB\\-\\-{}\\fR", escape(long)));
    let spellings: Vec<_> = short.into_iter().chain(long).collect();
    let mut text = format!(
        ".TP\n{}{}\n{}\n",
        spellings.join(", "),
        placeholder(flag),
        line(&format!("{}.", with_models(flag.brief)))
    );
    if !flag.more.is_empty() {
        text += &format!("{}\n", line(&with_models(flag.more)));
    }
    text
}

fn placeholder<K: Copy>(flag: &Flag<K>) -> String {
    let Some(meta) = flag.meta() else { return String::new() };
    match (flag.value, flag.long) {
        (ValueSpec::Optional(_), _) => format!("[=\\fI{}\\fR]", meta.name),
        (_, None) => format!(" \\fI{}\\fR", meta.name),
        (_, Some(_)) => format!("=\\fI{}\\fR", meta.name),
    }
}

fn note(note: &Note) -> String {
    format!(".SH \"{}\"\n{}", note.title.to_uppercase(), paragraphs(note.text))
}

/// Renders paragraphs, one for each line. A paragraph of the form `term: explanation` becomes a
/// tagged paragraph.
fn paragraphs(text: &[&str]) -> String {
    let paragraph = |text: &str| match text.split_once(": ").filter(|(term, _)| is_term(term)) {
        Some((term, rest)) => format!(".TP\n{}\n{}\n", line(&bold(term)), line(rest)),
        None => format!(".PP\n{}\n", line(text)),
    };
    // A .PP directly behind a heading has no effect, and linters warn about it.
    let text = text.iter().map(|text| with_models(text)).collect::<Vec<_>>().join("\n");
    let all: String = text.lines().map(paragraph).collect();
    all.strip_prefix(".PP\n").map_or(all.clone(), str::to_string)
}

/// Returns whether `text` is a term: names of models or variables, or a number, but not the
/// beginning of a sentence.
fn is_term(text: &str) -> bool {
    let name = |word: &str| word.starts_with('`') || !word.chars().any(|c| c.is_lowercase());
    text.split([' ', ',']).all(|word| word == "or" || name(word))
}

fn bold(term: &str) -> String {
    if term.contains('`') { term.to_string() } else { format!("`{term}`") }
}

fn examples(examples: &[(&str, &str)]) -> String {
    let lines = examples
        .iter()
        .map(|(line, what)| format!(".TP\n\\fB{}\\fR\n{}\n", escape(line), self::line(&format!("{what}."))));
    format!(".SH EXAMPLES\n{}", lines.collect::<String>())
}

/// Renders sentences as wrapped lines, with `code` in bold and a capital first letter.
fn line(text: &str) -> String {
    let mut letters = text.chars();
    let capital = letters.next().map(|first| first.to_ascii_uppercase());
    let text: String = capital.into_iter().chain(letters).collect();
    let parts = text.split('`').enumerate();
    let styled = parts.map(|(at, part)| match at % 2 {
        1 => format!("\\fB{}\\fR", escape(part)),
        _ => escape(part),
    });
    let filled = help::wrap(&styled.collect::<String>(), "", 0);
    // A dot or a quote at the start of a line would make it a macro.
    let safe =
        |line: &str| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_string() };
    filled.lines().map(safe).collect::<Vec<_>>().join("\n")
}

/// Renders a synopsis. Words in capitals are placeholders.
fn usage(text: &str) -> String {
    let mut styled = String::new();
    let mut inside = false;
    for letter in text.chars() {
        if inside != letter.is_ascii_uppercase() {
            inside = !inside;
            styled += if inside { "\\fI" } else { "\\fR" };
        }
        styled += &escape(letter.encode_utf8(&mut [0; 4]));
    }
    if inside { styled + "\\fR" } else { styled }
}

fn escape(text: &str) -> String {
    // Unescaped, these would be typeset as a hyphen, a closing quote and two accents, and could not
    // be pasted.
    let safe = [('-', "\\-"), ('\'', "\\(aq"), ('~', "\\(ti"), ('^', "\\(ha")];
    safe.iter().fold(text.replace('\\', "\\e"), |text, (plain, name)| text.replace(*plain, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::IO;
    use crate::du::table::{DU, FLAGS};

    #[test]
    fn every_option_has_its_entry() {
        let page = page(&DU);
        for flag in FLAGS {
            assert!(page.contains(&option(flag)), "{flag:?}");
        }
        assert!(page.contains(".TP\n\\fB\\-B\\fR, \\fB\\-\\-block\\-size\\fR=\\fISIZE\\fR\n"));
        assert!(page.contains(".TP\n\\fB\\-\\-time\\fR[=\\fIWORD\\fR]\n"));
    }

    #[test]
    fn text_cannot_become_a_macro() {
        assert_eq!(line("'a' \\ `-b`"), "\\(aqa\\(aq \\e \\fB\\-b\\fR");
        assert_eq!(line(".x"), "\\&.x");
        let long = "x".repeat(78);
        assert_eq!(line(&format!("{long} .x")), format!("X{}\n\\&.x", &long[1..]));
    }

    #[test]
    fn placeholders_are_italic() {
        assert_eq!(usage("[OPTION]... --from=F"), "[\\fIOPTION\\fR]... \\-\\-from=\\fIF\\fR");
    }

    #[test]
    fn terms_hang_and_sentences_do_not() {
        assert_eq!(paragraphs(&["TZ: zone."]), ".TP\n\\fBTZ\\fR\nZone.\n");
        assert_eq!(paragraphs(&["`a` or `a=N`: x."]), ".TP\n\\fBa\\fR or \\fBa=N\\fR\nX.\n");
        assert_eq!(paragraphs(&["A note: x.", "Next."]), "A note: x.\n.PP\nNext.\n");
    }

    #[test]
    fn a_single_section_has_no_heading() {
        assert!(!page(&IO).contains(".SS"));
    }
}
