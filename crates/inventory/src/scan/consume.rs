//! The calling thread's side of a scan: gives directories their numbers, adds up what is below them, and hands rows over to be
//! written.

use std::cell::Cell;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use fathom_text::words;
use fathom_walk::{Consume, Descend, Enter, Errno, FileType, Found, Meta, NextRoot, Node, Progress};

use super::journal::{Frame, Journal, Place, Tally, join};
use super::pace::Pace;
use super::past::Past;
use super::select::Selection;
use super::visit::{Item, Skipped};
use super::{Problem, Scan, Watch};
use crate::fault::point;
use crate::store::{
    Batch, ByDir, Chunk, Dir, Error, Extra, Failed, Failure, Row, Shelf, State, Sums, Writer, stored_path,
};

/// The operation of a row of `errors` that says that a time is out of range.
pub(crate) const TIME: &str = "time";
/// Time between two checkpoints, if entries come slowly.
const CHECKPOINT: Duration = Duration::from_secs(60);

/// Takes everything in the order of the walk.
pub(super) struct Taker<'a> {
    scan: &'a Scan,
    /// Without its place.
    journal: Journal,
    deadline: Option<Instant>,
    writer: Writer,
    failed: bool,
    /// Why, unless that is the writer's to say.
    error: Option<Error>,
    past: Option<(Arc<Past>, ByDir)>,
    pace: Option<Arc<Pace>>,
    watch: &'a mut dyn Watch,
    progress: &'a Cell<Progress>,
    /// Directories that an earlier run had entered: the walk begins with so many, innermost first,
    /// each as a root.
    again: usize,
    next_root: usize,
    /// Operands before the first that comes after those.
    roots_before: usize,
    place: Place,
    batch: Batch,
    since: (Instant, u64),
    /// Device and inode number of the directory that is written to: it is left out.
    own: Option<(u64, u64)>,
    /// Has warnings on directories.
    pub(super) selection: Option<Arc<dyn Selection>>,
}

impl<'a> Taker<'a> {
    pub(super) fn new(
        scan: &'a Scan,
        mut journal: Journal,
        writer: Writer,
        (watch, progress): (&'a mut dyn Watch, &'a Cell<Progress>),
        past: Option<(Arc<Past>, ByDir)>,
    ) -> Self {
        let place = std::mem::take(&mut journal.place);
        let again = place.levels_in_reach();
        let roots_before = if place.stack.is_empty() { place.roots_done } else { place.root + 1 };
        let mut taker = Self {
            scan,
            journal,
            deadline: scan.deadline.map(|deadline| Instant::now() + deadline),
            writer,
            failed: false,
            error: None,
            past,
            pace: None,
            watch,
            progress,
            again,
            next_root: 0,
            roots_before,
            since: (Instant::now(), place.tally.entries),
            place,
            batch: Batch::default(),
            selection: None,
            own: None,
        };
        taker.give_up_deeper_levels();
        taker
    }

    /// Sets the pace that ends when the scan stops.
    pub(super) fn with_pace(self, pace: Option<Arc<Pace>>) -> Self {
        Self { pace, ..self }
    }

    /// Leaves out the directory with this device and inode number.
    pub(super) fn without(self, own: Option<(u64, u64)>) -> Self {
        Self { own, ..self }
    }

    /// Leaves the directories of the earlier run whose paths are too long to open: no walk can
    /// begin with them.
    fn give_up_deeper_levels(&mut self) {
        while self.place.stack.len() > self.again {
            let errno = Errno::NAMETOOLONG;
            let (id, path) = (self.place.stack.last().map(|frame| frame.id), &self.place.path);
            push_failure(&mut self.batch, "read", (id, None), path, errno);
            // The outermost one says it for all that are below it.
            if self.place.stack.len() == self.again + 1 {
                self.watch.problem(&Problem { deed: "read", path: path.clone(), errno });
            }
            self.close(State::Partial, Some(errno));
        }
    }

    /// Waits until all is written. What is still open is left for another run to go on with, and closed as it is.
    pub(super) fn end(mut self, complete: bool) -> (Result<Shelf, Error>, Tally) {
        if !complete && !self.failed {
            self.checkpoint();
        }
        while !self.place.stack.is_empty() {
            self.close(State::Partial, None);
        }
        self.send();
        let written = self.writer.end();
        (self.error.map_or(written, Err), self.place.tally)
    }

    /// Has what there is so far put on the disk, for good.
    fn checkpoint(&mut self) {
        self.since = (Instant::now(), self.place.tally.entries);
        let journal = Journal { place: self.place.clone(), ..self.journal.clone() };
        self.batch.checkpoint = Some(Box::new(move |shelf: &Shelf| {
            let (users, groups) = (shelf.users.clone(), shelf.groups.clone());
            let files = shelf.files.clone();
            Journal { files, segment: shelf.segment, users, groups, ..journal }.write(&shelf.directory)
        }));
        self.send();
    }

    fn is_checkpoint_due(&self) -> bool {
        let (then, entries) = self.since;
        let new = self.place.tally.entries - entries;
        new >= self.scan.checkpoint_entries || (new > 0 && then.elapsed() >= CHECKPOINT)
    }

    fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.failed |= !self.writer.send(batch);
    }

    fn send_if_full(&mut self) {
        if self.writer.is_filled(&self.batch) {
            self.send();
        }
    }

    /// Notes an operand that is not there.
    fn missing(&mut self, path: Vec<u8>, errno: Errno) {
        push_failure(&mut self.batch, "access", (None, Some(&path)), &path, errno);
        self.watch.problem(&Problem { deed: "access", path, errno });
    }

    /// Notes what cannot be done with the directory entered last.
    fn problem(&mut self, deed: &'static str, errno: Errno) {
        let (id, path) = (self.place.stack.last().map(|frame| frame.id), self.place.path.clone());
        push_failure(&mut self.batch, deed, (id, None), &path, errno);
        self.watch.problem(&Problem { deed, path, errno });
    }

    /// Says that a time of an entry does not fit into its column, which has the end of its range
    /// instead.
    fn clamped(&mut self, dir_id: Option<i64>, name: Option<&[u8]>, path: Vec<u8>) {
        let errno = Errno::OVERFLOW;
        self.place.tally.completeness.clamped_times += 1;
        push_failure(&mut self.batch, TIME, (dir_id, name), &path, errno);
        self.watch.problem(&Problem { deed: "record a time of", path, errno });
    }

    /// A number for the next directory, which is counted as one of its parent's.
    fn number(&mut self) -> (i64, Option<i64>) {
        self.place.tally.entries += 1;
        let id = self.place.next_id;
        self.place.next_id += 1;
        let parent = self.place.stack.last_mut();
        (
            id,
            parent.map(|frame| {
                frame.own.dirs += 1;
                frame.id
            }),
        )
    }

    /// Says that values of columns that were asked for could not be found out.
    fn unanswered(&mut self, failed: Failed, about: (Option<i64>, Option<&[u8]>), path: &[u8]) {
        for (op, deed, errno) in failed.each() {
            self.place.tally.completeness.unknown_values += 1;
            push_failure(&mut self.batch, op, about, path, errno);
            self.watch.problem(&Problem { deed, path: path.to_vec(), errno });
        }
    }

    /// Enters a directory of this name; its frame is the last.
    fn open(&mut self, name: &[u8], row: Row, extra: Option<Extra<'static>>) {
        let (id, parent) = self.number();
        let above = self.place.path.len();
        let start = join(&mut self.place.path, name);
        self.batch.owners.insert((row.uid, row.gid));
        let (own, below) = (Sums::default(), Sums::default());
        if row.is_out_of_range() {
            self.clamped(Some(id), None, self.place.path.clone());
        }
        if let Some(extra) = &extra {
            self.unanswered(extra.failed, (Some(id), None), &self.place.path.clone());
        }
        let (depth, scanned) = (self.place.stack.len() as i32, now());
        self.place.stack.push(Frame {
            id,
            parent,
            depth,
            name: start,
            above,
            row,
            extra,
            own,
            below,
            scanned,
        });
    }

    /// Leaves the directory entered last.
    fn close(&mut self, state: State, errno: Option<Errno>) {
        let Some(mut frame) = self.place.stack.pop() else { return };
        self.place.tally.completeness.count(state);
        frame.below.add(&frame.own);
        let known = frame.row.errno == 0;
        if known {
            frame.below.blocks = frame.below.blocks.saturating_add(frame.row.blocks);
            frame.below.modified = frame.below.modified.max(Some(frame.row.micros[1]));
            frame.below.changed = frame.below.changed.max(Some(frame.row.micros[2]));
        }
        self.batch.dirs.push(&Dir {
            id: frame.id,
            parent: frame.parent,
            last: self.place.next_id - 1,
            root: self.place.root as i32,
            depth: frame.depth,
            name: &self.place.path[frame.name..],
            path: stored_path(&self.place.path),
            meta: Some(&frame.row).filter(|_| known),
            extra: frame.extra.as_ref(),
            own: &frame.own,
            below: &frame.below,
            scanned: frame.scanned,
            state,
            errno: errno.map(Errno::raw_os_error),
        });
        self.place.path.truncate(frame.above);
        match self.place.stack.last_mut() {
            Some(above) => above.below.add(&frame.below),
            None => self.place.roots_done = self.place.root + 1,
        }
        if self.is_checkpoint_due() {
            self.checkpoint();
        }
        self.send_if_full();
        point("directory-left");
    }

    /// A directory of which nothing is read.
    fn pass(
        &mut self,
        (name, meta, extra): (&[u8], Result<&Meta, Errno>, Option<Extra<'static>>),
        state: State,
        errno: Option<Errno>,
    ) {
        self.open(name, Row::new(FileType::Directory, meta), extra);
        if let Some(errno) = errno {
            self.problem(if meta.is_ok() { "read" } else { "access" }, errno);
        }
        self.close(state, errno);
    }

    /// The directory entered last is read once more, if it is still the same.
    fn reenter(&mut self, found: Result<&Enter<'_>, Errno>) -> Descend {
        let Some(frame) = self.place.stack.last() else { return Descend::No };
        let id = (frame.row.dev, frame.row.ino);
        let errno = match found {
            Ok(enter) if enter.found == Found::Readable && enter.meta.id() == id => return Descend::Yes,
            Ok(Enter { found: Found::Unreadable(errno), .. }) => *errno,
            Err(errno) => errno,
            Ok(_) => Errno::STALE,
        };
        self.problem("read", errno);
        self.close(State::Partial, Some(errno));
        Descend::No
    }

    /// A directory that is not read, as it is as far below its root as was asked for.
    fn skipped(&mut self, skipped: &Skipped) {
        match &skipped.meta {
            Ok(meta) if self.own == Some(meta.id()) => {}
            Ok(meta) => self.pass((&skipped.name, Ok(meta), skipped.extra.clone()), State::Skipped, None),
            Err(errno) => self.pass((&skipped.name, Err(*errno), None), State::Failed, Some(*errno)),
        }
    }

    fn is_again(&self, root: usize) -> bool {
        root < self.again
    }

    /// Entries of the directory entered last.
    fn rows(&mut self, chunk: Box<Chunk>) {
        let Some(frame) = self.place.stack.last_mut() else { return };
        frame.own.add(&chunk.sums);
        let id = frame.id;
        for (row, name, _) in chunk.iter().filter(|(row, ..)| row.errno != 0 || row.is_out_of_range()) {
            let mut path = self.place.path.clone();
            join(&mut path, name);
            if row.errno == 0 {
                self.clamped(Some(id), Some(name), path);
                continue;
            }
            let errno = Errno::from_raw_os_error(i32::from(row.errno));
            self.place.tally.completeness.unknown_entries += 1;
            push_failure(&mut self.batch, "stat", (Some(id), Some(name)), &path, errno);
            self.watch.problem(&Problem { deed: "access", path, errno });
        }
        if !self.scan.also.is_empty() {
            self.unanswered_of(id, &chunk);
        }
        self.take(id, chunk);
    }

    /// Says so of the entries of the directory entered last.
    fn unanswered_of(&mut self, id: i64, chunk: &Chunk) {
        for (_, name, _, extra) in chunk.iter_all() {
            let failed = extra.map(|extra| extra.failed).unwrap_or_default();
            if failed != Failed::default() {
                let mut path = self.place.path.clone();
                join(&mut path, name);
                self.unanswered(failed, (Some(id), Some(name)), &path);
            }
        }
    }

    /// The directory entered last has the entries that the earlier inventory has of its directory `id`.
    fn past_rows(&mut self, id: u32) {
        let (Some((past, mut by_dir)), Some(frame)) = (self.past.take(), self.place.stack.last_mut()) else {
            return;
        };
        frame.scanned = past.scanned(id);
        let (then, now) = (past.dev(id), frame.row.dev);
        self.place.tally.past_directories += 1;
        let read = by_dir.each(id.into(), |mut chunk| {
            chunk.renumber(then, now);
            self.place.tally.past_entries += chunk.len() as u64;
            self.rows(chunk);
        });
        if let Err(error) = read {
            self.failed = true;
            self.error.get_or_insert(error);
        }
        self.past = Some((past, by_dir));
    }

    fn take(&mut self, dir_id: i64, chunk: Box<Chunk>) {
        self.place.tally.entries += chunk.len() as u64;
        self.batch.rows += chunk.len();
        self.batch.text_bytes += chunk.text_bytes();
        self.batch.entries.push((dir_id, chunk));
        self.send_if_full();
        point("rows-taken");
    }
}

/// Adds a row of `errors`, about a directory or an entry of it.
fn push_failure(
    batch: &mut Batch,
    op: &str,
    (dir_id, name): (Option<i64>, Option<&[u8]>),
    path: &[u8],
    errno: Errno,
) {
    let message = &words(errno);
    batch.errors.push(&Failure {
        dir_id,
        name,
        path: stored_path(path),
        op,
        errno: errno.raw_os_error(),
        message,
    });
}

/// Microseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

impl Consume<Item> for Taker<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        let next = self.next_root;
        self.next_root += 1;
        if self.is_again(next) {
            // Directories are left from the innermost on, so those to come are still on the stack.
            let path = self.place.path_of(self.again - 1 - next);
            return NextRoot::Path(CString::new(path).unwrap_or_default());
        }
        let root = self.scan.roots.get(self.roots_before + next - self.again);
        root.map_or(NextRoot::End, |root| NextRoot::Path(root.clone()))
    }

    fn root_file(&mut self, root: usize, meta: Result<Meta, Errno>) {
        if self.is_again(root) {
            self.reenter(Err(meta.err().unwrap_or(Errno::NOTDIR)));
            return;
        }
        self.place.root = self.roots_before + root - self.again;
        let root = &self.scan.roots[self.place.root];
        let path = root.to_bytes();
        match meta {
            Ok(meta) => {
                let mut chunk = Box::<Chunk>::default();
                let is_link = meta.file_type() == FileType::Symlink;
                let link = if is_link { fathom_walk::read_link(root).ok() } else { None };
                let link = link.as_deref().map_or(&b""[..], |link| link.to_bytes());
                chunk.push(path, meta.file_type(), Ok(&meta), link);
                let also = self.scan.also;
                if !also.is_empty() {
                    let project = || fathom_walk::project(root, meta.file_type());
                    let extra = Extra::ask(also, || fathom_walk::xattr_names(root), project);
                    chunk.push_extra(&extra);
                    self.unanswered(extra.failed, (None, Some(path)), path);
                }
                if chunk.iter().any(|(row, ..)| row.is_out_of_range()) {
                    self.clamped(None, Some(path), path.to_vec());
                }
                self.take(0, chunk);
            }
            Err(errno) => {
                self.place.tally.completeness.missing_roots += 1;
                self.missing(path.to_vec(), errno);
            }
        }
        self.place.roots_done = self.place.root + 1;
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        let (name, meta, root) = (enter.node.name().to_bytes(), enter.meta, enter.node.root_index());
        if enter.node.depth() == 0 {
            if self.is_again(root) {
                return self.reenter(Ok(&enter));
            }
            self.place.root = self.roots_before + root - self.again;
        } else if self.own == Some(meta.id()) {
            return Descend::No;
        }
        let root_dev = self.place.stack.first().map_or(meta.dev, |root| root.row.dev);
        let foreign = self.scan.one_file_system && meta.dev != root_dev;
        let warnings = self.selection.as_ref().map(|selection| selection.warnings(enter.node));
        warnings.iter().flatten().for_each(|warning| self.watch.warning(warning));
        let is_last = self.scan.left_out.max_depth.is_some_and(|max| self.place.stack.len() >= max);
        let extra = enter.node.finding::<Extra<'static>>().cloned();
        match enter.found {
            Found::Readable if !foreign && !is_last => {
                self.open(name, Row::new(FileType::Directory, Ok(meta)), extra);
                return Descend::Yes;
            }
            Found::Unreadable(errno) if !foreign && !is_last => {
                self.pass((name, Ok(meta), extra), State::Failed, Some(errno));
            }
            _ => self.pass((name, Ok(meta), extra), State::Skipped, None),
        }
        Descend::No
    }

    fn lost(&mut self, node: &Node, errno: Errno) {
        self.pass((node.name().to_bytes(), Err(errno), None), State::Failed, Some(errno));
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Rows(chunk) => self.rows(chunk),
            Item::Past(id) => self.past_rows(id),
            Item::Skipped(skipped) => self.skipped(&skipped),
        }
    }

    fn leave(&mut self, error: Option<Errno>) {
        if let Some(errno) = error {
            self.problem("read", errno);
        }
        self.close(if error.is_some() { State::Partial } else { State::Complete }, error);
    }

    fn stopped(&mut self) -> bool {
        self.watch.progress(self.progress.get());
        let stopped = self.failed
            || self.scan.stop.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if stopped {
            self.pace.as_ref().inspect(|pace| pace.end());
        }
        stopped
    }
}
