//! The known word that is nearest to a mistyped one, for "did you mean" in messages.

/// Returns the candidate whose name is nearest to `word`, if it is near enough to be what the user
/// meant: at most one edit, another one for every three bytes of `word`, and fewer than its name
/// has bytes. The first of several equally near candidates is returned.
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
    let is_near = edits <= 1 + word.len() / 3 && edits < name(&candidate).len();
    is_near.then_some(candidate)
}

/// Returns the number of characters to insert, delete, replace, or swap with the next one (the
/// distance of optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().collect());
    let (mut before, mut last) = (Vec::new(), (0..=b.len()).collect::<Vec<_>>());
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits_and_a_swap_is_one() {
        for (a, b, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("héllo", "hello", 1),
            ("tere", "tree", 1),
            ("nmae", "name", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_first_of_several_near_words_is_taken_and_a_far_one_is_not() {
        let near = |word| nearest(word, ["name", "size", "null", "newer"], |name| name);
        assert_eq!(["nmae", "nule", "newe"].map(near), [Some("name"), Some("null"), Some("newer")]);
        assert_eq!(["x", "", "printf"].map(near), [None; 3]);
        assert_eq!(nearest("a", [""; 0], |name| name), None);
        assert_eq!(nearest("xyz", ["by"], |name| name), None);
    }
}
