//! What a response's body hands to hyper, and how a part of a file gets through hyper without having been read.
//!
//! hyper takes buffers, and writes them with writev(2). A part of a file is a buffer, too: a window of [`PLACE`], which has no
//! content. [`Parts`] remembers which file it stands for, and the transport, which sees the same addresses come back, sends the file
//! in its place. So headers, framing and order stay hyper's. A transport that does not look (TLS, HTTP/2) must never be given a part.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use fathom_io::Errno;
use fathom_io::sys::{Sealed, unacknowledged};

use super::outbox::{Load, Outbox, SMALL_BYTES};
use super::pulse::Pulse;
use super::way::Way;
use crate::files::Opened;

/// Most bytes of a file that one part stands for.
pub(crate) const PART_BYTES: usize = 1 << 20;

/// Stands for bytes of files. Nobody writes or reads it, so it takes address space and no memory.
static PLACE: [u8; PART_BYTES] = [0; PART_BYTES];

/// A piece of a body.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Bytes that others may share, and what they count for where they are this body's alone.
    Bytes { bytes: Bytes, _load: Option<Load> },
    /// Bytes of a buffer that is used again, from `start` on.
    Lent { buffer: Lent, start: usize },
    /// That many bytes of the next of the connection's [`Parts`].
    Part(usize),
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        match self {
            Self::Bytes { bytes, .. } => bytes.len(),
            Self::Lent { buffer, start } => buffer.bytes().len().saturating_sub(*start),
            Self::Part(bytes) => *bytes,
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Self::Bytes { bytes, .. } => bytes,
            Self::Lent { buffer, start } => buffer.bytes().get(*start..).unwrap_or_default(),
            Self::Part(bytes) => PLACE.get(..*bytes).unwrap_or(&PLACE),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Bytes { bytes, .. } => bytes.advance(count),
            Self::Lent { start, .. } => *start = start.saturating_add(count),
            Self::Part(bytes) => *bytes = bytes.saturating_sub(count),
        }
    }
}

/// Whether `bytes` stand for a part of a file.
pub(crate) fn is_part(bytes: &[u8]) -> bool {
    PLACE.as_ptr_range().contains(&bytes.as_ptr())
}

/// A part of a file that the transport sends.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) from: Origin,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
}

/// Whose pages are sent.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A file's, which change when it does.
    File(Opened),
    /// A body's that is kept, which never change.
    Kept(Arc<Sealed>),
}

impl Origin {
    pub(crate) fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::File(opened) => opened.fd(),
            Self::Kept(sealed) => Ok(sealed.as_fd()),
        }
    }

    /// What tells a [`Way`] that it was sent.
    pub(crate) fn note(&self) -> fn(&Way, Duration, usize) {
        match self {
            Self::File(_) => Way::sent,
            Self::Kept(_) => Way::sent_kept,
        }
    }
}

/// The parts that bodies of one connection have handed out and the transport has not sent, in order.
#[derive(Clone, Debug)]
pub(crate) struct Parts(Rc<Queue>);

#[derive(Debug)]
struct Queue {
    parts: RefCell<VecDeque<Part>>,
    /// Whether somebody will ask if they are out; then this is the socket once one has been sent. A descriptor of its own, so it is
    /// there for no longer than that.
    watched: Cell<bool>,
    socket: RefCell<Option<OwnedFd>>,
    /// What the client had not acknowledged when that was last asked.
    unacknowledged: Cell<usize>,
    pulse: Rc<Pulse>,
    way: Rc<Way>,
}

impl Parts {
    /// None yet, of the connection with this pulse. `way` is told what they take.
    pub(crate) fn new(pulse: Rc<Pulse>, way: Rc<Way>) -> Self {
        let (parts, watched, socket) = (RefCell::default(), Cell::new(false), RefCell::default());
        let unacknowledged = Cell::new(0);
        Self(Rc::new(Queue { parts, watched, socket, unacknowledged, pulse, way }))
    }

    /// Whether `bytes` of a body that is kept are to be handed out, and not copied.
    pub(crate) fn are_for_kept(&self, bytes: usize) -> bool {
        self.0.way.sends_kept(bytes)
    }

    /// What sending on this connection costs.
    pub(crate) fn way(&self) -> &Way {
        &self.0.way
    }

    /// Hands out `part`, of at most [`PART_BYTES`].
    pub(crate) fn hand_out(&self, part: Part) -> Chunk {
        let bytes = part.bytes;
        self.0.parts.borrow_mut().push_back(part);
        Chunk::Part(bytes)
    }

    /// [`Parts::are_out`] will be asked about what is handed out from now on.
    pub(crate) fn watch(&self) {
        self.0.watched.set(true);
    }

    /// Has `send` send of the first part to `socket`; what it sent is gone from it.
    pub(crate) fn send(
        &self,
        socket: BorrowedFd<'_>,
        send: impl FnOnce(&Part) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut parts = self.0.parts.borrow_mut();
        let part = parts.front_mut().ok_or_else(|| io::Error::other("no part was handed out"))?;
        if self.0.watched.replace(false) {
            self.0.socket.replace(Some(socket.try_clone_to_owned()?));
        }
        let sent = send(part)?;
        part.offset += sent as u64;
        part.bytes = part.bytes.saturating_sub(sent);
        if part.bytes == 0 {
            parts.pop_front();
        }
        Ok(sent)
    }

    /// Whether the client has acknowledged all parts: nothing refers to the pages of their files any more. While it is asked and nothing
    /// moves, the client counts as one that takes nothing.
    pub(crate) fn are_out(&self) -> io::Result<bool> {
        let mut watched = self.0.socket.borrow_mut();
        let Some(socket) = watched.as_ref().filter(|_| self.0.parts.borrow().is_empty()) else {
            return Ok(false);
        };
        let now = unacknowledged(socket.as_fd())?;
        if now > 0 && now == self.0.unacknowledged.replace(now) {
            self.0.pulse.blocked();
        } else {
            self.0.pulse.sent();
        }
        if now == 0 {
            *watched = None;
        }
        Ok(now == 0)
    }
}

/// A buffer that goes back to its worker when it has been sent.
#[derive(Debug)]
pub(crate) struct Lent {
    bytes: Vec<u8>,
    len: usize,
    home: Buffers,
    _load: Option<Load>,
}

impl Lent {
    /// What it holds.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// All of its memory.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Holds the first `len` bytes of its memory.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.bytes.len());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.take_back(std::mem::take(&mut self.bytes));
    }
}

/// Buffers of [`Buffers::BYTES`] that a worker reads into, to be used again: zeroing 64 KiB takes as long as reading them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Rc<RefCell<Vec<Vec<u8>>>>);

impl Buffers {
    /// Bytes of a buffer.
    pub(crate) const BYTES: usize = 64 << 10;
    /// Most that are kept while nobody uses them.
    const KEPT: usize = 16;

    /// A buffer for `most` bytes that counts for `outbox`: one of these, or one of its own size
    /// where that is much smaller.
    pub(crate) fn lend(&self, most: usize, outbox: &Outbox) -> Lent {
        let bytes = match most {
            0..=SMALL_BYTES => vec![0; most],
            _ => self.0.borrow_mut().pop().unwrap_or_else(|| vec![0; Self::BYTES]),
        };
        let load = Some(outbox.load(bytes.len()));
        Lent { bytes, len: 0, home: self.clone(), _load: load }
    }

    /// Returns the unused buffers to the allocator.
    pub(crate) fn sweep(&self) {
        self.0.borrow_mut().clear();
    }

    fn take_back(&self, bytes: Vec<u8>) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < Self::KEPT && bytes.len() == Self::BYTES {
            kept.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::conn::outbox::SendBudget;

    #[test]
    fn a_part_is_known_by_its_address() {
        let mut chunk = Chunk::Part(PART_BYTES);
        assert!(is_part(chunk.chunk()));
        chunk.advance(PART_BYTES - 1);
        assert_eq!((chunk.remaining(), chunk.chunk().len()), (1, 1));
        assert!(is_part(chunk.chunk()));
        assert!(!is_part(&[0; 16]));
        assert!(!is_part(&[]));
    }

    #[test]
    fn what_was_sent_of_a_part_is_gone() {
        let opened = Opened::new(tempfile::tempfile().unwrap().into(), None).unwrap();
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let parts = Parts::new(Pulse::new(), Rc::default());
        parts.watch();
        assert!(!parts.are_out().unwrap(), "none was sent");
        parts.hand_out(Part { from: Origin::File(opened), offset: 7, bytes: 10 });
        let sealed = Origin::Kept(Arc::new(Sealed::new(b"x").unwrap()));
        parts.hand_out(Part { from: sealed, offset: 0, bytes: 1 });
        let send = |by: &dyn Fn(&Part) -> io::Result<usize>| parts.send(ours.as_fd(), by);
        assert_eq!(send(&|part| Ok(part.bytes - 4)).unwrap(), 6);
        assert!(send(&|_| Err(io::ErrorKind::WouldBlock.into())).is_err());
        assert_eq!(send(&|part| Ok((part.offset == 13).then_some(part.bytes).unwrap())).unwrap(), 4);
        assert!(!parts.are_out().unwrap(), "one is left");
        (&ours).write_all(b"x").unwrap();
        assert_eq!(send(&|part| Ok(part.bytes)).unwrap(), 1);
        assert!(send(&|_| Ok(1)).is_err());
        assert!(!parts.are_out().unwrap(), "nobody has taken it");
        theirs.read_exact(&mut [0]).unwrap();
        assert!(parts.are_out().unwrap());
        assert!(parts.0.socket.borrow().is_none(), "its descriptor is kept");
    }

    #[test]
    fn buffers_come_back() {
        let (buffers, budget) = (Buffers::default(), Arc::new(SendBudget::new(usize::MAX)));
        let outbox = Outbox::new(Arc::clone(&budget));
        let mut lent = buffers.lend(Buffers::BYTES, &outbox);
        lent.room()[..3].copy_from_slice(b"abc");
        lent.set_len(3);
        let mut chunk = Chunk::Lent { buffer: lent, start: 0 };
        chunk.advance(1);
        assert_eq!((chunk.chunk(), budget.used()), (&b"bc"[..], Buffers::BYTES));
        drop(chunk);
        assert_eq!((buffers.0.borrow().len(), budget.used()), (1, 0));
        assert!(buffers.lend(usize::MAX, &outbox).bytes().is_empty());
        assert_eq!(buffers.lend(7, &outbox).room().len(), 7);
        assert_eq!(buffers.0.borrow().len(), 1, "only those of the usual size come back");
        let all = (0..Buffers::KEPT + 5).map(|_| buffers.lend(Buffers::BYTES, &outbox));
        drop(all.collect::<Vec<Lent>>());
        assert_eq!(buffers.0.borrow().len(), Buffers::KEPT);
        buffers.sweep();
        assert_eq!((buffers.0.borrow().len(), budget.used()), (0, 0));
    }
}
