//! The known word that is nearest to a mistyped one, for "did you mean" in messages.

/// Returns the candidate whose name is nearest to `word`, if it is near enough to be what the user
/// meant: at most one edit, and another one for every three bytes of `word`. Of several equally near
/// candidates, returns the first.
///
/// ```
/// use fathom_text::nearest::nearest;
///
/// let commands = ["du", "list", "scan"];
/// assert_eq!(nearest("lsit", commands, |name| name), Some("list"));
/// assert_eq!(nearest("query", commands, |name| name), None);
/// ```
pub fn nearest<T>(
    word: &str,
    candidates: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> &str,
) -> Option<T> {
    let measured = candidates.into_iter().map(|candidate| (distance(word, name(&candidate)), candidate));
    let (edits, candidate) = measured.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1 + word.len() / 3).then_some(candidate)
}

/// Returns the Levenshtein distance: the characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let best = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("héllo", "hello", 1)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_first_of_several_near_words_is_taken_and_a_far_one_is_not() {
        let near = |word| nearest(word, ["name", "size", "null", "newer"], |name| name);
        assert_eq!(["nmae", "nule", "newe"].map(near), [Some("name"), Some("null"), Some("newer")]);
        assert_eq!(["x", "", "printf"].map(near), [None; 3]);
        assert_eq!(nearest("a", [], |name| name), None::<&str>);
    }
}
