//! `fathom explore --remote HOST:PATH`: scans a tree on another machine through ssh, and unpacks
//! the inventory here. The archive is untrusted: see [`unpack`].

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fathom_explore::script::quoted;
use fathom_inventory::store::Inventory;
use fathom_text::quote::escape_controls;
use tar::{Archive, EntryType};
use tempfile::TempDir;

use self::interruption::{InterruptibleReader, wait};
use super::signals::SessionSignals;
pub(super) use crate::shared::inventory::MANIFEST;
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
    /// Parses `HOST:PATH`; an empty path is the home directory there. A host with colons, such as
    /// an IPv6 address, stands in brackets: `user@[HOST]:PATH`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Vec<u8>> {
        let invalid = |why: &str| {
            let shown = escape_controls(text);
            [b"invalid tree '", &shown[..], b"' for '--remote': ", why.as_bytes()].concat()
        };
        let (host, path) = split(text).ok_or_else(|| invalid("expected HOST:PATH"))?;
        if !is_host(&host) {
            return Err(invalid("not a valid host name"));
        }
        if path.contains(&0) {
            return Err(invalid("the path contains a NUL byte"));
        }
        let path = if path.is_empty() { b".".to_vec() } else { path.to_vec() };
        Ok(Self { host: OsString::from_vec(host), path })
    }

    /// Returns the command for the shell of the other machine.
    fn remote_command(&self, options: &[u8]) -> OsString {
        let command = [b"fathom scan ", options, b"-o - -- ", &quoted(&self.path)].concat();
        OsString::from_vec(command)
    }

    /// Scans the tree there, and unpacks the inventory in a temporary directory, which nothing is
    /// left of if that fails or is interrupted. `options` are options of the scan. `ssh` is the
    /// command that runs a program on another machine, with options after spaces.
    ///
    /// # Errors
    /// If there is no inventory.
    pub(crate) fn fetch(
        &self,
        ssh: &OsStr,
        options: &[u8],
        signals: &SessionSignals,
    ) -> Result<RemoteInventory, FetchError> {
        let fetched =
            self.start(ssh, options).and_then(|(child, directory)| self.receive(child, directory, signals));
        match signals.status() {
            Some(status) => Err(FetchError::Interrupted(status)),
            None => fetched.map_err(FetchError::Failed),
        }
    }

    fn failed(&self, why: &[u8]) -> Vec<u8> {
        [b"cannot scan on '", self.host.as_bytes(), b"': ", why].concat()
    }

    /// Starts the scan there, and makes the directory for the inventory.
    fn start(&self, ssh: &OsStr, options: &[u8]) -> Result<(Child, TempDir), Vec<u8>> {
        let mut words = ssh.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let program = words.next().ok_or_else(|| b"the command for '--ssh' is empty".to_vec())?;
        let directory = temporary::directory("fathom-explore-")?;
        let child = Command::new(OsStr::from_bytes(program))
            .args(words.map(OsStr::from_bytes))
            .arg("--")
            .arg(&self.host)
            .arg(self.remote_command(options))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| self.failed(&[program, b": ", &reason(&error)].concat()))?;
        Ok((child, directory))
    }

    fn receive(
        &self,
        mut child: Child,
        directory: TempDir,
        signals: &SessionSignals,
    ) -> Result<RemoteInventory, Vec<u8>> {
        let failed = |why: &[u8]| self.failed(why);
        let unpacked = match child.stdout.take() {
            Some(source) => unpack(InterruptibleReader { source, signals }, directory.path()),
            None => Err(io::Error::other("no output")),
        };
        if unpacked.is_err() {
            // It may wait for a reader of its output.
            let _ = child.kill();
        }
        let status = wait(&mut child, signals).map_err(|error| failed(&reason(&error)))?;
        match (status.code(), unpacked) {
            (Some(NOT_FOUND), _) => Err(failed(b"fathom is not in PATH there")),
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

/// Splits `HOST:PATH` into the host, without its brackets, and the path.
fn split(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mark = text.iter().position(|byte| matches!(byte, b'[' | b':'))?;
    let (user, rest) = text.split_at(mark);
    if rest.starts_with(b"[") && (user.is_empty() || user.ends_with(b"@")) {
        let end = rest.iter().position(|byte| *byte == b']')?;
        let path = rest[end + 1..].strip_prefix(b":")?;
        return Some(([user, &rest[1..end]].concat(), path));
    }
    let colon = text.iter().position(|byte| *byte == b':')?;
    Some((text[..colon].to_vec(), &text[colon + 1..]))
}

/// Returns whether ssh can take a word for `HOST` or `USER@HOST`, and for no option.
fn is_host(word: &[u8]) -> bool {
    let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !byte.is_ascii_control();
    let is_name = |part: &[u8]| !part.is_empty() && !part.starts_with(b"-");
    word.iter().all(is_plain) && word.split(|byte| *byte == b'@').all(is_name)
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
        let name =
            name.ok_or_else(|| io::Error::other("it contains an entry that is not part of an inventory"))?;
        if names.len() >= FILES_MAX || !names.insert(name.clone()) {
            return Err(io::Error::other("it has too many files"));
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(into.join(&name))?;
        let expected = entry.size();
        if io::copy(&mut entry, &mut file)? != expected {
            return Err(io::Error::other("it is truncated"));
        }
    }
    let has_manifest = names.contains(MANIFEST);
    has_manifest.then_some(()).ok_or_else(|| io::Error::other("it has no manifest"))
}

/// Returns the name of a file of an inventory; `None` if it has another name.
fn file_name(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= NAME_BYTES_MAX)?;
    let stem = name.strip_suffix(".parquet").unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (name == MANIFEST || !stem.is_empty() && stem.bytes().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests;
