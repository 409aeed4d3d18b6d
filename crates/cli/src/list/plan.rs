//! The selection and formatting of entries in a listing. Called on the walk's workers. Knows
//! neither the spellings of options nor the destination of lines.

use std::sync::Arc;

use fathom_inventory::filter::Filter;
use fathom_inventory::format::PrintFormat;
use fathom_inventory::ignores::MalformedRule;
use fathom_inventory::{Entry, Owners};
use fathom_questions::json::JsonWriter;
use fathom_text::quote::NameStyle;
use fathom_walk::{
    Descend, DirPath, Enter, Errno, Failure, Fields, FileType, Follow, Meta, Name, Names, Node, Opened,
    Operation,
};

use super::lookup::{EntryLookup, LookupContext};
use super::vcs::VcsIgnores;

/// The selection of entries and the format of their lines.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) filter: Filter,
    pub(crate) format: LineFormat,
    /// Entries that are excluded with everything below them, unless they are roots.
    pub(crate) pruned: Option<Filter>,
    /// Whether hidden entries are excluded likewise.
    pub(crate) skips_hidden: bool,
    /// The rules of `.gitignore` and similar files, by which entries are excluded likewise.
    pub(crate) vcs: Option<VcsIgnores>,
    /// Whether mount points below a root are listed but not read.
    pub(crate) one_file_system: bool,
    /// Whether symbolic links are followed.
    pub(crate) dereference: bool,
    /// Owner names, for the format.
    pub(crate) owners: Owners,
    pub(crate) lookup: LookupContext,
    /// The terminator of lines if the fast path applies: see [`Plan::with_fast_path`].
    pub(crate) fast_path_terminator: Option<u8>,
}

/// The format of a line.
#[derive(Debug)]
pub(crate) enum LineFormat {
    /// No lines, only the number of entries.
    Count,
    /// The path and this terminator.
    Path(u8, NameStyle),
    Format(Box<PrintFormat>),
    Json(Box<JsonWriter>),
}

/// A failure to access an entry or to read a directory, or a defect in a file of ignore rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListProblem {
    Access(Vec<u8>, Errno),
    Read(Vec<u8>, Errno),
    Loop(Vec<u8>),
    /// A file of ignore rules could not be read.
    File(Vec<u8>, Errno),
    /// A line of such a file has no effect.
    Rule(Vec<u8>, MalformedRule),
}

/// The next step for an entry, after its line.
pub(crate) enum NextStep {
    Nothing,
    /// Walk into the directory.
    Descend,
    /// Report that the entry cannot be accessed.
    Failed(Errno),
    /// Report that the entry cannot be accessed, and walk into the directory all the same.
    FailedDescend(Errno),
}

/// A buffer of lines with their number, and the cached path of the current directory.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    pub(crate) text: Vec<u8>,
    pub(crate) count: u64,
    dir: DirPath,
    path: Vec<u8>,
}

impl LineBuffer {
    /// Adds a line with the path of the entry `name` of `dir`, and the terminator `end`.
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
    /// Determines whether every entry is listed by its path and one terminator. If so, the fast
    /// path of [`Plan::entry`] skips all tests.
    pub(crate) fn with_fast_path(self) -> Self {
        let fast_path_terminator = match self.format {
            LineFormat::Path(end, NameStyle::Literal) if !self.dereference && self.takes_every_name() => {
                Some(end)
            }
            _ => None,
        };
        Self { fast_path_terminator, ..self }
    }

    /// Returns the metadata fields that lines and tests need.
    pub(crate) fn fields(&self) -> Option<Fields> {
        let format = match &self.format {
            LineFormat::Count | LineFormat::Path(..) => None,
            LineFormat::Format(format) => format.fields(),
            LineFormat::Json(_) => Some(Fields::ALL.union(Fields::BIRTH)),
        };
        self.filter.fields().into_iter().chain(format).reduce(Fields::union)
    }

    /// Returns whether a directory at this depth is read.
    fn reads(&self, depth: usize) -> bool {
        self.filter.descends(depth)
    }

    fn is_excluded(&self, name: &[u8]) -> bool {
        (self.skips_hidden && name.starts_with(b"."))
            || self.pruned.as_ref().is_some_and(|pruned| pruned.matches_name(name, 1))
    }

    /// Returns whether no name in any directory is dropped.
    fn takes_every_name(&self) -> bool {
        !self.skips_hidden && self.pruned.is_none() && self.vcs.is_none() && self.filter.is_empty()
    }

    /// Reads the ignore rules in a directory that has been opened. Returns the number of bytes of
    /// memory that they take.
    pub(crate) fn opened(&self, dir: &Opened<'_>) -> usize {
        let wanted = self.vcs.as_ref().filter(|_| self.reads(dir.node.depth()));
        wanted.map_or(0, |vcs| vcs.read_rules(dir))
    }

    /// Returns whether the type of an entry is not known from its name alone.
    fn is_undecided(&self, name: &Name<'_>) -> bool {
        name.file_type == FileType::Unknown || (self.dereference && name.file_type == FileType::Symlink)
    }

    /// Drops the names that are neither listed nor walked, and skips the stat(2) of entries whose
    /// metadata is not needed.
    pub(crate) fn select(&self, dir: &Node, names: &mut Names) {
        if self.fast_path_terminator.is_some() {
            return names.skip_stat_of(|file_type| file_type != FileType::Unknown);
        }
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
                true => here.ignores_any_type(text),
                false => here.ignores(text, is_dir),
            })
        };
        if !self.takes_every_name() {
            names.retain(|name| {
                !self.is_excluded(name.name.to_bytes())
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

    /// Returns whether lines contain any part of a path but the last name.
    fn writes_dir(&self) -> bool {
        match &self.format {
            LineFormat::Count => false,
            LineFormat::Path(..) | LineFormat::Json(_) => true,
            LineFormat::Format(format) => format.needs_dir(),
        }
    }

    fn tells_type(&self) -> bool {
        self.filter.needs_type() || matches!(&self.format, LineFormat::Format(format) if format.needs_type())
    }

    /// Enters a directory: adds its line if it is a root, and returns whether to read it.
    ///
    /// # Errors
    /// The problem of a root that is not read, if a test had to read it.
    pub(crate) fn enter(&self, enter: &Enter<'_>, lines: &mut LineBuffer) -> Result<Descend, ListProblem> {
        let node = enter.node;
        let failed = match node.parent() {
            None => self.root(node.name().to_bytes(), enter.meta, lines),
            Some(_) => Ok(()),
        };
        let elsewhere = self.one_file_system && node.root_dev().is_some_and(|dev| dev != enter.meta.dev);
        if elsewhere || !self.reads(node.depth()) {
            return failed.map_err(|errno| ListProblem::Read(path(node), errno)).map(|()| Descend::No);
        }
        // The walk reports a directory that cannot be read.
        Ok(Descend::Yes)
    }

    /// Returns the problem to report for a failure; `None` if the root is listed all the same.
    pub(crate) fn failed(&self, failure: &Failure<'_>, lines: &mut LineBuffer) -> Option<ListProblem> {
        let Failure { node, name, operation, errno } = *failure;
        match operation {
            Operation::Access if node.parent().is_none() => {
                self.root_file(node.name().to_bytes(), Err(errno), lines).err()
            }
            Operation::Open | Operation::Read | Operation::Reopen => {
                Some(ListProblem::Read(path(node), errno))
            }
            Operation::Stat => Some(ListProblem::Access(node.path_of(name), errno)),
            Operation::Descend => Some(ListProblem::Loop(path(node))),
            _ => Some(ListProblem::Access(path(node), errno)),
        }
    }

    /// Adds the line of an existing root, if it passes the filters.
    ///
    /// # Errors
    /// If a lookup of the filters failed.
    fn root(&self, path: &[u8], meta: &Meta, lines: &mut LineBuffer) -> Result<(), Errno> {
        let file_type = meta.file_type();
        let entry =
            Entry { dir: b"", name: path, root_len: path.len(), depth: 0, file_type, meta: Some(meta) };
        let mut lookup = EntryLookup::new(&self.lookup, None);
        if self.passes(&entry, &mut lookup, &mut lines.path)? {
            self.add(&entry, &mut lookup, lines);
        }
        Ok(())
    }

    /// Returns whether an entry passes the filters. `path` is a buffer for its path.
    ///
    /// # Errors
    /// If a lookup of the filters failed.
    fn passes(
        &self,
        entry: &Entry<'_>,
        lookup: &mut EntryLookup<'_>,
        path: &mut Vec<u8>,
    ) -> Result<bool, Errno> {
        let passes = self.filter.passes(entry, lookup, path);
        lookup.failure.map_or(Ok(passes), Err)
    }

    /// Adds the line of an entry.
    fn add(&self, entry: &Entry<'_>, lookup: &mut EntryLookup<'_>, lines: &mut LineBuffer) {
        lines.count += 1;
        self.write(entry, lookup, &mut lines.text);
    }

    /// Adds the line of a root that is not a directory. Like find(1), lists a dangling link as
    /// itself if links are followed.
    pub(crate) fn root_file(
        &self,
        path: &[u8],
        meta: Result<Meta, Errno>,
        lines: &mut LineBuffer,
    ) -> Result<(), ListProblem> {
        let meta = match meta {
            Err(Errno::NOENT) if self.dereference => {
                self.lookup.root_itself(path, self.fields().unwrap_or(Fields::IDENTITY))
            }
            meta => meta,
        };
        let meta = meta.map_err(|errno| ListProblem::Access(path.to_vec(), errno))?;
        self.root(path, &meta, lines).map_err(|errno| ListProblem::Access(path.to_vec(), errno))
    }

    /// Adds the line of an entry of `dir`, if it passes the filters. Returns the next step.
    #[inline(always)]
    pub(crate) fn entry(
        &self,
        entry: &fathom_walk::Entry<'_>,
        dir: &Arc<Node>,
        lines: &mut LineBuffer,
    ) -> NextStep {
        let file_type = entry.name.file_type;
        match self.fast_path_terminator {
            Some(end) if entry.meta.is_none() && file_type != FileType::Unknown => {
                lines.add(dir, entry.name.name.to_bytes(), end);
                if file_type == FileType::Directory { NextStep::Descend } else { NextStep::Nothing }
            }
            _ => self.entry_with_tests(entry, dir, lines),
        }
    }

    /// The slow path of [`Plan::entry`], with all tests.
    #[inline(never)]
    fn entry_with_tests(
        &self,
        entry: &fathom_walk::Entry<'_>,
        dir: &Arc<Node>,
        lines: &mut LineBuffer,
    ) -> NextStep {
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
                    // Like find(1), list a link that cannot be followed if only its name is needed.
                    if errno == Errno::ACCESS && self.needs_name_only() {
                        let _listed = self.list(entry, dir, FileType::Unknown, None, lines);
                    }
                    return NextStep::Failed(errno);
                }
            },
        };
        if self.is_undecided(&entry.name) && self.is_ignored(name, file_type, dir) {
            return NextStep::Nothing;
        }
        let listed = self.list(entry, dir, file_type, meta, lines);
        let descends = file_type == FileType::Directory && self.reads(depth);
        // The walk does not enter a directory on another filesystem, and reports nothing about it.
        let is_elsewhere = self.one_file_system && meta.map(|meta| meta.dev) != dir.root_dev();
        match listed {
            Ok(()) if descends => NextStep::Descend,
            Ok(()) => NextStep::Nothing,
            Err(errno) if !descends || is_elsewhere => NextStep::Failed(errno),
            // The walk will report it.
            Err(Errno::ACCESS) => NextStep::Descend,
            Err(errno) => NextStep::FailedDescend(errno),
        }
    }

    /// Adds the line of an entry of `dir`, if it passes the filters.
    ///
    /// # Errors
    /// If a lookup of the filters failed.
    fn list(
        &self,
        entry: &fathom_walk::Entry<'_>,
        dir: &Arc<Node>,
        file_type: FileType,
        meta: Option<&Meta>,
        lines: &mut LineBuffer,
    ) -> Result<(), Errno> {
        let (name, root_len, depth) = (entry.name.name.to_bytes(), dir.root_path_len(), dir.depth() + 1);
        // The path of the directory is taken out of the buffer, which has more than it.
        let mut above = std::mem::take(&mut lines.dir);
        let shown = Entry { dir: b"", name, root_len, depth, file_type, meta };
        let mut lookup = EntryLookup::new(&self.lookup, Some(entry));
        let tested = if self.filter.needs_path() { above.of(dir) } else { b"" };
        let passes = self.passes(&Entry { dir: tested, ..shown }, &mut lookup, &mut lines.path);
        if passes == Ok(true) {
            let written = if self.writes_dir() { above.of(dir) } else { b"" };
            self.add(&Entry { dir: written, ..shown }, &mut lookup, lines);
        }
        lines.dir = above;
        passes.map(drop)
    }

    /// Returns whether lines and tests depend on nothing but the name of an entry.
    fn needs_name_only(&self) -> bool {
        self.filter.fields().is_none()
            && !self.tells_type()
            && !matches!(&self.format, LineFormat::Format(format) if format.needs_meta())
    }

    fn is_ignored(&self, name: &[u8], file_type: FileType, dir: &Node) -> bool {
        let ignores = self.vcs.as_ref().and_then(|vcs| vcs.rules_in(dir));
        ignores.is_some_and(|mut here| here.ignores(name, file_type == FileType::Directory))
    }

    /// Like find(1), falls back to the metadata of a dangling link itself if links are followed.
    fn dangling(&self, entry: &fathom_walk::Entry<'_>, errno: Errno) -> Result<Meta, Errno> {
        if !self.dereference || !matches!(errno, Errno::NOENT | Errno::NOTDIR) {
            return Err(errno);
        }
        entry.stat(Follow::No, self.fields().unwrap_or(Fields::IDENTITY))
    }

    fn write(&self, entry: &Entry<'_>, lookup: &mut EntryLookup<'_>, out: &mut Vec<u8>) {
        match &self.format {
            LineFormat::Count => {}
            LineFormat::Path(end, style) => {
                let start = out.len();
                out.extend_from_slice(entry.dir);
                out.extend_from_slice(entry.name);
                style.finish(start, out);
                out.push(*end);
            }
            LineFormat::Format(format) => format.write(entry, &self.owners, lookup, out),
            LineFormat::Json(writer) => writer.write(entry, out),
        }
    }
}

/// Returns the path of a directory.
pub(crate) fn path(node: &Node) -> Vec<u8> {
    let mut path = Vec::new();
    node.path_into(&mut path);
    path
}
