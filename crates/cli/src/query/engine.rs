//! Finds a DuckDB installation, and makes the command that runs a query with it, as a program or as
//! a Python module. No shell is involved.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_questions::views::literal;
use rustix::fs::MemfdFlags;
use serde_json::json;

use super::args::AnswerFormat;
use super::child::{self, ChildEnd};

/// Installation instructions, the end of each message about a missing DuckDB.
const INSTALL: &str = "pip install duckdb, or see https://duckdb.org";
/// Wider than any line, so that output for programs is not truncated.
const UNLIMITED_COLUMNS: u32 = 1_000_000;
const SCRIPT: &str = include_str!("duckdb.py");

/// A DuckDB installation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DuckDb {
    /// The program `duckdb`.
    Shell(PathBuf),
    /// A Python interpreter that should have the module `duckdb`.
    Python(PathBuf),
}

/// The statements that DuckDB runs, and the format of the answer.
#[derive(Debug)]
pub(crate) struct DuckDbRequest {
    /// Statements that run before the query.
    pub(crate) setup: Vec<String>,
    /// The user's query, unchanged.
    pub(crate) query: String,
    pub(crate) format: AnswerFormat,
    /// The width of the terminal, if the answer is printed on one.
    pub(crate) columns: Option<u16>,
}

impl DuckDb {
    /// Finds the installation that the environment names, or else the first one in PATH.
    pub(crate) fn find(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let path = env("PATH").unwrap_or_default();
        if let Some(name) = env("FATHOM_DUCKDB").filter(|name| !name.is_empty()) {
            let found = program(&name, &path);
            let missing = || format!("cannot find {} (FATHOM_DUCKDB); {INSTALL}", name.display());
            return found.map(Self::named).ok_or_else(missing);
        }
        let shell = program(OsStr::new("duckdb"), &path).map(Self::Shell);
        let found = shell.or_else(|| program(OsStr::new("python3"), &path).map(Self::Python));
        found.ok_or_else(|| {
            format!("DuckDB is needed: found neither 'duckdb' nor 'python3' in PATH; {INSTALL}")
        })
    }

    fn named(program: PathBuf) -> Self {
        let name = program.file_name().unwrap_or_default();
        if name.as_bytes().starts_with(b"python") { Self::Python(program) } else { Self::Shell(program) }
    }

    /// Runs the query with DuckDB in the directory of the inventory.
    ///
    /// # Errors
    /// A message if DuckDB cannot be started.
    pub(crate) fn run(self, inventory: &Path, request: &DuckDbRequest) -> Result<ChildEnd, String> {
        let (program, text) = match &self {
            Self::Shell(program) => (program, request.for_shell()),
            Self::Python(program) => (program, request.for_python(program)),
        };
        let mut command = Command::new(program);
        match self {
            Self::Shell(_) => {
                command.args(["-batch", "-bail", "-init", "/dev/null"]).current_dir(inventory);
            }
            // The script changes the directory itself: the directory in which Python starts may
            // select another Python environment.
            Self::Python(_) => {
                command.args(["-X", "utf8", "-c", SCRIPT]).arg(inventory);
            }
        }
        // DuckDB's temporary files hold names that other users may not be able to list in the tree
        // itself.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let ended = input(text.as_bytes()).and_then(|file| child::run(command.stdin(file)));
        ended.map_err(|error| format!("cannot run '{}': {error}", program.display()))
    }
}

impl DuckDbRequest {
    /// Returns the input for the program `duckdb`.
    fn for_shell(&self) -> String {
        let mut text = self.setup.join(";\n");
        text += ";\n";
        text += match self.format {
            AnswerFormat::Table => ".mode duckbox\n.maxrows 1000\n",
            AnswerFormat::Csv => ".mode csv\n.nullvalue ''\n.separator , \"\\n\"\n",
            AnswerFormat::Json | AnswerFormat::JsonLines => ".mode list\n.headers off\n",
        };
        if self.format == AnswerFormat::Table {
            text += &format!(".maxwidth {}\n", self.width());
        }
        text + &self.statement() + ";\n"
    }

    /// Returns the input for `duckdb.py`.
    fn for_python(&self, program: &Path) -> String {
        let format = match self.format {
            AnswerFormat::Table => "table",
            AnswerFormat::Csv => "csv",
            AnswerFormat::Json | AnswerFormat::JsonLines => "lines",
        };
        let missing = format!(
            "fathom query: DuckDB 1.2 or newer is needed, and '{}' does not have it: {INSTALL}",
            program.display()
        );
        let (setup, statement, width) = (&self.setup, self.statement(), self.width());
        json!({"setup": setup, "statement": statement, "format": format, "width": width, "missing": missing})
            .to_string()
    }

    fn width(&self) -> u32 {
        self.columns.map_or(UNLIMITED_COLUMNS, u32::from)
    }

    /// Returns the statement that wraps the query and produces the columns of the format. As an
    /// argument of `query()` the text can only be a SELECT; a COPY could otherwise overwrite the
    /// files that are readable.
    fn statement(&self) -> String {
        let rows = format!("query({})", literal(&self.query));
        let objects = format!("(FROM {rows}) \"row of the query\"");
        match self.format {
            AnswerFormat::Table => format!("FROM {rows}"),
            AnswerFormat::Csv => format!("SELECT COLUMNS(*)::VARCHAR FROM {rows}"),
            AnswerFormat::JsonLines => format!("SELECT to_json(\"row of the query\") FROM {objects}"),
            AnswerFormat::Json => format!(
                "SELECT '[' UNION ALL SELECT if(row_number() OVER () = 1, ' ', ',') || to_json(\"row of the query\") \
                 FROM {objects} UNION ALL SELECT ']'"
            ),
        }
    }
}

/// Creates an anonymous file with the contents `text`, positioned at its start.
fn input(text: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("query", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

/// Finds an executable: `name` itself if it is a path, or else the first match in `path`. Empty
/// components of `path` mean the current directory, which may be under the control of other users;
/// they are skipped.
fn program(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = if name.as_bytes().contains(&b'/') {
        Some(PathBuf::from(name)).filter(runs)
    } else {
        let directories = std::env::split_paths(path).filter(|directory| !directory.as_os_str().is_empty());
        directories.map(|directory| directory.join(name)).find(runs)
    };
    // Make the path absolute, because the program starts in another directory.
    found.and_then(|file| std::path::absolute(file).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_with(variables: &[(&str, &Path)]) -> Result<DuckDb, String> {
        DuckDb::find(&|name| {
            let found = variables.iter().find(|variable| variable.0 == name);
            found.map(|variable| variable.1.as_os_str().to_owned())
        })
    }

    fn executable(directory: &Path, name: &str) -> PathBuf {
        let file = directory.join(name);
        std::fs::write(&file, "").expect("it is a directory of this test");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("it was just made");
        file
    }

    #[test]
    fn the_program_comes_before_python_and_a_named_one_before_both() {
        let place = tempfile::tempdir().expect("there is room for it");
        let path = place.path();
        assert!(find_with(&[("PATH", path)]).is_err_and(|message| message.contains("pip install duckdb")));
        let python = executable(path, "python3");
        assert_eq!(find_with(&[("PATH", path)]), Ok(DuckDb::Python(python.clone())));
        std::fs::write(path.join("duckdb"), "").expect("it is a directory of this test");
        assert_eq!(find_with(&[("PATH", path)]), Ok(DuckDb::Python(python)), "what cannot be run is none");
        let shell = executable(path, "duckdb");
        assert_eq!(find_with(&[("PATH", path)]), Ok(DuckDb::Shell(shell)));
        let named = executable(path, "python3.13");
        let other = [("PATH", path), ("FATHOM_DUCKDB", Path::new("python3.13"))];
        assert_eq!(find_with(&other), Ok(DuckDb::Python(named.clone())));
        assert_eq!(find_with(&[("FATHOM_DUCKDB", &named)]), Ok(DuckDb::Python(named)));
        let none = find_with(&[("PATH", path), ("FATHOM_DUCKDB", Path::new("none"))]);
        assert!(none.is_err_and(|message| message.contains("cannot find none")));
    }

    #[test]
    fn no_part_of_a_query_starts_a_line() {
        for format in [AnswerFormat::Table, AnswerFormat::Csv, AnswerFormat::Json, AnswerFormat::JsonLines] {
            let query = "\n.shell id\n'); .shell id\n".to_owned();
            let request = DuckDbRequest { setup: Vec::new(), query, format, columns: None };
            let text = request.for_shell();
            assert!(
                !text.contains("\n.shell") && text.contains(r"query(E'\n.shell id\n''); .shell id\n')"),
                "{text}"
            );
        }
    }
}
