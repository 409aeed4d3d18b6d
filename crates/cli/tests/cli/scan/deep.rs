//! Trees so deep that their paths together exceed the memory: every command reads their inventories
//! in little memory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

use parquet::record::Field;

use crate::scan::since::SETTLED;
use crate::scan::tables::{manifest, number, rows};
use crate::scan::{beside, run};
use crate::support::program::Program;
use crate::support::{Tree, needs_tool};

/// Number of levels. All paths together take 1.1 GB; the longest takes 768 kB.
const LEVELS: usize = 3000;
const NAME_BYTES: usize = 255;
/// Upper bound of the peak memory of any command on any tree.
const PEAK_KIB: u64 = 200 * 1024;

/// Python program that runs a command and prints its peak resident memory, in KiB, on standard
/// error.
const MEASURED: &str = "
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
sys.stderr.write('%d' % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
";

/// Runs fathom in the tree and returns its output. Panics if it exceeds the memory bound, fails, or
/// writes an error.
#[track_caller]
fn bounded(tree: &Tree, status: i32, words: &[&OsStr]) -> Output {
    let mut command = Command::new("python3");
    command.args(["-c", MEASURED]).arg(Program::AsDu.bin().join("fathom")).args(words);
    let output = run(command.current_dir(tree.path()).env("LC_ALL", "C.UTF-8"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let peak: u64 =
        stderr.lines().last().unwrap_or_default().parse().unwrap_or_else(|_| panic!("{words:?}: {stderr}"));
    assert!(output.status.code() == Some(status), "{words:?}: {:?}", output.status);
    assert!(peak < PEAK_KIB, "{words:?}: {peak} KiB");
    output
}

fn words<'a>(line: &'a str, inventories: &[&'a Path]) -> Vec<&'a OsStr> {
    line.split_whitespace().map(OsStr::new).chain(inventories.iter().map(|path| path.as_os_str())).collect()
}

fn size(inventory: &Path) -> u64 {
    fs::read_dir(inventory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_deep_chain_is_read_by_every_command_in_little_memory() {
    if !needs_tool("python3") {
        return;
    }
    let tree = Tree::parse("top/").deep("top/chain", LEVELS, NAME_BYTES);
    let (old, new) = (beside(&tree, "old"), beside(&tree, "new"));
    // Directories that changed a moment ago would be read again.
    std::thread::sleep(SETTLED);
    bounded(&tree, 0, &words("scan top -o", &[&old]));
    assert!(size(&old) < 4 << 20, "{} bytes", size(&old));
    let dirs = rows(&old, "dirs");
    assert_eq!(dirs.iter().filter(|dir| dir["path"] == Field::Null).count(), LEVELS + 2 - within_reach());
    bounded(&tree, 0, &[&words("scan top --since", &[&old])[..], &words("-o", &[&new])].concat());
    bounded(&tree, 0, &words("diff", &[&old, &new]));
    bounded(&tree, 0, &words("diff --dirs", &[&old, &new]));
    let top = bounded(&tree, 0, &words("top -n 3 --json", &[&old]));
    assert!(String::from_utf8(top.stdout).unwrap().starts_with("{\"path\":\"top\""));
    bounded(&tree, 0, &words("top --by type", &[&old]));
    let du = bounded(&tree, 0, &words("du -s --inodes --from", &[&old]));
    assert_eq!(du.stdout, format!("{}\ttop\n", LEVELS + 3).as_bytes());
    let sql = bounded(&tree, 0, &words("export --to sql", &[&old]));
    assert!(sql.stdout.ends_with(b"COMMIT;\n"));
}

/// Returns the number of directories whose paths are short enough to be stored.
fn within_reach() -> usize {
    2 + (4095 - "top/chain".len()) / (NAME_BYTES + 1)
}

/// Returns the path of the innermost directory of `inventory`, joined from its names.
fn innermost(inventory: &Path) -> Vec<u8> {
    let mut dirs = rows(inventory, "dirs");
    dirs.sort_by_key(|dir| number(dir, "depth"));
    let names = dirs.iter().map(|dir| crate::scan::tables::bytes(dir, "name"));
    names.collect::<Vec<_>>().join(&b'/')
}

#[test]
fn a_long_path_is_found_and_shown_whole() {
    let tree = Tree::parse("top/").deep("top/chain", 40, NAME_BYTES);
    let inventory = crate::scan::scan_completely(&tree, "inv", "top");
    let path = innermost(&inventory);
    assert!(path.len() > 4095);
    let shown = |words: &[&str]| {
        let mut command = Command::new(Program::AsDu.bin().join("fathom"));
        let output =
            run(command.args(words).arg(&inventory).current_dir(tree.path()).env("LC_ALL", "C.UTF-8"));
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
        output.stdout
    };
    let text = std::str::from_utf8(&path).unwrap();
    let exported = shown(&["export", "--to", "nul"]);
    assert_eq!(exported.split(|byte| *byte == 0).filter(|found| *found == &path[..]).count(), 1);
    let both = [&path[..], b"\0", &path, b"/f\0"].concat();
    assert_eq!(shown(&["export", "--to", "nul", "--below", text]), both);
    let lines = shown(&["du", "--inodes", "--from"]);
    assert!(lines.starts_with(&[b"2\t", &path[..], b"\n"].concat()), "it is the first to be left");
    assert_eq!(shown(&["du", "-s", "--inodes", text, "--from"]), [b"2\t", &path[..], b"\n"].concat());
    let all = shown(&["top", "-n", "99", "--json"]);
    assert!(String::from_utf8(all).unwrap().contains(&format!("{{\"path\":\"{text}\"")));
}

#[test]
fn a_long_path_that_cannot_be_read_keeps_its_place() {
    let tree = Tree::parse("top/").deep("top/chain", 40, NAME_BYTES);
    let (whole, out) = (crate::scan::scan_completely(&tree, "whole", "top"), beside(&tree, "inv"));
    let path = innermost(&whole);
    let missing = OsStr::from_bytes(&path);
    let output = run(crate::scan::scan(&tree).arg("-o").arg(&out).arg("top").arg(missing));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = rows(&out, "errors");
    assert_eq!((errors.len(), &errors[0]["path"]), (1, &Field::Null));
    assert_eq!(crate::scan::tables::bytes(&errors[0], "name"), path);
    assert_eq!(manifest(&out)["completeness"]["missing_roots"], 1);
}
