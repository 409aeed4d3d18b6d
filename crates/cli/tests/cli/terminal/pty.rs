//! Runs a program on a pseudo-terminal and captures its output.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Runs `command` with standard output and standard error on a terminal. Returns the output with
/// its original line ends.
pub(crate) fn on_terminal(command: &mut Command) -> Vec<u8> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    command.stdin(Stdio::null()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // Drop this process's descriptors of the terminal: the last program to exit then closes it.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut master, mut text) = (File::from(master), Vec::new());
    if let Err(error) = master.read_to_end(&mut text) {
        // read(2) fails with EIO once all descriptors of the terminal are closed (pts(4)).
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()), "{error}");
        assert_ne!(error.kind(), ErrorKind::Interrupted);
    }
    child.wait().unwrap();
    text_as_written(&text)
}

/// Removes the carriage return that the terminal inserts before each line feed (`ONLCR`,
/// termios(3)).
fn text_as_written(text: &[u8]) -> Vec<u8> {
    let is_added = |place: usize| text[place] == b'\r' && text.get(place + 1) == Some(&b'\n');
    (0..text.len()).filter(|place| !is_added(*place)).map(|place| text[place]).collect()
}
