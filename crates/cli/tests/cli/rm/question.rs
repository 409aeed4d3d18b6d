//! The question on a terminal: standard input is a pseudo-terminal on which the answer has been
//! typed already.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{amount, left, parts};
use crate::support::commands::program;
use crate::support::{Tree, is_ignored};

fn answered(tree: &Tree, words: &[&str], answer: &str) -> (i32, String, String) {
    parts(&on_terminal(tree, words, answer, |_| ()))
}

/// Returns a command whose standard input is a terminal, and that terminal.
fn with_terminal(tree: &Tree, words: &[&str]) -> (Command, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    let mut command = Command::new(program());
    command.arg("rm").args(words).current_dir(tree.path()).env("LC_ALL", "C");
    command.stdin(slave).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command, File::from(master))
}

/// Runs a command that `change` has completed.
fn on_terminal(tree: &Tree, words: &[&str], answer: &str, change: impl FnOnce(&mut Command)) -> Output {
    let (mut command, mut master) = with_terminal(tree, words);
    master.write_all(format!("{answer}\n").as_bytes()).unwrap();
    change(&mut command);
    command.output().unwrap()
}

#[test]
fn a_file_that_appears_during_the_question_stays() {
    let tree = Tree::parse("a 1");
    let (mut command, mut master) = with_terminal(&tree, &["late", "a"]);
    let mut child = command.spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"[y/N] ") && stderr.read(&mut byte).unwrap() > 0 {
        text.push(byte[0]);
    }
    tree.file("late", 1);
    master.write_all(b"y\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let text = String::from_utf8(text).unwrap();
    let missing = "fathom rm: cannot remove 'late': No such file or directory\n";
    assert!(text.starts_with(&format!("{missing}fathom rm: remove 1 file (")), "{text}");
    assert_eq!(left(&tree), "late");
}

#[test]
fn files_need_a_yes() {
    let tree = Tree::parse("a 1, b 1");
    let question = format!("fathom rm: remove 2 files {}? [y/N] ", amount(&tree, &["a", "b"], &[]));
    for answer in ["", "n", "2", "no way"] {
        assert_eq!(answered(&tree, &["a", "b"], answer), (1, String::new(), question.clone()), "{answer}");
        assert_eq!(left(&tree), "a b");
    }
    assert_eq!(answered(&tree, &["a", "b"], "y"), (0, String::new(), question.clone()));
    assert_eq!(left(&tree), "");
}

#[test]
fn directories_need_a_yes() {
    let tree = Tree::parse("d/a 1, d/e/b = d/a, d/c 1, other = d/c, kept");
    let sums = amount(&tree, &["d", "d/a", "d/e"], &["other"]);
    let question = format!("fathom rm: remove 3 files and 2 directories {sums}? [y/N] ");
    for answer in ["", "no", "3"] {
        assert_eq!(answered(&tree, &["-r", "d"], answer), (1, String::new(), question.clone()), "{answer}");
    }
    assert_eq!(left(&tree), "d d/a d/c d/e d/e/b kept other");
    assert_eq!(answered(&tree, &["-r", "d"], "y"), (0, String::new(), question.clone()));
    assert_eq!(left(&tree), "kept other");
}

#[test]
fn more_than_a_hundred_files_need_their_number() {
    let tree = Tree::parse("").wide("d", 101);
    let asked = "Type the number of files to confirm: ";
    for (answer, message) in [
        ("", ""),
        ("n", ""),
        ("y", "fathom rm: 'y' is not the number of files: nothing was removed\n"),
        ("102", "fathom rm: '102' is not the number of files: nothing was removed\n"),
    ] {
        let (status, _, stderr) = answered(&tree, &["-r", "d"], answer);
        assert_eq!((status, stderr.split_once(asked).unwrap().1), (1, message), "{answer}");
    }
    assert_eq!(std::fs::read_dir(tree.at("d")).unwrap().count(), 101);
    assert_eq!(answered(&tree, &["-r", "d"], "101").0, 0);
    assert_eq!(left(&tree), "");
}

#[test]
fn no_question_is_asked_with_f_for_a_dry_run_or_for_nothing() {
    let tree = Tree::parse("a 1, b 1");
    assert_eq!(answered(&tree, &["-f", "a"], "n"), (0, String::new(), String::new()));
    let plan = format!("would remove 1 file {}\n", amount(&tree, &["b"], &[]));
    assert_eq!(answered(&tree, &["--dry-run", "b"], "n"), (0, plan, String::new()));
    let message = "fathom rm: cannot remove 'no': No such file or directory\n";
    assert_eq!(answered(&tree, &["no"], "n"), (1, String::new(), message.into()));
    assert_eq!(left(&tree), "b");
}

#[test]
fn a_signal_ends_the_program_while_it_counts() {
    if is_ignored(2) {
        return;
    }
    let tree = Tree::parse("d/a 1, d/b 1");
    let output = on_terminal(&tree, &["-r", "d"], "2", |command| {
        command.env("FATHOM_FAULT", "walk-task:1:INT");
    });
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(2), "{output:?}");
    assert_eq!(left(&tree), "d d/a d/b");
}
