//! The DuckDB that is here, and how it is run: as a program of its own or as a module of Python. It takes the place of this
//! process, so Ctrl-C, a closed pipe and the exit status need nobody in between. No shell has a part in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::MemfdFlags;
use serde_json::json;

use super::args::Format;
use super::views::literal;

/// How to get it; the end of each message that says it is missing.
const INSTALL: &str = "install it with 'pip install duckdb', or from https://duckdb.org";
/// Wider than any line: what is not for a terminal is not to be cut.
const UNLIMITED_COLUMNS: u32 = 1_000_000;
const SCRIPT: &str = include_str!("duckdb.py");

/// A DuckDB.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The program `duckdb`.
    Shell(PathBuf),
    /// A Python that should have the module.
    Python(PathBuf),
}

/// What DuckDB is to do.
#[derive(Debug)]
pub(crate) struct Request {
    /// Statements to begin with.
    pub(crate) setup: Vec<String>,
    /// The user's query, unchanged.
    pub(crate) query: String,
    pub(crate) format: Format,
    /// Columns of the terminal, if the answer goes to one.
    pub(crate) columns: Option<u16>,
}

impl Engine {
    /// The one that the environment names, or the first that is found.
    pub(crate) fn find(env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let path = env("PATH").unwrap_or_default();
        if let Some(name) = env("FATHOM_DUCKDB").filter(|name| !name.is_empty()) {
            let found = program(&name, &path);
            let missing = || format!("cannot find {}, which FATHOM_DUCKDB names; {INSTALL}", name.display());
            return found.map(Self::named).ok_or_else(missing);
        }
        let shell = program(OsStr::new("duckdb"), &path).map(Self::Shell);
        let found = shell.or_else(|| program(OsStr::new("python3"), &path).map(Self::Python));
        found.ok_or_else(|| {
            format!("needs DuckDB, and finds neither 'duckdb' nor 'python3' in PATH; {INSTALL}")
        })
    }

    fn named(program: PathBuf) -> Self {
        let name = program.file_name().unwrap_or_default();
        if name.as_bytes().starts_with(b"python") { Self::Python(program) } else { Self::Shell(program) }
    }

    /// Becomes DuckDB, in the directory of the inventory; comes back only if that cannot be done.
    pub(crate) fn become_it(self, inventory: &Path, request: &Request) -> String {
        let (program, text) = match &self {
            Self::Shell(program) => (program, request.for_shell()),
            Self::Python(program) => (program, request.for_python(program)),
        };
        let mut command = Command::new(program);
        match self {
            Self::Shell(_) => {
                command.args(["-batch", "-bail", "-init", "/dev/null"]).current_dir(inventory);
            }
            // It goes there itself: which Python this is may depend on the directory it is started in.
            Self::Python(_) => {
                command.args(["-X", "utf8", "-c", SCRIPT]).arg(inventory);
            }
        }
        // What is spilled holds names that others may not see in the tree itself.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let error = match input(text.as_bytes()) {
            Ok(file) => command.stdin(file).exec(),
            Err(error) => error,
        };
        format!("cannot run '{}': {error}", program.display())
    }
}

impl Request {
    /// What is typed to the program.
    fn for_shell(&self) -> String {
        let mut text = self.setup.join(";\n");
        text += ";\n";
        text += match self.format {
            Format::Table => ".mode duckbox\n.maxrows 1000\n",
            Format::Csv => ".mode csv\n.nullvalue ''\n.separator , \"\\n\"\n",
            Format::Json | Format::JsonLines => ".mode list\n.headers off\n",
        };
        if self.format == Format::Table {
            text += &format!(".maxwidth {}\n", self.width());
        }
        text + &self.statement() + ";\n"
    }

    /// What `duckdb.py` reads.
    fn for_python(&self, program: &Path) -> String {
        let format = match self.format {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json | Format::JsonLines => "lines",
        };
        let missing = format!(
            "fathom query: needs DuckDB, which '{}' does not have as it is needed; {INSTALL}",
            program.display()
        );
        let (setup, statement, width) = (&self.setup, self.statement(), self.width());
        json!({"setup": setup, "statement": statement, "format": format, "width": width, "missing": missing})
            .to_string()
    }

    fn width(&self) -> u32 {
        self.columns.map_or(UNLIMITED_COLUMNS, u32::from)
    }

    /// The query, made into the columns that its format needs. As an argument of `query()` it can be a SELECT and nothing else:
    /// COPY could write to the files that may be read.
    fn statement(&self) -> String {
        let rows = format!("query({})", literal(&self.query));
        let objects = format!("(FROM {rows}) \"row of the query\"");
        match self.format {
            Format::Table => format!("FROM {rows}"),
            Format::Csv => format!("SELECT COLUMNS(*)::VARCHAR FROM {rows}"),
            Format::JsonLines => format!("SELECT to_json(\"row of the query\") FROM {objects}"),
            Format::Json => format!(
                "SELECT '[' UNION ALL SELECT if(row_number() OVER () = 1, ' ', ',') || to_json(\"row of the query\") \
                 FROM {objects} UNION ALL SELECT ']'"
            ),
        }
    }
}

/// A file without a name that holds `text`, to be read from its beginning.
fn input(text: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("query", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

/// Where a program is: `name` itself if it is a path, or else the first in `path` that can be run. What is empty in `path`
/// would be the current directory, where anybody may have put anything.
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
    // The program starts in another directory.
    found.and_then(|file| std::path::absolute(file).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_with(variables: &[(&str, &Path)]) -> Result<Engine, String> {
        Engine::find(&|name| {
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
        assert_eq!(find_with(&[("PATH", path)]), Ok(Engine::Python(python.clone())));
        std::fs::write(path.join("duckdb"), "").expect("it is a directory of this test");
        assert_eq!(find_with(&[("PATH", path)]), Ok(Engine::Python(python)), "what cannot be run is none");
        let shell = executable(path, "duckdb");
        assert_eq!(find_with(&[("PATH", path)]), Ok(Engine::Shell(shell)));
        let named = executable(path, "python3.13");
        let other = [("PATH", path), ("FATHOM_DUCKDB", Path::new("python3.13"))];
        assert_eq!(find_with(&other), Ok(Engine::Python(named.clone())));
        assert_eq!(find_with(&[("FATHOM_DUCKDB", &named)]), Ok(Engine::Python(named)));
        let none = find_with(&[("PATH", path), ("FATHOM_DUCKDB", Path::new("none"))]);
        assert!(none.is_err_and(|message| message.contains("cannot find none")));
    }

    #[test]
    fn what_a_query_says_is_never_a_line_of_its_own() {
        for format in [Format::Table, Format::Csv, Format::Json, Format::JsonLines] {
            let query = "\n.shell id\n'); .shell id\n".to_owned();
            let request = Request { setup: Vec::new(), query, format, columns: None };
            let text = request.for_shell();
            assert!(
                !text.contains("\n.shell") && text.contains(r"query(E'\n.shell id\n''); .shell id\n')"),
                "{text}"
            );
        }
    }
}
