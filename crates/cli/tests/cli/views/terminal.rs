//! Output to a terminal: its size, colours, and quoting of hostile names. script(1) provides the
//! terminal.

use std::process::{Command, Stdio};

use crate::support::{Tree, du, skip};
use crate::views::{FATHOM, prints};

const ESCAPE: char = '\x1b';

/// Returns the output of `fathom du` with `words` on a terminal of 10 lines and 70 columns; `None`
/// without script(1).
fn on_terminal(tree: &Tree, words: &str, env: &[(&str, &str)]) -> Option<String> {
    let bin = FATHOM.bin().join("fathom");
    let line = format!("stty rows 10 cols 70; exec '{}' du {words}", bin.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(tree.path()).stdin(Stdio::null());
    for name in ["LINES", "COLUMNS", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm").envs(env.iter().copied());
    let Ok(output) = command.output() else {
        skip("no script(1)");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

#[test]
fn the_tree_has_the_terminals_size_and_colours() {
    let tree = Tree::new().wide("t", 50);
    let Some(text) = on_terminal(&tree, "--tree --inodes -a t", &[]) else { return };
    assert_eq!(text.lines().count(), 9, "{text}");
    assert!(text.contains("\x1b[1;34mt/\x1b[m") && text.contains("\x1b[32m"), "{text:?}");
    let shown =
        text.replace("\x1b[32m", "").replace("\x1b[1;34m", "").replace("\x1b[2m", "").replace("\x1b[m", "");
    let expected = du(&tree, "--tree --inodes -a t").env("LINES", "10").env("COLUMNS", "70").run(FATHOM);
    assert_eq!(shown, expected.out());
}

#[test]
fn no_color_and_never_turn_colours_off() {
    let tree = Tree::parse("t/f 5");
    for (words, env) in [
        ("--tree t", &[("NO_COLOR", "1")][..]),
        ("--tree t", &[("TERM", "dumb")]),
        ("--tree --color=never t", &[]),
    ] {
        let Some(text) = on_terminal(&tree, words, env) else { return };
        assert!(text.contains("100%") && !text.contains(ESCAPE), "{words}: {text:?}");
    }
    let Some(text) = on_terminal(&tree, "--tree t", &[("NO_COLOR", "")]) else { return };
    assert!(text.contains(ESCAPE), "{text:?}");
}

#[test]
fn a_pipe_has_colours_only_if_they_are_asked_for() {
    let tree = Tree::parse("t/f 5");
    assert!(!prints(&tree, "--tree t").contains(ESCAPE));
    let outcome = du(&tree, "--tree --color=always t").env("NO_COLOR", "1").run(FATHOM);
    assert!(outcome.out().contains(ESCAPE));
}

#[test]
fn hostile_names_are_quoted() {
    let tree = Tree::new();
    tree.file("t/a\x1b[31m.x\x1b]0;y\x07", 5);
    for words in ["--top=9 -b t", "--by=ext -b t", "--tree -ab --color=never t", "--json -ab t"] {
        let Some(text) = on_terminal(&tree, words, &[]) else { return };
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{words}: {text:?}");
        assert!(text.contains("]0;y"), "{words}: {text:?}");
    }
}
