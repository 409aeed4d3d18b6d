//! Child processes for tests that change limits or namespaces: the test binary runs the same test
//! again with a role, and reads the report of that child.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::skip;

const ROLE: &str = "FATHOM_WALK_TEST_ROLE";
const TREE: &str = "FATHOM_WALK_TEST_TREE";
const REPORT: &str = "report ";

/// Returns the role of a child and the tree to walk; `None` in the parent process.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(TREE)?.into()))
}

/// Reports a value to the parent process.
pub(crate) fn report(key: &str, value: impl std::fmt::Display) {
    // The test harness has printed the name of the test without a newline.
    println!("\n{REPORT}{key} {value}");
}

/// The values that a child reported.
pub(crate) struct Report(HashMap<String, String>);

impl Report {
    #[track_caller]
    pub(crate) fn number(&self, key: &str) -> usize {
        let value = self.0.get(key).unwrap_or_else(|| panic!("no report of {key}"));
        value.parse().unwrap()
    }

    /// Returns the lines that a child reported in a file.
    #[track_caller]
    pub(crate) fn lines(&self, tree: &Path, role: &str) -> Vec<String> {
        let text = std::fs::read_to_string(transcript(tree, role)).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn transcript(tree: &Path, role: &str) -> PathBuf {
    let mut name = tree.as_os_str().to_owned();
    name.push(format!("-{}", role.replace('/', "-")));
    name.into()
}

/// Reports lines to the parent process, in a file.
pub(crate) fn report_lines(tree: &Path, role: &str, lines: &[String]) {
    std::fs::write(transcript(tree, role), lines.join("\n")).unwrap();
}

/// Runs `test` again with `role` and a limit of `fds` descriptors.
#[track_caller]
pub(crate) fn run(test: &str, role: &str, tree: &Path, fds: usize) -> Report {
    let limited = ["-c", "ulimit -n \"$0\" && exec \"$@\""];
    report_of(Command::new("sh").args(limited).arg(fds.to_string()), test, role, tree)
}

/// Runs `test` again with `role` in a new mount namespace, after the shell command `prepare`, in
/// which `$0` is the tree. Prints the reason and returns `None` if no namespace can be created.
#[track_caller]
pub(crate) fn run_with_mounts(test: &str, role: &str, tree: &Path, prepare: &str) -> Option<Report> {
    let able = |args: &[&str]| {
        let tried =
            Command::new("unshare").args(args).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(args) = [["-m"].as_slice(), ["-r", "-m"].as_slice()].into_iter().find(|args| able(args)) else {
        skip("needs the right to mount in a namespace of its own");
        return None;
    };
    let mut command = Command::new("unshare");
    command.args(args).args(["sh", "-c", &format!("{prepare} && exec \"$@\"")]).arg(tree);
    Some(report_of(&mut command, test, role, tree))
}

#[track_caller]
fn report_of(command: &mut Command, test: &str, role: &str, tree: &Path) -> Report {
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env(ROLE, role).env(TREE, tree).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{role}: {}\n{out}\n{err}", output.status);
    let reports = out.lines().filter_map(|line| line.strip_prefix(REPORT)?.split_once(' '));
    Report(reports.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}
