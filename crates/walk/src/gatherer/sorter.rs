//! The visitor of a gatherer: calls the policy for each entry, and sends messages.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fathom_io::{FileType, Follow, Meta, Name, Names};

use super::channel::Outlets;
use super::message::{Failed, Item, Message, RootId};
use super::path::EntryPath;
use super::policy::{Filter, Policy, PolicyEntry};
use super::token::{Reports, Token};
use crate::failure::Failure;
use crate::node::Node;
use crate::task::Found;
use crate::visitor::{self, Descend, Emit, Enter, Opened, UnorderedVisitor, Visitor};

/// Number of file types.
const FILE_TYPES: usize = FileType::Char as usize + 1;

/// Limits of a walk, independent of the policy.
#[derive(Clone)]
pub(super) struct Limits {
    pub(super) min_depth: usize,
    pub(super) max_depth: usize,
    pub(super) one_file_system: bool,
    pub(super) contents_first: bool,
    /// Whether the metadata of every entry is read, even if the policy does not request it.
    pub(super) metadata: bool,
    pub(super) links: Follow,
    pub(super) filter: Option<Arc<dyn Filter>>,
}

/// The gatherer's state of a directory, kept until everything below it has been sent.
struct Pending<T>(Mutex<Kept<T>>);

struct Kept<T> {
    /// The token of the directory if it is watched, otherwise the token of the nearest watched
    /// ancestor.
    token: Token,
    is_watched: bool,
    /// The message about the directory itself, if it is sent after the contents.
    last: Option<(usize, Item<T>)>,
}

/// The visitor of a gatherer, which sends the entries that the policy picks.
pub(super) struct Sorter<T, P> {
    pub(super) policy: P,
    pub(super) limits: Limits,
    pub(super) outlets: Arc<Outlets<T>>,
}

/// Messages by channel.
type Batches<T> = BTreeMap<usize, Vec<Message<T>>>;

impl<T: Send + 'static, P: Policy<T>> Sorter<T, P> {
    /// Returns whether the directory does not determine the type of an entry.
    fn is_undecided(&self, file_type: FileType) -> bool {
        let is_followed = file_type == FileType::Symlink && self.limits.links == Follow::Yes;
        file_type == FileType::Unknown || is_followed
    }

    fn keeps(&self, dir: &Arc<Node>, name: Name<'_>) -> bool {
        self.limits.filter.as_ref().is_none_or(|filter| filter.keeps(dir, name))
    }

    /// Returns the token for messages about entries of `dir`.
    fn token(dir: &Node) -> Token {
        let pending = dir.gathered::<Pending<T>>();
        pending.map_or_else(Token::default, |pending| pending.lock().token.clone())
    }

    /// Watches `node` until it is processed.
    fn watch(&self, node: &Arc<Node>, channel: usize) {
        self.outlets.watch();
        let reports: Weak<dyn Reports> = Arc::<Outlets<T>>::downgrade(&self.outlets);
        let above = Self::token(node);
        let token = above.below(EntryPath::apart(node), channel, reports);
        match node.gathered::<Pending<T>>() {
            Some(pending) => {
                let mut kept = pending.lock();
                (kept.token, kept.is_watched) = (token, true);
            }
            None => node.set_gathered(Pending::<T>(Mutex::new(Kept { token, is_watched: true, last: None }))),
        }
    }

    fn entry(
        &self,
        found: visitor::Entry<'_>,
        dir: &Arc<Node>,
        token: &Token,
        emit: &mut Emit<'_, Infallible>,
        batches: &mut Batches<T>,
    ) {
        let file_type = found.file_type();
        let is_late = self.is_undecided(found.name.file_type);
        if is_late && !self.keeps(dir, Name { file_type, ..found.name }) {
            return;
        }
        let meta = match found.meta.transpose() {
            Ok(meta) => meta,
            Err(errno) => return emit.failed(&found, errno),
        };
        let ino = meta.map_or(found.name.ino, |meta| meta.ino);
        let pick = self.policy.pick(&PolicyEntry { dir, found: Some(found), file_type, ino, meta });
        let depth = dir.depth() + 1;
        let item = pick.sends.filter(|_| depth >= self.limits.min_depth).map(|(channel, payload)| {
            let path = EntryPath::new(dir, Some(found.name.name));
            let token = token.clone();
            (channel, Item { path, file_type, ino, meta: meta.copied(), payload, token })
        });
        let descends = pick.descends && file_type == FileType::Directory && depth < self.limits.max_depth;
        let (last, first) = if descends && self.limits.contents_first { (item, None) } else { (None, item) };
        if descends {
            emit.descend_with(&found, |node| {
                if token.is_watched() || last.is_some() {
                    let kept = Kept { token: token.clone(), is_watched: false, last };
                    node.set_gathered(Pending(Mutex::new(kept)));
                }
            });
        }
        if let Some((channel, item)) = first {
            batches.entry(self.outlets.index(channel)).or_default().push(Message::Entry(item));
        }
    }
}

impl<T> Pending<T> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Kept<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static, P: Policy<T>> Visitor for Sorter<T, P> {
    type Item = Infallible;
    type Local = ();

    fn opened(&self, dir: Opened<'_>) -> usize {
        self.limits.filter.as_ref().map_or(0, |filter| filter.opened(&dir))
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        if self.limits.filter.is_some() {
            names.retain(|name| self.is_undecided(name.file_type) || self.keeps(dir, name));
        }
        // An entry of undecided type always needs a stat call.
        let wanted: [OnceCell<bool>; FILE_TYPES] = Default::default();
        names.skip_stat_of(|file_type| {
            let wanted = wanted[file_type as usize]
                .get_or_init(|| self.limits.metadata || self.policy.wants_metadata(dir, file_type));
            !wanted && !self.is_undecided(file_type)
        });
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = visitor::Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        // The messages are sent before this function returns, so that no message about an entry
        // follows the `Done` of its directory.
        let (mut batches, token) = (BTreeMap::new(), Self::token(dir));
        entries.for_each(|entry| self.entry(entry, dir, &token, emit, &mut batches));
        batches.into_iter().for_each(|(channel, messages)| self.outlets.send(channel, messages));
    }
}

impl<T: Send + 'static, P: Policy<T>> UnorderedVisitor for Sorter<T, P> {
    fn enter(&self, (): &mut (), Enter { node, meta, found }: Enter<'_>) -> Descend {
        if node.depth() == 0 {
            self.begin(node);
        }
        let is_elsewhere = self.limits.one_file_system && node.root_dev().is_some_and(|dev| dev != meta.dev);
        if is_elsewhere || node.depth() >= self.limits.max_depth {
            return Descend::No;
        }
        if found == Found::Readable
            && let Some(channel) = self.policy.processed(node)
        {
            self.watch(node, channel);
        }
        Descend::Yes
    }

    fn failed(&self, (): &mut (), failure: Failure<'_>) {
        if let Some(channel) = self.policy.failed(&failure) {
            let token = Self::token(failure.node);
            self.outlets.send(channel, vec![Message::Error(Failed::new(failure, token))]);
        }
    }

    fn leave(&self, (): &mut (), node: &Arc<Node>) {
        if let Some(channel) = self.policy.end(node) {
            self.outlets.send(channel, vec![Message::End(node.clone())]);
        }
    }

    fn done(&self, (): &mut (), node: &Arc<Node>) {
        let kept = node.gathered::<Pending<T>>().map(|pending| {
            let mut kept = pending.lock();
            (std::mem::take(&mut kept.token), kept.is_watched, kept.last.take())
        });
        let (token, is_watched, last) = kept.unwrap_or_default();
        if let Some((channel, item)) = last {
            self.outlets.send(channel, vec![Message::Entry(item)]);
        }
        if let Some(channel) = self.policy.done(node) {
            self.outlets.send(channel, vec![Message::Done(node.clone())]);
        }
        if node.depth() == 0 {
            self.outlets.send_all(|| Message::RootDone(RootId(node.root_index())));
        }
        if is_watched {
            token.set_walked();
        }
    }

    fn root_file(&self, (): &mut (), root: &Arc<Node>, meta: &Meta) {
        self.begin(root);
        let (file_type, ino) = (meta.file_type(), meta.ino);
        let pick =
            self.policy.pick(&PolicyEntry { dir: root, found: None, file_type, ino, meta: Some(meta) });
        if let Some((channel, payload)) = pick.sends.filter(|_| self.limits.min_depth == 0) {
            let (path, token) = (EntryPath::new(root, None), Token::default());
            let item = Item { path, file_type, ino, meta: Some(*meta), payload, token };
            self.outlets.send(channel, vec![Message::Entry(item)]);
        }
    }
}

impl<T, P> Sorter<T, P> {
    /// Keeps the descriptors of the walk for consumers, which may open entries after its end.
    fn begin(&self, root: &Node) {
        if let Some(fds) = root.fds() {
            self.outlets.handles.get_or_init(|| fds);
        }
    }
}
