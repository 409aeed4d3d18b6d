//! Parsed paths in every encoding, and the round trip from a path to a URL and back.

use proptest::prelude::*;

use super::*;

fn parse(target: &str) -> Result<(Vec<u8>, bool), PathError> {
    RequestTarget::parse(target.as_bytes()).map(|target| (target.path.into_owned(), target.is_dir))
}

fn found(path: &[u8], is_dir: bool) -> Result<(Vec<u8>, bool), PathError> {
    Ok((path.to_vec(), is_dir))
}

#[test]
fn a_path_is_decoded_once() {
    assert_eq!(parse("/"), found(b"", true));
    assert_eq!(parse("/a/b.html"), found(b"a/b.html", false));
    assert_eq!(parse("/a/"), found(b"a", true));
    assert_eq!(parse("/%61%2525"), found(b"a%25", false));
    assert_eq!(parse("/%252e%252e/x"), found(b"%2e%2e/x", false));
    assert_eq!(parse("/a%0a%1b[31m"), found(b"a\n\x1b[31m", false));
    assert_eq!(parse("/%ff%FE"), found(b"\xff\xfe", false));
    assert_eq!(parse("/%c0%ae%c0%ae/x"), found(b"\xc0\xae\xc0\xae/x", false));
    assert_eq!(parse("/a%5c..\\b"), found(b"a\\..\\b", false));
    assert_eq!(parse("/..;/.../a+b"), found(b"..;/.../a+b", false));
}

#[test]
fn a_path_without_percent_is_not_copied() {
    assert!(matches!(
        RequestTarget::parse(b"/a/b/"),
        Ok(RequestTarget { path: Cow::Borrowed(b"a/b"), is_dir: true })
    ));
}

#[test]
fn a_malformed_target_is_a_bad_request() {
    for target in
        ["", "*", "a", "/%", "/%4", "/%zz", "/%+1", "/a%00b", "/a\0b", "/a?b", "/a#b", "/%00/..", "ftp://h/a"]
    {
        assert_eq!(parse(target), Err(PathError::BadRequest), "{target}");
    }
}

#[test]
fn an_impossible_file_name_is_not_found() {
    let targets = [
        "//",
        "//x",
        "/a//b",
        "/a//",
        "///",
        "//evil.example/%2e%2e",
        "/.",
        "/./a",
        "/a/.",
        "/a/./",
        "/..",
        "/../a",
        "/a/../b",
        "/a/..",
        "/%2e%2e/a",
        "/.%2e/a",
        "/%2E",
        "/a%2fb",
        "/..%2f",
        "/%2F",
    ];
    for target in targets {
        assert_eq!(parse(target), Err(PathError::NotFound), "{target}");
    }
}

#[test]
fn lengths_are_those_of_the_kernel() {
    let name = |bytes| format!("/{}", "%61".repeat(bytes));
    assert_eq!(parse(&name(NAME_BYTES)), found(&[b'a'; NAME_BYTES], false));
    assert_eq!(parse(&name(NAME_BYTES + 1)), Err(PathError::NotFound));
    let path = |bytes: usize| format!("/{}", "a/".repeat(PATH_BYTES)).get(..=bytes).map(str::to_owned);
    assert!(parse(&path(PATH_BYTES).unwrap()).is_ok());
    assert_eq!(parse(&path(PATH_BYTES + 2).unwrap()), Err(PathError::NotFound));
}

#[test]
fn an_absolute_target_has_a_path() {
    assert_eq!(parse("http://example.org/a/%62"), found(b"a/b", false));
    assert_eq!(parse("HTTPS://[::1]:8080"), found(b"", true));
    assert_eq!(parse("http://example.org//x"), Err(PathError::NotFound));
    assert_eq!(parse("http://example.org?/a"), Err(PathError::BadRequest));
    assert_eq!(parse("http:/a"), Err(PathError::BadRequest));
}

#[test]
fn dotfiles_are_hidden_but_for_well_known() {
    for path in [
        ".git",
        ".git/config",
        "a/.htpasswd",
        "a/.b/c",
        ".well-known/.x",
        "a/.well-known/b",
        ".well-known2",
        "...",
    ] {
        assert!(is_hidden(path.as_bytes()), "{path}");
    }
    for path in ["", "a", "a.b/c.", ".well-known", ".well-known/acme-challenge/x"] {
        assert!(!is_hidden(path.as_bytes()), "{path}");
    }
}

#[test]
fn a_url_never_names_another_host() {
    assert_eq!(encode(b""), "/");
    assert_eq!(encode(b"//evil.example/a"), "/evil.example/a");
    assert_eq!(encode(b"\\evil.example"), "/%5Cevil.example");
    assert_eq!(encode(b"\t/evil.example"), "/%09/evil.example");
    assert_eq!(encode("a b/\u{e9}?#[]%20".as_bytes()), "/a%20b/%C3%A9%3F%23%5B%5D%2520");
    assert_eq!(encode_name(b"javascript:\"'<>&/"), "javascript%3A%22%27%3C%3E%26%2F");
    for (from, to, expected) in [
        ("a", "a/", "a/"),
        ("a/b", "a/b/", "b/"),
        ("app/a", "a/", "../a/"),
        ("x", "a/b/", "a/b/"),
        ("app/x/y", "a/b/", "../../a/b/"),
        ("a/x", "a/b", "b"),
        ("a/index.html", "a/", "./"),
        ("index.html", "", "./"),
        ("x/y", "", "../"),
        ("x/y", "x/", "./"),
        ("a/", "a", "../a"),
        ("a/b.html", "a/b", "b"),
        ("a:b", "a:b/", "a%3Ab/"),
        ("x", "//evil.example/", "evil.example/"),
    ] {
        assert_eq!(location(from.as_bytes(), to.as_bytes(), None), expected, "{from} {to}");
    }
    let query = location(b"a", b"a/", Some(b"x=%20&y=\r\nSet-Cookie: z"));
    assert_eq!(query, "a/?x=%20&y=%0D%0ASet-Cookie:%20z");
}

/// Decodes bytes, each with whether it was percent-encoded; `None` for a malformed target.
fn naive(target: &[u8]) -> Option<Vec<(u8, bool)>> {
    match target {
        [] => Some(Vec::new()),
        [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            let digits = [*high, *low];
            let byte = u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
            Some([vec![(byte, true)], naive(rest)?].concat())
        }
        [b'%', ..] => None,
        [byte, rest @ ..] => Some([vec![(*byte, false)], naive(rest)?].concat()),
    }
}

fn model(target: &[u8]) -> Result<(Vec<u8>, bool), PathError> {
    let bytes = naive(target).ok_or(PathError::BadRequest)?;
    if bytes.first() != Some(&(b'/', false))
        || bytes.iter().any(|&(byte, encoded)| byte == 0 || (!encoded && matches!(byte, b'?' | b'#')))
    {
        return Err(PathError::BadRequest);
    }
    let is_dir = bytes.last() == Some(&(b'/', false));
    let end = if is_dir && bytes.len() > 1 { bytes.len() - 1 } else { bytes.len() };
    let names: Vec<Vec<u8>> = bytes[1..end]
        .split(|byte| *byte == (b'/', false))
        .map(|name| name.iter().map(|(byte, _)| *byte).collect())
        .collect();
    let impossible =
        |name: &Vec<u8>| name.is_empty() || name == b"." || name == b".." || name.contains(&b'/');
    if target != b"/" && names.iter().any(impossible) {
        return Err(PathError::NotFound);
    }
    Ok((names.join(&b'/'), is_dir))
}

proptest! {
    #![proptest_config(fathom_cases::property(4000))]

    #[test]
    fn parsing_is_what_a_naive_decoder_says(target in "/(%2[ef]|%00|%[0-9a-g]{2}|%|[./a?#]|[.]{2}|/){0,8}") {
        let found = RequestTarget::parse(target.as_bytes()).map(|target| (target.path.into_owned(), target.is_dir));
        // A target with several faults may get the error of any of them.
        prop_assert_eq!(found.ok(), model(target.as_bytes()).ok());
    }

    #[test]
    fn any_name_is_reachable(names in prop::collection::vec(prop::collection::vec(1u8.., 1..20), 1..5), is_dir: bool) {
        prop_assume!(!names.iter().any(|name| name.contains(&b'/') || name == b"." || name == b".."));
        let path = names.join(&b'/');
        let slash = if is_dir && !path.is_empty() { "/" } else { "" };
        let url = encode(&path) + slash;
        prop_assert!(url.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte)));
        let target = RequestTarget::parse(url.as_bytes()).map(|target| (target.path.into_owned(), target.is_dir));
        prop_assert_eq!(target, Ok((path, is_dir)));
    }

    #[test]
    fn any_bytes_are_a_path_or_refused(target in any::<Vec<u8>>()) {
        if let Ok(RequestTarget { path, .. }) = RequestTarget::parse(&target) {
            prop_assert!(path.is_empty() || path.split(|byte| *byte == b'/').all(is_name));
            prop_assert!(!path.contains(&0));
        }
    }
}
