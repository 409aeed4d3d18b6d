//! The consumer of a scan, on the calling thread: numbers the directories, adds up the sums of
//! everything below them, and passes rows to the writer.

mod left;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use fathom_text::strerror;
use fathom_walk::fault::point;
use fathom_walk::{
    Consumer, Descend, Enter, Errno, Failure, FileType, Found, Meta, NextRoot, Node, Operation, Progress,
    RootSource,
};

use super::cut::Cut;
use super::earlier::EarlierDirs;
use super::journal::{DirFrame, Journal, ScanCounts, ScanPosition, join};
use super::long_path::PathOpener;
use super::rate_limit::RateLimiter;
use super::selection::Selection;
use super::visitor::{ScanItem, SkippedDir};
use super::{Observer, Problem, Scan};
use fathom_inventory::store::{
    BatchWriter, DirRow, DirState, EntriesByDir, EntryRow, EntryTotals, Error, ErrorRow, OptionalErrors,
    OptionalValues, RowBatch, RowChunk, SegmentWriter, TIME_OPERATION, stored_path,
};

/// Time after which a checkpoint is due even if entries come slowly.
const CHECKPOINT: Duration = Duration::from_secs(60);

/// Consumes the walk in its order.
pub(super) struct ScanConsumer<'a> {
    scan: &'a Scan,
    /// The journal without its position, which is in `position`.
    journal: Journal,
    deadline: Option<Instant>,
    writer: BatchWriter,
    failed: bool,
    /// The error, unless it is the writer's.
    error: Option<Error>,
    earlier: Option<(Arc<EarlierDirs>, EntriesByDir)>,
    rate_limit: Option<Arc<RateLimiter>>,
    observer: &'a mut dyn Observer,
    progress: &'a Cell<Progress>,
    /// The number of directories that the resumed run had entered. The walk begins with them,
    /// innermost first, each as a root.
    resumed: usize,
    next_root: usize,
    /// The state of the innermost open directory and the error, if reading it has failed.
    read_failure: Option<(DirState, Errno)>,
    /// The number of operands before the first one that the walk reaches after those directories.
    first_root: usize,
    position: ScanPosition,
    batch: RowBatch,
    last_checkpoint: (Instant, u64),
    /// Device and inode number of the directory that the inventory is written to. The scan leaves
    /// it out.
    out_id: Option<(u64, u64)>,
    /// Supplies warnings on directories.
    pub(super) selection: Option<Arc<dyn Selection>>,
    /// Set if the scan is a unit of one by several machines.
    pub(super) cut: Option<Cut>,
    /// The directories from which the paths of resumed directories start.
    path_opener: PathOpener,
}

/// The results of a consumer.
pub(super) struct ConsumerEnd {
    pub(super) written: Result<SegmentWriter, Error>,
    pub(super) counts: ScanCounts,
    pub(super) cut: Option<Cut>,
    pub(super) earlier: Option<(Arc<EarlierDirs>, EntriesByDir)>,
}

impl<'a> ScanConsumer<'a> {
    pub(super) fn new(
        scan: &'a Scan,
        mut journal: Journal,
        writer: BatchWriter,
        observer: &'a mut dyn Observer,
        progress: &'a Cell<Progress>,
        earlier: Option<(Arc<EarlierDirs>, EntriesByDir)>,
    ) -> Self {
        let position = std::mem::take(&mut journal.position);
        let resumed = position.stack.len();
        let first_root = if position.stack.is_empty() { position.roots_done } else { position.root + 1 };
        Self {
            scan,
            journal,
            deadline: scan.deadline.map(|deadline| scan.clock.now() + deadline),
            writer,
            failed: false,
            error: None,
            earlier,
            rate_limit: None,
            observer,
            progress,
            resumed,
            next_root: 0,
            read_failure: None,
            first_root,
            last_checkpoint: (scan.clock.now(), position.counts.entries),
            position,
            batch: RowBatch::default(),
            selection: None,
            cut: None,
            out_id: None,
            path_opener: PathOpener::default(),
        }
    }

    /// Sets the rate limit, which is cancelled when the scan stops.
    pub(super) fn with_rate_limit(self, rate_limit: Option<Arc<RateLimiter>>) -> Self {
        Self { rate_limit, ..self }
    }

    /// Leaves out the directory with this device and inode number.
    pub(super) fn excluding(self, out_id: Option<(u64, u64)>) -> Self {
        Self { out_id, ..self }
    }

    /// Waits until everything is written. After an interrupted walk, a checkpoint comes first, from
    /// which another run can resume; the open directories are then closed as they are.
    pub(super) fn end(mut self, complete: bool) -> ConsumerEnd {
        if !complete && !self.failed && self.cut.is_none() {
            self.checkpoint();
        }
        while !self.position.stack.is_empty() {
            self.close(DirState::Partial, None);
        }
        self.send();
        let end = self.table_ends();
        self.cut.iter_mut().for_each(|cut| cut.end_root(end.0, end.1));
        let written = self.writer.end();
        let written = self.error.map_or(written, Err);
        ConsumerEnd { written, counts: self.position.counts, cut: self.cut, earlier: self.earlier }
    }

    /// Sends a checkpoint: everything so far is synced, and the journal is replaced after that.
    fn checkpoint(&mut self) {
        self.last_checkpoint = (self.scan.clock.now(), self.position.counts.entries);
        let journal = Journal { position: self.position.clone(), ..self.journal.clone() };
        self.batch.checkpoint = Some(Box::new(move |writer: &SegmentWriter| {
            let (users, groups) = (writer.users.clone(), writer.groups.clone());
            let files = writer.files.clone();
            Journal { files, segment: writer.segment, users, groups, ..journal }.write(&writer.directory)
        }));
        self.send();
    }

    fn is_checkpoint_due(&self) -> bool {
        let (then, entries) = self.last_checkpoint;
        let new = self.position.counts.entries - entries;
        new >= self.scan.checkpoint_entries || (new > 0 && self.scan.clock.now() - then >= CHECKPOINT)
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

    /// Records an operand that does not exist.
    fn record_missing_root(&mut self, path: Vec<u8>, errno: Errno) {
        push_failure(&mut self.batch, "access", None, Some(&path), &path, errno);
        self.observer.problem(&Problem { operation: "access", path, errno });
    }

    /// Records an error on the innermost open directory.
    fn record_problem(&mut self, operation: &'static str, errno: Errno) {
        let (id, path) = (self.position.stack.last().map(|frame| frame.id), self.position.path.clone());
        push_failure(&mut self.batch, operation, id, None, &path, errno);
        self.observer.problem(&Problem { operation, path, errno });
    }

    /// Reports a time that does not fit its column. The column has the end of its range instead.
    fn record_clamped_time(&mut self, dir_id: Option<i64>, name: Option<&[u8]>, path: Vec<u8>) {
        let errno = Errno::OVERFLOW;
        self.position.counts.completeness.clamped_times += 1;
        push_failure(&mut self.batch, TIME_OPERATION, dir_id, name, &path, errno);
        self.observer.problem(&Problem { operation: "record a time of", path, errno });
    }

    /// Returns the numbers of the next directory and of its parent, and counts the directory.
    fn next_number(&mut self) -> (i64, Option<i64>) {
        self.position.counts.entries += 1;
        let id = self.position.next_id;
        self.position.next_id += 1;
        let parent = self.position.stack.last_mut();
        (
            id,
            parent.map(|frame| {
                frame.own.dirs += 1;
                frame.id
            }),
        )
    }

    /// Reports values of optional columns that could not be read.
    fn record_missing_values(
        &mut self,
        failed: OptionalErrors,
        dir_id: Option<i64>,
        name: Option<&[u8]>,
        path: &[u8],
    ) {
        for (op, operation, errno) in failed.each() {
            self.position.counts.completeness.unknown_values += 1;
            push_failure(&mut self.batch, op, dir_id, name, path, errno);
            self.observer.problem(&Problem { operation, path: path.to_vec(), errno });
        }
    }

    /// Enters a directory of this name.
    fn open(&mut self, name: &[u8], row: EntryRow, optional_values: Option<OptionalValues<'static>>) {
        let (id, parent) = self.next_number();
        let above = self.position.path.len();
        let start = join(&mut self.position.path, name);
        self.batch.owners.insert((row.uid, row.gid));
        let (own, below) = (EntryTotals::default(), EntryTotals::default());
        if row.is_out_of_range() {
            self.record_clamped_time(Some(id), None, self.position.path.clone());
        }
        if let Some(optional_values) = &optional_values {
            self.record_missing_values(optional_values.failed, Some(id), None, &self.position.path.clone());
        }
        let (depth, scanned) = (self.position.stack.len() as i32, now());
        self.position.stack.push(DirFrame {
            id,
            parent,
            depth,
            name: start,
            above,
            row,
            optional_values,
            own,
            below,
            scanned,
        });
    }

    /// Leaves the innermost open directory.
    fn close(&mut self, state: DirState, errno: Option<Errno>) {
        let Some(mut frame) = self.position.stack.pop() else { return };
        self.position.counts.completeness.count(state);
        frame.below.add(&frame.own);
        let path = &self.position.path;
        self.cut
            .iter_mut()
            .for_each(|cut| cut.add_dir(path, frame.below.files + frame.below.dirs + frame.below.others));
        let known = frame.row.errno == 0;
        if known {
            frame.below.blocks = frame.below.blocks.saturating_add(frame.row.blocks);
            frame.below.max_mtime = frame.below.max_mtime.max(Some(frame.row.micros[1]));
            frame.below.max_ctime = frame.below.max_ctime.max(Some(frame.row.micros[2]));
        }
        self.batch.dirs.push(&DirRow {
            id: frame.id,
            parent: frame.parent,
            last: self.position.next_id - 1,
            root: self.position.root as i32,
            depth: frame.depth,
            name: &self.position.path[frame.name..],
            path: stored_path(&self.position.path),
            meta: Some(&frame.row).filter(|_| known),
            optional_values: frame.optional_values.as_ref(),
            own: &frame.own,
            below: &frame.below,
            scanned: frame.scanned,
            state,
            errno: errno.map(Errno::raw_os_error),
        });
        self.position.path.truncate(frame.above);
        match self.position.stack.last_mut() {
            Some(above) => above.below.add(&frame.below),
            None => self.position.roots_done = self.position.root + 1,
        }
        if self.is_checkpoint_due() {
            self.checkpoint();
        }
        self.send_if_full();
        point("directory-left");
    }

    /// Records a directory whose entries are not read.
    fn record_unread(
        &mut self,
        name: &[u8],
        meta: Result<&Meta, Errno>,
        optional_values: Option<OptionalValues<'static>>,
        state: DirState,
        errno: Option<Errno>,
    ) {
        self.open(name, EntryRow::new(FileType::Directory, meta), optional_values);
        if let Some(errno) = errno {
            self.record_problem(if meta.is_ok() { "read" } else { "access" }, errno);
        }
        self.close(state, errno);
    }

    /// Reads the innermost open directory once more, if it is still the same one.
    fn reenter(&mut self, enter: &Enter<'_>) -> Descend {
        let Some(frame) = self.position.stack.last() else { return Descend::No };
        match enter.found {
            Found::Readable if enter.meta.id() == (frame.row.dev, frame.row.ino) => Descend::Yes,
            // The failure follows.
            Found::Unreadable => Descend::Yes,
            Found::Readable | Found::Loop => {
                self.abandon_resumed(Errno::STALE);
                Descend::No
            }
        }
    }

    /// Closes the innermost open directory, which the resumed run cannot read again.
    fn abandon_resumed(&mut self, errno: Errno) {
        self.record_problem("read", errno);
        self.close(DirState::Partial, Some(errno));
    }

    /// Records a failure to access a root, or a directory of which only the name is known.
    fn record_inaccessible(&mut self, node: &Node, errno: Errno) {
        let (name, root) = (node.name().to_bytes(), node.root_index());
        if node.parent().is_some() {
            self.record_unread(name, Err(errno), None, DirState::Failed, Some(errno));
        } else if self.is_resumed(root) {
            self.abandon_resumed(errno);
        } else if self.begins_root(root, 0) && !self.record_vanished_root(root, errno) {
            self.position.root = self.first_root + root - self.resumed;
            self.position.counts.completeness.missing_roots += 1;
            self.record_missing_root(self.scan.roots[self.position.root].to_bytes().to_vec(), errno);
            self.position.roots_done = self.position.root + 1;
        }
    }

    /// Records a failure to read the metadata of an entry of the directory `id`.
    fn record_unknown_entry(&mut self, id: i64, name: &[u8], errno: Errno) {
        let mut path = self.position.path.clone();
        join(&mut path, name);
        self.position.counts.completeness.unknown_entries += 1;
        push_failure(&mut self.batch, "stat", Some(id), Some(name), &path, errno);
        self.observer.problem(&Problem { operation: "access", path, errno });
    }

    /// Records a directory that is not read because it is at the depth limit.
    fn record_skipped(&mut self, skipped: &SkippedDir) {
        match &skipped.meta {
            Ok(meta) if self.out_id == Some(meta.id()) => {}
            Ok(meta) => self.record_unread(
                &skipped.name,
                Ok(meta),
                skipped.optional_values.clone(),
                DirState::Skipped,
                None,
            ),
            Err(errno) => {
                self.record_unread(&skipped.name, Err(*errno), None, DirState::Failed, Some(*errno))
            }
        }
    }

    fn is_resumed(&self, root: usize) -> bool {
        root < self.resumed
    }

    /// Adds entries of the innermost open directory. The error of an entry without metadata is in
    /// its row (the column `errno` of `entries`), not in a call of [`Consumer::failed`]: a walk
    /// that is stopped between the two would leave a checkpoint with the row, but without the
    /// failure.
    fn add_rows(&mut self, chunk: Box<RowChunk>) {
        let Some(frame) = self.position.stack.last_mut() else { return };
        frame.own.add(&chunk.sums);
        let id = frame.id;
        for (row, name, _) in chunk.iter().filter(|(row, ..)| row.errno != 0 || row.is_out_of_range()) {
            if row.errno == 0 {
                let mut path = self.position.path.clone();
                join(&mut path, name);
                self.record_clamped_time(Some(id), Some(name), path);
            } else {
                let errno = Errno::from_raw_os_error(i32::from(row.errno));
                self.record_unknown_entry(id, name, errno);
            }
        }
        if !self.scan.optional_columns.is_empty() {
            self.record_missing_values_of(id, &chunk);
        }
        self.push_chunk(id, chunk);
    }

    /// Reports values of optional columns that are missing from entries of the innermost directory.
    fn record_missing_values_of(&mut self, id: i64, chunk: &RowChunk) {
        for (_, name, _, optional_values) in chunk.iter_all() {
            let failed = optional_values.map(|optional_values| optional_values.failed).unwrap_or_default();
            if failed != OptionalErrors::default() {
                let mut path = self.position.path.clone();
                join(&mut path, name);
                self.record_missing_values(failed, Some(id), Some(name), &path);
            }
        }
    }

    /// Adds the entries that the earlier inventory has of its directory `id` to the innermost open
    /// directory.
    fn copy_earlier_rows(&mut self, id: u32) {
        let (Some((earlier, mut by_dir)), Some(frame)) =
            (self.earlier.take(), self.position.stack.last_mut())
        else {
            return;
        };
        frame.scanned = earlier.scanned(id);
        let (then, now) = (earlier.dev(id), frame.row.dev);
        self.position.counts.reused_directories += 1;
        let read = by_dir.each(id.into(), |mut chunk| {
            chunk.renumber(then, now);
            self.position.counts.reused_entries += chunk.row_count() as u64;
            self.add_rows(chunk);
        });
        if let Err(error) = read {
            self.failed = true;
            self.error.get_or_insert(error);
        }
        self.earlier = Some((earlier, by_dir));
    }

    fn push_chunk(&mut self, dir_id: i64, chunk: Box<RowChunk>) {
        self.position.counts.entries += chunk.row_count() as u64;
        self.batch.rows += chunk.row_count();
        self.batch.text_bytes += chunk.text_bytes();
        self.batch.entries.push((dir_id, chunk));
        self.send_if_full();
        point("rows-taken");
    }
}

/// Adds a row of `errors`, about a directory or an entry of it.
fn push_failure(
    batch: &mut RowBatch,
    op: &str,
    dir_id: Option<i64>,
    name: Option<&[u8]>,
    path: &[u8],
    errno: Errno,
) {
    let message = &strerror(errno);
    batch.errors.push(&ErrorRow {
        dir_id,
        name,
        path: stored_path(path),
        op,
        errno: errno.raw_os_error(),
        message,
    });
}

/// Returns the current time, in microseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

impl RootSource for ScanConsumer<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        let next = self.next_root;
        self.next_root += 1;
        if self.is_resumed(next) {
            // Directories are left from the innermost on, so the next ones are still on the stack.
            return self.path_opener.root(self.position.path_of(self.resumed - 1 - next));
        }
        if self.cut.as_ref().is_some_and(Cut::has_ended) {
            return NextRoot::End;
        }
        let root = self.scan.roots.get(self.first_root + next - self.resumed);
        root.map_or(NextRoot::End, |root| NextRoot::Path(root.clone()))
    }

    fn stopped(&mut self) -> bool {
        self.observer.progress(self.progress.get());
        self.cut.iter_mut().for_each(Cut::look);
        point("scan-look");
        let stopped = self.failed
            || self.scan.stop.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| self.scan.clock.now() >= deadline);
        if stopped {
            self.rate_limit.as_ref().inspect(|rate_limit| rate_limit.cancel());
        }
        stopped
    }
}

impl Consumer<ScanItem> for ScanConsumer<'_> {
    fn root_file(&mut self, node: &Arc<Node>, meta: &Meta) {
        let root = node.root_index();
        if self.is_resumed(root) {
            return self.abandon_resumed(Errno::NOTDIR);
        }
        if !self.begins_root(root, meta.dev) || self.record_vanished_root(root, Errno::NOTDIR) {
            return;
        }
        self.position.root = self.first_root + root - self.resumed;
        let root = &self.scan.roots[self.position.root];
        let path = root.to_bytes();
        let mut chunk = Box::<RowChunk>::default();
        let is_link = meta.file_type() == FileType::Symlink;
        let link = if is_link { fathom_walk::read_link(root).ok() } else { None };
        let link = link.as_deref().map_or(&b""[..], |link| link.to_bytes());
        chunk.push(path, meta.file_type(), Ok(meta), link);
        let optional_columns = self.scan.optional_columns;
        if !optional_columns.is_empty() {
            let project = || fathom_walk::project(root, meta.file_type());
            let optional_values =
                OptionalValues::read(optional_columns, || fathom_walk::xattr_names(root), project)
                    .ignored(optional_columns.ignored.then_some(false));
            chunk.push_optional(&optional_values);
            self.record_missing_values(optional_values.failed, None, Some(path), path);
        }
        if chunk.iter().any(|(row, ..)| row.is_out_of_range()) {
            self.record_clamped_time(None, Some(path), path.to_vec());
        }
        self.push_chunk(0, chunk);
        self.position.roots_done = self.position.root + 1;
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        let (name, meta, root) = (enter.node.name().to_bytes(), enter.meta, enter.node.root_index());
        if enter.node.depth() == 0 {
            if self.is_resumed(root) {
                return self.reenter(&enter);
            }
            if !self.begins_root(root, meta.dev) {
                return Descend::No;
            }
            self.position.root = self.first_root + root - self.resumed;
        } else if self.out_id == Some(meta.id()) {
            return Descend::No;
        }
        let root_dev = self.position.stack.first().map_or(meta.dev, |root| root.row.dev);
        let foreign = self.scan.one_file_system && meta.dev != root_dev;
        let warnings = self.selection.as_ref().map(|selection| selection.warnings(enter.node));
        warnings.iter().flatten().for_each(|warning| self.observer.warning(warning));
        let is_last = self.scan.exclusions.max_depth.is_some_and(|max| self.position.stack.len() >= max);
        let optional_values = enter.node.finding::<OptionalValues<'static>>().cloned();
        if foreign || is_last || enter.found == Found::Loop {
            self.record_unread(name, Ok(meta), optional_values, DirState::Skipped, None);
            return Descend::No;
        }
        let path_len = self.position.path.len() + 1 + name.len();
        if let Some(slices) = self.cut.as_ref().and_then(|cut| cut.units_for(&enter, path_len)) {
            self.record_left(&enter, slices);
            return Descend::No;
        }
        self.open(name, EntryRow::new(FileType::Directory, Ok(meta)), optional_values);
        Descend::Yes
    }

    fn failed(&mut self, Failure { node, operation, errno, .. }: Failure<'_>) {
        let state = match operation {
            Operation::Access => return self.record_inaccessible(node, errno),
            // Such a directory is skipped when it is entered.
            Operation::Descend => return,
            Operation::Open if node.depth() > 0 || !self.is_resumed(node.root_index()) => DirState::Failed,
            _ => DirState::Partial,
        };
        self.record_problem("read", errno);
        self.read_failure = Some((state, errno));
    }

    fn item(&mut self, item: ScanItem) {
        match item {
            ScanItem::Rows(chunk) => self.add_rows(chunk),
            ScanItem::Unchanged(id) => self.copy_earlier_rows(id),
            ScanItem::Skipped(skipped) => self.record_skipped(&skipped),
        }
    }

    fn leave(&mut self, _node: &Arc<Node>) {
        match self.read_failure.take() {
            Some((state, errno)) => self.close(state, Some(errno)),
            None => self.close(DirState::Complete, None),
        }
    }
}
