//! `fathom explore` in a real terminal, which tmux provides: keys, sizes, job control, and that the
//! terminal is as it was before however the program ends.

mod ends;
mod full_disk;
mod session;
pub(crate) mod tmux;

use std::process::Stdio;

use crate::support::Tree;
use crate::support::commands::program;

#[test]
fn without_a_terminal_there_is_an_error_and_nothing_is_walked() {
    let tree = Tree::parse("d/a 5");
    for (words, expected) in [
        (&["explore", "d"][..], "fathom explore: standard input is not a terminal\n"),
        (&["explore", "--print0-marked", "d"], "fathom explore: standard input is not a terminal\n"),
    ] {
        let mut command = std::process::Command::new(program());
        let output = command.args(words).current_dir(tree.path()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn wrong_command_lines_are_refused() {
    let tree = Tree::parse("d/a 5");
    for (words, expected) in [
        (&["explore", "--sort=x"][..], "invalid argument"),
        (&["explore", "--io=x"], "invalid argument"),
        (&["explore", ""], "invalid zero-length file name"),
    ] {
        let output = crate::support::commands::fathom(&tree, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{words:?}: {output:?}");
    }
}
