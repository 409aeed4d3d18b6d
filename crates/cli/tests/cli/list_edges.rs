//! Cases in which `fathom list` differs from find(1), and options of find that users may try.

use std::process::{Command, Output};

use crate::support::program::{Program, on_path};
use crate::support::{Tree, skip};

fn list(tree: &Tree, words: &[&str]) -> Output {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command
        .arg("list")
        .args(words)
        .env("LC_ALL", "C")
        .env("TZ", "UTC0")
        .current_dir(tree.path())
        .output()
        .unwrap()
}

fn out(tree: &Tree, words: &[&str]) -> String {
    let output = list(tree, words);
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command line that must fail with status 2. Returns the message.
fn refused(tree: &Tree, words: &[&str]) -> String {
    let output = list(tree, words);
    assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)), "{words:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn objects_have_the_btime() {
    let tree = Tree::parse("a/f 1, a/l -> f");
    for order in ["path", "any"] {
        let objects = out(&tree, &["-j", "a", "--order", order]);
        let mut births: Vec<_> = objects
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|object| {
                format!("{} {}", object["path"].as_str().unwrap(), object["btime"].as_str().unwrap_or(""))
            })
            .collect();
        let shown = out(&tree, &["a", "--order", order, "-f", "%p %BY-%Bm-%BdT%BT\\n"]);
        // RFC 3339 allows any number of digits of a second, and `Z` for UTC.
        let mut expected: Vec<_> =
            shown.lines().map(|line| format!("{}Z", line.trim_end_matches('0'))).collect();
        births.sort_unstable();
        expected.sort_unstable();
        if expected[0].ends_with(" Z") {
            return skip("needs a filesystem that keeps when files were made");
        }
        for (birth, expected) in births.iter().zip(&expected) {
            assert_eq!(
                birth.trim_end_matches('Z').trim_end_matches('0'),
                expected.trim_end_matches('Z'),
                "{order}"
            );
        }
    }
}

#[test]
fn a_root_that_is_nothing_but_slashes_is_called_slash() {
    let tree = Tree::new();
    for (root, name) in [("/", "/"), ("//", "/"), ("/", "*"), ("/", "[/]"), ("/", "a")] {
        let find =
            Command::new("find").args([root, "-maxdepth", "0", "-name", name]).output().unwrap().stdout;
        assert_eq!(out(&tree, &["-d", "0", "-n", name, root]).as_bytes(), find, "{root} {name}");
    }
}

#[test]
fn a_link_that_may_not_be_followed_is_listed_where_its_name_is_enough() {
    if !rustix::process::geteuid().is_root() || on_path("setpriv").is_none() {
        return skip("needs root and setpriv, to run as somebody else");
    }
    let tree = Tree::parse("locked/x 1, d/l -> ../locked/x, d/a 1").mode("locked", 0o700);
    let run = |words: &str| {
        let script = format!("exec 3<\"$0\"; exec setpriv --reuid 65534 --clear-groups {words}");
        let fathom = Program::AsDu.bin().join("fathom");
        let mut command = Command::new("bash");
        command
            .args(["-c", &script])
            .arg(fathom)
            .env("LC_ALL", "C")
            .current_dir(tree.path())
            .output()
            .unwrap()
    };
    for (words, find) in [
        ("-L d", "-L d"),
        ("-L -n l d", "-L d -name l"),
        ("-L -t f d", "-L d -type f"),
        ("-L -s 1 d", "-L d -size 1c"),
        ("-L d -f '%s %p\\n'", "-L d -printf '%s %p\\n'"),
        ("-L d -f '%f\\n'", "-L d -printf '%f\\n'"),
        ("-L -d 0 d/l", "-L d/l -maxdepth 0"),
    ] {
        let expected = run(&format!("find {find}"));
        for order in ["path", "any"] {
            let output = run(&format!("/proc/self/fd/3 list --order={order} {words}"));
            let sorted = |bytes: &[u8]| {
                let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                lines.sort();
                lines
            };
            assert_eq!(sorted(&output.stdout), sorted(&expected.stdout), "{words}: {output:?}");
            assert_eq!(output.status.code(), expected.status.code(), "{words}: {output:?}");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(stderr, "fathom list: cannot access 'd/l': Permission denied\n", "{words}");
        }
    }
}

#[test]
fn expressions_are_bytes_in_the_c_locale() {
    let tree = Tree::parse("\u{e9} 1, e 1");
    assert_eq!(out(&tree, &["--regex", r"\./[é][é]"]), "./\u{e9}\n");
    assert_eq!(out(&tree, &["--regex", r"\./é"]), "./\u{e9}\n");
    assert_eq!(out(&tree, &["--regex", r"\./[^é]"]), "./e\n");
}

#[test]
fn options_of_find_are_refused_with_their_equivalents() {
    let tree = Tree::parse("x 1");
    for (word, meant) in [
        ("-name", "--name"),
        ("-type", "--type"),
        ("-newer", "--newer"),
        ("-maxdepth", "--max-depth"),
        ("-mindepth", "--min-depth"),
        ("-size", "--size"),
        ("-xdev", "--one-file-system"),
        ("-printf", "--format"),
        ("-print0", "--null"),
    ] {
        let stderr = refused(&tree, &[".", word, "x"]);
        assert!(
            stderr.contains(&format!("unrecognized option '{word}', did you mean '{meant}'?")),
            "{stderr}"
        );
    }
    assert_eq!(out(&tree, &["--name", "-name"]), "", "a value is none of them");
}

#[test]
fn an_invalid_value_lists_the_valid_ones() {
    let tree = Tree::new();
    for words in [["--newer", "x1h"], ["--older", "x"]] {
        let stderr = refused(&tree, &words);
        assert!(stderr.contains("a time is like 90s, 1h30m (ago), 2026-01-31"), "{words:?}: {stderr}");
    }
    for word in ["uring=32768", "threads=4097", "uring=0"] {
        let stderr = refused(&tree, &["--io", word]);
        assert!(stderr.contains("N and DEPTH are numbers from 1 to 4096"), "{stderr}");
    }
}

/// As find's `-newer` with `-L`: the reference time is the time of the link's target, whether or
/// not links are followed otherwise.
#[test]
fn the_time_of_a_link_is_that_of_its_target() {
    let tree =
        Tree::parse("old 1, mid 1, new 1, l -> mid").time("old", 100).time("mid", 200).time("new", 300);
    tree.times("l", (50, 0), (50, 0));
    assert_eq!(out(&tree, &["-t", "f", "-n", "[on]*", "--newer", "l"]), "./new\n");
}
