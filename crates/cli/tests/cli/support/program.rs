//! Finds GNU du and fathom, and lists the forms in which fathom is run. `FATHOM_BIN` names another
//! program to test as fathom, `FATHOM_GNU_DU` another GNU du.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program to run, with the name under which it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// GNU du.
    Gnu,
    /// fathom called as `du`.
    AsDu,
    /// `fathom du` with options that choose the I/O model and the number of workers.
    Engine(&'static [&'static str]),
}

/// Each I/O model and number of workers to test. All must print the same.
pub(crate) const ENGINES: &[Program] = &[
    Program::Engine(&["--threads=1"]),
    Program::Engine(&["--threads=5"]),
    Program::Engine(&["--io=auto"]),
    Program::Engine(&["--io=sync"]),
    Program::Engine(&["--io=threads=3"]),
    Program::Engine(&["--io=async-seq"]),
    Program::Engine(&["--io=async-par"]),
    Program::Engine(&["--io=uring"]),
    Program::Engine(&["--io=uring=2", "--threads=2"]),
];

/// Returns the forms of fathom for the next command line: called as `du`, and one of the allowed
/// [`ENGINES`] in turn, or each of them in a run of all tests.
pub(crate) fn forms() -> Vec<Program> {
    let allowed: Vec<Program> = ENGINES.iter().copied().filter(|engine| engine.is_allowed()).collect();
    fathom_cases::engines(Program::AsDu, &allowed)
}

impl Program {
    /// The name of the program in the directory [`Program::bin`].
    pub(crate) fn name(self) -> &'static str {
        if matches!(self, Program::Engine(_)) { "fathom" } else { "du" }
    }

    /// The arguments that precede du's.
    pub(crate) fn leading(self) -> Vec<&'static str> {
        match self {
            Program::Engine(options) => ["du"].iter().chain(options).copied().collect(),
            _ => Vec::new(),
        }
    }

    /// The directory that holds this program under its name, for `PATH`.
    pub(crate) fn bin(self) -> PathBuf {
        bin_dirs().join(if self == Program::Gnu { "gnu" } else { "fathom" })
    }

    /// Whether the operating system allows this form. Only io_uring may be forbidden.
    pub(crate) fn is_allowed(self) -> bool {
        match self {
            Program::Engine(options) if options[0].contains("uring") => uring_is_allowed(),
            _ => true,
        }
    }

    /// Rewrites standard error as GNU du would have written it: replaces the name of the program,
    /// and removes the option that a message about an unknown one suggests. Drops the message of
    /// the shell that starts GNU du about a deleted current directory.
    pub(crate) fn rewrite_as_gnu(self, stderr: Vec<u8>) -> Vec<u8> {
        let named = matches!(self, Program::Engine(_));
        let own = |line: &[u8]| match (line.strip_prefix(b"fathom "), line.strip_prefix(b"Try 'fathom ")) {
            (Some(rest), _) if named => rest.to_vec(),
            (_, Some(rest)) if named => [b"Try '", rest].concat(),
            _ => line.to_vec(),
        };
        let without_suggestion = |line: Vec<u8>| {
            let parts = String::from_utf8_lossy(&line);
            match parts.split_once(", did you mean '--") {
                Some((message, _)) if named => line[..message.len()].iter().chain(b"\n").copied().collect(),
                _ => line,
            }
        };
        let lines = stderr.split_inclusive(|&byte| byte == b'\n');
        lines
            .filter(|line| !line.starts_with(b"sh: 0: getcwd() failed"))
            .map(own)
            .flat_map(without_suggestion)
            .collect()
    }
}

/// Returns the release of the installed GNU du.
pub(crate) fn gnu_version() -> (u32, u32) {
    static VERSION: OnceLock<(u32, u32)> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let output = Command::new(gnu_path()).arg("--version").output().expect("GNU du runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next().and_then(|line| line.strip_prefix("du (GNU coreutils) "));
        let version = version.unwrap_or_else(|| panic!("{:?} is not GNU du", gnu_path()));
        let mut parts = version.split(['.', '-']).map_while(|part| part.parse().ok());
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    })
}

/// Describes the GNU du that runs, with its release: a difference may be one between releases.
pub(crate) fn gnu_description() -> String {
    let (major, minor) = gnu_version();
    format!("GNU du {major}.{minor} ({})", gnu_path().display())
}

fn gnu_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        // tools/test.sh unpacks Debian's newest one below the target directory.
        let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("gnu-du").join("du");
        let chosen = env::var_os("FATHOM_GNU_DU").map(PathBuf::from);
        chosen
            .or_else(|| fetched.exists().then_some(fetched))
            .or_else(|| on_path("du"))
            .expect("no du in PATH")
    })
}

fn fathom_path() -> PathBuf {
    env::var_os("FATHOM_BIN").unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_fathom"))).into()
}

/// Returns the path of the tool `name` in `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.exists())
}

fn bin_dirs() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
        install(&dir.join("gnu"), "du", gnu_path());
        install(&dir.join("fathom"), "du", &fathom_path());
        install(&dir.join("fathom"), "fathom", &fathom_path());
        dir
    })
}

/// Makes `dir/name` a symbolic link to `program`, atomically: another run of this test may use it.
fn install(dir: &Path, name: &str, program: &Path) {
    let program = fs::canonicalize(program).unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let temporary = dir.join(format!(".{name}.{}", std::process::id()));
    fs::create_dir_all(dir).expect("the build's own directory is writable");
    std::os::unix::fs::symlink(program, &temporary).expect("no other process has this one's number");
    fs::rename(temporary, dir.join(name)).expect("both are in one directory");
}

/// Whether io_uring is allowed: fathom names it in its error message if it is forbidden. Any other
/// failure is left to the tests.
fn uring_is_allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        let output = Command::new(Program::AsDu.bin().join("fathom"))
            .args(["du", "--io=uring", "-s"])
            .arg(OsStr::new(env!("CARGO_MANIFEST_DIR")))
            .output()
            .expect("fathom runs");
        let refused =
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("io_uring");
        if refused {
            super::skip("io_uring is forbidden here; the other models were compared");
        }
        !refused
    })
}

/// Returns a command that runs `fathom` as the user 65534 if the test runs as root. The program is
/// reached through a file descriptor, because that user may not search the directories above it.
pub(crate) fn unprivileged() -> Command {
    let fathom = Program::AsDu.bin().join("fathom");
    if !rustix::process::geteuid().is_root() {
        return Command::new(fathom);
    }
    let script =
        r#"exec 3<"$0"; exec setpriv --reuid 65534 --regid 65534 --clear-groups /proc/self/fd/3 "$@""#;
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(fathom);
    command
}
