//! The kind of each block's operation, and operations that are reused.

use fathom_io::data::{Buffer, FileId, Op, OpKind};

use super::read_choice::ReadChoice;
use super::spec::SampleSpec;

/// The kinds of the operations of a sample.
pub(super) enum OpKinds {
    /// The operations of all blocks.
    One(OpKind),
    /// Reads of the chosen blocks, and writes of the others.
    Mixed(ReadChoice),
}

impl OpKinds {
    pub(super) fn of(spec: &SampleSpec) -> Self {
        let one = if spec.workload.writes() { OpKind::Write } else { OpKind::Read };
        spec.read_choice().map_or(Self::One(one), Self::Mixed)
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Mixed(_) => 2,
        }
    }

    #[inline(always)]
    pub(super) fn of_block(&self, block: u64) -> OpKind {
        match self {
            Self::One(kind) => *kind,
            Self::Mixed(choice) if choice.is_read(block) => OpKind::Read,
            Self::Mixed(_) => OpKind::Write,
        }
    }
}

/// Completed operations, reused for further blocks: the loop does not allocate while the clock
/// runs. Reads and writes have their own buffers, because a read overwrites the filled pages of a
/// write.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "models take an operation as the pointer that it is kept as")]
pub(super) struct FreeOps {
    reads: Vec<Box<Op>>,
    pub(super) writes: Vec<Box<Op>>,
}

impl FreeOps {
    /// Makes `depth` operations of each kind.
    pub(super) fn new(buffers: Vec<Buffer>, depth: usize, kinds: &OpKinds, file: FileId) -> Self {
        let mut free = Self::default();
        for (index, buffer) in buffers.into_iter().enumerate() {
            let kind = match kinds {
                OpKinds::One(kind) => *kind,
                OpKinds::Mixed(_) if index < depth => OpKind::Read,
                OpKinds::Mixed(_) => OpKind::Write,
            };
            free.of(kind).push(Op::new(kind, file, 0, buffer));
        }
        free
    }

    #[inline(always)]
    #[expect(clippy::vec_box, reason = "models take an operation as the pointer that it is kept as")]
    pub(super) fn of(&mut self, kind: OpKind) -> &mut Vec<Box<Op>> {
        if kind == OpKind::Read { &mut self.reads } else { &mut self.writes }
    }
}
