//! Rules for comments and names of Rust sources: a sentence has a subject that is a noun, a comment
//! fits its columns, a strong memory ordering has a reason, types of a crate have unique names.

use std::collections::BTreeMap;

use crate::mask::{code_only, line_of, name_after, tokens};
use crate::tree::Tree;

/// Upper bound of the columns of a line that contains only a comment.
const COMMENT_COLUMNS_MAX: usize = 100;
/// Words that replace the subject of a sentence, at its beginning.
const EMPTY_SUBJECTS: [&str; 6] = ["What", "Who", "Whoever", "Nobody", "Somebody", "Whatever"];
/// Headings of documentation.
const HEADINGS: [&str; 3] = ["# Errors ", "# Panics ", "# Safety "];
/// Pronouns that replace a noun before `of` or `in`. Repeat the noun: "the size of the entry".
const REPLACED_NOUNS: [&str; 4] = ["that of", "those of", "that in", "those in"];
/// Memory orderings that need a reason, and the number of lines above them in which it may be.
const STRONG_ORDERINGS: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];
const REASON_LINES_MAX: usize = 5;

/// Returns the text of a line that contains only a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

/// Finds comment lines that are too wide.
pub(crate) fn wide_comments(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in tree.texts(".rs") {
        let lines = source.lines().enumerate().filter(|(_, line)| comment(line).is_some());
        let wide = lines.filter(|(_, line)| line.chars().count() > COMMENT_COLUMNS_MAX);
        breaches.extend(
            wide.map(|(at, line)| {
                format!("{file}:{}: a comment of {} columns", at + 1, line.chars().count())
            }),
        );
    }
    breaches
}

/// Finds sentences of comments that begin with a word that names nothing. Questions may.
pub(crate) fn riddles(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in tree.texts(".rs") {
        for (line, text) in blocks(source) {
            let riddles = sentences(&text).filter(|sentence| is_riddle(sentence));
            breaches.extend(riddles.map(|sentence| format!("{file}:{line}: {sentence}")));
        }
    }
    breaches
}

/// Finds comments with a pronoun in place of the noun of a possessive.
pub(crate) fn replaced_nouns(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in tree.texts(".rs") {
        for (line, text) in blocks(source) {
            let text = text.to_lowercase();
            let found = REPLACED_NOUNS.iter().filter(|words| tokens(&text, words).next().is_some());
            breaches.extend(found.map(|words| format!("{file}:{line}: '{words}'")));
        }
    }
    breaches
}

/// Finds documentation whose headings and fences share a line with text, which then is no longer a
/// heading, or becomes a part of the code.
pub(crate) fn broken_markdown(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in tree.texts(".rs") {
        for (at, line) in source.lines().enumerate() {
            let Some(text) = comment(line) else { continue };
            let follows = |start: &str| text.strip_prefix(start).is_some_and(|rest| !rest.trim().is_empty());
            if HEADINGS.iter().any(|heading| follows(heading)) || follows("``` ") {
                breaches.push(format!("{file}:{}: {text}", at + 1));
            }
        }
    }
    breaches
}

/// Returns the comments of a source with the number of their first line. Consecutive lines are
/// joined.
fn blocks(source: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in source.lines().enumerate() {
        let text = comment(line).filter(|text| !text.is_empty());
        match (text, blocks.last_mut()) {
            (Some(text), Some((_, block))) if goes_on => block.extend([" ", text]),
            (Some(text), _) => blocks.push((at + 1, text.to_string())),
            (None, _) => {}
        }
        goes_on = text.is_some();
    }
    blocks
}

fn sentences(block: &str) -> impl Iterator<Item = &str> {
    let mut last = ' ';
    let ends = move |letter: char| {
        let end = letter == ' ' && matches!(last, '.' | '?' | '!' | ':');
        last = letter;
        end
    };
    block.split_inclusive(ends).map(str::trim)
}

fn is_riddle(sentence: &str) -> bool {
    let first = sentence.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    EMPTY_SUBJECTS.contains(&first) && !sentence.ends_with('?')
}

/// Finds strong memory orderings without a comment near them.
pub(crate) fn silent_orderings(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in tree.texts(".rs") {
        let code = code_only(source);
        let commented: Vec<bool> = source.lines().map(|line| line.contains("//")).collect();
        for ordering in STRONG_ORDERINGS {
            let named = tokens(&code, ordering).filter(|at| code[..*at].ends_with("Ordering::"));
            for line in named.map(|at| line_of(&code, at)) {
                let near = &commented[line.saturating_sub(REASON_LINES_MAX + 1)..line];
                if !near.contains(&true) {
                    breaches.push(format!("{file}:{line}: {ordering} without a reason"));
                }
            }
        }
    }
    breaches
}

/// Finds types of one crate that have the same name. Variants for other systems may.
pub(crate) fn shared_names(tree: &Tree) -> Vec<String> {
    let mut types: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    let sources: Vec<_> = tree.texts(".rs").map(|(file, source)| (file, source, code_only(source))).collect();
    for (file, source, code) in &sources {
        for keyword in ["struct", "enum", "union", "trait", "type"] {
            for at in tokens(code, keyword).filter(|at| begins_item(code, *at)) {
                let Some(name) = name_after(code, at + keyword.len()) else { continue };
                let line = line_of(code, at);
                if !is_twin(source, line) {
                    types.entry((crate_of(file), name)).or_default().push(format!("{file}:{line}"));
                }
            }
        }
    }
    let shared = types.into_iter().filter(|(_, places)| places.len() > 1);
    shared.map(|((_, name), places)| format!("{name}: {}", places.join(", "))).collect()
}

/// Whether the keyword at `at` begins an item at the top level of its file.
fn begins_item(code: &str, at: usize) -> bool {
    let line = &code[code[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    matches!(line.split_whitespace().collect::<Vec<_>>()[..], [] | ["pub"] | ["pub(crate)"] | ["pub(super)"])
        && !line.starts_with(' ')
}

/// Whether a `#[cfg(..)]` precedes a line, so that the item is a variant for some systems.
fn is_twin(source: &str, line: usize) -> bool {
    let above: Vec<_> = source.lines().take(line - 1).collect();
    let attached = above.iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    attached.into_iter().any(|line| line.starts_with("#[cfg("))
}

/// Returns the crate that compiles a source: a library or program, or one directory or file of
/// tests.
fn crate_of(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    let tests = parts.iter().position(|part| matches!(*part, "tests" | "examples" | "fuzz_targets" | "bin"));
    match (tests, parts.iter().position(|part| *part == "src")) {
        (Some(at), _) if at + 1 < parts.len() => parts[..=at + 1].join("/"),
        (_, Some(at)) => parts[..=at].join("/"),
        _ => file.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Tree {
        Tree::of(&[("a/src/lib.rs", source)])
    }

    #[test]
    fn a_heading_and_a_fence_have_lines_of_their_own() {
        let tree = Tree::of(&[(
            "a.rs",
            "/// # Errors If it fails.\n//! ``` Text.\n/// # Errors\n/// ```text\n/// ```",
        )]);
        assert_eq!(broken_markdown(&tree), ["a.rs:1: # Errors If it fails.", "a.rs:2: ``` Text."]);
    }

    #[test]
    fn a_noun_is_repeated_before_of() {
        let tree = Tree::of(&[
            ("a.rs", "/// The size is that\n/// of the file.\nfn f() {} // Those in `at`."),
            ("b.rs", "// A copy of that office, and of those often seen.\nlet x = \"that of\";"),
        ]);
        assert_eq!(replaced_nouns(&tree), ["a.rs:1: 'that of'"]);
    }

    #[test]
    fn a_comment_of_more_than_100_columns_is_wide() {
        let source = format!("//{}\n    ///{}\n\"//{0}  \"", "-".repeat(98), "-".repeat(94));
        assert_eq!(wide_comments(&of(&source)), ["a/src/lib.rs:2: a comment of 101 columns"]);
    }

    #[test]
    fn a_sentence_without_a_subject_is_a_riddle() {
        let source = "/// Opens it. What is there\n/// stays. Who? Whose is it.\n\n// Whoever asks.\nlet a = \"What\";";
        assert_eq!(
            riddles(&of(source)),
            ["a/src/lib.rs:1: What is there stays.", "a/src/lib.rs:4: Whoever asks."]
        );
    }

    #[test]
    fn a_strong_ordering_needs_a_comment_within_five_lines() {
        let source = |lines: usize| {
            format!(
                "// Pairs with b.{}a.load(Ordering::Acquire);\nb.load(Ordering::Relaxed);",
                "\n".repeat(lines)
            )
        };
        assert_eq!(silent_orderings(&of(&source(5))), [""; 0]);
        assert_eq!(silent_orderings(&of(&source(6))), ["a/src/lib.rs:7: Acquire without a reason"]);
    }

    #[test]
    fn two_types_of_one_crate_may_not_share_a_name() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "pub struct A;\n#[cfg(unix)]\nstruct B;\ntrait T {\n    type Item;\n}"),
            ("a/src/b.rs", "enum A {}\n#[cfg(not(unix))]\nstruct B;\nimpl T for B {\n    type Item = A;\n}"),
            ("a/tests/x.rs", "struct A;"),
            ("b/src/lib.rs", "type A = u8;"),
        ]);
        assert_eq!(shared_names(&tree), ["A: a/src/b.rs:1, a/src/lib.rs:1"]);
    }
}
