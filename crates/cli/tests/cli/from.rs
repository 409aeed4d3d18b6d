//! `fathom du --from` prints for an inventory what `fathom du` prints for the tree: the same lines,
//! messages and exit status. Other tests compare the latter with GNU du. Where files get lines,
//! their order may differ.

#![cfg(target_os = "linux")]
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::program::{Program, unprivileged};
use crate::support::random::Random;
use crate::support::{Tree, needs_mounts};

fn fathom(tree: &Tree, words: &str) -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.args(words.split_whitespace()).env("LC_ALL", "C").env("TZ", "UTC").current_dir(tree.path());
    command
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the lines, the messages and the exit status of a run.
fn result_of(output: &Output, sorted: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>, Option<i32>) {
    let lines =
        |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (mut out, mut err) = (lines(&output.stdout), lines(&output.stderr));
    err.sort();
    if sorted {
        out.sort();
    }
    (out, err, output.status.code())
}

/// Scans the roots `scanned` and compares both commands for each of `options`, which may include
/// operands.
#[track_caller]
fn compare(tree: &Tree, scanned: &str, options: &[&str]) -> PathBuf {
    let inventory = tree.path().parent().unwrap().join("inv");
    fs::remove_dir_all(&inventory).ok();
    let mut scan = fathom(tree, "scan -o");
    output(scan.arg(&inventory).args(scanned.split_whitespace()));
    assert!(inventory.exists(), "{scanned}");
    for words in options {
        let operands = !words.split_whitespace().any(|word| !word.starts_with('-'));
        let live = output(&mut fathom(tree, &format!("du {words} {}", if operands { scanned } else { "" })));
        let recorded =
            output(fathom(tree, "du").arg("--from").arg(&inventory).args(words.split_whitespace()));
        let sorted = words.contains("a") && !words.contains("apparent") || words.contains("--by");
        let (live, recorded) = (result_of(&live, sorted), result_of(&recorded, sorted));
        if live != recorded {
            let show = |lines: &[Vec<u8>]| {
                lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<String>()
            };
            panic!(
                "{scanned}: du {words}\nlive, {:?}:\n{}{}\nfrom, {:?}:\n{}{}",
                live.2,
                show(&live.0),
                show(&live.1),
                recorded.2,
                show(&recorded.0),
                show(&recorded.1),
            );
        }
    }
    inventory
}

/// Options that are answered from the rows of directories, and options that need the rows of files.
const ALL: [&str; 26] = [
    "",
    "-s",
    "-S",
    "-c",
    "-sc",
    "-d1",
    "-h",
    "-b",
    "--apparent-size",
    "--inodes",
    "--inodes -S",
    "-l",
    "-lsc",
    "-t4k",
    "-t-4k",
    "-0",
    "--json -s",
    "-a",
    "-ab",
    "-x",
    "--exclude=*.o",
    "--exclude=sub",
    "--time",
    "--time --time-style=full-iso -d1",
    "--time=ctime -s",
    "-a --inodes",
];

fn varied() -> Tree {
    let tree = Tree::parse(
        "d/a 5000, d/b = d/a, d/sub/c = d/a, d/sub/x.o 3, d/sub/deep/er/y 70000, d/empty/, d/l -> a, d/p |, d/s %, d/hole ~1G, \
         e/f = d/a, e/g 1, e/h = e/g, single 12",
    );
    for name in [&b"d/\xff\n"[..], b"d/sub/a b\\"] {
        fs::write(tree.path().join(OsStr::from_bytes(name)), "z").unwrap();
    }
    fs::create_dir(tree.path().join(OsStr::from_bytes(b"e/\xfe"))).unwrap();
    for file in 0..1500 {
        fs::write(tree.path().join(format!("e/{file}.o")), "xyz").unwrap();
    }
    tree
}

#[test]
fn one_tree_reads_like_the_scanned_one() {
    let tree = varied();
    for scanned in ["d", "d/", ".", "./e", "single"] {
        compare(&tree, scanned, &ALL);
    }
    compare(&tree, ".", &["--by=ext", "--by=type", "--by=user", "--top=5", "--tree", "--tree --json"]);
}

#[test]
fn several_trees_count_each_inode_once() {
    let tree = varied();
    for scanned in ["d e", "e d single", "d d/sub", "d/sub d", "d e d/a", "d/a e d", "d d"] {
        compare(&tree, scanned, &ALL);
    }
}

#[test]
fn a_subtree_equals_a_scan_of_that_subtree() {
    let tree = varied();
    for options in ["", "-s", "-c", "-b", "--inodes", "-l", "-S", "-d1", "-a"] {
        let words = |operands: &str| format!("{options} {operands}");
        for operands in [
            "./d",
            "./d/sub",
            "./d/sub/",
            "./d ./e",
            "./d/sub ./d",
            "./d/a",
            "./d/a ./d",
            "./d/none",
            "./d/l",
        ] {
            compare(&tree, ".", &[&words(operands)]);
        }
    }
    let inventory = compare(&tree, ".", &[]);
    let recorded = output(fathom(&tree, "du -s --from").arg(&inventory).args(["d/sub", "d/none"]));
    let live = output(&mut fathom(&tree, "du -s d/sub d/none"));
    assert_eq!(result_of(&recorded, false), result_of(&live, false), "relative to what was scanned");
}

#[test]
fn random_trees_read_like_the_scanned_ones() {
    for seed in fathom_cases::seeds(12) {
        let mut random = Random::new(seed);
        let tree = Tree::new();
        let (mut dirs, mut files) = (vec![PathBuf::from("r")], Vec::<PathBuf>::new());
        fs::create_dir(tree.path().join("r")).unwrap();
        for number in 0..120 {
            let dir = dirs[random.below(dirs.len())].clone();
            let path = dir.join(format!("n{number}"));
            let at = |path: &Path| tree.path().join(path);
            match random.below(4) {
                0 => {
                    fs::create_dir(at(&path)).unwrap();
                    dirs.push(path);
                }
                1 if !files.is_empty() => {
                    fs::hard_link(at(&files[random.below(files.len())]), at(&path)).unwrap();
                }
                _ => {
                    fs::write(at(&path), vec![b'x'; random.below(20_000)]).unwrap();
                    files.push(path);
                }
            }
        }
        let part = dirs[random.below(dirs.len())].display().to_string();
        compare(&tree, "r", &ALL);
        compare(&tree, "r", &[&part, &format!("-s {part}"), &format!("-b {part} r"), &format!("-S {part}")]);
    }
}

#[test]
fn recorded_errors_are_printed_as_du_prints_them() {
    let tree = varied();
    compare(&tree, "d none e", &["", "-s", "-c", "-a"]);
    if !needs_mounts() {
        return;
    }
    // Root can read every directory, so scan and measure without that privilege.
    let script = "mount -t tmpfs none d/empty && touch d/empty/in && \
         \"$0\" scan -x -o ../inv d; \"$0\" du -x d >../live; \"$0\" du --from ../inv >../told; cmp ../live ../told";
    let mut command = Command::new("unshare");
    command
        .args(["-m", "bash", "-c", script])
        .arg(Program::AsDu.bin().join("fathom"))
        .current_dir(tree.path());
    fs::remove_dir_all(tree.path().join("../inv")).ok();
    let output = output(&mut command);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn unreadable_directories_count_their_recorded_entries() {
    let tree = varied();
    let (closed, out) = (tree.path().join("d/sub"), tree.path().parent().unwrap().join("out"));
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, Permissions::from_mode(0o777)).unwrap();
    let run = |words: &str| {
        let mut command = unprivileged();
        output(command.args(words.split_whitespace()).env("LC_ALL", "C").current_dir(tree.path()))
    };
    assert_eq!(run("scan -o ../out/inv d").status.code(), Some(1));
    for options in ["", "-s", "-a"] {
        let (live, recorded) =
            (run(&format!("du {options} d")), run(&format!("du {options} --from ../out/inv")));
        assert!(
            String::from_utf8_lossy(&recorded.stderr)
                .contains("cannot read directory 'd/sub': Permission denied")
        );
        assert_eq!(result_of(&live, options == "-a"), result_of(&recorded, options == "-a"), "{options}");
    }
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_empty_file_of_operands_prints_nothing() {
    let tree = varied();
    let inventory = compare(&tree, "d e", &[]);
    for options in ["", "-s", "-c", "-a"] {
        let live = output(&mut fathom(&tree, &format!("du {options} --files0-from=/dev/null")));
        let mut command = fathom(&tree, &format!("du {options} --files0-from=/dev/null --from"));
        assert_eq!(result_of(&output(command.arg(&inventory)), false), result_of(&live, false), "{options}");
    }
}

#[test]
fn operands_need_not_be_spelled_as_they_were_scanned() {
    let tree = varied();
    let inventory = compare(&tree, "./d//sub/. single", &[]);
    for operand in ["d/sub", "./d/sub/", "d//./sub", "./single", "single"] {
        let recorded = output(fathom(&tree, "du -s --from").arg(&inventory).arg(operand));
        assert_eq!(
            result_of(&recorded, false),
            result_of(&output(&mut fathom(&tree, &format!("du -s {operand}"))), false)
        );
    }
}

#[test]
fn unsupported_options_are_refused() {
    let tree = varied();
    let inventory = compare(&tree, "d", &["-s"]);
    let refused = |words: &[&str], inventory: &Path| {
        let output = output(fathom(&tree, "du").args(words).arg("--from").arg(inventory));
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]), "{words:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(refused(&["-L"], &inventory), "fathom du: cannot follow links in an inventory (--from)\n");
    assert!(refused(&["-s"], Path::new("no/such")).ends_with("No such file or directory\n"));
    let file = inventory.join("dirs-00000.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&file, bytes).unwrap();
    assert!(refused(&["-s"], &inventory).contains("differs from the recorded"));
}
