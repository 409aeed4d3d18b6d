//! Which entries a listing has and how each looks. Asked on the walk's workers; knows neither options' spellings nor where lines go.

use std::sync::Arc;

use fathom_inventory::filter::Filter;
use fathom_inventory::format::Format;
use fathom_inventory::ignores::Malformed;
use fathom_inventory::json::Writer;
use fathom_inventory::{Entry, Owners};
use fathom_text::quote::NameStyle;
use fathom_walk::{
    Descend, DirPath, Enter, Errno, Fields, FileType, Follow, Found, Meta, Name, Names, Node, Opened,
};

use super::lookup::{Asked, Places};
use super::vcs::Vcs;

/// What is to be listed, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) filter: Filter,
    pub(crate) shape: Shape,
    /// What matches is left out, with everything below it; unless it is a root.
    pub(crate) pruned: Option<Filter>,
    /// So is what has a name that begins with a dot.
    pub(crate) skips_hidden: bool,
    /// So is what `.gitignore` and the like say.
    pub(crate) vcs: Option<Vcs>,
    /// What is mounted below a root is listed, but nothing in it.
    pub(crate) one_file_system: bool,
    /// Symbolic links are followed.
    pub(crate) dereference: bool,
    /// For the format.
    pub(crate) owners: Owners,
    pub(crate) places: Places,
    /// See [`Plan::settled`].
    pub(crate) plain_end: Option<u8>,
}

/// How an entry looks.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Only the number of entries is wanted.
    Count,
    /// Its path and this byte.
    Path(u8, NameStyle),
    Format(Box<Format>),
    Json(Box<Writer>),
}

/// An entry that could not be looked at, or a directory that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Access(Vec<u8>, Errno),
    Read(Vec<u8>, Errno),
    Loop(Vec<u8>),
    /// A file that says what to leave out could not be read.
    File(Vec<u8>, Errno),
    /// A line of one has no effect.
    Rule(Vec<u8>, Malformed),
}

impl Problem {
    /// Bytes of memory behind it.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Access(path, _)
            | Self::Read(path, _)
            | Self::Loop(path)
            | Self::File(path, _)
            | Self::Rule(path, _) => path.capacity(),
        }
    }
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
    dir: DirPath,
    path: Vec<u8>,
}

impl Lines {
    /// Adds the path of the entry `name` of `dir`, and `end`.
    #[inline]
    fn add(&mut self, dir: &Arc<Node>, name: &[u8], end: u8) {
        let path = self.dir.of(dir);
        self.text.reserve(path.len() + name.len() + 1);
        self.text.extend_from_slice(path);
        self.text.extend_from_slice(name);
        self.text.push(end);
        self.count += 1;
    }
}

impl Plan {
    /// The same plan, which knows whether every entry is listed by its path and one byte. Then
    /// nothing else is asked of each entry.
    pub(crate) fn settled(self) -> Self {
        let plain_end = match self.shape {
            Shape::Path(end, NameStyle::Literal) if !self.dereference && self.takes_every_name() => Some(end),
            _ => None,
        };
        Self { plain_end, ..self }
    }

    /// The metadata lines and tests need.
    pub(crate) fn fields(&self) -> Option<Fields> {
        let shape = match &self.shape {
            Shape::Count | Shape::Path(..) => None,
            Shape::Format(format) => format.fields(),
            Shape::Json(_) => Some(Fields::ALL.and(Fields::BIRTH)),
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

    /// Whether no name of any directory comes to nothing.
    fn takes_every_name(&self) -> bool {
        !self.skips_hidden && self.pruned.is_none() && self.vcs.is_none() && self.filter.is_empty()
    }

    /// Looks at a directory that has been opened; how much memory that keeps.
    pub(crate) fn opened(&self, dir: &Opened<'_>) -> usize {
        let wanted = self.vcs.as_ref().filter(|_| self.reads(dir.node.depth()));
        wanted.map_or(0, |vcs| vcs.look(dir))
    }

    /// Whether what an entry is must still be found out.
    fn is_undecided(&self, name: &Name<'_>) -> bool {
        name.file_type == FileType::Unknown || (self.dereference && name.file_type == FileType::Symlink)
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
        let mut ignores = self.vcs.as_ref().and_then(|vcs| vcs.rules_in(dir));
        let mut ignored = |name: &Name<'_>| {
            let (is_dir, text) = (name.file_type == FileType::Directory, name.name.to_bytes());
            ignores.as_mut().is_some_and(|here| match self.is_undecided(name) {
                true => here.leaves_out_anyway(text),
                false => here.leaves_out(text, is_dir),
            })
        };
        if !self.takes_every_name() {
            names.retain(|name| {
                !self.leaves_out(name.name.to_bytes())
                    && (may_be_listed(&name) || (deeper && may_be_dir(&name)))
                    && !ignored(&name)
            });
        }
        let everywhere = self.fields().is_some();
        names.skip_stat_if(|name| {
            let needed = if self.is_undecided(&name) {
                everywhere || deeper || self.tells_type() || ignores.is_some()
            } else {
                everywhere && may_be_listed(&name)
            };
            !needed
        });
    }

    /// Whether lines have any part of a path but the last name.
    fn writes_dir(&self) -> bool {
        match &self.shape {
            Shape::Count => false,
            Shape::Path(..) | Shape::Json(_) => true,
            Shape::Format(format) => format.needs_dir(),
        }
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
    fn root(&self, path: &[u8], meta: &Meta, lines: &mut Lines) {
        let file_type = meta.file_type();
        let entry =
            Entry { dir: b"", name: path, root_len: path.len(), depth: 0, file_type, meta: Some(meta) };
        let listed = self.filter.matches_name(base(path), 0)
            && self.filter.matches_path(path)
            && self.filter.matches_meta(meta);
        if listed {
            lines.count += 1;
            self.write(&entry, &mut Asked { places: &self.places, entry: None }, &mut lines.text);
        }
    }

    /// What stands where a root should be and is no directory. As find(1) has it, a link that leads nowhere stands for itself
    /// where links are followed.
    pub(crate) fn root_file(
        &self,
        path: &[u8],
        meta: Result<Meta, Errno>,
        lines: &mut Lines,
    ) -> Result<(), Problem> {
        let meta = match meta {
            Err(Errno::NOENT) if self.dereference => {
                self.places.root_itself(path, self.fields().unwrap_or(Fields::IDENTITY))
            }
            meta => meta,
        };
        let meta = meta.map_err(|errno| Problem::Access(path.to_vec(), errno))?;
        self.root(path, &meta, lines);
        Ok(())
    }

    /// The line of an entry of `dir`, if it has one, and what becomes of it.
    #[inline]
    pub(crate) fn entry(&self, entry: &fathom_walk::Entry<'_>, dir: &Arc<Node>, lines: &mut Lines) -> Next {
        let file_type = entry.name.file_type;
        match self.plain_end {
            Some(end) if entry.meta.is_none() && file_type != FileType::Unknown => {
                lines.add(dir, entry.name.name.to_bytes(), end);
                if file_type == FileType::Directory { Next::Descend } else { Next::Nothing }
            }
            _ => self.tested(entry, dir, lines),
        }
    }

    /// The same for an entry that has to stand tests.
    fn tested(&self, entry: &fathom_walk::Entry<'_>, dir: &Arc<Node>, lines: &mut Lines) -> Next {
        let (name, depth) = (entry.name.name.to_bytes(), dir.depth() + 1);
        let dangling;
        let (file_type, meta) = match entry.meta {
            None => (entry.name.file_type, None),
            Some(Ok(meta)) => (meta.file_type(), Some(meta)),
            Some(Err(errno)) => match self.dangling(entry, errno) {
                Ok(meta) => {
                    dangling = meta;
                    (dangling.file_type(), Some(&dangling))
                }
                Err(errno) => {
                    // As find(1) has it, a link that may not be followed is listed where its name
                    // is all that is asked.
                    if errno == Errno::ACCESS && self.needs_name_only() {
                        self.list(entry, dir, (FileType::Unknown, None), lines);
                    }
                    return Next::Problem(Problem::Access([lines.dir.of(dir), name].concat(), errno));
                }
            },
        };
        if self.is_undecided(&entry.name) && self.is_ignored(name, file_type, dir) {
            return Next::Nothing;
        }
        self.list(entry, dir, (file_type, meta), lines);
        if file_type == FileType::Directory && self.reads(depth) { Next::Descend } else { Next::Nothing }
    }

    /// Writes the line of an entry, if it has one.
    fn list(
        &self,
        entry: &fathom_walk::Entry<'_>,
        dir: &Arc<Node>,
        (file_type, meta): (FileType, Option<&Meta>),
        lines: &mut Lines,
    ) {
        let name = entry.name.name.to_bytes();
        if !self.lists(name, dir, file_type, meta, lines) {
            return;
        }
        lines.count += 1;
        let Lines { text, dir: path, .. } = lines;
        let (root_len, depth) = (dir.root_path_len(), dir.depth() + 1);
        let dir = if self.writes_dir() { path.of(dir) } else { b"" };
        let shown = Entry { dir, name, root_len, depth, file_type, meta };
        self.write(&shown, &mut Asked { places: &self.places, entry: Some(entry) }, text);
    }

    /// Whether no line and no test depends on what an entry is.
    fn needs_name_only(&self) -> bool {
        self.filter.fields().is_none()
            && !self.tells_type()
            && !matches!(&self.shape, Shape::Format(format) if format.needs_meta())
    }

    fn is_ignored(&self, name: &[u8], file_type: FileType, dir: &Node) -> bool {
        let ignores = self.vcs.as_ref().and_then(|vcs| vcs.rules_in(dir));
        ignores.is_some_and(|mut here| here.leaves_out(name, file_type == FileType::Directory))
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
        dir: &Arc<Node>,
        file_type: FileType,
        meta: Option<&Meta>,
        lines: &mut Lines,
    ) -> bool {
        let filter = &self.filter;
        if !filter.matches_name(name, dir.depth() + 1) || !filter.matches_type(file_type) {
            return false;
        }
        if filter.needs_path() {
            let Lines { path, dir: above, .. } = lines;
            path.clear();
            path.extend_from_slice(above.of(dir));
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
            Shape::Path(end, style) => {
                let start = out.len();
                out.extend_from_slice(entry.dir);
                out.extend_from_slice(entry.name);
                style.finish(start, out);
                out.push(*end);
            }
            Shape::Format(format) => format.write(entry, &self.owners, asked, out),
            Shape::Json(writer) => writer.write(entry, entry.meta.and_then(|meta| meta.born), out),
        }
    }
}

/// The last name of an operand, which is `/` where there is nothing else, as find(1) has it.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    match path[..end].rsplit(|byte| *byte == b'/').next() {
        Some(b"") | None => b"/",
        Some(base) => base,
    }
}

/// The path of a directory.
pub(crate) fn path(node: &Node) -> Vec<u8> {
    let mut path = Vec::new();
    node.path_into(&mut path);
    path
}
