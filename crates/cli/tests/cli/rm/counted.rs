//! The numbers of a question hold: what several operands share counts once, and nothing more is
//! removed than was confirmed.

use std::fs;

use super::{LESS, left, run};
use crate::explore::tmux::Tmux;
use crate::support::{Tree, needs_mounts, needs_tool};

#[test]
fn what_operands_share_is_counted_once() {
    let tree = Tree::parse("d/sub/a 1, d/sub/b 1, d/c 1, e 1");
    tree.hard_link("d/other", "d/c");
    let count = |words: &[&str]| run(&tree, &[&["-r", "--dry-run"], words].concat()).1;
    let amount = |text: &str| text.split(" (").next().unwrap().to_owned();
    for (operands, expected) in [
        (&["d"][..], "would remove 4 files and 2 directories"),
        (&["d", "d"], "would remove 4 files and 2 directories"),
        (&["d/", "./d", "d/sub", "d/sub/a", "d/sub/../sub/b"], "would remove 4 files and 2 directories"),
        (&["d/sub/a", "d/sub", "d", "e"], "would remove 5 files and 2 directories"),
        // Two names of one file are two.
        (&["d/c", "d/other"], "would remove 2 files"),
        (&["d/sub", "d/sub/a", "d/sub/a"], "would remove 2 files and 1 directory"),
    ] {
        for threads in ["1", "4"] {
            let out = count(&[&["--threads", threads], operands].concat());
            assert_eq!(amount(&out), expected, "{operands:?}");
        }
    }
    let names = run(&tree, &["-r", "-v", "--dry-run", "d/sub", "d/sub/a"]).1;
    assert_eq!(names.matches("'d/sub/a'").count(), 1, "{names}");
}

/// Once, what appeared in a directory after the question went, too.
#[test]
fn more_than_was_confirmed_is_asked_about_again() {
    let Some(tmux) = Tmux::start(Tree::parse("d/a 1, d/b 1")) else { return };
    tmux.line("fathom rm -r d; echo status $?.");
    tmux.wait_for("remove 2 files and 1 directory");
    fs::write(tmux.tree.at("d/later"), "").unwrap();
    fs::write(tmux.tree.at("d/latest"), "").unwrap();
    tmux.line("y");
    tmux.wait_for("more entries appeared after the count; removed 2 files so far");
    tmux.wait_for("remove 2 files and 1 directory");
    assert_eq!(fs::read_dir(tmux.tree.at("d")).unwrap().count(), 2);
    tmux.line("n");
    tmux.wait_for("status 1.");
    assert_eq!(fs::read_dir(tmux.tree.at("d")).unwrap().count(), 2);
    tmux.line("clear; fathom rm -r d; echo status $?.");
    tmux.wait_for("[y/N]");
    tmux.line("y");
    tmux.wait_for("status 0.");
    assert!(!tmux.tree.at("d").exists());
}

/// Once, the question had only what was counted, though more was tried.
#[test]
fn what_could_not_be_looked_into_is_a_part_of_the_question() {
    if !needs_tool("setpriv") {
        return;
    }
    let tree = Tree::parse("d/unreadable/f 1, d/open/f 1").mode("d/unreadable", 0);
    let Some(tmux) = Tmux::start(tree) else { return };
    let less = if rustix::process::geteuid().is_root() { LESS.join(" ") } else { String::new() };
    tmux.line(&format!("setpriv {less} fathom rm -r d; echo status $?."));
    tmux.wait_for("cannot open directory 'd/unreadable': Permission denied");
    tmux.wait_for("remove 1 file and 3 directories (");
    tmux.line("y");
    tmux.wait_for("status 1.");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tmux.tree.at("d/unreadable"), mode).unwrap();
    assert_eq!(left(&tmux.tree), "d d/unreadable d/unreadable/f");
}

#[test]
fn what_stays_is_said_before_the_question() {
    if !needs_mounts() {
        return;
    }
    let Some(tmux) = Tmux::start(Tree::parse("d/m/x 1, d/a 1")) else { return };
    tmux.line("unshare -m sh -c 'mount -t tmpfs none d/m && fathom rm -r d'; echo status $?.");
    tmux.wait_for("cannot remove 'd/m': ");
    tmux.wait_for("remove 1 file ");
    tmux.line("n");
    tmux.wait_for("status 1.");
    assert_eq!(left(&tmux.tree), "d d/a d/m d/m/x");
}
