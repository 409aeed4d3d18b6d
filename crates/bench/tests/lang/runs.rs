//! Output and exit status of programs that violate the protocol.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fathom_bench::lang::{
    Lang, Measurement, MethodAvailability, PlaygroundArm, PlaygroundMethod, Program, RunRequest,
};
use fathom_bench::{Op, Workload};
use tempfile::TempDir;

use crate::{GO_ON, machine};

const ROW: &str = "seconds=0.100000000\tsync_s=0.200000000\tclose_s=0.300000000\tops=3\tbytes=9000\tpages_ok=0\tin_flight_max=2\t\
                   cpu_user_s=0.010000\tcpu_sys_s=0.020000\tswitches=5\tswitches_forced=-1\tp50_us=1.500\tp95_us=2.000\t\
                   p99_us=2.000\tmax_us=9.125";

/// A program that consists of a line of shell. Its options are `$1` and following.
fn program(shell: &str) -> Program {
    let words = ["/bin/sh", "-c", shell, "sh"].map(Into::into).to_vec();
    Program::new(Lang::Python, words, &machine())
}

fn request(path: &Path) -> RunRequest<'_> {
    RunRequest {
        workload: Workload::Write,
        arm: PlaygroundArm { method: PlaygroundMethod::Uring, threads: 2, depth: 1, batch: 1, spins: false },
        path,
        size_bytes: 9000,
        block_bytes: 4096,
        direct: false,
        no_read_ahead: false,
        seed: 7,
        generation: 8,
    }
}

fn run(shell: &str) -> Result<Measurement, (Op, String)> {
    let answer = program(shell).run(&request(Path::new("/tmp/a b")), &GO_ON);
    answer.map_err(|error| (error.op(), error.to_string()))
}

#[test]
fn the_options_are_all_there() {
    let dir = TempDir::new().expect("a directory");
    let said = dir.path().join("said");
    let shell = format!("printf '%s\\n' \"$@\" > {}; printf '{ROW}\\n'", said.display());
    let answer = run(&shell).expect("a row");
    assert_eq!((answer.seconds, answer.bytes, answer.switches_forced), (0.1, 9000, None));
    let words = fs::read_to_string(said).expect("its options");
    let expected = "--op write --method uring --path /tmp/a_b --size 9000 --block 4096 --threads 2 --depth 1 --batch 1 \
                    --wait wait --direct no --advice normal --seed 7 --generation 8";
    let given: Vec<String> = words.lines().map(|word| word.replace(' ', "_")).collect();
    assert_eq!(given.join(" "), expected);
}

#[test]
fn a_method_that_cannot_run_is_no_failure_of_the_run() {
    let name = "'python uring=1:threads=2'";
    let ended = run("echo \"playground.py: cannot run 'uring': no ring\" >&2; echo more >&2; exit 3");
    assert_eq!(ended, Err((Op::Start, format!("cannot start {name}: cannot run 'uring': no ring"))));
    let absent = Program::new(Lang::C, vec!["/nonexistent/playground".into()], &machine());
    let error = absent.run(&request(Path::new("x")), &GO_ON).expect_err("no program");
    assert!(error.is_unavailable(), "{error}");
}

#[test]
fn each_failure_is_reported() {
    let name = "cannot execute 'python uring=1:threads=2'";
    let cases = [
        (
            "echo \"x: cannot sync 'f': No space left on device\" >&2; exit 1",
            "cannot sync 'f': No space left on device",
        ),
        ("echo 'x: cannot use 0: no' >&2; exit 2", "cannot use 0: no"),
        ("printf 'x: a\\033[2Jb' >&2; exit 1", "a\\u{1b}[2Jb"),
        ("exit 1", "exit status: 1, and printed nothing"),
        ("exit 77", "exit status: 77, and printed nothing"),
        ("kill -9 $$", "signal: 9 (SIGKILL), and printed nothing"),
        ("true", "no end of line in the row ''"),
        ("echo hello", "no 'seconds' at its place in the row 'hello'"),
    ];
    for (shell, cause) in cases {
        assert_eq!(run(shell), Err((Op::Execute, format!("{name}: {cause}"))), "{shell}");
    }
}

#[test]
fn an_incomplete_measurement_is_rejected() {
    let cases = [
        ("bytes=9000", "bytes=8192", "8192 bytes were moved instead of 9000"),
        ("pages_ok=0", "pages_ok=3", "3 pages were right instead of 0"),
        ("in_flight_max=2", "in_flight_max=0", "0 operations were in flight instead of up to 2"),
        ("in_flight_max=2", "in_flight_max=3", "3 operations were in flight instead of up to 2"),
    ];
    for (from, to, cause) in cases {
        let (op, text) = run(&format!("printf '{}\\n'", ROW.replace(from, to))).expect_err(to);
        assert!(op == Op::Execute && text.ends_with(&format!(": {cause}")), "{text}");
    }
    let path = Path::new("x");
    let read = RunRequest { workload: Workload::RandomRead, ..request(path) };
    let row = ROW.replace("pages_ok=0", "pages_ok=3");
    program(&format!("printf '{row}\\n'")).run(&read, &GO_ON).expect("all three pages");
}

#[test]
fn much_output_does_not_block_the_child() {
    let (_, text) =
        run("head -c 1000000 /dev/zero | tr '\\0' e >&2; head -c 1000000 /dev/zero").expect_err("no row");
    assert!(text.contains("no end of line in the row '\\u{0}\\u{0}"), "{text}");
}

#[test]
fn a_stop_kills_the_program_and_its_children() {
    let dir = TempDir::new().expect("a directory");
    let child = dir.path().join("child");
    let program = program(&format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", child.display()));
    let stop = AtomicBool::new(false);
    let error = thread::scope(|scope| {
        let run = scope.spawn(|| program.run(&request(Path::new("x")), &stop));
        while !child.exists() {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        run.join().expect("a thread").expect_err("stopped")
    });
    assert_eq!(error.to_string(), "cannot execute 'python uring=1:threads=2': stopped");
    let process = fs::read_to_string(child).expect("the child's number");
    // The process has been killed, but may not have exited yet, and is a zombie if no process reaps
    // it.
    let state = || fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
    let is_gone = |state: String| state.is_empty() || state.contains(") Z ");
    let gone = (0..2000).any(|_| {
        is_gone(state()) || {
            thread::sleep(Duration::from_millis(5));
            false
        }
    });
    assert!(gone, "{}", state());
}

#[test]
fn a_list_is_read() {
    let shell = "test \"$*\" = '--list read' && printf 'blocking\\tok\\nuring\\tcannot make a ring: no\\n'";
    let uring = MethodAvailability {
        method: PlaygroundMethod::Uring,
        unavailable: Some("cannot make a ring: no".to_owned()),
    };
    let offers = program(shell).list(Workload::Read, &GO_ON).expect("a list");
    assert_eq!(offers, [MethodAvailability { method: PlaygroundMethod::Blocking, unavailable: None }, uring]);
}

#[test]
fn another_list_is_an_error() {
    let cases = [
        ("echo blocking", "no method and its verdict in the line 'blocking'"),
        ("printf 'blocking\\t\\n'", "no method and its verdict in the line 'blocking\\t'"),
        ("printf 'virtual\\tok\\n'", "no method and its verdict in the line 'virtual\\tok'"),
        ("printf 'blocking\\tok\\nblocking\\tok\\n'", "2 methods, 1 of them distinct, in its list"),
        ("true", "0 methods, 0 of them distinct, in its list"),
        ("exit 1", "exit status: 1, and printed nothing"),
    ];
    for (shell, cause) in cases {
        let error = program(shell).list(Workload::Write, &GO_ON).expect_err(shell);
        assert_eq!(error.to_string(), format!("cannot start 'python': {cause}"));
    }
}
