//! Opens the trees or the inventory that a command line names.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use fathom_explore::script::quoted;
use fathom_explore::source::{Source, SourceError};
use fathom_explore::sources::inventory::InventorySource;
use fathom_explore::sources::live::{LiveOptions, LiveSource, NameFilter};
use fathom_inventory::Owners;
use fathom_io::Names;
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::strerror;

use super::args::ExploreArgs;
use super::remote::{FetchError, MANIFEST, RemoteInventory};
use super::signals::SessionSignals;
use crate::shared::getent;
use crate::shared::output::reason;
use crate::shared::patterns;
use crate::shared::start::AutoStart;

/// A source that has been opened.
pub(crate) struct OpenedSource {
    pub(crate) source: Box<dyn Source>,
    /// The inventory that it reads, which is removed with this.
    pub(crate) fetched: Option<RemoteInventory>,
    /// The signals that end the process.
    pub(crate) signals: SessionSignals,
    /// Whether it is a tree as it is now, with everything in it.
    pub(crate) is_whole_tree: bool,
}

/// Opens the source, and installs the handlers of signals: before anything is fetched, because a
/// signal has to remove that; after anything else, so that a signal ends a call that hangs. Each
/// signal writes a byte to `wake`. Owners are named by the inventory, or by this machine.
///
/// # Errors
/// A message, without the program's name.
pub(crate) fn open_source(
    args: &ExploreArgs,
    charset: Charset,
    wake: &UnixStream,
) -> Result<OpenedSource, FetchError> {
    let install = || {
        let installed = SessionSignals::install(wake);
        installed
            .map_err(|error| FetchError::Failed([b"cannot handle signals: ", &reason(&error)[..]].concat()))
    };
    if let Some(tree) = &args.remote {
        let signals = install()?;
        let fetched = tree.fetch(&args.ssh, &scan_options(args), &signals)?;
        fathom_io::fault::point("explore-fetched");
        let path = CString::new(fetched.path().into_os_string().into_vec()).unwrap_or_default();
        let opened = InventorySource::open(as_path(&path), args.since.as_deref());
        let source = opened.map_err(|error| FetchError::Failed(failure(&error, &path, charset)))?;
        return Ok(OpenedSource {
            source: Box::new(source),
            fetched: Some(fetched),
            signals,
            is_whole_tree: false,
        });
    }
    let source = open_local(args, charset).map_err(FetchError::Failed)?;
    let is_whole_tree = args.excluded.is_empty() && !args.paths.iter().any(is_inventory);
    Ok(OpenedSource { source, fetched: None, signals: install()?, is_whole_tree })
}

fn open_local(args: &ExploreArgs, charset: Charset) -> Result<Box<dyn Source>, Vec<u8>> {
    match &args.paths[..] {
        [path] if is_inventory(path) && !args.excluded.is_empty() => {
            Err(b"--exclude applies to trees that are walked, not to inventories".to_vec())
        }
        [path] if is_inventory(path) => {
            let opened = InventorySource::open(as_path(path), args.since.as_deref());
            let source = opened.map_err(|error| failure(&error, path, charset))?;
            Ok(Box::new(source))
        }
        paths => open_trees(args, paths, charset),
    }
}

fn open_trees(args: &ExploreArgs, paths: &[CString], charset: Charset) -> Result<Box<dyn Source>, Vec<u8>> {
    for path in paths {
        // A tree that does not exist would be an empty screen.
        if let Err(error) = std::fs::symlink_metadata(as_path(path)) {
            let path = quoteaf(path.as_bytes(), charset);
            return Err([b"cannot access ", &path[..], b": ", &reason(&error)].concat());
        }
    }
    let start = AutoStart::read(super::NAME.as_bytes(), charset, args.model, args.threads.is_some());
    let options = LiveOptions {
        model: args.model,
        threads: args.threads,
        hints: start.hints.clone(),
        one_file_system: args.one_file_system,
        names: name_filter(args, charset),
        owners: getent::owners(),
        since: args.since.clone(),
        ..LiveOptions::default()
    };
    let source = LiveSource::start(paths.to_vec(), options);
    Ok(Box::new(source.map_err(|error| failure(&error, &paths[0], charset))?))
}

/// Returns the filter of `--exclude`, if it is given.
fn name_filter(args: &ExploreArgs, charset: Charset) -> Option<NameFilter> {
    let exclude = patterns::compile(&args.excluded, charset);
    let filter = move |dir: &[u8], names: &mut Names| {
        let mut scratch = Vec::new();
        names.retain(|name| !exclude.matches_below(dir, name.name.to_bytes(), &mut scratch));
    };
    (!args.excluded.is_empty()).then(|| NameFilter(Arc::new(filter)))
}

/// Returns the options of a scan on another machine, for the shell there.
fn scan_options(args: &ExploreArgs) -> Vec<u8> {
    let mut options = if args.one_file_system { b"-x ".to_vec() } else { Vec::new() };
    for pattern in &args.excluded {
        options.extend_from_slice(&[b"--exclude=", &quoted(pattern)[..], b" "].concat());
    }
    options
}

/// Returns the owners whose names are shown. None of the calls waits for a directory server.
pub(crate) fn owners() -> Owners {
    Owners::read()
}

fn is_inventory(path: &CString) -> bool {
    as_path(path).join(MANIFEST).is_file()
}

fn as_path(path: &CString) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

fn failure(error: &SourceError, path: &CString, charset: Charset) -> Vec<u8> {
    match error {
        SourceError::Os(operation, errno) => {
            let path = quoteaf(path.as_bytes(), charset);
            [b"cannot ", operation.as_bytes(), b" ", &path, b": ", &strerror(*errno)].concat()
        }
        SourceError::Other(cause) => cause.clone().into_bytes(),
        SourceError::Cancelled => b"cancelled".to_vec(),
    }
}
