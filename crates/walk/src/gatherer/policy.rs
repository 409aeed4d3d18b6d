//! What a caller decides about every entry, and the worker that does as decided.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

use fathom_io::{Errno, FileType, Meta, Names};

use super::channel::{EntryPath, Message, Outlets, RootId};
use crate::gather::{Below, Gather};
use crate::node::Node;
use crate::visit::{self, Descend, Enter, Found};

/// An entry as its directory has it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a CStr,
    /// What it is; where its directory does not say, nothing but a look at it did.
    pub file_type: FileType,
    /// Its inode number, all 64 bits.
    pub ino: u64,
}

/// What is to be done with an entry: nothing, unless said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    descend: bool,
    metadata: bool,
    channel: Option<usize>,
}

impl Pick {
    /// Send its name, type and inode number.
    #[must_use]
    pub fn entry(channel: usize) -> Self {
        Self { channel: Some(channel), ..Self::default() }
    }

    /// Take its metadata, and send that.
    #[must_use]
    pub fn metadata(channel: usize) -> Self {
        Self { channel: Some(channel), metadata: true, descend: false }
    }

    /// And walk it, if it is a directory.
    #[must_use]
    pub fn descend(self) -> Self {
        Self { descend: true, ..self }
    }
}

/// Decides what is of interest, on the workers. Channels are taken modulo their number, so any hash will do for one.
pub trait Policy: Send + Sync + 'static {
    /// What to do with an entry of `dir`. Asked twice for each, before and after its metadata is taken; to be answered the same.
    fn pick(&self, dir: &Node, entry: Entry<'_>) -> Pick;

    /// Which channel to tell of an error.
    fn error(&self, _dir: &Node, _errno: Errno) -> Option<usize> {
        Some(0)
    }

    /// Which channel to tell, if any, that all entries of `dir` have been told.
    fn end(&self, _dir: &Node) -> Option<usize> {
        None
    }

    /// Which channel to tell, if any, that everything below `dir` has been told: this is how a directory is watched.
    fn done(&self, _dir: &Node) -> Option<usize> {
        None
    }
}

/// Does as the policy says.
pub(super) struct Sorter<P> {
    pub(super) policy: P,
    pub(super) outlets: Arc<Outlets>,
}

impl<P: Policy> Sorter<P> {
    fn pick(&self, dir: &Node, name: &CStr, file_type: FileType, ino: u64) -> Pick {
        self.policy.pick(dir, Entry { name, file_type, ino })
    }

    fn tell_error(&self, dir: &Arc<Node>, name: Option<&CStr>, errno: Errno) {
        if let Some(channel) = self.policy.error(dir, errno) {
            self.outlets.send(channel, vec![Message::Error(EntryPath::new(dir, name), errno)]);
        }
    }
}

fn message(dir: &Arc<Node>, entry: &visit::Entry<'_>, pick: Pick) -> Message {
    let path = EntryPath::new(dir, Some(entry.name.name));
    match entry.meta {
        Some(Ok(meta)) if pick.metadata => Message::Metadata(path, *meta),
        Some(Err(errno)) if pick.metadata => Message::Error(path, errno),
        _ => Message::Entry(path, entry.file_type(), entry.name.ino),
    }
}

impl<P: Policy> Gather for Sorter<P> {
    type Local = ();

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        // What its directory does not know the type of has to be looked at in any case.
        names.skip_stat_if(|name| {
            name.file_type != FileType::Unknown
                && !self.pick(dir, name.name, name.file_type, name.ino).metadata
        });
    }

    fn enter(&self, (): &mut (), enter: Enter<'_>) -> Descend {
        if enter.found == Found::Readable { Descend::Yes } else { Descend::No }
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = visit::Entry<'a>>,
        below: &mut Below<'_, '_>,
    ) {
        // Sent before this returns, so that nothing of a directory comes after the word that it is done.
        let mut messages = BTreeMap::<usize, Vec<Message>>::new();
        for entry in entries {
            let file_type = entry.file_type();
            let pick = self.pick(dir, entry.name.name, file_type, entry.name.ino);
            if pick.descend && file_type == FileType::Directory {
                below.descend(&entry);
            }
            if let Some(channel) = pick.channel {
                messages.entry(self.outlets.index(channel)).or_default().push(message(dir, &entry, pick));
            }
        }
        messages.into_iter().for_each(|(channel, messages)| self.outlets.send(channel, messages));
    }

    fn broken(&self, (): &mut (), node: &Arc<Node>, errno: Errno) {
        self.tell_error(node, None, errno);
    }

    fn leave(&self, (): &mut (), node: &Arc<Node>) {
        if let Some(channel) = self.policy.end(node) {
            self.outlets.send(channel, vec![Message::End(node.clone())]);
        }
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        if let Some(channel) = self.policy.done(node) {
            self.outlets.send(channel, vec![Message::Done(node.clone())]);
        }
        if node.depth() == 0 {
            self.outlets.send_all(|| Message::RootDone(RootId(node.root_index())));
        }
    }

    fn lost(&self, (): &mut (), node: &Arc<Node>, errno: Errno) {
        self.tell_error(node, None, errno);
    }

    fn root_file(&self, (): &mut (), root: &Arc<Node>, meta: Result<Meta, Errno>) {
        let meta = match meta {
            Ok(meta) => meta,
            Err(errno) => return self.tell_error(root, None, errno),
        };
        let pick = self.pick(root, root.name(), meta.file_type(), meta.ino);
        if let Some(channel) = pick.channel {
            let path = EntryPath::new(root, None);
            let entry = Message::Entry(path.clone(), meta.file_type(), meta.ino);
            let message = if pick.metadata { Message::Metadata(path, meta) } else { entry };
            self.outlets.send(channel, vec![message]);
        }
    }

    fn flush(&self, (): &mut ()) {}
}
