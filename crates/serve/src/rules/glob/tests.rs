//! Globs compared with examples, and with a backtracking matcher.

use proptest::prelude::*;

use super::*;

fn fits(pattern: &str, path: &[u8]) -> bool {
    Glob::new(pattern).unwrap().matches(path)
}

#[test]
fn patterns_match_as_documented() {
    for (pattern, yes, no) in [
        ("*.js", &["/a.js", "/x/y/b.js", "/.js"][..], &["/a.jsx", "/a.js/", "/a/js"][..]),
        ("*", &["/", "/a", "/a/b"], &[]),
        ("/*.js", &["/a.js"], &["/x/a.js", "a.js"]),
        ("/assets/**", &["/assets/", "/assets/a/b"], &["/assets", "/assetsx/a", "/x/assets/a"]),
        ("assets/*", &["/assets/a"], &["/x/assets/a", "/assets/a/b"]),
        ("/**/x", &["/x", "/a/x", "/a/b/x", "//x"], &["/ax", "/x/a"]),
        ("**/x", &["/x", "/a/x"], &["/ax"]),
        ("/a**b", &["/ab", "/a/x/b"], &["/a", "/b"]),
        ("/?", &["/a", "/é", "/?"], &["/", "/ab", "//"]),
        ("/[a-c]", &["/a", "/c"], &["/d", "/-", "/"]),
        ("/[!a-c]", &["/d", "/é"], &["/a", "//"]),
        ("/[]x-]", &["/]", "/x", "/-"], &["/a"]),
        ("/[+-9]", &["/+", "/9"], &["//"]),
        ("/[\\]]", &["/]"], &["/\\"]),
        ("/a.{js,css}", &["/a.js", "/a.css"], &["/a.", "/a.jscss", "/axjs"]),
        ("/{a,b{c,d*}}", &["/a", "/bc", "/bdxx"], &["/b", "/bcx"]),
        ("{/a,/b}/*", &["/a/x", "/b/x"], &["/c/x", "//a/x"]),
        ("/a,b", &["/a,b"], &["/a", "/b"]),
        ("/\\*\\{", &["/*{"], &["/a{"]),
        ("/(a|b)+$", &["/(a|b)+$"], &["/a"]),
    ] {
        for path in yes {
            assert!(fits(pattern, path.as_bytes()), "{pattern} fits {path}");
        }
        for path in no {
            assert!(!fits(pattern, path.as_bytes()), "{pattern} does not fit {path}");
        }
    }
    assert!(fits("/*", b"/\xff\n"), "bytes that are no text");
    assert!(!fits("/?", b"/\xff"), "which are no characters");
}

#[test]
fn wildcards_are_counted_from_the_left() {
    let captures = |pattern: &str, path: &str| -> Option<Vec<String>> {
        let glob = Glob::new(pattern).unwrap();
        let found = glob.captures(path.as_bytes())?;
        assert_eq!(found.len(), glob.wildcards());
        Some(found.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
    };
    let all = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert_eq!(captures("/old/**/*.html", "/old/a/b/c.html"), all(&["a/b", "c"]));
    assert_eq!(captures("/old/**/*.html", "/old/c.html"), all(&["", "c"]));
    assert_eq!(captures("/{a*,b}/?[xy]", "/b/zx"), all(&["b", "", "z", "x"]));
    assert_eq!(captures("*.js", "/a/b.js"), all(&["b"]));
    assert_eq!(captures("/a", "/a"), all(&[]));
    assert_eq!(captures("/a", "/b"), None);
}

#[test]
fn mistakes_are_told() {
    for (pattern, words) in [
        ("", "the pattern is empty"),
        ("/[a", "unclosed '['"),
        ("/[", "unclosed '['"),
        ("/[a\\", "unclosed '['"),
        ("/[z-a]", "the range z-a is backwards"),
        ("/{a", "unclosed '{'"),
        ("/a}", "unmatched '}'"),
        ("/a\\", "nothing follows the last '\\'"),
    ] {
        assert_eq!(Glob::new(pattern).unwrap_err(), words, "{pattern}");
    }
    assert_eq!(Glob::new(&"?".repeat(1 << 20)).unwrap_err(), "the pattern is too large");
}

/// A pattern as a tree, from which both its text and its reference match are derived.
#[derive(Clone, Debug)]
enum PatternPart {
    Literal(char),
    Star,
    Stars,
    Folders,
    Any,
    Class(bool, Vec<(char, char)>),
    OneOf(Vec<Vec<PatternPart>>),
}

fn text(parts: &[PatternPart]) -> String {
    let part = |part: &PatternPart| match part {
        PatternPart::Literal(c) if "*?[]{},\\".contains(*c) => format!("\\{c}"),
        PatternPart::Literal(c) => c.to_string(),
        PatternPart::Star => "*".to_owned(),
        PatternPart::Stars => "**".to_owned(),
        PatternPart::Folders => "/**/".to_owned(),
        PatternPart::Any => "?".to_owned(),
        PatternPart::Class(not, ranges) => {
            let ranges: String = ranges.iter().map(|(a, z)| format!("\\{a}-\\{z}")).collect();
            format!("[{}{ranges}]", if *not { "!" } else { "" })
        }
        PatternPart::OneOf(choices) => {
            format!("{{{}}}", choices.iter().map(|choice| text(choice)).collect::<Vec<_>>().join(","))
        }
    };
    parts.iter().map(part).collect()
}

/// The start and end of each wildcard's match, by its number.
type Spans = Vec<(usize, usize)>;

/// Returns the number of wildcards.
fn count(parts: &[PatternPart]) -> usize {
    let of = |part: &PatternPart| match part {
        PatternPart::Literal(_) => 0,
        PatternPart::OneOf(choices) => 1 + choices.iter().map(|choice| count(choice)).sum::<usize>(),
        _ => 1,
    };
    parts.iter().map(of).sum()
}

/// Continues the match at an offset, with the spans found so far.
type Continuation<'t> = &'t mut dyn FnMut(usize, &mut Spans) -> bool;

/// Tries every way to match `parts` at `at`, the longest first; `number` is the number of the first
/// wildcard in `parts`.
fn attempt(
    parts: &[PatternPart],
    path: &[u8],
    at: usize,
    number: usize,
    found: &mut Spans,
    then: Continuation<'_>,
) -> bool {
    let Some((part, rest)) = parts.split_first() else { return then(at, found) };
    let mut go = |start: usize, end: usize, found: &mut Spans, next: usize| {
        let old = std::mem::replace(&mut found[number], (start, next.min(end)));
        let done = attempt(rest, path, next, number + 1, found, then);
        if !done {
            found[number] = old;
        }
        done
    };
    let longest = |from: usize, across: bool| {
        let bytes = path[from..].iter();
        from + if across { bytes.len() } else { bytes.take_while(|byte| **byte != b'/').count() }
    };
    match part {
        PatternPart::Literal(c) => {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            path[at..].starts_with(bytes) && attempt(rest, path, at + bytes.len(), number, found, then)
        }
        PatternPart::Star => (at..=longest(at, false)).rev().any(|end| go(at, end, found, end)),
        PatternPart::Stars => (at..=longest(at, true)).rev().any(|end| go(at, end, found, end)),
        PatternPart::Folders => {
            if path.get(at) != Some(&b'/') {
                return false;
            }
            let start = at + 1;
            (start..path.len())
                .rev()
                .filter(|end| path[*end] == b'/')
                .any(|end| go(start, end, found, end + 1))
                || go(0, 0, found, start)
        }
        PatternPart::Any => character(path, at)
            .is_some_and(|c| c != '/' && go(at, at + c.len_utf8(), found, at + c.len_utf8())),
        PatternPart::Class(not, ranges) => character(path, at).is_some_and(|c| {
            let member = ranges.iter().any(|(a, z)| (a..=z).contains(&&c));
            c != '/' && member != *not && go(at, at + c.len_utf8(), found, at + c.len_utf8())
        }),
        PatternPart::OneOf(choices) => {
            let inner: usize = choices.iter().map(|choice| count(choice)).sum();
            let mut first = number + 1;
            for choice in choices {
                let mut then_rest = |end: usize, found: &mut Spans| {
                    let old = std::mem::replace(&mut found[number], (at, end));
                    let done = attempt(rest, path, end, number + 1 + inner, found, then);
                    if !done {
                        found[number] = old;
                    }
                    done
                };
                if attempt(choice, path, at, first, found, &mut then_rest) {
                    return true;
                }
                first += count(choice);
            }
            false
        }
    }
}

fn character(path: &[u8], at: usize) -> Option<char> {
    let rest = &path[at..];
    let longest = (1..=rest.len().min(4)).find_map(|length| std::str::from_utf8(&rest[..length]).ok());
    longest?.chars().next()
}

fn naive(parts: &[PatternPart], path: &[u8]) -> Option<Spans> {
    let mut found = vec![(0, 0); count(parts) + 1];
    let end = path.len();
    attempt(parts, path, 0, 0, &mut found, &mut |at, _| at == end).then(|| {
        found.pop();
        found
    })
}

fn part() -> impl Strategy<Value = PatternPart> {
    let letter = || prop::sample::select(vec!['a', 'b', '/', '*', '{', ',', '.', 'é']);
    let range = prop::sample::select(vec![('a', 'a'), ('a', 'z'), ('.', '0'), ('é', 'é')]);
    let leaf = prop_oneof![
        4 => letter().prop_map(PatternPart::Literal),
        2 => Just(PatternPart::Star),
        1 => Just(PatternPart::Stars),
        1 => Just(PatternPart::Folders),
        1 => Just(PatternPart::Any),
        1 => (any::<bool>(), prop::collection::vec(range, 1..3)).prop_map(|(not, ranges)| PatternPart::Class(not, ranges)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop::collection::vec(prop::collection::vec(inner, 0..3), 1..4).prop_map(PatternPart::OneOf)
    })
}

/// Returns whether the text of `parts` parses to these parts: adjacent stars become one wildcard,
/// and `**/` after a slash another.
fn is_read_so(parts: &[PatternPart]) -> bool {
    let is_star = |part: &PatternPart| matches!(part, PatternPart::Star | PatternPart::Stars);
    let ends = |part: &PatternPart| matches!(part, PatternPart::Literal('/') | PatternPart::Folders);
    let two = parts.windows(2).all(|two| !(is_star(&two[0]) && is_star(&two[1])));
    let three = parts
        .windows(3)
        .all(|three| !(ends(&three[0]) && matches!(three[1], PatternPart::Stars) && ends(&three[2])));
    let inner = |part: &PatternPart| match part {
        PatternPart::OneOf(choices) => choices.iter().all(|choice| is_read_so(choice)),
        _ => true,
    };
    two && three && parts.iter().all(inner)
}

proptest! {
    #![proptest_config(fathom_cases::property(2000))]

    #[test]
    fn it_matches_as_a_backtracking_matcher(
        parts in prop::collection::vec(part(), 1..6),
        path in prop::collection::vec(prop::sample::select(vec!["a", "b", "/", "*", "{", ",", ".", "é", "\u{0}"]), 0..8),
        junk in any::<bool>(),
    ) {
        let parts: Vec<PatternPart> = [vec![PatternPart::Literal('/')], parts].concat();
        let pattern = text(&parts);
        prop_assume!(is_read_so(&parts));
        let mut path = format!("/{}", path.concat()).into_bytes();
        path.extend(junk.then_some(0xff));
        let glob = Glob::new(&pattern).unwrap();
        let expected = naive(&parts, &path);
        prop_assert_eq!(glob.matches(&path), expected.is_some(), "{} {:?}", pattern, path);
        let expected = expected.map(|found| found.iter().map(|(start, end)| &path[*start..*end]).collect::<Vec<_>>());
        prop_assert_eq!(glob.captures(&path), expected, "{} {:?}", pattern, path);
    }
}
