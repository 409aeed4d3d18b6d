//! `fathom bench run`: commands of the user's own.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use serde_json::Value;

use super::{names, temp};

fn bench_run(dir: &std::path::Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(["bench", "run"]).args(words).env("LC_ALL", "C").current_dir(dir);
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn commands_are_measured_in_shuffled_blocks_with_a_control() {
    let dir = temp();
    let prepare = "echo prepared >>log";
    let words = ["--blocks", "6", "--seed", "3", "--prepare", prepare, "--json", "--"];
    let commands = ["sh", "-c", "dd if=/dev/zero of=x bs=64K count=16 status=none", "--", "true"];
    let (status, out, err) = bench_run(dir.path(), &[&words[..], &commands].concat());
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let run: Value = serde_json::from_str(&out).unwrap();
    let rows = run["rows"].as_array().unwrap();
    let counted = rows.iter().filter(|row| row["discarded"] == "").count();
    assert_eq!(counted, 18, "two commands and the control");
    // Each command ran once more before, to check its output.
    let prepared = fs::read_to_string(dir.path().join("log")).unwrap().lines().count();
    assert_eq!(prepared, rows.len() + 2);
    let copies = rows.iter().filter(|row| row["second_copy"] == true).count();
    assert!(copies >= 6 && rows.iter().all(|row| row["workload"] == "run" && row["verified"] == true));
    let arms = run["arms"].as_array().unwrap();
    let writer = arms.iter().find(|arm| arm["method"].as_str().unwrap().starts_with("sh -c 'dd")).unwrap();
    let used = &writer["command"];
    assert!(
        used["faults"].as_f64().unwrap() > 50.0 && writer["memory_bytes"].as_f64().unwrap() > 1e5,
        "{writer}"
    );
    // A filesystem in memory leaves nothing for a device.
    let written = used["written_bytes"].as_f64().unwrap();
    assert!(written == 0.0 || written >= 1e6, "{written}");
    assert_eq!(writer["cell"], "commands, each after 'echo prepared >>log'");
    assert_eq!(run["noise"].as_array().unwrap().len(), 1);
    assert_eq!(run["findings"].as_array().unwrap().len(), 1);
}

#[test]
fn reports_of_commands_have_their_own_columns() {
    let dir = temp();
    let words = [
        "--blocks",
        "6",
        "--name",
        "a|b",
        "--name",
        "two",
        "--html",
        "page.html",
        "--csv=all.csv",
        "--",
        "true",
        "--",
        "echo x",
    ];
    let (status, out, err) = bench_run(dir.path(), &words);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    for text in [
        "command",
        "user s",
        "memory MB",
        "faults",
        "migrations",
        "  a|b  ",
        "the outputs of 'a|b' and 'two' differ: they have 0 and 2 bytes",
    ] {
        if text == "migrations" && out.contains("migrations are not counted") {
            println!("skipped: this user may not count migrations");
        }
        assert!(out.contains(text), "{text}: {out}");
    }
    let csv = fs::read_to_string(dir.path().join("all.csv")).unwrap();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert!(
        head.ends_with(&["faults", "faults_major", "migrations", "read_bytes", "written_bytes", "mean_us"]),
        "{head:?}"
    );
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(page.contains("a|b") && !page.contains("NaN"));
    let (_, markdown, _) =
        bench_run(dir.path(), &["--blocks", "2", "--markdown", "--name", "a|b", "--", "true"]);
    assert!(markdown.contains("| command | runs |") && markdown.contains("a\\|b"), "{markdown}");
}

#[test]
fn two_runs_of_commands_can_be_compared() {
    let dir = temp();
    for name in ["old.json", "new.json"] {
        let saved = format!("--json={name}");
        let (status, _, err) = bench_run(dir.path(), &["--blocks", "6", &saved, "--", "true", "--", "echo"]);
        assert_eq!((status, err.as_str()), (Some(0), ""));
    }
    let mut compare = Command::new(env!("CARGO_BIN_EXE_fathom"));
    compare.args(["bench", "compare", "old.json", "new.json"]).current_dir(dir.path());
    let out = String::from_utf8(compare.output().unwrap().stdout).unwrap();
    assert!(out.contains("echo") && out.contains("true"), "{out}");
}

#[test]
fn outputs_that_must_be_the_same_are_checked_before_anything_is_measured() {
    let dir = temp();
    let sorted = [
        "--blocks",
        "1",
        "--same-output=lines",
        "--",
        "printf 'a\nb\n' | cat",
        "--",
        "printf 'b\na\n' | cat",
    ];
    let (status, out, err) = bench_run(dir.path(), &sorted);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.contains("have the same lines in another order"), "{out}");
    let (status, out, err) = bench_run(dir.path(), &["--same-output", "--", "echo a", "--", "echo bc"]);
    let said = "fathom bench: cannot compare: the outputs of 'echo a' and 'echo bc' differ: they have 2 and 3 bytes\n";
    assert_eq!((status, out.as_str(), err.as_str()), (Some(1), "", said));
}

#[test]
fn a_command_that_fails_ends_the_run_unless_that_is_ignored() {
    let dir = temp();
    for (command, said) in [
        ("echo why >&2; exit 3", "cannot execute 'echo why >&2; exit 3': exit status: 3: why"),
        ("no-such-program", "cannot execute 'no-such-program': No such file or directory"),
    ] {
        let (status, out, err) =
            bench_run(dir.path(), &["--blocks", "2", "--json=kept.json", "--", "true", "--", command]);
        assert_eq!((status, out, err), (Some(1), String::new(), format!("fathom bench: {said}\n")));
        assert_eq!(names(dir.path()), [""; 0]);
    }
    // The second time, the command fails: what was measured before is kept.
    let fails_later = "test ! -e ran && touch ran";
    let (status, _, err) = bench_run(dir.path(), &["--blocks", "2", "--json=kept.json", "--", fails_later]);
    assert_eq!(status, Some(1), "{err}");
    let (status, _, err) = bench_run(dir.path(), &["--blocks", "2", "--ignore-failure", "--", "exit 3 ; x"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
}

/// Two cases: in the first, `sleep` is slower than `true`, and a command fails.
const CASES: &str = r#"
[[case]]
name = "sleepers"
directory = "place"
blocks = 7
output = "null"
same-output = "any"
command = [
    { name = "true", run = "true" },
    { name = "short", run = ["sleep", "0.02"], group = "sleeps", prepare = "pwd >../where" },
    { name = "long", run = "sleep 0.1; exit 0", group = "sleeps", blocks = 2 },
    { name = "gone", run = ["no-such-program"], optional = true },
]
require = [
    { command = "true", than = "sleeps", time = 1.5 },
    { command = "sleeps", seconds = 100 },
    { command = "true", memory-bytes = 1e9 },
]

[[case]]
name = "other"
command = [{ name = "cat", run = "cat cases.toml" }, { name = "head", run = "head -c 3 cases.toml", optional = true }]
same-output = "bytes"
"#;

#[test]
fn cases_of_a_file_are_measured_and_judged() {
    let dir = temp();
    fs::create_dir(dir.path().join("place")).unwrap();
    fs::write(dir.path().join("cases.toml"), CASES).unwrap();
    let words = ["--cases", "cases.toml", "--seed", "1", "--json=run.json", "--html", "page.html"];
    let (status, out, err) = bench_run(dir.path(), &words);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let place = dir.path().join("place").canonicalize().unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("where")).unwrap(), format!("{}\n", place.display()));
    let run: Value = serde_json::from_slice(&fs::read(dir.path().join("run.json")).unwrap()).unwrap();
    let samples = |method: &str| {
        let rows = run["rows"].as_array().unwrap();
        rows.iter().filter(|row| row["method"] == method && row["discarded"] == "").count()
    };
    assert_eq!([samples("true"), samples("true (again)"), samples("short"), samples("long")], [7, 7, 7, 2]);
    let verdicts = run["verdicts"].as_array().unwrap();
    assert!(
        verdicts.iter().all(|verdict| verdict["outcome"] == "met" && verdict["cell"] == "sleepers"),
        "{out}"
    );
    for text in [
        "requirements\n",
        "true takes at most 1.5 of the time of sleeps",
        " of short",
        "unavailable: command gone: sleepers: No such file or directory",
        "unavailable: command head: other: the outputs of 'cat' and 'head' differ",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(page.contains("\"verdicts\":[{\"cell\":\"sleepers\",\"requirement\":"));
}

#[test]
fn a_missed_requirement_is_a_failure_and_the_measurement_stays() {
    let dir = temp();
    let missed = CASES.replace("time = 1.5", "time = 0.001").replace("seconds = 100", "seconds = 0.001");
    fs::create_dir(dir.path().join("place")).unwrap();
    fs::write(dir.path().join("cases.toml"), missed).unwrap();
    let words = ["--cases", "cases.toml", "--seed", "1", "--blocks", "6", "--json=run.json", "--markdown"];
    let (status, out, err) = bench_run(dir.path(), &words);
    assert_eq!((status, err.as_str()), (Some(1), ""), "{out}");
    let run: Value = serde_json::from_slice(&fs::read(dir.path().join("run.json")).unwrap()).unwrap();
    let outcomes: Vec<&Value> =
        run["verdicts"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["missed", "missed", "met"]);
    assert!(out.contains("### Requirements") && out.contains("| missed | sleepers |"), "{out}");
    let (status, _, err) = bench_run(dir.path(), &["--cases", "absent.toml"]);
    let said = "fathom bench run: cannot read 'absent.toml': No such file or directory\n";
    assert!(status == Some(2) && err.starts_with(said), "{err}");
}

/// Root drops the caches of the whole machine, which tests do not.
#[test]
fn cold_samples_need_root() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(["bench", "run", "--cold", "--blocks", "1", "--", "true"]).env("LC_ALL", "C");
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).current_dir("/");
    }
    let Output { status, stderr, .. } = command.output().unwrap();
    let said = "fathom bench: cannot prepare 'true': only root can drop metadata from the caches (/proc/sys/vm/drop_caches): ";
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(1) && stderr.starts_with(said), "{status}: {stderr}");
}

#[test]
fn a_case_that_fails_is_told_and_the_others_are_measured() {
    let dir = temp();
    let cases = r#"
        [[case]]
        name = "fails"
        command = [{ name = "false", run = "exit 3" }]
        require = [{ command = "false", seconds = 1 }]

        [[case]]
        name = "later"
        command = [
            { name = "true", run = ["true"] },
            { name = "once", run = "test ! -e ran2 && { test ! -e ran || touch ran2; } && touch ran", optional = true },
        ]

        [[case]]
        name = "hangs"
        timeout-seconds = 0.01
        command = [{ name = "true", run = ["true"] }, { name = "sleep", run = ["sleep", "1000"], optional = true }]
    "#;
    fs::write(dir.path().join("c.toml"), cases).unwrap();
    let (status, out, err) =
        bench_run(dir.path(), &["--cases", "c.toml", "--blocks", "6", "--json=run.json"]);
    let said = "fathom bench: fails: cannot execute 'false': exit status: 3\n";
    assert_eq!((status, err.as_str()), (Some(1), said), "{out}");
    let run: Value = serde_json::from_slice(&fs::read(dir.path().join("run.json")).unwrap()).unwrap();
    assert_eq!(run["verdicts"][0]["outcome"], "unmeasured");
    let counted = |cell: &str, method: &str| {
        let rows = run["rows"].as_array().unwrap();
        rows.iter()
            .filter(|row| row["cell"] == cell && row["method"] == method && row["discarded"] == "")
            .count()
    };
    assert_eq!(
        [counted("later", "true"), counted("later", "once")],
        [6, 0],
        "it ran once and then failed: {out}"
    );
    assert!(out.contains("1 of command once: the arm failed later"), "{out}");
    assert!(out.contains("unavailable: command sleep: hangs: timed out after 0.01 s"), "{out}");
}
