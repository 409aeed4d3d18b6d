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
fn two_flaky_tests_are_named_and_three_are_a_failure() {
    let flaky = "flaky: serve/tests/idle.rs a: failed, and passed when it was run again\n";
    let log = |times| format!("{}{SUITE}left to make test-all: 7\nstep tests 0\n", flaky.repeat(times));
    let (text, status) = printed(&log(2));
    let told = "7 tests run in make test-all only\n2 passed, 0 failed, 2 skipped, 2 flaky\n";
    assert!(text.contains(flaky) && text.ends_with(told), "{text}");
    assert_eq!((status, printed(&log(3)).1), (Some(0), Some(1)));
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

/// A program of tests that fails the first time and passes the second.
const ONCE: &str = "case \"$*\" in *--list*) echo 'a: test'; exit; esac
if mkdir \"$TMPDIR/once\" 2>/dev/null; then echo 'test a ... FAILED <0.1s>'; \
printf '\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n'; exit 101; fi
printf 'test a ... ok <0.1s>\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n'";

/// Returns the log of a program of tests, run beside others or alone, or `None` if there is no
/// Python to run it.
fn log_of(program: &str, is_alone: bool) -> Option<String> {
    let call = if is_alone { "run['run_alone']([program])" } else { "print(run['shown'](program.run()))" };
    let run = format!(
        "import os, runpy, sys; os.cpu_count = lambda: 1
run = runpy.run_path({:?})
program = run['Program']('w/main.rs', ['sh', '-c', sys.argv[1], '-'], {:?})
{call}",
        top().join("tools/run-tests.py"),
        top(),
    );
    let temporary = tempfile::tempdir().expect("a directory can be created");
    let mut python = Command::new("python3");
    python.args(["-B", "-c", &run, program]).env("TMPDIR", temporary.path());
    let output = python.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("the program prints UTF-8"))
}

#[test]
fn an_aborted_program_is_a_failure_with_its_running_tests_and_its_last_lines() {
    let Some(log) = log_of(ABORTED, false) else { return println!("skipped: needs python3") };
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
    let Some(log) = log_of(ABORTED_LATE, false) else { return println!("skipped: needs python3") };
    let (text, status) = printed(&format!("{log}step tests 101\n"));
    assert!(text.starts_with("failed: w/main.rs\nw/main.rs:\n    ended with SIGABRT"), "{text}");
    assert!(text.ends_with("\n1 passed, 1 failed, 0 skipped\n") && status == Some(1), "{text}");
}

#[test]
fn a_test_that_runs_alone_has_another_try_and_is_flaky_if_it_passes() {
    let Some(log) = log_of(ONCE, true) else { return println!("skipped: needs python3") };
    let (text, status) = printed(&format!("{log}step alone 0\n"));
    let told = "flaky: w/main.rs: failed, and passed when it was run again\n1 passed, 0 failed, 0 skipped, 1 flaky\n";
    assert_eq!((text.as_str(), status), (told, Some(0)), "{log}");
}
