//! Finds the installations of DuckDB that `tools/test-python.sh` makes below the target directory,
//! and runs queries with them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::program::Program;
use crate::support::skip;

/// An installation of DuckDB: its program, or Python with its module.
#[derive(Clone, Debug)]
pub(crate) struct DuckDb(PathBuf);

/// Returns the directory of the Python environment's programs, if it is installed.
pub(crate) fn python_bin() -> Option<PathBuf> {
    let bin = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env").join("bin");
    let found = Some(bin).filter(|bin| bin.join("python3").exists());
    if found.is_none() {
        skip("needs DuckDB, Polars and pyarrow: tools/test-python.sh TARGET/python-env");
    }
    found
}

/// Returns the DuckDB program and the Python module. Returns nothing, and prints a skip message, if
/// they are not installed.
pub(crate) fn engines() -> Vec<DuckDb> {
    let programs = ["duckdb", "python3"].map(|name| python_bin().map(|bin| DuckDb(bin.join(name))));
    programs.into_iter().flatten().collect()
}

/// Returns a `fathom` command with the locale and the time zone that the expected results assume.
pub(crate) fn fathom(directory: &Path, words: &[&OsStr]) -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.args(words).current_dir(directory).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    command
}

impl DuckDb {
    /// Returns the installation of this program.
    pub(crate) fn at(program: PathBuf) -> Self {
        Self(program)
    }

    pub(crate) fn program(&self) -> &Path {
        &self.0
    }

    /// Returns the name of the program, which tells a program from Python.
    pub(crate) fn name(&self) -> &OsStr {
        self.0.file_name().unwrap()
    }

    /// Returns a `fathom query` command for `inventory` in `directory`.
    pub(crate) fn command(&self, directory: &Path, inventory: impl AsRef<OsStr>, words: &[&str]) -> Command {
        let mut command = fathom(directory, &[OsStr::new("query"), inventory.as_ref()]);
        command.args(words).env("FATHOM_DUCKDB", &self.0);
        command
    }

    /// Runs a `fathom query` command for `inventory` in `directory`.
    pub(crate) fn ask(&self, directory: &Path, inventory: impl AsRef<OsStr>, words: &[&str]) -> Output {
        let mut command = self.command(directory, inventory, words);
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Returns the rows of a query of the inventory [`inventory_name`].
    #[track_caller]
    pub(crate) fn rows(&self, directory: &Path, sql: &str) -> Vec<Value> {
        let output = self.ask(directory, inventory_name(), &["--format=jsonl", sql]);
        assert!(output.status.success(), "{self:?}: {sql}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
            .collect()
    }

    /// Returns the only value of the only row.
    #[track_caller]
    pub(crate) fn value(&self, directory: &Path, sql: &str) -> Value {
        let rows = self.rows(directory, sql);
        let [Value::Object(row)] = &rows[..] else { panic!("{sql}: {rows:?}") };
        assert_eq!(row.len(), 1, "{sql}");
        row.values().next().unwrap().clone()
    }
}

/// Returns a name with characters that SQL, a shell and a glob treat specially, and with a byte
/// that is not UTF-8.
pub(crate) fn inventory_name() -> OsString {
    OsStr::from_bytes(b"it's \"an\" [inv]* ?\\x $(id);--\xff").to_owned()
}
