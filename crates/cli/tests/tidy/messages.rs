//! Rules for what users read in the strings of the programs and libraries: habits of wording that
//! hide what was found, what was expected, or what to type.

use crate::mask::{line_of, strings};
use crate::tree::Tree;

/// Habits, each with the wording in its place.
const HABITS: [(&str, &str); 16] = [
    ("; otherwise", "(default: X)"),
    (", otherwise ", "or else"),
    (" and end\"", "and exit"),
    ("takes a new start", "needs a restart"),
    (" goes with ", "requires, or cannot be combined with"),
    (" go with ", "require, or cannot be combined with"),
    ("this is no ", "expected X, or not a X"),
    ("it is no ", "not a X"),
    (" which is no ", "which is not a X"),
    (" is none of ", "is not one of"),
    ("makes no sense", "is wrong"),
    ("make no sense", "are wrong"),
    ("to go on with", "to continue"),
    ("what it should be", "what was expected and what was found"),
    ("without a word", "and printed nothing"),
    ("nobody", "a noun"),
];

/// Finds the habits in strings of sources, except in tests.
pub(crate) fn habits(tree: &Tree) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, source) in tree.texts(".rs").filter(|(file, _)| is_shipped(file)) {
        let shipped = source.find("#[cfg(test)]\nmod tests {").map_or(source, |at| &source[..at]);
        for (at, text) in strings(shipped) {
            // A continued line begins behind its blanks.
            let text = text.split("\\\n").map(str::trim_start).collect::<String>();
            let found = HABITS.iter().filter(|(habit, _)| text.contains(habit));
            breaches.extend(found.map(|(habit, instead)| {
                format!("{file}:{}: '{}': write: {instead}", line_of(source, at), habit.trim())
            }));
        }
    }
    breaches
}

fn is_shipped(file: &str) -> bool {
    file.starts_with("crates/")
        && file.contains("/src/")
        && !file.ends_with("tests.rs")
        && !file.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_habit_in_a_string_is_found_and_in_a_comment_or_a_test_is_not() {
        let source = "// this is no name\nlet a = \"this is no \\\n    rate\";\nlet b = b\"nobody\";\n\
                      #[cfg(test)]\nmod tests {\n    const C: &str = \"nobody\";\n}\n";
        let tree = Tree::of(&[("crates/a/src/lib.rs", source), ("crates/a/tests/a.rs", "\"nobody\"")]);
        let found = habits(&tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/lib.rs:2: 'this is no': "), "{found:?}");
    }
}
