//! `fathom bench` on real files: its output and reports, the files that it leaves behind, and its
//! errors.

mod advise;
mod commands;
mod direct;
mod own_data;
mod page;
mod page_cache;
mod reproduce;
mod serve;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::Value;

/// Options for the least work, for tests of anything but the measurement.
const SMALL: &str = "--size 64K --blocks 2 --seed 7";

fn bench(dir: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.arg("bench").args(words.split_whitespace()).env("LC_ALL", "C").current_dir(dir);
    command
}

/// Makes the program of `command` heed SIGINT. Shells make processes in the background ignore it.
fn interruptible(command: &Command) -> Command {
    let mut heeding = Command::new("env");
    heeding.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    heeding.env("LC_ALL", "C");
    if let Some(dir) = command.get_current_dir() {
        heeding.current_dir(dir);
    }
    heeding
}

fn run(dir: &Path, words: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = bench(dir, words).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn temp() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn methods(run: &Value) -> Vec<&str> {
    let mut methods: Vec<&str> =
        run["arms"].as_array().unwrap().iter().map(|arm| arm["method"].as_str().unwrap()).collect();
    methods.sort_unstable();
    methods
}

#[test]
fn writing_has_the_published_methods_a_control_and_its_copy() {
    let dir = temp();
    let (status, out, err) = run(dir.path(), &format!("write {SMALL} --json"));
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&out).unwrap();
    let expected = [
        "dd",
        "sync",
        "threads=1",
        "threads=10",
        "threads=100",
        "uring=1",
        "uring=128:batch=128",
        "uring=128:threads=100:batch=128",
        "uring=128:threads=10:batch=128",
        "uring=1:threads=10",
        "uring=1:threads=100",
    ];
    let unavailable = json["unavailable"].as_array().unwrap();
    if unavailable.is_empty() {
        assert_eq!(methods(&json), expected);
    } else {
        println!("skipped: {unavailable:?}");
    }
    assert_eq!(json["seed"].as_u64(), Some(7));
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["method"] == "sync (again)"), "the baseline has no copy");
    assert!(rows.iter().all(|row| row["verified"] == true && row["seconds"].as_f64().unwrap() > 0.0));
    let most = |row: &Value| row["threads"].as_u64().unwrap() * row["depth"].as_u64().unwrap();
    assert!(rows.iter().all(|row| row["in_flight_max"].as_u64().unwrap() <= most(row)));
    let clocks = |row: &Value| {
        let clock = |name: &str| row[name].as_f64().unwrap();
        clock("seconds") <= clock("sync_s") && clock("sync_s") <= clock("close_s")
    };
    assert!(rows.iter().filter(|row| row["lang"] == "rust").all(clocks));
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn reading_is_certified_warm_and_cold() {
    let dir = temp();
    for workload in ["read", "random-read"] {
        let (status, out, err) = run(
            dir.path(),
            &format!("{workload} {SMALL} --block 4K --models threads,uring,pool,mmap --json"),
        );
        assert_eq!((status, err.as_str()), (Some(0), ""), "{workload}");
        let json: Value = serde_json::from_str(&out).unwrap();
        let mut counted = 0;
        for row in json["rows"].as_array().unwrap() {
            let before = row["cached_before"].as_f64();
            let right = if row["cache"] == "cold" { before == Some(0.0) } else { before == Some(1.0) };
            let discarded = row["discarded"] != "";
            assert!(right || discarded, "{row}");
            counted += usize::from(!discarded && row["cache"] == "cold");
        }
        if counted == 0 {
            println!("skipped: no file gets cold on this filesystem");
        }
        let cells: Vec<&str> = json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["cell"].as_str().unwrap())
            .collect();
        assert_eq!(cells[0], format!("{workload} 64 KiB in 4 KiB blocks, warm"));
    }
}

#[test]
fn writes_and_syncs_have_latencies_of_their_own() {
    let dir = temp();
    let (status, out, err) =
        run(dir.path(), "append-sync --size 480K --blocks 1 --models sync --json=o.json");
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("write p99") && out.contains("fdatasync p99") && !out.contains("read p99"), "{out}");
    let json: Value = serde_json::from_slice(&fs::read(dir.path().join("o.json")).unwrap()).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let us = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name}: {row}"));
        for kind in ["write", "fdatasync"] {
            let [p50, p95, p99, most] =
                ["p50", "p95", "p99", "max"].map(|rank| us(&format!("{kind}_{rank}_us")));
            assert!(0.0 < p50 && p50 <= p95 && p95 <= p99 && p99 <= most, "{row}");
        }
        // The longest of both parts is no longer than the longest whole.
        assert!(us("write_max_us").max(us("fdatasync_max_us")) <= us("max_us"), "{row}");
        assert!(row["read_p50_us"].is_null() && row["read_max_us"].is_null());
    }
    assert!(json["arms"][0]["fdatasync_p99_us"].is_number() && json["arms"][0]["write_p50_us"].is_number());
    let (status, out, err) =
        run(dir.path(), "mixed --size 64M --blocks 1 --models sync --cache warm --read 50 --json");
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(json["arms"][0]["read_p99_us"].is_number() && json["arms"][0]["write_p99_us"].is_number());
    assert_eq!(names(dir.path()), ["o.json"], "files are left");
}

#[test]
fn hints_for_the_page_cache_are_arms() {
    let dir = temp();
    let (status, out, err) = run(dir.path(), "read --size 4M --blocks 2 --cache cold --models sync --json");
    if status == Some(1) && err.contains("in memory") {
        return crate::support::skip("needs files on a disk");
    }
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["verified"] == true && row["model"] == "sync"), "{out}");
    let cached = |method: &str| {
        let rows = rows.iter().filter(|row| row["method"] == method);
        rows.filter_map(|row| row["cached_after"].as_f64()).collect::<Vec<f64>>()
    };
    assert!(!cached("sync:sequential").is_empty() && !cached("sync:willneed").is_empty(), "{out}");
    let unavailable = json["unavailable"].as_array().unwrap();
    let reason = unavailable.iter().find(|arm| arm["method"] == "sync:dontcache");
    match reason {
        Some(arm) => assert!(arm["reason"].as_str().unwrap().contains("RWF_DONTCACHE"), "{arm}"),
        None => assert!(cached("sync:dontcache").iter().all(|share| *share < 0.2), "{out}"),
    }
    let (status, out, err) = run(dir.path(), &format!("read {SMALL} --direct --models sync --json"));
    if status == Some(1) && err.contains("no sample was valid") {
        return crate::support::skip("needs a filesystem with O_DIRECT");
    }
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    assert_eq!(out.matches("a hint is for the page cache, which O_DIRECT bypasses").count(), 3, "{out}");
}

#[test]
fn a_file_is_overwritten_in_random_order_under_every_model() {
    let dir = temp();
    let (status, out, err) = run(dir.path(), &format!("random-write {SMALL} --json"));
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["verified"] == true && row["ops"] == 16 && row["cache"] == "none"));
    let clocks =
        |row: &Value| row["seconds"].as_f64() <= row["sync_s"].as_f64() && row["close_s"].is_number();
    assert!(rows.iter().all(clocks), "{out}");
    for method in ["sync", "threads=8", "pool=32", "tokio=1", "mmap"] {
        assert!(methods(&json).contains(&method), "{method}");
    }
    assert_eq!(json["findings"][0]["cell"], "random-write 64 KiB in 4 KiB blocks");
    let (status, _, err) = run(dir.path(), &format!("random-write {SMALL} --block 1000 --models sync,mmap"));
    assert_eq!((status, err.as_str()), (Some(0), ""), "blocks that share pages");
    let (status, out, err) =
        run(dir.path(), &format!("random-write {SMALL} --direct --sync --models threads"));
    if status == Some(1) && err.contains("no sample was valid") {
        return crate::support::skip("needs a filesystem with O_DIRECT");
    }
    assert!(out.starts_with("random-write 64 KiB in 4 KiB blocks, O_DIRECT, synced\n"), "{out}{err}");
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn reads_and_writes_are_mixed_under_every_model() {
    let dir = temp();
    for (more, pages) in [("--read 70 --cache warm", 70), ("--read 30% --cache cold --block 16K", 30)] {
        let (status, out, err) =
            run(dir.path(), &format!("mixed --size 400K --blocks 2 --seed 7 {more} --json"));
        if status == Some(1) && err.contains("in memory") {
            return crate::support::skip("needs files on a disk");
        }
        assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
        let json: Value = serde_json::from_str(&out).unwrap();
        let rows = json["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["verified"] == true && row["size_bytes"] == 400 << 10), "{out}");
        assert!(
            rows.iter().all(|row| row["sync_s"].is_number() && row["cached_before"].is_number()),
            "{out}"
        );
        for method in ["sync", "threads=8", "uring=32", "pool=32", "nowait=32", "tokio=1", "mmap"] {
            let is_there = methods(&json).contains(&method) || out.contains("io_uring");
            assert!(is_there, "{method}");
        }
        assert!(json["findings"][0]["cell"].as_str().unwrap().contains(&format!(", {pages} % reads, ")));
    }
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn trees_are_walked_and_counted_under_every_model() {
    let dir = temp();
    for workload in ["walk", "stat"] {
        let (status, out, err) =
            run(dir.path(), &format!("{workload} --files 250 --blocks 2 --cache warm --json"));
        assert_eq!((status, err.as_str()), (Some(0), ""), "{workload}");
        let json: Value = serde_json::from_str(&out).unwrap();
        let rows = json["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["ops"] == 253 && row["size_bytes"] == 0), "{workload}");
        assert!(methods(&json).contains(&"auto") && methods(&json).contains(&"async-par"));
    }
}

#[test]
fn each_report_is_written_to_its_destination() {
    let dir = temp();
    let words = format!("append-sync {SMALL} --csv=o.csv --json=o.json --html o.html");
    let (status, out, err) = run(dir.path(), &words);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("append-sync 64 KiB in 4 KiB blocks\n") && out.contains(" are too few"), "{out}");
    assert_eq!(names(dir.path()), ["o.csv", "o.html", "o.json"]);
    let csv = fs::read_to_string(dir.path().join("o.csv")).unwrap();
    let header = "workload,lang,method,model,threads,depth,block_bytes,size_bytes,cache,direct,sync,block,seconds,\
                  bytes_per_s,cpu_s,";
    assert!(csv.starts_with(header), "{csv}");
    let json: Value = serde_json::from_slice(&fs::read(dir.path().join("o.json")).unwrap()).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len() + 1, csv.lines().count());
    assert!(json["command"].as_str().unwrap().starts_with("fathom bench append-sync --size 64K"));
    assert!(fs::read_to_string(dir.path().join("o.html")).unwrap().starts_with("<!DOCTYPE html>"));

    let (status, out, _) = run(dir.path(), "compare o.json o.json");
    assert!(status == Some(0) && out.contains("sync"), "{out}");
    let (status, out, _) = run(dir.path(), "compare --json o.json o.json");
    assert!(status == Some(0) && serde_json::from_str::<Value>(&out).is_ok(), "{out}");
    let (status, _, err) = run(dir.path(), "compare o.json o.csv");
    assert!(status == Some(1) && err.starts_with("fathom bench: cannot read 'o.csv': "), "{err}");
}

#[test]
fn a_signal_ends_a_benchmark_and_removes_its_files() {
    for signal in ["INT", "TERM"] {
        let dir = temp();
        let mut command = interruptible(&bench(dir.path(), "write --size 64M --blocks 1000"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while names(dir.path()).is_empty() && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..2 {
            Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        }
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(130), None), "{signal}");
        assert_eq!(names(dir.path()), [] as [&str; 0], "{signal}: files are left");
    }
}

#[test]
fn invalid_benchmarks_are_refused_with_their_status() {
    let dir = temp();
    for (words, expected, message) in [
        ("", 2, "missing operand: a workload, or advise, run or compare"),
        ("write --size 1Q", 2, "--size argument '1Q' too large"),
        ("write --size 1x", 2, "invalid suffix in --size argument '1x'"),
        ("write --models zfs", 2, "invalid argument 'zfs' for '--models'"),
        ("write --size 4000T", 1, "no room in '.': "),
        ("write --path no/such/place", 1, "cannot access 'no/such/place': No such file or directory"),
        (
            "write --direct --size 64K --block 1000",
            2,
            "with --direct, --size and --block must be multiples of 512",
        ),
        ("sample --op write --method sync --path x --size 1 --block 0", 2, "the block is zero"),
        ("sample --op write --method sync --path x --size 1 --block 1 --threads 0", 2, "at least 1"),
        ("sample --op write --method nothing --path x --size 1 --block 1", 2, "invalid argument 'nothing'"),
        (
            "sample --op serve --method mmap --path x --size 1 --block 1",
            2,
            "the workload does not have this method",
        ),
        (
            "sample --op serve --method pool --path x --size 1 --block 1 --threads 2",
            2,
            "the server has one thread",
        ),
        ("sample --op serve --method sync --path x --size 512 --block 512 --direct yes", 2, "O_DIRECT"),
        (
            "sample --op serve --method sendfile --path no/x --size 1 --block 1",
            3,
            "cannot open 'no/x': No such file or directory",
        ),
        (
            "sample --op write --method sync --path no/x --size 1 --block 1",
            1,
            "cannot open 'no/x': No such file",
        ),
        ("sample --op write --method sync --path /dev/full --size 1 --block 1", 1, "No space left on device"),
        ("sample --op read --method sync --path /dev/null --size 1 --block 1", 1, "unexpected end of file"),
    ] {
        let (status, out, err) = run(dir.path(), words);
        assert_eq!((status, out.as_str()), (Some(expected), ""), "{words}: {err}");
        assert!(err.contains(message), "{words}: {err}");
    }
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn a_directory_without_write_permission_is_an_error() {
    let dir = Path::new("/proc/self");
    let (status, out, err) = run(Path::new("/"), &format!("write {SMALL} --path {}", dir.display()));
    assert_eq!((status, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.starts_with("fathom bench: "), "{err}");
}

#[test]
fn no_sample_begins_after_the_time_and_the_rest_is_said() {
    let dir = temp();
    // The first sample takes longer than that.
    let (status, out, err) = run(dir.path(), "write --size 1M --models sync --time 1ms --blocks 3");
    assert_eq!((status, err.as_str()), (Some(1), "fathom bench: no result: no sample was valid\n"));
    assert!(
        out.contains("note: write 1 MiB in 4 KiB blocks: out of time after 0 of 3 repetitions\n"),
        "{out}"
    );
    let (status, out, _) = run(dir.path(), "write --size 1M --models sync --time 500000000000y --blocks 2");
    assert!(status == Some(0) && !out.contains("out of time"), "{out}");
    let (status, out, _) = run(dir.path(), "run --time 1ms --blocks 3 -- true");
    assert!(status == Some(1) && out.contains("note: out of time after 0 of 3 repetitions\n"), "{out}");
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn a_command_may_have_two_dashes_as_text_and_an_advice_can_be_compared() {
    let dir = temp();
    let mut command = bench(dir.path(), "run --blocks 1 --same-output --json=run.json --");
    let out = command.args(["printf -- 'a\\n'", "--", "echo", "a"]).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let run_json: Value = serde_json::from_slice(&fs::read(dir.path().join("run.json")).unwrap()).unwrap();
    let advice = serde_json::json!({"sentence": "Use it.", "verdicts": [], "run": run_json});
    fs::write(dir.path().join("advice.json"), advice.to_string()).unwrap();
    let [one, other] = ["run.json run.json", "advice.json run.json"].map(|files| {
        let (status, out, err) = run(dir.path(), &format!("compare {files}"));
        assert_eq!((status, err.as_str()), (Some(0), ""), "{files}");
        out.replace("advice.json", "run.json")
    });
    assert_eq!(one, other);
}

#[test]
fn only_root_can_drop_cached_metadata() {
    // Another user may not search the target directory, perhaps.
    let (dir, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = bin.path().join("fathom");
    if !rustix::process::geteuid().is_root() {
        return crate::support::skip("needs root, to run as somebody else");
    }
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(dir.path(), all.clone()).unwrap();
    fs::set_permissions(bin.path(), all).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_fathom"), &program).unwrap();
    let as_nobody = |cache: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups"]).arg(&program);
        command
            .args(["bench", "stat", "--files=100", "--blocks=1", "--models=sync"])
            .args(cache)
            .current_dir(dir.path());
        let out = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (out.status.code(), text(out.stdout), text(out.stderr))
    };
    let reason = "only root can drop metadata from the caches (/proc/sys/vm/drop_caches): Permission denied";
    let (status, _, err) = as_nobody(&["--cache=cold"]);
    if crate::support::is_in_memory(err.as_bytes(), dir.path(), "cold metadata") {
        return;
    }
    let refused = format!("fathom bench: cannot measure 'stat 100 files, cold': {reason}\n");
    assert_eq!((status, err), (Some(1), refused));
    let (status, out, err) = as_nobody(&[]);
    assert_eq!((status, err.as_str()), (Some(0), ""), "the warm half is an answer");
    assert!(out.contains(&format!("note: skipped: stat 100 files, cold: {reason}\n")), "{out}");
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn what_a_question_leaves_out_is_said() {
    let dir = temp();
    let left = dir.path().join(".fathom-bench-of-a-killed-run");
    fs::create_dir(&left).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    fs::File::open(&left).unwrap().set_modified(std::time::SystemTime::now() - hour).unwrap();
    let (status, out, err) = run(dir.path(), "append-sync --size 64K --blocks 1 --models sync,sendfile");
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("note: skipped: 'append-sync' has no arm with the model sendfile\n"), "{out}");
    let removed = "note: removed './.fathom-bench-of-a-killed-run', left by an earlier run\n";
    assert!(out.contains(removed), "{out}");
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

/// With 128 operations of 1 MiB in 100 threads it asked for 13 GB of memory, for a file of 4 MiB.
#[test]
fn buffers_are_no_more_than_the_blocks_of_the_file() {
    let (status, out, err) = run(temp().path(), "write --size 4M --block 1M --blocks 1 --json");
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let reasons = json["unavailable"].as_array().unwrap();
    assert!(reasons.iter().all(|arm| !arm["reason"].as_str().unwrap().contains("memory")), "{reasons:?}");
}

#[test]
fn a_sample_has_help() {
    let (status, out, err) = run(temp().path(), "sample --help");
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("Usage: fathom bench sample --op OP ") && out.contains("\nExample:\n"), "{out}");
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let dir = temp();
    let (status, _, err) = run(dir.path(), &format!("append-sync {SMALL} --models sync --csv=no/such.csv"));
    assert_eq!(status, Some(1));
    assert!(err.contains("cannot create 'no/such.csv.part': No such file or directory"), "{err}");
    let (status, _, err) = run(dir.path(), &format!("append-sync {SMALL} --models sync --json=/dev/full"));
    assert_eq!(status, Some(1));
    assert!(err.contains("cannot write '/dev/full': No space left on device"), "{err}");
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

/// Makes io_uring_setup(2) fail with EPERM in this thread and its children, as container runtimes
/// do.
fn refuse_rings() {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let calls = BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]);
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, machine).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

#[test]
fn without_io_uring_its_methods_are_skipped_and_the_cause_is_reported() {
    let (status, out, err) = std::thread::spawn(|| {
        refuse_rings();
        run(temp().path(), &format!("write {SMALL} --json"))
    })
    .join()
    .unwrap();
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&out).unwrap();
    let left_out = json["unavailable"].as_array().unwrap();
    assert_eq!(left_out.len(), 6, "{left_out:?}");
    for arm in left_out {
        let reason = arm["reason"].as_str().unwrap();
        assert!(reason.contains("Operation not permitted") && reason.contains("seccomp"), "{reason}");
    }
    assert_eq!(methods(&json), ["dd", "sync", "threads=1", "threads=10", "threads=100"]);
}

#[test]
fn a_comparison_fails_if_something_became_slower() {
    let dir = temp();
    let run_of = |factor: f64, blocks: u32| {
        let row = |block: u32| {
            let seconds = factor * (1.0 + f64::from(block) / 1000.0);
            serde_json::json!({"median": seconds, "low": seconds * 0.99, "high": seconds * 1.01})
        };
        let mut arm = serde_json::to_value(fathom_bench::ArmSummary {
            cell: "read".into(),
            lang: "rust".into(),
            method: "x|y".into(),
            runs: blocks,
            ..Default::default()
        })
        .unwrap();
        arm["seconds"] = row(1);
        if blocks < 6 {
            (arm["seconds"]["low"], arm["seconds"]["high"]) = (Value::Null, Value::Null);
        }
        let mut run = serde_json::to_value(fathom_bench::Run { schema: 1, ..Default::default() }).unwrap();
        run["arms"] = Value::Array(vec![arm]);
        run.to_string()
    };
    for (name, factor, blocks) in [("old", 1.0, 10), ("same", 1.01, 10), ("slow", 1.2, 10), ("few", 1.2, 2)] {
        fs::write(dir.path().join(name), run_of(factor, blocks)).unwrap();
    }
    for (words, expected, message) in [
        ("compare old same --fail-above 5%", 0, ""),
        ("compare old slow", 0, ""),
        ("compare old slow --fail-above 5%", 1, "fathom bench: slower by more than 5 %: rust x|y (read)\n"),
        ("compare old slow --fail-above=30", 0, ""),
        ("compare slow old --fail-above=0", 0, ""),
        ("compare old few --fail-above 5%", 1, "fathom bench: cannot judge rust x|y (read): both runs need "),
    ] {
        let (status, out, err) = run(dir.path(), words);
        assert_eq!(status, Some(expected), "{words}: {err}");
        assert!(err.starts_with(message) && err.is_empty() == message.is_empty(), "{words}: {err}");
        assert!(out.starts_with("read\n\n"), "{out}");
    }
    let none = serde_json::to_string(&fathom_bench::Run { schema: 1, ..Default::default() }).unwrap();
    fs::write(dir.path().join("none"), none).unwrap();
    let (status, _, err) = run(dir.path(), "compare old none --markdown --fail-above 5%");
    assert!(status == Some(1) && err.starts_with("fathom bench: cannot judge rust x|y (read): "), "{err}");
    let (status, _, err) = run(dir.path(), "compare old slow --html=x.html");
    assert!(
        status == Some(2) && err.starts_with("fathom bench compare: unrecognized option '--html"),
        "{err}"
    );
    let (_, out, _) = run(dir.path(), "compare old slow --markdown");
    assert!(out.contains("| rust | x\\|y | 1.00 "), "{out}");
    let (status, _, err) = run(dir.path(), "compare old slow --fail-above fast");
    assert_eq!(status, Some(2), "{err}");
    let (status, _, err) = run(dir.path(), "read --fail-above 5%");
    assert!(status == Some(2) && err.contains("unrecognized option '--fail-above'"), "{err}");
}

/// Its own DuckDB line reads this.
#[test]
fn samples_have_the_columns_of_io_playground() {
    let dir = temp();
    let (status, out, err) = run(dir.path(), &format!("write {SMALL} --models sync --csv=plain"));
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    assert!(
        !lines.is_empty()
            && lines.iter().all(|line| line.len() == 3 && ["blocking", "sync:dontcache"].contains(&line[0])),
        "{out}"
    );
    assert!(lines.iter().all(|line| line[1].parse::<f64>().unwrap() > 0.0), "{out}");
    let (status, out, _) =
        run(dir.path(), &format!("write {SMALL} --models sync --csv=plain:out.csv --markdown"));
    assert!(status == Some(0) && out.starts_with("### write 64 KiB in 4 KiB blocks\n"), "{out}");
    // Not always the first line: a sample that others disturbed is taken again later.
    let written = fs::read_to_string(dir.path().join("out.csv")).unwrap();
    assert!(written.lines().any(|line| line.starts_with("blocking,")), "{written}");
}

#[test]
fn arms_have_the_numbers_that_are_listed() {
    let dir = temp();
    let words = "random-read --size 64K --blocks 1 --cache warm --threads 1,3 --depth 2 --batch 1,9 --json";
    let (status, out, err) = run(dir.path(), words);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&out).unwrap();
    if json["unavailable"].as_array().unwrap().is_empty() {
        let expected = [
            "sync",
            "threads=1",
            "threads=3",
            "uring=2",
            "uring=2:batch=1",
            "uring=2:threads=3",
            "uring=2:threads=3:batch=1",
        ];
        assert_eq!(methods(&json), expected);
    } else {
        println!("skipped: {}", json["unavailable"]);
    }
    let numbers = json["rows"].as_array().unwrap().iter().filter(|row| row["method"] == "threads=3");
    assert!(numbers.clone().count() > 0 && numbers.clone().all(|row| row["threads"] == 3));
    for (words, message) in [
        ("read --threads 0", "invalid number '0' for '--threads': from 1 to 4096"),
        ("read --depth 1,x", "invalid number 'x' for '--depth'"),
        ("read --wait never", "invalid argument 'never' for '--wait'"),
        ("append-sync --depth 2", "--depth has no effect on append-sync, only on "),
        ("advise --threads 2", "fathom bench advise: unrecognized option '--threads'"),
    ] {
        let (status, _, err) = run(dir.path(), words);
        assert!(status == Some(2) && err.contains(message), "{words}: {err}");
    }
}

/// Once, the sample waited for its dead thread for ever, and nobody was told.
#[test]
fn a_panic_in_a_thread_of_a_sample_is_reported_and_ends_the_run() {
    if !crate::support::needs_faults() {
        return;
    }
    let home = temp();
    let mut command = bench(home.path(), &format!("write --models threads --threads 4 {SMALL}"));
    let output = command.env("FATHOM_FAULT", "bench-prepared:2:PANIC").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.starts_with("fathom bench: cannot execute 'rust ") && message.contains("panicked"),
        "{message}"
    );
    assert_eq!(names(home.path()), Vec::<String>::new());
}
