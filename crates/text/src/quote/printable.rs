//! Printable characters of UTF-8 locales by glibc's rule: all characters that Unicode assigns or
//! leaves to private use, except controls and the line and paragraph separators.
//!
//! Assignment comes from the standard library's tables, so it follows the Unicode version of the
//! compiler, where GNU du follows the C library's. The two differ for characters added between the
//! versions.

/// Returns whether a UTF-8 locale prints `c`.
pub(crate) fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{9f}' | '\u{2028}' | '\u{2029}' => false,
        _ => is_format(c) || is_private(c) || c.is_whitespace() || is_shown_by_debug(c),
    }
}

/// The debug form of `str` escapes unassigned characters, and also the three other kinds that the
/// caller tests separately.
fn is_shown_by_debug(c: char) -> bool {
    let mut buffer = *b"x\0\0\0\0";
    c.encode_utf8(&mut buffer[1..]);
    // Not at the start of the text: there, combining marks are escaped too.
    let text = std::str::from_utf8(&buffer[..1 + c.len_utf8()]).expect("ASCII and one encoded character");
    text.escape_debug().nth(1) == Some(c)
}

fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// General category Cf.
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}')
}

/// Returns whether `c` shows nothing, or changes the direction of the text around it: a name with
/// it looks like another one (Unicode Technical Report 36, 2.5 and 2.10).
#[must_use]
pub fn is_invisible(c: char) -> bool {
    let is_visible = matches!(c,
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{110bd}'
        | '\u{110cd}' | '\u{13430}'..='\u{1343f}');
    is_format(c) && !is_visible
}

/// Returns whether `c` is one of the two joiners. Words of some scripts, and emoji, need them.
pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::is_printable;

    #[test]
    fn one_of_each_general_category() {
        let printable = [
            'A',
            'a',
            'ǅ',
            'ʰ',
            'ª',
            '\u{301}',
            'ः',
            '\u{20dd}',
            '٣',
            'Ⅷ',
            '½',
            '_',
            '-',
            '(',
            ')',
            '«',
            '»',
            '!',
            '+',
            '$',
            '^',
            '©',
            '\u{a0}',
            '\u{3000}',
            '\u{ad}',
            '\u{feff}',
            '\u{e000}',
            '\u{10fffd}',
        ];
        for c in printable {
            assert!(is_printable(c), "{}", c.escape_unicode());
        }
        for c in [
            '\0',
            '\n',
            '\u{7f}',
            '\u{85}',
            '\u{9f}',
            '\u{2028}',
            '\u{2029}',
            '\u{378}',
            '\u{ffff}',
            '\u{10ffff}',
        ] {
            assert!(!is_printable(c), "{}", c.escape_unicode());
        }
    }
}
