//! Few threads, or none but the first (`RLIMIT_NPROC`, which does not bind root: the programs run
//! as a user of the test's own, with no other process).

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use super::MODELS;
use crate::support::program::Program;
use crate::support::{Tree, needs_tool, skip};

/// Returns a tree with directories of several shapes, wide and deep.
fn forest() -> Tree {
    let mut tree = Tree::new();
    for number in 0..fathom_cases::count(60) {
        tree.dir(format!("d/{}/{number}", number % 7));
        tree.file(format!("d/{}/{number}/f", number % 7), 5000);
    }
    tree = tree.wide("d/wide", fathom_cases::count(1500));
    tree.deep("d/deep", 60, 3)
}

/// Runs `fathom` with `words` as a user that may have `limit` threads. Returns `None` if the test
/// cannot switch to such a user.
fn limited(tree: &Tree, limit: u32, words: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        skip("needs root, to run as a user without other processes");
        return None;
    }
    if !needs_tool("setpriv") || !needs_tool("prlimit") {
        return None;
    }
    // Take a UID that has no other processes, on this machine or of a parallel run: RLIMIT_NPROC
    // counts all processes of a user.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let uid =
        1_000_000_000 + std::process::id() % 1_000_000 * 1000 + RUNS.fetch_add(1, Ordering::Relaxed) % 1000;
    let script = format!(
        "exec 3<\"$0\"; exec setpriv --reuid {uid} --regid {uid} --clear-groups prlimit --nproc={limit} /proc/self/fd/3 {words}"
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).arg(Program::AsDu.bin().join("fathom"));
    Some(command.current_dir(tree.path()).env("LC_ALL", "C").output().unwrap())
}

#[test]
fn with_one_thread_du_and_list_complete() {
    let tree = forest();
    for words in [
        "du -a d",
        "du -sL d d/1",
        "list d",
        "list -L d missing",
        "list --order=any -s +0 d",
        "du --io=sync d",
        "list --io=threads=4 d",
        "du --io=uring -a d",
        "list --io=uring -j d",
        "list --io=uring --order=any -c d",
    ] {
        let Some(free) = limited(&tree, 1000, words) else { return };
        let Some(alone) = limited(&tree, 1, words) else { return };
        let sorted = |bytes: &[u8]| {
            let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            lines.sort();
            lines
        };
        assert_eq!((&alone.stderr, alone.status), (&free.stderr, free.status), "{words}");
        if words.contains("any") {
            assert_eq!(sorted(&alone.stdout), sorted(&free.stdout), "{words}");
        } else {
            assert_eq!(alone.stdout, free.stdout, "{words}");
        }
    }
}

#[test]
fn with_one_thread_scan_completes_and_an_estimate_names_the_limit() {
    let tree = forest();
    tree.dir("out");
    std::fs::set_permissions(tree.path().join("out"), Permissions::from_mode(0o777)).unwrap();
    for (name, limit) in [("free", 1000), ("alone", 1)] {
        let Some(output) = limited(&tree, limit, &format!("scan -o out/{name} d")) else { return };
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
    // Each run has a user of its own, so read both inventories as root.
    let printed = |name: &str| {
        let mut command = Command::new(Program::AsDu.bin().join("fathom"));
        command.args(["du", "-a", "--from", name]).current_dir(tree.path()).output().unwrap().stdout
    };
    assert_eq!(printed("out/alone"), printed("out/free"));
    let Some(output) = limited(&tree, 1, "scan --estimate 1s d") else { return };
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("no thread can be started: the limit on processes, RLIMIT_NPROC, is 1"),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(2));
}

/// tokio's blocking calls need a thread of their own. Rings need kernel threads; without them, the
/// calls are made directly.
#[test]
fn with_few_threads_every_model_works_or_names_the_limit() {
    let tree = forest();
    let Some(expected) = limited(&tree, 1000, "list -s +0 d") else { return };
    let (default, others) = MODELS.split_last().unwrap();
    for model in fathom_cases::engines(default, &others.iter().collect::<Vec<_>>()) {
        for limit in 1..=4 {
            // One worker, and as many as the limit allows.
            for threads in [1, 4].into_iter().filter(|threads| *threads == 1 || limit > 2) {
                let words = format!("list --io={model} --threads={threads} -s +0 d");
                let Some(output) = limited(&tree, limit, &words) else { return };
                let stderr = String::from_utf8(output.stderr).unwrap();
                let needed = if model.starts_with("async") { 3 } else { 1 };
                if limit < needed {
                    let cause = format!("the limit on processes, RLIMIT_NPROC, is {limit}");
                    assert!(stderr.contains(&cause), "{words}, limit {limit}: {stderr}");
                    assert_eq!(output.status.code(), Some(2), "{words}, limit {limit}");
                } else {
                    assert_eq!(
                        (stderr.as_str(), output.status.code()),
                        ("", Some(0)),
                        "{words}, limit {limit}"
                    );
                    assert_eq!(output.stdout, expected.stdout, "{words}, limit {limit}");
                }
            }
        }
    }
}
