//! Signals: a removal stops at once and says how much it has removed.

use std::fs;
use std::process::Command;

use super::parts;
use crate::support::commands::program;
use crate::support::{Tree, is_ignored};

#[test]
fn a_signal_stops_the_removal_and_says_how_much_was_removed() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if is_ignored(status - 128) {
            continue;
        }
        let tree = Tree::parse("").wide("d", fathom_cases::count(5_000));
        let mut command = Command::new(program());
        command.args(["rm", "-r", "--threads=1", "d"]).current_dir(tree.path()).env("LC_ALL", "C");
        let output = command.env("FATHOM_FAULT", format!("remove-unlink:100:{signal}")).output().unwrap();
        let (code, stdout, stderr) = parts(&output);
        assert_eq!((code, stdout.as_str()), (status, ""), "{stderr}");
        let removed = stderr.strip_prefix("fathom rm: interrupted: removed ").unwrap();
        let removed: usize = removed.strip_suffix(" files\n").unwrap().parse().unwrap();
        let left = fs::read_dir(tree.at("d")).unwrap().count();
        // A stopped removal waits for its worker for a short time only: the file in its hands may
        // be missing in the count.
        let missed = fathom_cases::count(5_000) - removed - left;
        assert!(missed <= 1, "{removed} removed, {left} left");
        assert!(removed >= 99 && left > 0);
    }
}

/// Once, it said that files were removed.
#[test]
fn a_dry_run_that_is_interrupted_says_how_much_it_has_counted() {
    if is_ignored(2) {
        return;
    }
    let tree = Tree::parse("").wide("d", 500);
    let mut command = Command::new(program());
    command.args(["rm", "-r", "--threads=1", "--dry-run", "d"]).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.env("FATHOM_FAULT", "remove-count:100:INT").output().unwrap();
    let (code, stdout, stderr) = parts(&output);
    assert_eq!((code, stdout.as_str()), (130, ""), "{stderr}");
    assert!(
        stderr.starts_with("fathom rm: interrupted: counted ") && stderr.lines().count() == 1,
        "{stderr}"
    );
    assert_eq!(fs::read_dir(tree.at("d")).unwrap().count(), 500);
}

#[test]
fn a_signal_after_a_failure_ends_with_its_number() {
    if is_ignored(2) {
        return;
    }
    let tree = Tree::parse("").wide("d", fathom_cases::count(5_000));
    let mut command = Command::new(program());
    command.args(["rm", "-r", "--threads=1", "missing", "d"]).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.env("FATHOM_FAULT", "remove-unlink:100:INT").output().unwrap();
    let (code, _, stderr) = parts(&output);
    assert_eq!(code, 130, "{stderr}");
    let [failed, interrupted] = stderr.lines().collect::<Vec<_>>()[..] else { panic!("{stderr}") };
    assert_eq!(failed, "fathom rm: cannot remove 'missing': No such file or directory");
    assert!(interrupted.starts_with("fathom rm: interrupted: removed "), "{stderr}");
}

#[test]
fn the_log_of_a_killed_run_has_every_removed_directory() {
    let tree = Tree::new();
    for number in 0..50 {
        tree.file(format!("d/{number}/f"), 1);
    }
    let mut command = Command::new(program());
    command.args(["rm", "-r", "--threads=1", "--log=log", "d"]).current_dir(tree.path());
    let output = command.env("FATHOM_FAULT", "remove-rmdir:30:KILL").output().unwrap();
    assert_eq!(output.status.code(), None);
    let log = fs::read_to_string(tree.at("log")).unwrap();
    let is_directory = |line: &&str| line.contains("\"type\":\"directory\"");
    assert_eq!(log.lines().filter(is_directory).count(), 29);
    assert_eq!(fs::read_dir(tree.at("d")).unwrap().count(), 21);
}
