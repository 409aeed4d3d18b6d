//! `docs/reproduce.md`: each of its commands runs, at a small size, and measures the arms that its
//! tables name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::temp;

/// The sections with commands. Each has a test.
const RDU: &str = "Three models of du (rdu)";
const DIRINVENTORY: &str = "Threads, output and memory of a walk (dirinventory)";
const WEB_SERVER: &str = "Blocking reads in a web server (static-web-server)";
const IO_PLAYGROUND: &str = "Methods of writing a file (io-playground)";

/// Replacements of sizes, trees and the caches of the machine by small ones of the test. The
/// languages whose programs take long to build have tests in `crates/bench`.
const SMALL: [(&str, &str); 13] = [
    (" DIR", " tree"),
    ("--lang c,go,zig,python --wait", "--lang c --wait"),
    ("--lang c,go,zig,python", "--lang c,python"),
    ("--size 1G", "--size 64K"),
    ("--size 7M", "--size 140K"),
    ("bench run ", "bench run --blocks 1 "),
    ("bench serve ", "bench serve --blocks 1 "),
    ("bench walk ", "bench walk --blocks 1 "),
    ("--cache cold", "--cache warm"),
    ("--threads 1,8,16,32,64,128", "--threads 1,8,128"),
    ("bench write ", "bench write --blocks 1 "),
    ("sync; ", ""),
    ("/proc/sys/vm/drop_caches", "drop_caches"),
];

/// A section of the document: its heading, its commands, and the arms in its tables.
#[derive(Default)]
struct Section {
    heading: String,
    commands: Vec<String>,
    arms: Vec<String>,
}

/// Returns the sections of the document, with the part above the first heading of the second level.
fn sections() -> Vec<Section> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduce.md");
    let text = fs::read_to_string(path).unwrap().replace("\\\n", "");
    let mut sections = vec![Section::default()];
    let mut fence = None;
    for line in text.lines() {
        let section = sections.last_mut().unwrap();
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => fence = Some(language),
            (Some(_), Some(_)) => fence = None,
            (Some(language), None) => {
                assert_eq!(language, "sh", "a block that no test runs: {line}");
                section.commands.push(line.to_string());
            }
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    sections.push(Section { heading: heading.to_string(), ..Section::default() });
                } else if let Some(row) = line.strip_prefix("| `") {
                    section.arms.push(row.split('`').next().unwrap().to_string());
                }
            }
        }
    }
    sections
}

fn small(text: &str) -> String {
    SMALL.iter().fold(text.to_string(), |text, (published, small)| text.replace(published, small))
}

/// Returns the directory into which `tools/test-python.sh` installs DuckDB and Zig.
fn python_bin() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env").join("bin")
}

/// Runs a line of the document in a shell that finds the programs of this build first.
fn shell(dir: &Path, line: &str) -> Output {
    let own = Path::new(env!("CARGO_BIN_EXE_rdu-sync")).parent().unwrap().to_path_buf();
    let installed = std::env::var_os("PATH").unwrap_or_default();
    let dirs = [own, python_bin()].into_iter().chain(std::env::split_paths(&installed));
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(dir).env("LC_ALL", "C");
    shell.env("PATH", std::env::join_paths(dirs).unwrap());
    // Programs in other languages are built once for all tests.
    shell.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    shell.output().unwrap()
}

/// Runs the commands of a section in their order, and returns their directory and all that they
/// print. The commands for DuckDB are skipped if it is not installed.
fn reproduce(heading: &str) -> (tempfile::TempDir, String) {
    let sections = sections();
    let section = sections.iter().find(|section| section.heading == heading).unwrap();
    let dir = temp();
    for below in ["tree/a/b", "tree/c"] {
        fs::create_dir_all(dir.path().join(below)).unwrap();
        fs::write(dir.path().join(below).join("file"), "text").unwrap();
    }
    let mut printed = String::new();
    for published in &section.commands {
        let line = small(published);
        assert!(!line.contains("/proc") && !line.contains("1G"), "not small: {line}");
        if line.starts_with("duckdb ") && !python_bin().join("duckdb").exists() {
            println!("skipped: needs DuckDB: tools/test-python.sh TARGET/python-env");
            continue;
        }
        let output = shell(dir.path(), &line);
        assert!(output.status.success(), "{line}: {output:?}");
        printed += &String::from_utf8(output.stdout).unwrap();
    }
    for arm in section.arms.iter().map(|arm| small(arm)) {
        if !printed.contains(&format!(" {arm} ")) {
            assert!(printed.contains(&format!(" {arm}: ")), "no arm {arm}: {printed}");
            println!("skipped: {arm} is not available");
        }
    }
    (dir, printed)
}

#[test]
fn reproduce_runs_every_command_of_its_document() {
    let sections = sections();
    let with_commands = sections.iter().filter(|section| !section.commands.is_empty());
    let headings: Vec<&str> = with_commands.map(|section| section.heading.as_str()).collect();
    assert_eq!(headings, [RDU, DIRINVENTORY, WEB_SERVER, IO_PLAYGROUND]);
    for section in sections.iter().filter(|section| !section.commands.is_empty()) {
        assert!(section.arms.len() >= 3, "{}", section.heading);
        for line in &section.commands {
            assert!(line.starts_with("fathom bench ") || line.starts_with("duckdb "), "{line}");
        }
    }
}

#[test]
fn reproduce_measures_three_models_of_du() {
    let (_dir, printed) = reproduce(RDU);
    for column in ["faults", "switches", "memory MB"] {
        assert!(printed.contains(column), "{column}: {printed}");
    }
}

#[test]
fn reproduce_measures_threads_and_output_of_a_walk() {
    let (dir, printed) = reproduce(DIRINVENTORY);
    assert!(printed.contains(" fathom list --order any --count --threads 128 tree "), "{printed}");
    for arm in [" threads=128:backlog=65536 ", " threads=1:backlog=524288 "] {
        assert!(printed.contains(arm), "{arm}: {printed}");
    }
    // The text of --prepare has run.
    assert_eq!(fs::read_to_string(dir.path().join("drop_caches")).unwrap(), "3\n");
}

#[test]
fn reproduce_measures_a_server_with_and_without_blocking_reads() {
    let (_dir, printed) = reproduce(WEB_SERVER);
    assert!(printed.starts_with("serve 140 KiB of 716 B each, warm\n"), "{printed}");
    for column in ["ops/s", "CPU-s/Mop", "p99 us", "memory MB"] {
        assert!(printed.contains(column), "{column}: {printed}");
    }
}

#[test]
fn reproduce_measures_methods_of_writing_for_the_query_of_io_playground() {
    let (dir, printed) = reproduce(IO_PLAYGROUND);
    assert!(printed.contains(" dd "), "{printed}");
    if !python_bin().join("duckdb").exists() {
        return;
    }
    let sections = sections();
    let section = sections.iter().find(|section| section.heading == IO_PLAYGROUND).unwrap();
    let query = section.commands.iter().find(|line| line.starts_with("duckdb ")).unwrap();
    let output = shell(dir.path(), &query.replace("duckdb ", "duckdb -csv "));
    let answer = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    let mut lines = answer.lines();
    assert_eq!(lines.next(), Some("method,avg_time,avg_throughput"), "{answer}");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let seconds = |row: &Vec<&str>| row[1].strip_suffix('s').unwrap().parse::<f64>().unwrap();
    assert!(rows.iter().all(|row| row.len() == 3 && row[2].ends_with("B/s")), "{answer}");
    assert!(rows.is_sorted_by_key(seconds), "{answer}");
    let csv = fs::read_to_string(dir.path().join("out.csv")).unwrap();
    let measured: BTreeSet<&str> = csv.lines().map(|line| line.split(',').next().unwrap()).collect();
    let found: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(found, measured);
}
