//! Little memory (`ulimit -v`): fewer workers, then an error; no signal.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use crate::support::Tree;
use crate::support::program::Program;

/// Runs `fathom` with `words` in at most `kib` of address space.
fn within(tree: &Tree, kib: u64, words: &str) -> Output {
    let script = format!("ulimit -v {kib}; exec \"$0\" {words}");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).arg(Program::AsDu.bin().join("fathom"));
    command.current_dir(tree.path()).env("LC_ALL", "C").output().unwrap()
}

/// KiB of address space that the program takes before it does anything: with less, the kernel
/// cannot start it.
fn image_kib(tree: &Tree) -> u64 {
    let (mut low, mut high) = (0, 1 << 20);
    while high - low > 64 {
        let middle = u64::midpoint(low, high);
        let starts = within(tree, middle, "--version").status.success();
        (low, high) = if starts { (low, middle) } else { (middle, high) };
    }
    high
}

#[test]
fn with_decreasing_limits_the_work_is_done_or_an_error_says_why_not() {
    let mut tree = Tree::new().wide("d/wide", 3000);
    for number in 0..200 {
        tree = tree.with(&format!("d/{}/{number}/f 10", number % 9));
    }
    let image = image_kib(&tree);
    for words in
        ["du -a d", "du --io=threads=8 -s d d/1", "list d", "list --order=any -c d", "du --io=async-par -s d"]
    {
        let whole = within(&tree, 1 << 24, words);
        let mut done = 0;
        for more_kib in
            [24 << 10, 12 << 10, 8 << 10, 6 << 10, 4 << 10, 3 << 10, 2 << 10, 1 << 10, 512, 256, 128, 64]
        {
            let output = within(&tree, image + more_kib, words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.signal(), None, "{words}, {more_kib} KiB more than the program: {said}");
            if output.status.success() {
                assert!(words.contains("any") || output.stdout == whole.stdout, "{words}, {more_kib} KiB");
                done += 1;
            } else {
                assert!(!said.is_empty(), "{words}, {more_kib} KiB");
            }
        }
        // GNU du does with about 4 MiB what it can do at all.
        assert!(done >= 4 || words.contains("async"), "{words}: done {done} times");
    }
}
