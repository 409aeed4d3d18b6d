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

/// A program of tests, in the shell: it lists five tests, and is aborted after three of them.
const ABORTED: &str = "case \"$*\" in *--list*) printf '%s: test\\n' a b::c d e f; exit; esac
echo 'test a ... ok <0.100s>'; echo 'test d ... FAILED <0.100s>'; echo 'test e ... ignored'
echo 'hangs for 600s: b' >&2; kill -ABRT $$";

/// One that is aborted after its sum.
const ABORTED_LATE: &str = "case \"$*\" in *--list*) echo 'a: test'; exit; esac
printf 'test a ... ok <0.100s>\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n'; kill -ABRT $$";

/// Returns the log of a program of tests, or `None` if there is no Python to run it.
fn log_of(program: &str) -> Option<String> {
    let run = format!(
        "import os, runpy, sys; os.cpu_count = lambda: 1
run = runpy.run_path({:?})
program = run['Program']('w/main.rs', ['sh', '-c', sys.argv[1], '-'], {:?})
print(run['TIMED'].sub(r'\\1', program.run().output))",
        top().join("tools/run-tests.py"),
        top(),
    );
    let output = Command::new("python3").args(["-B", "-c", &run, program]).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("the program prints UTF-8"))
}

#[test]
fn an_aborted_program_is_a_failure_with_its_running_tests_and_its_last_lines() {
    let Some(log) = log_of(ABORTED) else { return println!("skipped: needs python3") };
    let (text, status) = printed(&format!("{SUITE}{log}{SUITE}step tests 101\n"));
    let told: Vec<_> = text.lines().filter(|line| !line.starts_with("skipped")).collect();
    let head = ["failed: d", "failed: w/main.rs", "w/main.rs:", "    ended with SIGABRT after 0 s in: b::c"];
    assert_eq!(told[..4], head, "{text}");
    assert!(told.contains(&"      hangs for 600s: b"), "{text}");
    let last = *told.last().expect("there is a sum");
    assert_eq!((last, status), ("5 passed, 2 failed, 5 skipped", Some(1)));
}

#[test]
fn a_program_that_is_aborted_after_its_sum_is_a_failure() {
    let Some(log) = log_of(ABORTED_LATE) else { return println!("skipped: needs python3") };
    let (text, status) = printed(&format!("{log}step tests 101\n"));
    assert!(text.starts_with("failed: w/main.rs\nw/main.rs:\n    ended with SIGABRT"), "{text}");
    assert!(text.ends_with("\n1 passed, 1 failed, 0 skipped\n") && status == Some(1), "{text}");
}
