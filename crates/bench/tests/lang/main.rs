//! The programs in other languages: how they are found, built and run. Shell scripts stand in for toolchains and programs;
//! Python's own program is always run, those of the others where their toolchains are.

mod builds;
mod real;
mod runs;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Where the machine's own programs are, and before them the tests' Python with what tools/test-python.sh has given it.
fn machine() -> OsString {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env").join("bin");
    let path = env::var_os("PATH").expect("a PATH");
    let dirs = std::iter::once(python).chain(env::split_paths(&path));
    env::join_paths(dirs).expect("a PATH's directories have no colon")
}

/// Makes an executable script. A shell writes it: a file that this process had open for writing could be busy for a child that
/// another test has just started.
fn script(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"", "sh"]);
    let status = shell.arg(path).arg(text).stdin(Stdio::null()).status().expect("a shell");
    assert!(status.success(), "{}", path.display());
}
