//! Little memory (`ulimit -v`): programs use fewer workers, or fail with an error; no signal ends
//! them.

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

/// KiB of address space beyond the program's own image, from enough to too little.
const STEPS_KIB: [u64; 12] =
    [24 << 10, 12 << 10, 8 << 10, 6 << 10, 4 << 10, 3 << 10, 2 << 10, 1 << 10, 512, 256, 128, 64];

/// Directories of several sizes, with a wide one.
fn forest() -> Tree {
    let mut tree = Tree::new().wide("d/wide", 3000);
    for number in 0..200 {
        tree = tree.with(&format!("d/{}/{number}/f 10", number % 9));
    }
    tree
}

/// Runs `words`, which may write the inventory `i`, with less and less memory. Each run either
/// completes with a result that `is_right` accepts, or fails with an error message; no signal ends
/// it. Returns the number of runs that completed.
fn completed(tree: &Tree, words: &str, is_right: impl Fn(&Output) -> bool) -> usize {
    let image = image_kib(tree);
    let mut done = 0;
    for more_kib in STEPS_KIB {
        for left in ["i", "i.part"] {
            let _ = std::fs::remove_dir_all(tree.path().join(left));
        }
        let output = within(tree, image + more_kib, words);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.signal(), None, "{words}, {more_kib} KiB more than the program: {stderr}");
        if output.status.success() {
            assert!(is_right(&output), "{words}, {more_kib} KiB");
            done += 1;
        } else {
            assert!(matches!(output.status.code(), Some(1 | 2)), "{words}, {more_kib} KiB: {output:?}");
            assert!(!stderr.is_empty() && !stderr.contains("panicked"), "{words}, {more_kib} KiB: {stderr}");
        }
    }
    done
}

#[test]
fn under_decreasing_limits_du_and_list_complete_or_report_an_error() {
    let tree = forest();
    for words in
        ["du -a d", "du --io=threads=8 -s d d/1", "list d", "list --order=any -c d", "du --io=async-par -s d"]
    {
        let whole = within(&tree, 1 << 24, words);
        let is_whole = |output: &Output| words.contains("any") || output.stdout == whole.stdout;
        let done = completed(&tree, words, is_whole);
        // GNU du succeeds with about 4 MiB.
        assert!(done >= 4 || words.contains("async"), "{words}: done {done} times");
    }
}

/// Returns the lines of every entry in an inventory.
fn listed_entries(tree: &Tree, inventory: &str) -> Vec<u8> {
    let output = within(tree, 1 << 24, &format!("du -a --from {inventory}"));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    output.stdout
}

#[test]
fn under_decreasing_limits_an_inventory_is_complete_or_an_error_is_reported() {
    let tree = forest();
    assert!(within(&tree, 1 << 24, "scan -o whole d").status.success());
    let expected = listed_entries(&tree, "whole");
    for words in ["scan -o i d", "scan --io=threads=8 -o i d", "merge -o i whole"] {
        let done = completed(&tree, words, |_| listed_entries(&tree, "i") == expected);
        assert!(done >= 3, "{words}: done {done} times");
    }
}

/// The stack of the main thread grows when it is used, which a limit may forbid by then: the kernel
/// sent SIGSEGV to a scan that began to write, with 2,048 KiB more than the program.
#[test]
fn no_limit_of_memory_kills_a_scan() {
    let tree = forest();
    let image = image_kib(&tree);
    for more_kib in (0..4 << 10).step_by((4 << 10) / fathom_cases::count(100)) {
        for left in ["i", "i.part"] {
            let _ = std::fs::remove_dir_all(tree.path().join(left));
        }
        let output = within(&tree, image + more_kib as u64, "scan -o i d");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0..=2)), "{more_kib} KiB: {:?}: {stderr}", output.status);
    }
}

#[test]
fn under_decreasing_limits_an_inventory_is_read_or_an_error_is_reported() {
    let tree = forest();
    assert!(within(&tree, 1 << 24, "scan -o whole d").status.success());
    for words in ["top --by dir whole", "du -a --from whole", "diff whole whole", "export --to nul whole"] {
        let whole = within(&tree, 1 << 24, words);
        let done = completed(&tree, words, |output| output.stdout == whole.stdout);
        assert!(done >= 3, "{words}: done {done} times");
    }
}
