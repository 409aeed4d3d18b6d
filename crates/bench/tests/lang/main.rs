//! Programs in other languages: locating, building and running them. Shell scripts stand in for
//! toolchains and programs. The real Python program always runs, the others if their toolchains are
//! installed.

mod builds;
mod real;
mod runs;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Returns the PATH of the machine, preceded by the environments of tools/test-python.sh and
/// tools/test-node.sh.
fn machine() -> OsString {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let own = ["python-env", "node-env"].map(|name| target.with_file_name(name).join("bin"));
    let path = env::var_os("PATH").expect("a PATH");
    let dirs = own.into_iter().chain(env::split_paths(&path));
    env::join_paths(dirs).expect("a PATH's directories have no colon")
}

/// Creates an executable script. A shell writes it, because a file descriptor that this process
/// holds open for writing may be inherited by a child of another test, and exec would fail with
/// ETXTBSY.
fn script(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"", "sh"]);
    let status = shell.arg(path).arg(text).stdin(Stdio::null()).status().expect("a shell");
    assert!(status.success(), "{}", path.display());
}
