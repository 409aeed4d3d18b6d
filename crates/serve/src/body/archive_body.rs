//! The body of a response that is an archive, generated while it is sent.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use fathom_files::FileError;
use fathom_files::pool::{CallError, Resource, ThreadPool};
use fathom_io::{Clock, Errno};

use crate::archive::Archive;
use crate::archive_slots::ArchiveSlot;
use crate::error::reason;

/// The pool that generates an archive, for this client and on this resource.
#[derive(Clone)]
pub(crate) struct ArchivePool {
    pub(crate) pool: ThreadPool,
    pub(crate) client: u64,
    pub(crate) on: Resource,
}

type ArchiveStep = (Box<Archive>, Result<Option<Bytes>, FileError>);

enum ArchiveBodyState {
    /// No step is under way: the place has the archive.
    Idle,
    /// The pool is making a piece.
    Busy(Pin<Box<dyn Future<Output = Result<ArchiveStep, CallError>>>>),
    /// The archive has ended or failed.
    Over,
}

/// The body of an archive response. The next piece is made when the client has taken the previous
/// one.
pub(crate) struct ArchiveBody {
    pool: ArchivePool,
    /// The path of the directory, for messages.
    path: Vec<u8>,
    /// The first piece, made before the head of the response: what fails until then gets another
    /// status.
    first: Option<Bytes>,
    state: ArchiveBodyState,
    /// The archive's place among those that are sent at the same time.
    slot: ArchiveSlot<Box<Archive>>,
    clock: Clock,
}

impl ArchiveBody {
    /// Returns the body of the archive in `slot`, with its first piece. `path` leads to the
    /// directory, for messages.
    ///
    /// # Errors
    /// The errors of the archive.
    pub(crate) async fn begin(
        pool: ArchivePool,
        slot: ArchiveSlot<Box<Archive>>,
        path: Vec<u8>,
        clock: Clock,
    ) -> Result<Self, FileError> {
        let mut body = Self { pool, path, first: None, state: ArchiveBodyState::Idle, slot, clock };
        body.first = poll_fn(|cx| body.poll(cx)).await.transpose()?;
        Ok(body)
    }

    /// Returns whether the body has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.first.is_none() && matches!(self.state, ArchiveBodyState::Over)
    }

    /// Returns the message about an archive that cannot be finished because of `failure`.
    pub(crate) fn failure(&self, failure: FileError) -> String {
        let path = String::from_utf8_lossy(self.path.strip_prefix(b"/").unwrap_or(&self.path));
        format!("cannot finish the archive of '{path}': {}", reason(failure))
    }

    /// Polls for the next piece, which is not empty.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FileError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        loop {
            match std::mem::replace(&mut self.state, ArchiveBodyState::Over) {
                ArchiveBodyState::Over => return Poll::Ready(None),
                ArchiveBodyState::Idle => match self.slot.take(self.clock.now()) {
                    Some(archive) => self.state = ArchiveBodyState::Busy(self.step(archive)),
                    // Another client has the place: this one took too little.
                    None => return Poll::Ready(Some(Err(FileError::System(Errno::TIMEDOUT)))),
                },
                ArchiveBodyState::Busy(mut step) => {
                    let Poll::Ready(made) = step.as_mut().poll(cx) else {
                        self.state = ArchiveBodyState::Busy(step);
                        return Poll::Pending;
                    };
                    match made {
                        Ok((archive, Ok(Some(bytes)))) => {
                            self.slot.keep(archive, bytes.len(), self.clock.now());
                            self.state = ArchiveBodyState::Idle;
                            if !bytes.is_empty() {
                                return Poll::Ready(Some(Ok(bytes)));
                            }
                        }
                        Ok((_, Ok(None))) => return Poll::Ready(None),
                        Ok((_, Err(failure))) => return Poll::Ready(Some(Err(failure))),
                        Err(error) => return Poll::Ready(Some(Err(error.into()))),
                    }
                }
            }
        }
    }

    fn step(
        &self,
        mut archive: Box<Archive>,
    ) -> Pin<Box<dyn Future<Output = Result<ArchiveStep, CallError>>>> {
        let ArchivePool { pool, client, on } = self.pool.clone();
        Box::pin(async move {
            let step = move || {
                let made = archive.step();
                (archive, made)
            };
            pool.run(client, on, step).await
        })
    }
}
