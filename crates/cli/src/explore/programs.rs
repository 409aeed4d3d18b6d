//! The programs that the explorer starts, and the file that it writes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use fathom_text::quote::{Charset, quoteaf};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::shared::output::reason;

/// The program that opens a file with the application of the desktop.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Returns the command for a shell in a directory.
pub(crate) fn shell(directory: Vec<u8>) -> Command {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let mut command = Command::new(shell.unwrap_or_else(|| OsString::from("/bin/sh")));
    command.current_dir(OsString::from_vec(directory));
    command
}

/// Returns the command that opens a path.
pub(crate) fn opener(path: Vec<u8>) -> Command {
    let mut command = Command::new(OPENER);
    command.arg(not_an_option(path));
    command
}

/// Returns the command that shows the text of a file: `$PAGER`, which may be several words, or
/// less.
pub(crate) fn pager(path: Vec<u8>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec ${PAGER:-less} \"$1\"", "sh"]).arg(not_an_option(path));
    command
}

/// Returns a path that does not begin with a dash, which would be an option.
fn not_an_option(path: Vec<u8>) -> OsString {
    OsString::from_vec(if path.starts_with(b"-") { [b"./", &path[..]].concat() } else { path })
}

/// Runs a program that has the terminal, and calls `stop` each time that the program is stopped.
/// Returns a message if it cannot be run or fails.
pub(crate) fn run(
    mut command: Command,
    terminal: io::Result<File>,
    stop: &mut dyn FnMut(),
) -> Option<Vec<u8>> {
    let name = quoteaf(command.get_program().as_bytes(), Charset::Ascii);
    let child = terminal.and_then(|terminal| command.stdout(terminal).spawn());
    match child.and_then(|child| wait(&child, stop)) {
        Ok(status) if status.success() || command.get_program() != OPENER => None,
        Ok(status) => Some([&name[..], b" failed: ", status.to_string().as_bytes()].concat()),
        Err(error) => Some([b"cannot run ", &name[..], b": ", &reason(&error)].concat()),
    }
}

/// Waits until a program ends. If it is stopped, by Ctrl-Z for example, calls `stop`, and continues
/// the program after that.
fn wait(child: &Child, stop: &mut dyn FnMut()) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    loop {
        let found = retry_on_intr(|| waitpid(Some(pid), WaitOptions::UNTRACED))?;
        let Some((_, status)) = found else { continue };
        if !status.stopped() {
            return Ok(ExitStatus::from_raw(status.as_raw()));
        }
        stop();
        // A shell has a process group of its own, which is not continued with the explorer's group.
        kill_process(pid, Signal::CONT)?;
    }
}

/// A kind of file that the explorer writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFile {
    about: &'static str,
    mode: u32,
}

impl NewFile {
    pub(crate) const SCRIPT: Self = Self { about: "wrote the script to ", mode: 0o700 };
    pub(crate) const ROWS: Self = Self { about: "wrote the rows to ", mode: 0o600 };
}

/// Returns a path in which `~/` at the beginning is the home directory, as in a shell.
fn at_home(path: &[u8]) -> Vec<u8> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix(b"~/"), home) {
        (Some(below), Some(home)) => [home.as_bytes(), b"/", below].concat(),
        _ => path.to_vec(),
    }
}

/// Writes a file, which must not exist yet. Returns a message.
pub(crate) fn write_new(path: &[u8], text: &[u8], kind: NewFile, charset: Charset) -> Vec<u8> {
    let path = &at_home(path);
    let name = quoteaf(path, charset);
    let mut options = File::options();
    let created = options.write(true).create_new(true).mode(kind.mode).open(OsStr::from_bytes(path));
    let written = created.and_then(|mut file| {
        file.write_all(text).inspect_err(|_| {
            // Best effort: the message has the first error.
            let _ = std::fs::remove_file(OsStr::from_bytes(path));
        })
    });
    match written {
        Ok(()) => [kind.about.as_bytes(), &name[..]].concat(),
        Err(error) => [b"cannot write ", &name[..], b": ", &reason(&error)].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_written_once_and_is_executable() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a b.sh");
        let write = || write_new(path.as_os_str().as_bytes(), b"exit 0\n", NewFile::SCRIPT, Charset::Utf8);
        assert!(write().starts_with(b"wrote the script to "));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(write().ends_with(b": File exists"));
        assert!(Command::new("sh").arg(path).status().unwrap().success());
    }

    #[test]
    fn a_path_is_never_an_option() {
        let command = opener(b"-rf".to_vec());
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["./-rf"]);
    }

    #[test]
    fn programs_that_cannot_be_run_are_named() {
        let message = run(Command::new("/nonexistent/program"), null(), &mut || ()).unwrap();
        assert_eq!(message, b"cannot run '/nonexistent/program': No such file or directory");
        assert_eq!(run(Command::new("false"), null(), &mut || ()), None);
    }

    fn null() -> io::Result<File> {
        File::options().write(true).open("/dev/null")
    }

    #[test]
    fn a_program_that_is_stopped_is_continued_after_the_explorer() {
        let temp = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "kill -STOP $$; echo >continued; kill -STOP $$"]).current_dir(&temp);
        let mut found = Vec::new();
        let mut stop = || found.push(temp.path().join("continued").exists());
        assert_eq!(run(command, null(), &mut stop), None);
        assert_eq!(found, [false, true]);
    }
}
