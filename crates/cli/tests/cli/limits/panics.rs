//! A panic of a worker thread, injected: an error with exit status 2, in every command that walks.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::support::program::Program;
use crate::support::{Tree, skip};

/// Runs `fathom`, called as `name`, with `words`. The worker panics that begins the third task.
fn panicked(tree: &Tree, name: &str, words: &str) -> Output {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.arg0(name).args(words.split_whitespace()).current_dir(tree.path());
    command.env("FATHOM_FAULT", "walk-task:3:PANIC").env("LC_ALL", "C").output().unwrap()
}

#[test]
fn a_panic_of_a_worker_is_an_error_with_status_2() {
    if !cfg!(debug_assertions) {
        return skip("needs a build with debug assertions, which has points to panic at");
    }
    let tree = Tree::parse("d/a/f 1, d/b/f 1, d/c/f 1, d/e/g/f 1");
    for (name, words) in [
        ("du", "d"),
        ("fathom", "du d"),
        ("fathom", "du --io threads=3 d"),
        ("fathom", "du --io uring d"),
        ("fathom", "list d"),
        ("fathom", "list --order any d"),
        ("fathom", "scan d -o scanned"),
    ] {
        let output = panicked(&tree, name, words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name} {words}: {output:?}");
        assert!(stderr.contains("panicked at crates/cli/src/fault.rs:"), "{name} {words}: {stderr}");
        assert!(stderr.contains("injected at 'walk-task'\n"), "{name} {words}: {stderr}");
        assert!(stderr.contains("a worker thread panicked, which is a bug\n"), "{name} {words}: {stderr}");
    }
    assert!(!tree.path().join("scanned").exists(), "a scan that failed has published an inventory");
}
