//! Scans that end at a fault point (`FATHOM_FAULT`): the process sends itself a signal there, so
//! that it ends at the same place on a machine of any speed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use rustix::process::{Pid, Signal, kill_process};

use crate::scan::tables::{comparable_rows, manifest};
use crate::scan::{run, scan};
use crate::support::Tree;
use crate::support::commands::halted_at;

/// The number of SIGKILL.
const KILLED: i32 = 9;

/// Returns a tree of some 60 directories. Two have enough entries for several checkpoints, and one
/// inode has names in distant directories.
pub(crate) fn bushy_tree() -> Tree {
    let tree = Tree::new();
    for top in 0..4 {
        for sub in 0..4 {
            let dir = tree.path().join(format!("t{top}/s{sub}/deep/er"));
            fs::create_dir_all(&dir).unwrap();
            for file in 0..6 {
                fs::write(dir.parent().unwrap().join(format!("f{file}")), "x").unwrap();
                fs::write(dir.join(format!("g{file}.c")), "xy").unwrap();
            }
        }
    }
    fs::hard_link(tree.path().join("t0/s0/deep/f0"), tree.path().join("t3/link")).unwrap();
    tree
}

/// Returns a scan to `out` with a checkpoint after every 40 entries, which `fault` ends.
pub(crate) fn faulty(tree: &Tree, out: &Path, fault: &str, words: &[&str]) -> Command {
    let mut command = scan(tree);
    command.env("FATHOM_FAULT", fault).args(["--checkpoint", "40", "-o"]).arg(out).args(words);
    command
}

/// Runs a scan that SIGKILL ends at the point `fault`.
#[track_caller]
pub(crate) fn killed_at(tree: &Tree, out: &Path, fault: &str, words: &[&str]) {
    let output = run(&mut faulty(tree, out, fault, words));
    assert_eq!(output.status.signal(), Some(KILLED), "{fault}: {output:?}");
}

pub(crate) fn part_of(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap().to_owned();
    name.push(".part");
    out.with_file_name(name)
}

#[track_caller]
pub(crate) fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Asserts that `out` contains these rows, in any order, and no unexpected file.
#[track_caller]
pub(crate) fn assert_complete(out: &Path, expected: &[String]) {
    let (mut found, mut expected) = (comparable_rows(out), expected.to_vec());
    // The files of a segment are ordered by table.
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let manifest = manifest(out);
    assert_eq!(
        (&manifest["completeness"]["partial"], &manifest["completeness"]["stopped"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let listed = manifest["files"].as_array().unwrap().len();
    assert_eq!(fs::read_dir(out).unwrap().count(), listed + 1, "nothing is left over");
    assert!(!part_of(out).exists());
}

/// A scan that is stopped (SIGSTOP) at a fault point.
pub(crate) struct StoppedScan(Child);

impl StoppedScan {
    /// Starts a scan and waits until it has stopped at `point`.
    #[track_caller]
    pub(crate) fn at(tree: &Tree, out: &Path, point: &str, words: &[&str]) -> Self {
        Self(halted_at(&mut faulty(tree, out, "", words), point))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Continues the scan. Returns its output and exit status.
    pub(crate) fn go_on(self) -> Output {
        kill_process(self.pid(), Signal::CONT).unwrap();
        self.0.wait_with_output().unwrap()
    }
}
