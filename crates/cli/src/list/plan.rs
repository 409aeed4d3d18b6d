//! Which entries a listing has and how each looks. Asked on the walk's workers; knows neither options' spellings nor where lines go.

use std::ffi::CString;
use std::sync::Arc;

use fathom_inventory::filter::Filter;
use fathom_inventory::format::Format;
use fathom_inventory::json::Writer;
use fathom_inventory::{Entry, Lookup, Owners, Target};
use fathom_walk::{Descend, Enter, Errno, Fields, FileType, Follow, Found, Meta, Name, Names, Node};

/// What is to be listed, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) filter: Filter,
    pub(crate) shape: Shape,
    /// What matches is left out, with everything below it; unless it is a root.
    pub(crate) pruned: Option<Filter>,
    /// So is what has a name that begins with a dot.
    pub(crate) skips_hidden: bool,
    /// What is mounted below a root is listed, but nothing in it.
    pub(crate) one_file_system: bool,
    /// Symbolic links are followed.
    pub(crate) dereference: bool,
    /// For the format.
    pub(crate) owners: Owners,
}

/// How an entry looks.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Only the number of entries is wanted.
    Count,
    /// Its path and this byte.
    Path(u8),
    Format(Box<Format>),
    Json(Box<Writer>),
}

/// An entry that could not be looked at, or a directory that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Access(Vec<u8>, Errno),
    Read(Vec<u8>, Errno),
    Loop(Vec<u8>),
}

/// What becomes of an entry, besides its line.
pub(crate) enum Next {
    Nothing,
    /// It is a directory to walk.
    Descend,
    Problem(Problem),
}

/// Lines and their number, and where the entries are.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) text: Vec<u8>,
    pub(crate) count: u64,
    /// The directory of the next entries, with a slash at its end.
    dir: Vec<u8>,
    /// Bytes of it that are the root.
    root_len: usize,
    path: Vec<u8>,
}

impl Lines {
    fn enter(&mut self, dir: &Node) {
        self.dir.clear();
        dir.path_into(&mut self.dir);
        if self.dir.last() != Some(&b'/') {
            self.dir.push(b'/');
        }
        let root = std::iter::successors(Some(dir), |node| node.parent().map(AsRef::as_ref)).last();
        self.root_len = root.map_or(0, |root| root.name().to_bytes().len());
    }

    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [&self.dir, name].concat()
    }
}

impl Plan {
    /// The metadata lines and tests need.
    pub(crate) fn fields(&self) -> Option<Fields> {
        let shape = match &self.shape {
            Shape::Count | Shape::Path(_) => None,
            Shape::Format(format) => format.fields(),
            Shape::Json(_) => Some(Fields::ALL),
        };
        self.filter.fields().into_iter().chain(shape).reduce(Fields::and)
    }

    /// Whether a directory of this depth is read.
    fn reads(&self, depth: usize) -> bool {
        self.filter.descends(depth)
    }

    fn leaves_out(&self, name: &[u8]) -> bool {
        (self.skips_hidden && name.starts_with(b"."))
            || self.pruned.as_ref().is_some_and(|pruned| pruned.matches_name(name, 1))
    }

    /// Drops names that come to nothing, and leaves alone the inodes of which nothing has to be known.
    pub(crate) fn select(&self, dir: &Node, names: &mut Names) {
        let depth = dir.depth() + 1;
        let deeper = self.reads(depth);
        let may_be_dir = |name: &Name<'_>| match name.file_type {
            FileType::Directory | FileType::Unknown => true,
            FileType::Symlink => self.dereference,
            _ => false,
        };
        let may_be_listed = |name: &Name<'_>| {
            let followed = self.dereference && name.file_type == FileType::Symlink;
            self.filter.matches_name(name.name.to_bytes(), depth)
                && (followed || self.filter.matches_type(name.file_type))
        };
        names.retain(|name| {
            !self.leaves_out(name.name.to_bytes()) && (may_be_listed(&name) || (deeper && may_be_dir(&name)))
        });
        let everywhere = self.fields().is_some();
        names.skip_stat_if(|name| {
            let undecided = name.file_type == FileType::Unknown
                || (self.dereference && name.file_type == FileType::Symlink);
            let needed = if undecided {
                everywhere || deeper || self.tells_type()
            } else {
                everywhere && may_be_listed(&name)
            };
            !needed
        });
    }

    fn tells_type(&self) -> bool {
        self.filter.needs_type() || matches!(&self.shape, Shape::Format(format) if format.needs_type())
    }

    /// A directory reached: its line if it is a root, and whether it is to be read.
    pub(crate) fn enter(&self, enter: &Enter<'_>, lines: &mut Lines) -> (Descend, Option<Problem>) {
        let node = enter.node;
        if node.parent().is_none() {
            self.root(node.name().to_bytes(), enter.meta, lines);
        }
        let problem = match enter.found {
            Found::Readable => None,
            Found::Unreadable(errno) => Some(Problem::Read(path(node), errno)),
            Found::Loop => Some(Problem::Loop(path(node))),
        };
        let elsewhere = self.one_file_system && node.root_dev().is_some_and(|dev| dev != enter.meta.dev);
        if elsewhere || !self.reads(node.depth()) {
            return (Descend::No, None);
        }
        (Descend::Yes, problem)
    }

    /// A root that is there.
    pub(crate) fn root(&self, path: &[u8], meta: &Meta, lines: &mut Lines) {
        lines.root_len = path.len();
        let file_type = meta.file_type();
        let trimmed = path.iter().rposition(|byte| *byte != b'/').map_or(path, |last| &path[..=last]);
        let base = trimmed.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let entry =
            Entry { dir: b"", name: path, root_len: path.len(), depth: 0, file_type, meta: Some(meta) };
        let listed = self.filter.matches_name(base, 0)
            && self.filter.matches_path(path)
            && self.filter.matches_meta(meta);
        if listed {
            lines.count += 1;
            self.write(&entry, &mut Asked(None), &mut lines.text);
        }
    }

    /// Before the entries of `dir`.
    pub(crate) fn begin(&self, dir: &Arc<Node>, lines: &mut Lines) {
        lines.enter(dir);
    }

    /// The line of an entry of the directory begun with, if it has one, and what becomes of it.
    pub(crate) fn entry(&self, entry: &fathom_walk::Entry<'_>, depth: usize, lines: &mut Lines) -> Next {
        let name = entry.name.name.to_bytes();
        let dangling;
        let (file_type, meta) = match entry.meta {
            None => (entry.name.file_type, None),
            Some(Ok(meta)) => (meta.file_type(), Some(meta)),
            Some(Err(errno)) => match self.dangling(entry, errno) {
                Ok(meta) => {
                    dangling = meta;
                    (dangling.file_type(), Some(&dangling))
                }
                Err(errno) => return Next::Problem(Problem::Access(lines.path_of(name), errno)),
            },
        };
        if self.lists(name, depth, file_type, meta, lines) {
            lines.count += 1;
            let Lines { text, dir, root_len, .. } = lines;
            let shown = Entry { dir, name, root_len: *root_len, depth, file_type, meta };
            self.write(&shown, &mut Asked(Some(entry)), text);
        }
        if file_type == FileType::Directory && self.reads(depth) { Next::Descend } else { Next::Nothing }
    }

    /// As find(1) has it, a link that leads nowhere stands for itself where links are followed.
    fn dangling(&self, entry: &fathom_walk::Entry<'_>, errno: Errno) -> Result<Meta, Errno> {
        if !self.dereference || !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            return Err(errno);
        }
        entry.stat(Follow::No, self.fields().unwrap_or(Fields::IDENTITY))
    }

    fn lists(
        &self,
        name: &[u8],
        depth: usize,
        file_type: FileType,
        meta: Option<&Meta>,
        lines: &mut Lines,
    ) -> bool {
        let filter = &self.filter;
        if !filter.matches_name(name, depth) || !filter.matches_type(file_type) {
            return false;
        }
        if filter.needs_path() {
            let Lines { path, dir, .. } = lines;
            path.clear();
            path.extend_from_slice(dir);
            path.extend_from_slice(name);
            if !filter.matches_path(path) {
                return false;
            }
        }
        meta.is_none_or(|meta| filter.matches_meta(meta))
    }

    fn write(&self, entry: &Entry<'_>, asked: &mut Asked<'_>, out: &mut Vec<u8>) {
        match &self.shape {
            Shape::Count => {}
            Shape::Path(end) => {
                out.extend_from_slice(entry.dir);
                out.extend_from_slice(entry.name);
                out.push(*end);
            }
            Shape::Format(format) => format.write(entry, &self.owners, asked, out),
            Shape::Json(writer) => writer.write(entry, None, out),
        }
    }
}

/// The path of a directory.
pub(crate) fn path(node: &Node) -> Vec<u8> {
    let mut path = Vec::new();
    node.path_into(&mut path);
    path
}

/// What takes a further call for an entry; nothing for a root, which is looked at by its path.
struct Asked<'a>(Option<&'a fathom_walk::Entry<'a>>);

fn root_path(root: &Entry<'_>) -> CString {
    CString::new(root.name).unwrap_or_default()
}

impl Lookup for Asked<'_> {
    fn link(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let target = match self.0 {
            Some(entry) => entry.read_link(),
            None => fathom_walk::read_link(&root_path(entry)),
        };
        target.ok().map(CString::into_bytes)
    }

    fn target(&mut self, entry: &Entry<'_>) -> Target {
        let found = match self.0 {
            Some(entry) => entry.stat(Follow::Yes, Fields::IDENTITY),
            None => fathom_walk::stat(&root_path(entry)),
        };
        match found {
            Ok(meta) => Target::Type(meta.file_type()),
            Err(Errno::NOENT | Errno::NOTDIR) => Target::Missing,
            Err(Errno::LOOP) => Target::Loop,
            Err(_) => Target::Unknown,
        }
    }
}
