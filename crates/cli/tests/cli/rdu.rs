//! The three small du programs: the same sums with each I/O model, in the format of `du -hs`.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::process::{Command, Output};

use crate::support::Tree;

const PROGRAMS: [&str; 3] = [
    env!("CARGO_BIN_EXE_rdu-sync"),
    env!("CARGO_BIN_EXE_rdu-async-seq"),
    env!("CARGO_BIN_EXE_rdu-async-par"),
];

fn forest() -> Tree {
    Tree::parse("t/a/x 6000, t/a/y = t/a/x, t/b 200, t/l -> b, t/p |, t/a/d/z ~1000, link -> t")
}

fn run(program: &str, tree: &Tree, words: &str) -> Output {
    Command::new(program).args(words.split_whitespace()).current_dir(tree.path()).output().expect("it runs")
}

/// Asserts that each program prints `expected` for `words`, in any order.
#[track_caller]
fn all_print(tree: &Tree, words: &str, expected: &[&str]) {
    for program in PROGRAMS {
        let output = run(program, tree, words);
        assert!(output.status.success() && output.stderr.is_empty(), "{program} {words}: {output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{program} {words}");
        assert!(text.ends_with('\n'));
    }
}

#[test]
fn the_size_is_the_sum_of_the_lengths_of_regular_files() {
    all_print(&forest(), "-s t", &["13200\tt"]);
    all_print(&forest(), "-hs t", &["13K\tt"]);
    all_print(&forest(), "-sh t/a t/b link", &["13K\tlink", "13K\tt/a", "200\tt/b"]);
    all_print(&forest(), "-s t t", &["13200\tt", "13200\tt"]);
    all_print(&forest(), "-s", &["13200\t."]);
}

#[test]
fn without_s_every_directory_has_a_line() {
    all_print(&forest(), "t", &["1000\tt/a/d", "13000\tt/a", "13200\tt"]);
    all_print(&forest(), "-h t/a", &["1000\tt/a/d", "13K\tt/a"]);
}

#[test]
fn an_error_is_reported_under_the_programs_name_and_does_not_end_it() {
    for (program, name) in PROGRAMS.iter().zip(["rdu-sync", "rdu-async-seq", "rdu-async-par"]) {
        let output = run(program, &forest(), "-s missing t");
        assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b"13200\tt\n"[..]));
        let message = format!("{name}: cannot access 'missing': No such file or directory\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), message);
    }
}

#[test]
fn a_full_device_is_an_error() {
    for program in PROGRAMS {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut command = Command::new(program);
        let output = command.current_dir(forest().path()).stdout(full).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(
            String::from_utf8_lossy(&output.stderr).ends_with(": write error: No space left on device\n")
        );
    }
}

#[test]
fn help_is_an_answer_and_an_unknown_option_is_not() {
    for program in PROGRAMS {
        let help = run(program, &forest(), "--help");
        assert!(help.status.success() && help.stdout.starts_with(b"Usage: rdu-"), "{help:?}");
        let output = run(program, &forest(), "-k t");
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
        assert!(String::from_utf8_lossy(&output.stderr).contains("invalid option -- 'k'\n"), "{output:?}");
    }
}
