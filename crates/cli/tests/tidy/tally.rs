//! The last line of `make test`, which tools/tally.awk computes from the logs of the steps. A wrong
//! sum would let a failed step pass.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::tree::top;

/// Returns what is printed, and the exit status, for the log of one run.
fn printed(log: &str) -> (String, Option<i32>) {
    let mut awk = Command::new("awk")
        .arg("-f")
        .arg(top().join("tools/tally.awk"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("awk is on every Unix");
    awk.stdin.take().expect("it is piped").write_all(log.as_bytes()).expect("awk reads to the end");
    let output = awk.wait_with_output().expect("awk ends at the end of its input");
    (String::from_utf8(output.stdout).expect("the names in the log are UTF-8"), output.status.code())
}

/// Returns the last line and the exit status for the log of one run.
fn tally(log: &str) -> (String, Option<i32>) {
    let (text, status) = printed(log);
    (text.lines().last().unwrap_or_default().to_string(), status)
}

/// The output of libtest for one binary with `--show-output`.
const SUITE: &str = "running 4 tests\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nskipped: no /dev/fuse\n\
                     skipped: nor this\n\n---- b stdout ----\nseed 7\n\n\nsuccesses:\n    a\n    b\n\n\
                     test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

#[test]
fn suites_and_plain_steps_are_summed_and_skips_are_not_passes() {
    let log = format!("step fmt 0\n{SUITE}{SUITE}step tests 0\n");
    assert_eq!(tally(&log), ("5 passed, 0 failed, 4 skipped".to_string(), Some(0)));
}

#[test]
fn a_failed_test_counts_and_so_does_its_exit() {
    let suite =
        "test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n";
    let log = format!("{suite}step tests 101\nstep doc 0\n");
    assert_eq!(tally(&log), ("8 passed, 2 failed, 0 skipped".to_string(), Some(1)));
}

#[test]
fn a_failed_test_is_printed_with_what_it_wrote() {
    let suite = "test a ... FAILED\n\nsuccesses:\n\n---- b stdout ----\nseed 7\n\n\nsuccesses:\n    b\n\n\
                 failures:\n\n---- a stdout ----\nthread 'a' panicked at t.rs:1:\n9 KiB for one\n\n\
                 failures:\n    a\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n";
    let python = "FAIL: test_c (test_c.C)\n-----\nTraceback (most recent call last):\nAssertionError: 1 != 2\n\n\
                  Ran 1 test in 0.1s\n\nFAILED (failures=1)\n";
    let (text, _) = printed(&format!("{suite}step tests 101\n{python}step python 1\n"));
    let told = "failed: a\na:\n    thread 'a' panicked at t.rs:1:\n    9 KiB for one\n    \
                FAIL: test_c (test_c.C)\n    Traceback (most recent call last):\n    \
                AssertionError: 1 != 2\n1 passed, 2 failed, 0 skipped\n";
    assert_eq!(text, told);
}

#[test]
fn suites_in_python_are_summed_too() {
    let log = "Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\nstep python 1\n\
               Ran 1 test in 0.1s\n\nOK\nstep more 0\n";
    assert_eq!(tally(log), ("4 passed, 3 failed, 1 skipped".to_string(), Some(1)));
}

#[test]
fn a_step_that_breaks_without_a_failed_test_is_a_failure() {
    let compiles =
        "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n";
    let log = format!("{compiles}error: could not compile `x`\nstep tests 101\nstep clippy 1\n");
    assert_eq!(tally(&log), ("7 passed, 2 failed, 0 skipped".to_string(), Some(1)));
}

#[test]
fn a_step_that_ran_out_of_time_is_a_failure_of_its_own() {
    let log = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\nstep tests 124\n";
    assert_eq!(tally(log), ("1 passed, 2 failed, 0 skipped".to_string(), Some(1)));
}

#[test]
fn a_step_that_cannot_run_here_is_skipped() {
    assert_eq!(tally("step fuzz 77\nstep fmt 0\n"), ("1 passed, 0 failed, 1 skipped".to_string(), Some(0)));
}

#[test]
fn a_run_that_tested_nothing_is_no_success() {
    assert_eq!(tally(""), ("0 passed, 0 failed, 0 skipped".to_string(), Some(1)));
}
