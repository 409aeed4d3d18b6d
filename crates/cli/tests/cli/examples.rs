//! The commands in the README, the guides and `--help` work as they are written. A shell runs them
//! in a tree that stands for the places that they name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use crate::support::Tree;
use crate::support::manifest::start_earlier;
use crate::support::program::Program;

/// A home directory with the files that the examples expect in the current directory.
const HOME: &str = "disk.iso 4096, projects/p 7, src/a.rs 5000, src/b/c.log 100, d.log 3, srv/big 20000, srv/sub/small 1, mnt/nfs/f 1, usr/h 1, var/log/g.log 1";

/// Returns the code blocks of the document `name` that are in `language`.
fn blocks(name: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = fs::read_to_string(path).expect("the document is there");
    let fenced = text.split("```").skip(1).step_by(2);
    let blocks = fenced.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    blocks.map(str::to_string).collect()
}

/// Returns the commands in the document `name`.
fn shown(name: &str) -> Vec<String> {
    let shell = blocks(name, "sh");
    let lines = shell.iter().flat_map(|block| block.lines()).filter(|line| line.starts_with("fathom "));
    lines.map(|line| line.split(" #").next().unwrap_or_default().trim_end().to_string()).collect()
}

fn help(words: &[&str]) -> Vec<String> {
    let output = Command::new(Program::AsDu.bin().join("fathom")).args(words).arg("--help").output();
    let text = String::from_utf8(output.expect("fathom runs").stdout).expect("help is plain text");
    let examples = text.split_once("\nExamples:\n").map_or("", |(_, examples)| examples);
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    examples.lines().filter(is_command).map(|line| line.trim().to_string()).collect()
}

/// Moves the absolute paths of a command below `home`.
fn moved(line: &str, home: &Path) -> String {
    let move_word = |word: &str| match word.strip_prefix('/') {
        Some(rest) => home.join(rest).to_str().expect("made by this test").to_string(),
        None => word.to_string(),
    };
    line.split(' ').map(move_word).collect::<Vec<_>>().join(" ")
}

fn run(line: &str, home: &Path) -> Output {
    let installed = std::env::var_os("PATH").unwrap_or_default();
    let dirs = [Program::AsDu.bin(), python_bin()].into_iter().chain(std::env::split_paths(&installed));
    let path = std::env::join_paths(dirs).expect("no colon in a directory of the build");
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(home).env("HOME", home).env("PATH", path);
    // Programs in other languages are built once for all tests.
    shell.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    shell.output().expect("a shell runs")
}

/// Returns the directory into which `tools/test-python.sh` installs DuckDB.
fn python_bin() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env").join("bin")
}

fn duckdb_works() -> bool {
    let output = Command::new(python_bin().join("duckdb")).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn examples_of_the_readme_work() {
    let lines = shown("README.md");
    assert!(lines.len() >= 4, "the README shows how fathom is used: {lines:?}");
    check(lines);
}

#[test]
fn examples_of_the_documents_work() {
    check([shown("docs/README.md"), shown("docs/serve.md"), shown("docs/serve-reference.md")].concat());
}

/// A test for the examples of a command's help. Tests run side by side, a loop would not.
macro_rules! help_works {
    ($($test:ident: [$($word:literal)?],)*) => {
        $(#[test]
        fn $test() {
            let examples = help(&[$($word)?]);
            assert!(!examples.is_empty(), "its --help shows examples");
            check(examples);
        })*
    };
}

help_works! {
    examples_of_fathom_work: [],
    examples_of_du_work: ["du"],
    examples_of_explore_work: ["explore"],
    examples_of_list_work: ["list"],
    examples_of_scan_work: ["scan"],
    examples_of_top_work: ["top"],
    examples_of_report_work: ["report"],
    examples_of_diff_work: ["diff"],
    examples_of_history_work: ["history"],
    examples_of_grew_work: ["grew"],
    examples_of_query_work: ["query"],
    examples_of_export_work: ["export"],
    examples_of_import_work: ["import"],
    examples_of_merge_work: ["merge"],
    examples_of_rm_work: ["rm"],
    examples_of_serve_work: ["serve"],
    examples_of_io_work: ["io"],
}

/// The commands that a test of this program runs or has run: documents repeat one another.
static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether a line can be run here. If not, prints that it is skipped.
fn is_possible(line: &str) -> bool {
    let has_duckdb = !line.starts_with("fathom query") || duckdb_works();
    if !has_duckdb {
        crate::support::skip("needs DuckDB in PATH for the examples of fathom query");
    }
    has_duckdb && (!line.contains("--resume") || crate::support::needs_faults())
}

fn is_benchmark(line: &str) -> bool {
    line.starts_with("fathom bench")
}

/// Runs alone. Benchmarks take seconds each, so `make test` runs a part of them.
#[test]
fn examples_of_benchmarks_work() {
    let helps: [&[&str]; 5] =
        [&[], &["bench"], &["bench", "advise"], &["bench", "run"], &["bench", "compare"]];
    let helps = helps.iter().flat_map(|words| help(words));
    let lines = shown("README.md").into_iter().chain(shown("docs/README.md")).chain(helps);
    let benchmarks: BTreeSet<String> = lines.filter(|line| is_benchmark(line)).collect();
    assert!(benchmarks.len() >= 8, "the help shows how to measure: {benchmarks:?}");
    // The first one is `bench advise`, which takes half a minute.
    let part = benchmarks.len() * fathom_cases::count(5) / 5;
    for line in benchmarks.into_iter().rev().take(part) {
        check_one(line);
    }
}

/// Runs each command as it is written, unless another test does, and checks its status and that it
/// prints something. Benchmarks have a test of their own.
fn check(lines: Vec<String>) {
    lines.into_iter().filter(|line| !is_benchmark(line)).for_each(check_one);
}

fn check_one(line: String) {
    if !TAKEN.lock().expect("no holder panics").insert(line.clone()) || !is_possible(&line) {
        return;
    }
    let home = Tree::parse(HOME);
    prepare(&line, &home);
    if line.starts_with("fathom explore") {
        return check_without_terminal(&line, home.path());
    }
    let line = ends_here(line);
    let output = run(&moved(&line, home.path()), home.path());
    let warns = ["--since ", "--keep ", "--tls-self-signed", "bench advise", "bench stat"]
        .iter()
        .any(|option| line.contains(option));
    let is_quiet = output.stderr.is_empty() || warns;
    if crate::support::is_in_memory(&output.stderr, home.path(), &line) {
        return;
    }
    let ended_well = output.status.code() == Some(i32::from(line.starts_with("fathom diff")));
    assert!(ended_well && is_quiet, "{line}: {output:?}");
    let redirected = line.split_once('>').map(|(_, file)| home.path().join(file));
    let printed = redirected.map_or(output.stdout, |file| fs::read(file).expect("the shell made it"));
    // The tree has no entry as large as the example's threshold, or with the example's name.
    let finds_nothing = line.contains(" -t1G")
        || line.contains("+100M")
        || line.contains("*.iso")
        || line.contains("--dry-run");
    let makes_files = line.contains(" -o ") || line.contains(" --keep ") || line.contains("--parquet");
    assert!(!printed.is_empty() || finds_nothing || makes_files, "{line} prints nothing");
}

/// Returns a command that does the same and ends on this machine, however busy that is.
fn ends_here(line: String) -> String {
    // A server does not exit by itself, so check its configuration instead.
    let stays = line.starts_with("fathom serve")
        && !["--check", "--io-report"].iter().any(|option| line.contains(option));
    if stays {
        line + " --check"
    } else if line.starts_with("fathom bench advise") {
        // In half a minute, a machine that others use may answer nothing, which is a failure.
        line + " --time 1h"
    } else if line.starts_with("ssh ") {
        // The other machine is this one.
        "mkdir srv.inv; ssh() { shift; \"$@\"; }; ".to_string() + &line
    } else {
        line
    }
}

/// Checks that a command line of the explorer is understood: without a terminal, that is all.
fn check_without_terminal(line: &str, home: &Path) {
    let (command, _pipe) = line.split_once(" | ").unwrap_or((line, ""));
    let output = run(&format!("{} </dev/null", moved(command, home)), home);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message, "fathom explore: standard input is not a terminal\n", "{line}");
    assert_eq!(output.status.code(), Some(2), "{line}");
}

/// Makes the inventories and other files that a command needs.
fn prepare(line: &str, home: &Tree) {
    let asks = ["query", "top", "report", "export"]
        .iter()
        .any(|command| line.starts_with(&format!("fathom {command}")));
    if asks || line.contains("--from home.inv") {
        run("fathom scan -o home.inv ~; fathom scan -o all.inv ~", home.path());
    }
    if ["history", "grew"].iter().any(|command| line.starts_with(&format!("fathom {command}"))) {
        let scans =
            "fathom scan --keep store srv; head -c 9000 /dev/zero >srv/new; fathom scan --keep store srv";
        run(&format!("fathom scan -o old.inv srv; {scans}; fathom scan -o new.inv srv"), home.path());
        let mut kept: Vec<_> =
            fs::read_dir(home.at("store")).unwrap().map(|one| one.unwrap().path()).collect();
        kept.sort();
        // Scans of the same hour have no rate.
        start_earlier(&kept[0], 86_400);
    }
    if line.contains("fathom import") {
        run("fathom scan -o i srv; fathom export --to ncdu i >nas.ncdu; cp nas.ncdu nas.json", home.path());
    }
    if line.starts_with("fathom merge") {
        run("fathom scan -o home.inv ~; fathom scan -o srv.inv srv", home.path());
    }
    if line.starts_with("fathom diff") {
        run("fathom scan -o old.inv ~; echo >projects/new; rm d.log; fathom scan -o new.inv ~", home.path());
    }
    if line.starts_with("fathom bench compare") {
        run(
            "fathom bench write --size 64K --blocks 6 --models sync --json=old.json; cp old.json new.json",
            home.path(),
        );
    }
    if line.contains("--cases cases.toml") {
        let case = "[[case]]\nname = 'a'\ncommand = [{ name = 'true', run = 'true' }]\n";
        fs::write(home.path().join("cases.toml"), case).expect("the directory can be written to");
    }
    if line.contains("--resume") {
        let inventory = line.split_whitespace().find(|word| word.ends_with(".inv"));
        let inventory = inventory.expect("an example names the inventory to go on with");
        let ended = format!("FATHOM_FAULT=scan-look:1:LATER fathom scan --deadline 1s -o {inventory} srv");
        assert_eq!(run(&ended, home.path()).status.code(), Some(1));
    }
    if let Some((_, words)) = line.split_once("--since ") {
        let previous = words.split_whitespace().next().expect("an example names the earlier inventory");
        run(&format!("fathom scan -o {previous} srv"), home.path());
    }
}

#[test]
fn every_file_of_cases_in_the_documents_makes_sense() {
    let files = blocks("docs/measuring.md", "toml");
    assert!(!files.is_empty());
    for file in files {
        fathom_bench::commands::CasesFile::parse(&file, "cases.toml".as_ref()).expect(&file);
    }
}

#[test]
fn every_configuration_of_the_guide_makes_sense() {
    let blocks = [blocks("docs/serve.md", "toml"), blocks("docs/serve-reference.md", "toml")].concat();
    assert!(blocks.len() >= 4, "the guide shows configurations: {blocks:?}");
    for block in blocks {
        let checked = fathom_serve::Config::from_toml(&block).and_then(|mut config| {
            // Some are parts, which belong to a site with a directory.
            if !config.site.has_root() {
                config.site.root = "/srv".into();
            }
            config.check()
        });
        assert!(checked.is_ok(), "{checked:?} in\n{block}");
    }
}
