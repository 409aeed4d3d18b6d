//! The construction of I/O models for byte ranges.

use fathom_io::data::{Aio, BlockingData, Data, Mapped, NativeData, Nowait, Pool, Position, TokioFile};
use fathom_io::uring::{Ring, RingOptions};
use fathom_io::{Model, Unavailable};

use super::hint::{AccessHint, HintedCalls};
use super::null::NullModel;
use super::spec::SampleSpec;
use crate::pattern::Pattern;

/// A generic function over the I/O model. Each model gets its own monomorphised copy of the loop,
/// so that a blocking call involves no dynamic dispatch.
pub(super) trait ModelVisitor {
    type Output;

    fn visit(self, model: impl Data) -> Self::Output;
}

/// Builds the model of `spec` for one thread and calls `with` on it.
pub(super) fn build_and_visit<W: ModelVisitor>(
    spec: &SampleSpec,
    visitor: W,
) -> Result<W::Output, Unavailable> {
    let SampleSpec { depth, batch, completion, .. } = *spec;
    let ring = RingOptions { depth, batch, completion, registered: false, sqpoll: false };
    let pool = || Pool::new(NativeData, depth, depth, batch).map_err(|error| no_threads(&error));
    let Some(model) = spec.model else {
        return Ok(visitor.visit(NullModel::new(Pattern::new(spec.seed, spec.generation))));
    };
    Ok(match model {
        Model::Sync if spec.hint.is_of_calls() => {
            visitor.visit(BlockingData::new(HintedCalls::new(spec.hint), Position::Explicit))
        }
        Model::Sync => visitor.visit(BlockingData::new(NativeData, Position::Own)),
        Model::Threads(_) => visitor.visit(BlockingData::new(NativeData, Position::Explicit)),
        Model::Aio => visitor.visit(Aio::new(depth, batch)?),
        Model::Uring(_) => visitor.visit(Ring::new(ring)?),
        Model::UringRegistered => visitor.visit(Ring::new(RingOptions { registered: true, ..ring })?),
        Model::UringPolled => visitor.visit(Ring::new(RingOptions { sqpoll: true, ..ring })?),
        Model::Pool => visitor.visit(pool()?),
        Model::Nowait => visitor.visit(Nowait::new(pool()?)),
        Model::Tokio => visitor.visit(TokioFile::new(depth)?),
        Model::Mmap if spec.hint == AccessHint::Random => visitor.visit(Mapped::random()),
        Model::Mmap => visitor.visit(Mapped::default()),
        _ => unreachable!("a specification that was checked has a model that moves bytes of a file"),
    })
}

/// Describes that threads cannot be started.
pub(super) fn no_threads(error: &std::io::Error) -> Unavailable {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::AGAIN);
    Unavailable {
        operation: "start threads",
        errno,
        cause: "the limit on processes may be too low".to_owned(),
    }
}
