//! Shared code of the comparisons with GNU du: builds trees, runs both programs, and reports
//! differences. Contains no expected output of du: GNU du provides it.

pub(crate) mod case;
pub(crate) mod commands;
pub(crate) mod fuse;
pub(crate) mod manifest;
pub(crate) mod outcome;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod release;
pub(crate) mod tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

pub(crate) use case::{compare, compare_all, compare_all_as_du, du};
pub(crate) use tree::Tree;

/// Returns whether this process, and so every program that it starts, ignores a signal, and counts
/// a skip if so. Shells make background processes ignore SIGINT, nohup(1) makes a process ignore
/// SIGHUP.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0").trim();
    let is_ignored = u64::from_str_radix(mask, 16).unwrap_or(0) >> (signal - 1) & 1 == 1;
    if is_ignored {
        skip(format_args!("signal {signal} is ignored here, and so by all that is started"));
    }
    is_ignored
}

/// Returns the Python interpreter with Selenium; `None` if it or the browser is not installed.
pub(crate) fn selenium_python() -> Option<PathBuf> {
    let env = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env");
    let python = env.join("bin/python3");
    let needed = [&python, Path::new("/usr/bin/chromium"), Path::new("/usr/bin/chromedriver")];
    let missing = needed.into_iter().find(|path| !path.exists());
    if let Some(missing) = missing {
        skip(format_args!("needs {}: tools/setup-test.sh", missing.display()));
    }
    missing.is_none().then_some(python)
}

/// Prints once why the running test cannot run on this machine. `make test` counts such tests as
/// skipped.
pub(crate) fn skip(why: impl std::fmt::Display) {
    static PRINTED: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());
    // libtest runs each test in a thread that has the test's name.
    let test = thread::current().name().unwrap_or_default().to_string();
    if PRINTED.lock().expect("no holder panics").insert((test, why.to_string())) {
        println!("skipped: {why}");
    }
}

/// Whether the installed GNU du is at least `major.minor`. If not, prints that the test is skipped.
pub(crate) fn needs_gnu(major: u32, minor: u32) -> bool {
    let found = program::gnu_version();
    let enough = found >= (major, minor);
    if !enough {
        skip(format_args!("needs GNU du {major}.{minor}, found {}.{}", found.0, found.1));
    }
    enough
}

/// Whether the program under test has fault points. If not, prints that the test is skipped.
pub(crate) fn needs_faults() -> bool {
    let has_faults = cfg!(debug_assertions);
    if !has_faults {
        skip("needs a build with debug assertions, which has fault points");
    }
    has_faults
}

/// Whether a program was right to say that the files in `dir` are in memory alone (tmpfs, ramfs),
/// so that nothing can be cold. If so, prints that `what` is skipped.
pub(crate) fn is_in_memory(stderr: &[u8], dir: &std::path::Path, what: &str) -> bool {
    const IN_MEMORY: [rustix::fs::FsWord; 2] = [0x0102_1994, 0x8584_58f6];
    if !stderr.ends_with(b"its files exist only in memory\n") {
        return false;
    }
    let magic = rustix::fs::statfs(dir).unwrap().f_type;
    assert!(IN_MEMORY.contains(&magic), "{what}: the files are on a filesystem of type {magic:x}");
    skip(format_args!("needs temporary files on a disk for {what}"));
    true
}

/// Whether the tool `name` is installed. If not, prints that the test is skipped.
pub(crate) fn needs_tool(name: &str) -> bool {
    let found = program::on_path(name).is_some();
    if !found {
        skip(format_args!("needs {name}"));
    }
    found
}

/// Whether this process may mount in a namespace of its own. If not, prints that the test is
/// skipped.
pub(crate) fn needs_mounts() -> bool {
    let able = case::mounts_work();
    if !able {
        skip("needs the right to mount in a namespace of its own (root)");
    }
    able
}

/// Whether a scripted FUSE file system can be mounted. If not, prints that the test is skipped.
pub(crate) fn needs_fuse() -> bool {
    let able = needs_mounts();
    if able && !fuse::works() {
        skip("needs /dev/fuse");
        return false;
    }
    able
}
