//! `fathom explore --remote HOST:PATH`: scans a tree on another machine through ssh, and unpacks
//! the inventory here. The archive is untrusted: see [`unpack`].

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_inventory::store::Inventory;
use fathom_text::quote::escape_controls;
use tar::{Archive, EntryType};
use tempfile::TempDir;

use self::interruption::Interruption;
use crate::shared::output::reason;
use crate::shared::temporary;

mod interruption;

/// The command that runs a program on another machine.
pub(crate) const SSH: &str = "ssh";
/// The exit status of `fathom scan` from which on there is no inventory.
const NO_INVENTORY: i32 = 2;
/// The exit status of a shell that does not find a command.
const NOT_FOUND: i32 = 127;
/// Most files of an inventory in an archive.
const FILES_MAX: usize = 100_000;
/// The longest name of a file in an archive, in bytes: longer ones do not fit in a header.
const NAME_BYTES_MAX: usize = 100;

/// A tree on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteTree {
    host: OsString,
    path: Vec<u8>,
}

/// The reason why there is no inventory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FetchError {
    /// A message without the name of the program.
    Failed(Vec<u8>),
    /// A signal; the exit status for it.
    Interrupted(u8),
}

/// The inventory of a remote tree, in a temporary directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RemoteInventory {
    directory: TempDir,
}

impl RemoteTree {
    /// Parses `HOST:PATH`; an empty path is the home directory there. An IPv6 address stands in
    /// brackets.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Vec<u8>> {
        let invalid = |why: &str| {
            let shown = escape_controls(text);
            [b"invalid tree '", &shown[..], b"' for '--remote': ", why.as_bytes()].concat()
        };
        let bracket = text.iter().position(|byte| *byte == b']').filter(|_| text.contains(&b'['));
        let start = bracket.unwrap_or(0);
        let colon = text[start..].iter().position(|byte| *byte == b':').map(|at| start + at);
        let colon = colon.ok_or_else(|| invalid("it has to be HOST:PATH"))?;
        let (host, path) = (&text[..colon], &text[colon + 1..]);
        // ssh would take such a host for an option.
        if host.is_empty() || host.starts_with(b"-") || host.iter().any(u8::is_ascii_whitespace) {
            return Err(invalid("this is no name of a host"));
        }
        if path.contains(&0) {
            return Err(invalid("a path has no NUL"));
        }
        let path = if path.is_empty() { b".".to_vec() } else { path.to_vec() };
        let host: Vec<u8> = match host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")) {
            Some(address) => address.to_vec(),
            None => host.to_vec(),
        };
        Ok(Self { host: OsString::from_vec(host), path })
    }

    /// Returns the command for the shell of the other machine.
    fn remote_command(&self, one_file_system: bool) -> OsString {
        let option: &[u8] = if one_file_system { b"-x " } else { b"" };
        let command = [b"fathom scan ", option, b"-o - -- ", &quoted(&self.path)].concat();
        OsString::from_vec(command)
    }

    /// Scans the tree there, and unpacks the inventory in a temporary directory, which nothing is
    /// left of if that fails or is interrupted. `ssh` is the command that runs a program on another
    /// machine, with options after spaces.
    ///
    /// # Errors
    /// If there is no inventory.
    pub(crate) fn fetch(&self, ssh: &OsStr, one_file_system: bool) -> Result<RemoteInventory, FetchError> {
        let interruption = Interruption::watch();
        let fetched = self.fetch_until(&interruption, ssh, one_file_system);
        match interruption.status() {
            Some(status) => Err(FetchError::Interrupted(status)),
            None => fetched.map_err(FetchError::Failed),
        }
    }

    fn fetch_until(
        &self,
        interruption: &Interruption,
        ssh: &OsStr,
        one_file_system: bool,
    ) -> Result<RemoteInventory, Vec<u8>> {
        let failed = |why: &[u8]| [b"cannot scan on '", self.host.as_bytes(), b"': ", why].concat();
        let mut words = ssh.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let program = words.next().ok_or_else(|| b"the command for '--ssh' is empty".to_vec())?;
        let directory = temporary::directory("fathom-explore-")?;
        let mut child = Command::new(OsStr::from_bytes(program))
            .args(words.map(OsStr::from_bytes))
            .arg(&self.host)
            .arg(self.remote_command(one_file_system))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&[program, b": ", &reason(&error)].concat()))?;
        let unpacked = match child.stdout.take() {
            Some(stdout) => unpack(interruption.reader(stdout), directory.path()),
            None => Err(io::Error::other("no output")),
        };
        if unpacked.is_err() {
            // It may wait for a reader of its output.
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| failed(&reason(&error)))?;
        match (status.code(), unpacked) {
            (Some(NOT_FOUND), _) => Err(failed(b"there is no fathom in its PATH")),
            (Some(code), _) if code >= NO_INVENTORY => Err(failed(status.to_string().as_bytes())),
            (_, Err(error)) => {
                Err(failed(&[b"the inventory cannot be unpacked: ", &reason(&error)[..]].concat()))
            }
            (_, Ok(())) => {
                let checked = Inventory::open(directory.path());
                checked.map_err(|error| failed(&escape_controls(error.to_string().as_bytes())))?;
                Ok(RemoteInventory { directory })
            }
        }
    }
}

impl RemoteInventory {
    /// Returns the path of the inventory.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = b"'".to_vec();
    for byte in word {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Unpacks an archive of an inventory in the directory `into`. Only new regular files with the
/// names that files of inventories have are made; an archive with anything else is refused. Memory
/// does not depend on lengths in the archive, because extended headers are not interpreted.
fn unpack(archive: impl Read, into: &Path) -> io::Result<()> {
    let mut archive = Archive::new(archive);
    let mut names = HashSet::new();
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let name = file_name(&entry.path_bytes()).map(str::to_owned);
        let name = name.filter(|_| entry.header().entry_type() == EntryType::Regular);
        let name = name.ok_or_else(|| io::Error::other("it has an entry that inventories do not have"))?;
        if names.len() >= FILES_MAX || !names.insert(name.clone()) {
            return Err(io::Error::other("it has too many files"));
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(into.join(&name))?;
        let expected = entry.size();
        if io::copy(&mut entry, &mut file)? != expected {
            return Err(io::Error::other("it ends too soon"));
        }
    }
    let has_manifest = names.contains(MANIFEST);
    has_manifest.then_some(()).ok_or_else(|| io::Error::other("it has no manifest"))
}

/// The name of the manifest in an inventory.
const MANIFEST: &str = "manifest.json";

/// Returns the name of a file of an inventory; `None` if it has another name.
fn file_name(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= NAME_BYTES_MAX)?;
    let stem = name.strip_suffix(".parquet").unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (name == MANIFEST || !stem.is_empty() && stem.bytes().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests;
