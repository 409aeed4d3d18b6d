//! Compares `fathom du` with GNU du on existing trees: the system's own files, and sources if any
//! are installed.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use crate::support::program::{ENGINES, Program};
use crate::support::{Tree, du, skip};

const LINES: [&str; 12] = [
    "-a",
    "-ab",
    "--inodes",
    "-S",
    "-h -d2",
    "-L",
    "-s",
    "-sl",
    "-c",
    "-x --time",
    "-at 1M --si",
    "-aX /dev/null --exclude=*.h",
];

/// Compares each command line called as `du`, and with one of the I/O models in turn.
fn compare(path: &Path) {
    let elsewhere = Tree::new();
    let mut engines = ENGINES.iter().filter(|engine| engine.is_allowed()).cycle();
    for line in &LINES[..fathom_cases::count(LINES.len())] {
        let case = du(&elsewhere, line).arg(path);
        let engine = engines.next().expect("a model that needs nothing is among them");
        let expected = case.agree(Program::AsDu, case.run(Program::Gnu));
        case.agree(*engine, expected).prints("\t");
    }
}

#[test]
fn the_systems_own_files() {
    compare(Path::new("/usr"));
}

#[test]
fn sources() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/.corpora/real");
    let candidates =
        [Some(corpus), home.map(|home| home.join("registry/src")), Some(PathBuf::from("/usr/src"))];
    match candidates.into_iter().flatten().find(|path| path.is_dir()) {
        Some(path) => compare(&path),
        None => skip("no sources: neither a corpus of the benchmarks nor cargo's nor the system's"),
    }
}
