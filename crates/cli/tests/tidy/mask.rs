//! Blanks out comments, strings and character literals of Rust text byte for byte, so that a token
//! found in the result is code and has its original offset. Not a parser: it only knows where those
//! three begin and end.

/// Returns `source` with every byte of a comment, string or character literal replaced by a space.
/// Line feeds stay.
pub(crate) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    while code.len() < bytes.len() {
        let at = code.len();
        match literal_or_comment(bytes, at) {
            0 => code.push(bytes[at]),
            length => {
                let end = bytes.len().min(at + length);
                code.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
            }
        }
    }
    String::from_utf8(code).expect("literals are blanked whole, so no character is cut")
}

/// Returns the string literals of `source` with their quotes and prefixes, and their offsets.
pub(crate) fn strings(source: &str) -> Vec<(usize, &str)> {
    let bytes = source.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = literal_or_comment(bytes, at);
        let end = bytes.len().min(at + length);
        if matches!(bytes[at], b'"' | b'r') && length > 0 {
            found.push((at, &source[at..end]));
        }
        at += length.max(1);
    }
    found
}

/// Returns the offsets at which `word` is a token of `code`.
pub(crate) fn tokens<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let alone = move |at: usize| {
        let end = at + word.len();
        (at == 0 || !is_name(bytes[at - 1])) && (end == bytes.len() || !is_name(bytes[end]))
    };
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| alone(at))
}

/// Returns the name that follows the blanks at `at`, if there is one.
pub(crate) fn name_after(code: &str, at: usize) -> Option<&str> {
    let rest = code[at..].trim_start();
    let end = rest.bytes().position(|byte| !is_name(byte)).unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

/// Returns the number of the line that contains `at`, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the length of the comment or literal that begins at `at`, 0 if none does.
fn literal_or_comment(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with(b"/*") => block_comment(rest),
        b'"' => quoted(rest, b'"'),
        b'\'' => character(rest),
        b'r' if at == 0 || !is_name(bytes[at - 1]) || is_string_prefix(bytes, at) => raw_string(rest),
        _ => 0,
    }
}

/// Whether the byte before the `r` at `at` is the `b` or `c` of `br"` or `cr"`.
fn is_string_prefix(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at - 1], b'b' | b'c') && (at == 1 || !is_name(bytes[at - 2]))
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of a character literal. A lifetime also begins with a quote, but has no
/// second quote after its first character.
fn character(rest: &[u8]) -> usize {
    match rest.get(1) {
        Some(b'\\') => quoted(rest, b'\''),
        Some(&first) => {
            let length = if first < 0x80 { 1 } else { first.leading_ones() as usize };
            if rest.get(1 + length) == Some(&b'\'') { length + 2 } else { 0 }
        }
        None => 0,
    }
}

fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = &rest[2 + hashes..];
    let close = body.windows(end.len()).position(|window| window == end);
    close.map_or(rest.len(), |at| 2 + hashes + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the remaining code, without blanks.
    fn left(source: &str) -> String {
        let code = code_only(source);
        assert_eq!(code.len(), source.len());
        code.split_whitespace().collect()
    }

    #[test]
    fn comments_go_nested_ones_too() {
        assert_eq!(left("a // x\nb /* x /* x */ x */ c"), "abc");
    }

    #[test]
    fn strings_go_with_their_escapes_and_hashes() {
        assert_eq!(left(r###"a("x\"x", b"x", r"x\", r#"x"x"#, br"x\")z"###), "a(,b,,,b)z");
        assert_eq!(left("let é = \"é\n//\"; z"), "leté=;z");
    }

    #[test]
    fn characters_go_and_lifetimes_stay() {
        assert_eq!(left(r"f('{', '\'', 'é', b'\n', &'a str)"), "f(,,,b,&'astr)");
    }

    #[test]
    fn raw_names_are_code() {
        assert_eq!(left("r#fn for \"x\""), "r#fnfor");
    }

    #[test]
    fn tokens_stand_alone() {
        let found: Vec<_> = tokens("unsafe unsafe_code not_unsafe (unsafe{})", "unsafe").collect();
        assert_eq!(found, [0, 31]);
    }
}
