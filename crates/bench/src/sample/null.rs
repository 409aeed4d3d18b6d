//! A model that does nothing and says that all has been done.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fathom_io::Errno;
use fathom_io::data::{Blocking, Data, Done, FileId, NativeData, Op, Position};

/// The model.
#[derive(Debug)]
pub(super) struct Null {
    /// Knows the files.
    files: Blocking<NativeData>,
    done: Option<Done>,
}

impl Default for Null {
    fn default() -> Self {
        Self { files: Blocking::new(NativeData, Position::Explicit), done: None }
    }
}

impl Data for Null {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        self.files.attach(file)
    }

    fn detach(&mut self, file: FileId) {
        self.files.detach(file);
    }

    fn depth(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        usize::from(self.done.is_some())
    }

    fn submit(&mut self, op: Op) {
        let result = Ok(op.len());
        self.done = Some(Done { op, result });
    }

    fn complete(&mut self, done: &mut Vec<Done>) {
        done.extend(self.done.take());
    }
}
