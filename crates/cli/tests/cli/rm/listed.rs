//! `fathom rm --from0`: what is removed is what was listed, and where it was listed.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use super::{left, parts, run_with_input};
use crate::explore::tmux::Tmux;
use crate::support::commands::{program, stdout_of};
use crate::support::{Tree, needs_tool};

const LINK: &str = "A symbolic link is in its path\n";

/// Once, whoever owned a directory of the tree led the removal out of it.
#[test]
fn a_link_in_the_place_of_a_listed_directory_is_not_followed() {
    for is_absolute in [false, true] {
        let tree = Tree::parse("srv/u/a.log 1, etc/a.log 1");
        let top = if is_absolute { tree.at("srv").display().to_string() } else { "srv".to_owned() };
        let list = stdout_of(&tree, &["list", "-n", "*.log", "-0", &top]);
        fs::rename(tree.at("srv/u"), tree.at("srv/v")).unwrap();
        symlink("../etc", tree.at("srv/u")).unwrap();
        let (status, out, err) = run_with_input(&tree, &["-f", "--from0=-"], &list);
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        assert_eq!(err, format!("fathom rm: cannot remove '{top}/u/a.log': {LINK}"));
        assert_eq!(left(&tree), "etc etc/a.log srv srv/u srv/v srv/v/a.log");
    }
}

#[test]
fn listed_paths_are_below_the_working_directory_or_the_given_one() {
    let tree = Tree::parse("d/a 1, d/b/c 1, e/a 1, f 1");
    symlink("d", tree.at("l")).unwrap();
    let outside = "The path leads out of its directory\n";
    let ended = run_with_input(&tree, &["-f", "--from0=-"], b"d/../f\0");
    assert_eq!(ended, (1, String::new(), format!("fathom rm: cannot remove 'd/../f': {outside}")));
    let ended = run_with_input(&tree, &["-f", "--root=d", "--from0=-"], b"d/a\0e/a\0d/./b//c\0");
    assert_eq!(ended, (1, String::new(), format!("fathom rm: cannot remove 'e/a': {outside}")));
    assert_eq!(left(&tree), "d d/b e e/a f l");
    // The directory that is given may be a link, no other.
    fs::write(tree.at("d/a"), "").unwrap();
    let ended = run_with_input(&tree, &["-f", "--from0=-"], b"l/a\0");
    assert_eq!(ended, (1, String::new(), format!("fathom rm: cannot remove 'l/a': {LINK}")));
    assert_eq!(run_with_input(&tree, &["-f", "--root=l", "--from0=-"], b"l/a\0").0, 0);
    assert_eq!(left(&tree), "d d/b e e/a f l");
}

#[test]
fn with_ids_nothing_is_removed_but_what_was_listed() {
    let tree = Tree::parse("d/same 1, d/other 1, d/changed 1, d/sub/x 1, spare 1");
    let list = stdout_of(&tree, &["list", "--ids", "d"]);
    fs::rename(tree.at("spare"), tree.at("d/other")).unwrap();
    fs::write(tree.at("d/changed"), "longer").unwrap();
    let (status, _, err) = run_with_input(&tree, &["-f", "--ids", "--from0=-"], &list);
    assert_eq!(status, 1, "{err}");
    assert_eq!(left(&tree), "d d/changed d/other d/sub");
    let replaced = "It has been replaced or changed since it was shown";
    for name in ["d/changed", "d/other"] {
        assert!(err.contains(&format!("fathom rm: cannot remove '{name}': {replaced}\n")), "{err}");
    }
    if needs_tool("find") {
        let words = ["d/changed", "-printf", "%D %i %C@ %p\\0"];
        let list = Command::new("find").args(words).current_dir(tree.path()).output().unwrap().stdout;
        assert_eq!(list, stdout_of(&tree, &["list", "--ids", "d/changed"]));
        assert_eq!(run_with_input(&tree, &["-f", "--ids", "--from0=-"], &list).0, 0);
        assert_eq!(left(&tree), "d d/other d/sub");
    }
    let (status, _, err) = run_with_input(&tree, &["-f", "--ids", "--from0=-"], b"d/other\0");
    assert_eq!(status, 1);
    assert!(err.starts_with("fathom rm: '-' has a path without device, inode and time"), "{err}");
    assert_eq!(left(&tree), "d d/other d/sub");
}

#[test]
fn a_list_on_standard_input_needs_a_terminal_or_f() {
    let tree = Tree::parse("a 1");
    let without_terminal = |words: &[&str]| {
        let mut command = Command::new("setsid");
        command.arg("-w").arg(program()).arg("rm").args(words).current_dir(tree.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may end without reading it.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"a\0");
        parts(&child.wait_with_output().unwrap())
    };
    let message = "fathom rm: cannot ask for confirmation: standard input is the list, and there is no terminal; use -f\n";
    assert_eq!(without_terminal(&["--from0=-"]), (2, String::new(), message.into()));
    assert_eq!(left(&tree), "a");
    assert_eq!(without_terminal(&["--dry-run", "--from0=-"]).0, 0);
    assert_eq!(without_terminal(&["-f", "--from0=-"]), (0, String::new(), String::new()));
    assert_eq!(left(&tree), "");
}

#[test]
fn a_list_on_standard_input_is_asked_about_on_the_terminal() {
    let Some(tmux) = Tmux::start(Tree::parse("d/a 1, d/b 1")) else { return };
    tmux.line("fathom list -t f -0 d | fathom rm --from0 -; echo status $?.");
    tmux.wait_for("remove 2 files");
    tmux.line("n");
    tmux.wait_for("status 1.");
    assert!(tmux.tree.at("d/a").exists());
    tmux.line("clear; fathom list -t f -0 d | fathom rm --from0 -; echo status $?.");
    tmux.wait_for("remove 2 files");
    tmux.line("y");
    tmux.wait_for("status 0.");
    assert!(!tmux.tree.at("d/a").exists() && !tmux.tree.at("d/b").exists());
}
