//! An I/O model without system calls that completes every operation immediately. Reads only set the
//! stamps, the only part of the data that the loop checks.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fathom_io::Errno;
use fathom_io::data::{BlockingData, Buffer, CompletedOp, Data, FileId, NativeData, Op, OpKind, Position};

use crate::pattern::Pattern;

/// The no-op model.
#[derive(Debug)]
pub(super) struct NullModel {
    /// Registers the files and allocates the buffers.
    files: BlockingData<NativeData>,
    pattern: Pattern,
    done: Option<CompletedOp>,
}

impl NullModel {
    /// Simulates files that hold `pattern`.
    pub(super) fn new(pattern: Pattern) -> Self {
        Self { files: BlockingData::new(NativeData, Position::Explicit), pattern, done: None }
    }
}

impl Data for NullModel {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        self.files.attach(file)
    }

    fn detach(&mut self, file: FileId) {
        self.files.detach(file);
    }

    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        let mut buffers = self.files.buffers(count, bytes)?;
        buffers.iter_mut().for_each(|buffer| self.pattern.fill(0, buffer));
        Ok(buffers)
    }

    fn depth(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        usize::from(self.done.is_some())
    }

    fn submit(&mut self, mut op: Box<Op>) {
        let (offset, len) = (op.offset, op.len());
        if op.kind == OpKind::Read {
            self.pattern.stamp(offset, op.bytes_mut());
        }
        self.done = Some(CompletedOp::new(op, Ok(len)));
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        done.extend(self.done.take());
    }
}

#[cfg(test)]
mod tests {
    use fathom_io::uring::Completion;

    use crate::Workload;
    use crate::sample::{AccessHint, SampleSpec, execute};

    #[test]
    fn the_null_model_runs_the_loop_without_system_calls() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        let (threads, depth, batch, completion) = (1, 1, 1, Completion::Wait);
        let (size, block, direct, seed, generation) = (100_000, 8192, false, 3, 4);
        for (workload, pages) in [(Workload::Write, 0), (Workload::Read, 25), (Workload::RandomRead, 25)] {
            let (model, path) = (None, path.clone());
            let spec = SampleSpec {
                workload,
                model,
                path,
                size,
                block,
                threads,
                depth,
                batch,
                completion,
                direct,
                hint: AccessHint::Normal,
                read_percent: 0,
                rate: 0,
                seed,
                has_pattern: true,
                backlog: 0,
                generation,
                calls: None,
            };
            let measurement = execute(&spec, std::path::Path::new("no program")).unwrap();
            assert_eq!(
                (measurement.ops, measurement.bytes, measurement.pages_ok),
                (13, 100_000, pages),
                "{workload:?}"
            );
        }
        assert_eq!(std::fs::metadata(path).unwrap().len(), 0, "nothing was written");
    }
}
