//! Opens, identifies and reopens directories, on a worker. The names that are read are processed in
//! `batch.rs`.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, MetadataModel, Names, sys};

use crate::batch::Filled;
use crate::driven::Driven;
use crate::failure::Operation;
use crate::node::Node;
use crate::task::{DirState, Found, Head, Resume, Task, TaskOutput};
use crate::visitor::{Descend, Enter, Reached, Visitor};
use crate::worker::{Scratch, Worker};

/// Time between two attempts to open a directory while the process has no free descriptor.
const ROOM_WAIT: Duration = Duration::from_millis(2);

impl<D: Driven, M: MetadataModel> Worker<D, M> {
    async fn stat_one(&self, at: BorrowedFd<'_>, node: &Node) -> Result<Meta, Errno> {
        let (mut names, mut metas) = (Names::new(), Vec::with_capacity(1));
        names.push(node.name(), 0, FileType::Unknown)?;
        let fields = self.shared.options.fields.union(Fields::FRESH);
        self.model.stat(at, &names, 0..1, node.follow(), fields, &mut metas).await;
        metas.pop().flatten().unwrap_or(Err(Errno::IO))
    }

    /// Whether the root of this task is not on the device in whose queue it waits.
    pub(crate) async fn is_elsewhere(&self, task: &Task<D::Item>) -> bool {
        let node = task.job.node();
        let Ok(base) = self.shared.fds.base_of(node) else { return false };
        let found = self.stat_one(base.as_fd(), node).await;
        found.is_ok_and(|meta| !self.shared.schedule.devices.is_of(task.device, meta.dev))
    }

    /// Opens, identifies and lists a directory.
    pub(crate) async fn list(
        &self,
        node: &Arc<Node>,
        again: bool,
        scratch: &mut Scratch<D::Item>,
    ) -> TaskOutput<D::Item> {
        self.tally(node).directories.add(1);
        let start = Instant::now();
        let opened = self.open(node).await;
        node.parent().inspect(|parent| self.shared.fds.drop_user(parent));
        let (dir, meta) = match opened {
            Ok(opened) => opened,
            Err(head) => return TaskOutput::new(Some(head)),
        };
        node.set_id(meta.id());
        if node.is_device_root() {
            node.set_device(self.shared.schedule.devices.of(meta.dev));
            let device = self.shared.device(node);
            device.set_filesystem(self.model.magic(&dir));
            device.guess(start.elapsed().as_nanos());
        }
        let mut out = TaskOutput::new(None);
        let is_loop = if D::IS_ORDERED { node.is_loop(&meta) } else { self.is_loop(node, &meta) };
        if !D::IS_ORDERED && (is_loop || !self.enter(node, &meta)) {
            self.model.close(dir).await;
            out.head = is_loop.then_some(Head::Dir { meta, state: DirState::Loop });
            return out;
        }
        let state = if is_loop {
            DirState::Loop
        } else if D::IS_ORDERED && !again && (!self.shared.driven.reads_ahead() || self.is_listed(&meta)) {
            DirState::PutOff
        } else if self.recall(node, &meta, &mut scratch.names) {
            self.recalled(node, dir, scratch, &mut out).await;
            DirState::Listed
        } else {
            match self.fill(node, dir, Resume::default(), scratch, &mut out).await {
                Filled { names: 0, error: Some(errno) } if D::IS_ORDERED => DirState::Unreadable(errno),
                filled => {
                    out.error = filled.error.map(|errno| (Operation::Read, errno));
                    DirState::Listed
                }
            }
        };
        out.head = Some(Head::Dir { meta, state });
        out
    }

    /// Returns whether `names` has been filled with the known contents of the directory.
    fn recall(&self, node: &Arc<Node>, meta: &Meta, names: &mut Names) -> bool {
        names.clear();
        self.shared.driven.visitor().recall(node, meta, names)
    }

    /// Returns whether this open directory is to be read, in an unordered walk.
    fn enter(&self, node: &Arc<Node>, meta: &Meta) -> bool {
        self.call(|visitor, local| visitor.enter(local, Enter { node, meta, found: Found::Readable }))
            == Descend::Yes
    }

    /// Returns whether this directory is one of its own ancestors, in an unordered walk.
    fn is_loop(&self, node: &Node, meta: &Meta) -> bool {
        // Only a link or a mount leads into a loop. If the kernel does not report mount points, any
        // directory may.
        let far = meta.mount_root != Some(false) || node.follow() == Follow::Yes;
        if far { node.is_loop_anywhere(meta) } else { node.is_loop(meta) }
    }

    fn is_listed(&self, meta: &Meta) -> bool {
        self.shared
            .listed
            .as_ref()
            .is_some_and(|listed| !listed.lock().unwrap_or_else(PoisonError::into_inner).insert(meta.id()))
    }

    /// Opens `node`, or returns the file or the error in its place.
    async fn open(&self, node: &Arc<Node>) -> Result<(Dir, Meta), Head> {
        let base = match self.shared.fds.base_of(node) {
            Ok(base) => base,
            Err(errno) => return Err(Head::Inaccessible(errno)),
        };
        let refused = match self.open_at(base.as_fd(), node).await {
            Ok(dir) => match self.stat_dir(node, &dir).await {
                Ok(meta) => {
                    self.shared.driven.reached(Reached { node, at: dir.as_fd(), name: c"" });
                    return Ok((dir, meta));
                }
                Err(errno) => errno,
            },
            Err(errno) => errno,
        };
        match self.stat_one(base.as_fd(), node).await {
            Ok(meta) if meta.file_type() == FileType::Directory || node.parent().is_some() => {
                self.shared.driven.reached(Reached { node, at: base.as_fd(), name: node.name() });
                Err(Head::Dir { meta, state: DirState::Unreadable(refused) })
            }
            Err(errno) if node.parent().is_some() => Err(Head::Inaccessible(errno)),
            found => {
                self.tally(node).entries.add(1);
                Err(found.map_or_else(Head::Inaccessible, Head::File))
            }
        }
    }

    async fn stat_dir(&self, node: &Node, dir: &Dir) -> Result<Meta, Errno> {
        self.tally(node).stats.add(1);
        let fields = self.shared.options.fields;
        let meta = self.model.stat_dir(dir, fields).await?;
        if meta.mount_root == Some(true) {
            self.model.stat_dir(dir, fields.union(Fields::FRESH)).await
        } else {
            Ok(meta)
        }
    }

    /// Opens `node`. If the process has no free descriptor, closes kept ones and waits for other
    /// workers to close theirs.
    async fn open_at(&self, at: BorrowedFd<'_>, node: &Node) -> Result<Dir, Errno> {
        let fds = &self.shared.fds;
        let mut tries = fds.tries();
        loop {
            let result = self.model.open(at, node.name(), node.follow()).await;
            let lacks_room = matches!(result, Err(Errno::MFILE | Errno::NFILE));
            if lacks_room && fds.shed() {
                continue;
            }
            if !lacks_room || tries == 0 || self.shared.schedule.is_stopped() {
                fds.note_starved(lacks_room);
                return result;
            }
            tries -= 1;
            std::thread::sleep(ROOM_WAIT);
        }
    }

    pub(crate) async fn more(
        &self,
        node: &Arc<Node>,
        resume: Resume,
        scratch: &mut Scratch<D::Item>,
    ) -> TaskOutput<D::Item> {
        let mut out = TaskOutput::new(None);
        match self.reopen(node, resume.cookie).await {
            Ok(dir) => {
                let filled = self.fill(node, dir, resume, scratch, &mut out).await;
                out.error = filled.error.map(|errno| (Operation::Read, errno));
            }
            Err(errno) => out.error = Some((Operation::Reopen, errno)),
        }
        out
    }

    /// Returns the directory with its position set to `cookie`. Duplicates the kept descriptor if
    /// that is open for reading, because opening `.` needs search permission, which reading does
    /// not.
    async fn reopen(&self, node: &Arc<Node>, cookie: u64) -> Result<Dir, Errno> {
        let fd = self.shared.fds.open(node)?;
        let own = || fd.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let dir = Dir::from_fd(self.shared.fds.with_room(own)?);
        match sys::seek(&dir, cookie) {
            Err(Errno::BADF) => {}
            seeked => return seeked.map(|()| dir),
        }
        let base = self.shared.fds.base_of(node)?;
        let dir = self.open_at(base.as_fd(), node).await?;
        let found = self.model.stat_dir(&dir, Fields::IDENTITY).await?.id();
        if node.id() != Some(found) {
            return Err(Errno::STALE);
        }
        sys::seek(&dir, cookie)?;
        Ok(dir)
    }
}
