//! Names of arbitrary bytes: unchanged on standard output, quoted in messages.

use std::os::unix::ffi::OsStrExt;

use crate::support::tree::name;
use crate::support::{Tree, compare, compare_all, du};

#[test]
fn every_byte_in_a_name_is_printed_as_it_is() {
    let tree = Tree::new();
    for byte in (1..=255).filter(|&byte| byte != b'/') {
        tree.file(name(&[b"d/x", &[byte][..]].concat()), u64::from(byte));
        tree.file(name(&[b"e/", &[byte][..], b"x/y"].concat()), 1);
    }
    let printed = compare(&tree, "-a").stdout;
    assert!((1..=255).filter(|&byte| byte != b'/').all(|byte| printed.contains(&byte)));
    compare_all(&tree, &["-a d", "-0a", "-ab", "-s d e", "e", "-aS -0"]);
    let operands: Vec<_> =
        (1..=255).filter(|&byte| byte != b'/' && byte != b'-').map(|byte| vec![byte]).collect();
    du(&tree, "-a --").args(operands.iter().map(|bytes| name(bytes))).compare().status(1);
}

#[test]
fn every_byte_in_a_message_is_quoted() {
    let tree = Tree::new();
    let mut operands = Vec::new();
    for byte in (1..=255).filter(|&byte| byte != b'/') {
        operands.extend([
            vec![byte],
            vec![b'a', byte],
            vec![byte, b'a'],
            vec![byte, byte],
            vec![b'\'', byte, b' '],
        ]);
    }
    for locale in ["C.UTF-8", "C"] {
        let case = du(&tree, "--").args(operands.iter().map(|bytes| name(bytes))).env("LC_ALL", locale);
        assert!(case.compare().err().lines().count() > 254 * 5 - 5);
    }
}

#[test]
fn characters_in_a_message_are_quoted_if_not_printable() {
    let tree = Tree::new();
    let texts = [
        "\u{e9}",
        "\u{80}",
        "\u{9f}",
        "\u{a0}",
        "\u{ad}",
        "\u{200b}",
        "\u{200e}",
        "\u{2028}",
        "\u{feff}",
        "\u{e000}",
        "\u{fffd}",
        "\u{ffff}",
        "\u{1f600}",
        "\u{10ffff}",
        "\u{378}",
        "e\u{301}",
        "\u{4e2d}\u{6587}",
        "\u{5d0}",
        "\u{2029}",
        "\u{2060}",
        "\u{3000}",
        "\u{1d173}",
        "a\u{e9}'b",
        "\u{e9}\n",
        "'\u{e9}",
        "$\u{e9}`",
    ];
    for locale in ["C.UTF-8", "C"] {
        du(&tree, "--").args(texts).env("LC_ALL", locale).compare().status(1);
    }
    let broken: [&[u8]; 8] = [
        b"\xc3",
        b"\xe4\xb8",
        b"\xf0\x9f\x98",
        b"a\xc3b",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xc3\xa9\xff\xc3\xa9",
    ];
    du(&tree, "--").args(broken.map(name)).compare().status(1);
}

#[test]
fn names_that_look_like_options_or_quotes() {
    let tree = Tree::parse("-a/x 1, --/y 2, 'q'/z 3, ~/w 4, #c 5, a=b 6, {x} 7, -/f 8");
    for operand in ["./-a", "-", "~", "#c", "a=b", "{x}", "'q'"] {
        du(&tree, "-s").arg(operand).compare();
        du(&tree, "-s").arg(format!("{operand}-missing")).compare();
    }
    compare_all(&tree, &["-a", "-- -a --", "-s -- -a -", "-a -"]);
    let missing = [
        "it's",
        "a b",
        "a\"b'c",
        "x$y",
        "x`y",
        "tab\there",
        "a:b",
        "a:",
        ":",
        "$'x'",
        "\\",
        "a\\b",
        "!",
        "x*",
        "?",
        "[x]",
        "x;y",
        "x&y",
        "(x)",
        "<x>",
        "x|y",
    ];
    du(&tree, "--").args(missing).compare().status(1);
}

#[test]
fn a_null_byte_ends_lines_when_asked() {
    let tree = Tree::parse("d/x 10, d/y/z 20");
    tree.file("d/two\nlines", 30);
    compare(&tree, "-0a d").prints("d\0");
    compare_all(&tree, &["-0", "-0c d", "--null -s d", "-0 --time d", "-0h d"]);
}

#[test]
fn the_longest_names() {
    let tree = Tree::new();
    let longest = "\u{e9}".repeat(127) + "x";
    assert_eq!(std::ffi::OsStr::new(&longest).as_bytes().len(), 255);
    tree.file(format!("{longest}/{longest}"), 10);
    compare_all(&tree, &["-a", &format!("-a {longest}"), &format!("-s {longest}/{longest}")]);
}
