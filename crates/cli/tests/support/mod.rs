//! What the comparisons with GNU du share: trees to measure, both programs run alike, and what differs.
//! Knows nothing of what du should print: GNU du itself says that.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

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
use std::sync::Mutex;
use std::thread;

#[allow(unused_imports, reason = "each test binary uses its own part of this")]
pub(crate) use case::{all_same, all_same_as_du, du, same};
#[allow(unused_imports, reason = "each test binary uses its own part of this")]
pub(crate) use tree::Tree;

/// Says why the running test could not do its work here, once; `make test` counts such tests as skipped.
pub(crate) fn skip(why: impl std::fmt::Display) {
    static SAID: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());
    // Each test runs in a thread of its name.
    let test = thread::current().name().unwrap_or_default().to_string();
    if SAID.lock().expect("no holder panics").insert((test, why.to_string())) {
        println!("skipped: {why}");
    }
}

/// Whether the GNU du at hand is at least `major.minor`; says so when it is not.
pub(crate) fn needs_gnu(major: u32, minor: u32) -> bool {
    let found = program::gnu_version();
    let enough = found >= (major, minor);
    if !enough {
        skip(format_args!("needs GNU du {major}.{minor}, found {}.{}", found.0, found.1));
    }
    enough
}

/// Whether the tool `name` is installed; says so when it is not.
pub(crate) fn needs_tool(name: &str) -> bool {
    let found = program::on_path(name).is_some();
    if !found {
        skip(format_args!("needs {name}"));
    }
    found
}

/// Whether this process may make mount namespaces and mount in them; says so when it may not.
pub(crate) fn needs_mounts() -> bool {
    let able = case::mounts_work();
    if !able {
        skip("needs the right to mount in a namespace of its own (root)");
    }
    able
}

/// Whether a file system of the test's own making can be mounted; says so when it cannot.
pub(crate) fn needs_fuse() -> bool {
    let able = needs_mounts();
    if able && !fuse::works() {
        skip("needs /dev/fuse");
        return false;
    }
    able
}
