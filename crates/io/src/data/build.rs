//! The one place that builds a model for byte ranges from its name. A new model needs a line here:
//! without one, this does not compile.

use super::{Aio, BlockingData, Data, Mapped, NativeData, Nowait, Pool, Position, TokioFile};
use crate::uring::{Completion, Ring, RingOptions};
use crate::{Errno, Model, Unavailable};

/// The numbers and properties of a model for byte ranges. A model ignores those that it does not
/// have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOptions {
    /// Operations in flight, at least 1: also the threads of a pool.
    pub depth: usize,
    /// Operations that are passed on at once.
    pub batch: usize,
    /// How a ring waits.
    pub completion: Completion,
    /// Whether the kernel is told that a map is read in random order.
    pub random: bool,
}

impl Default for DataOptions {
    /// One operation at a time.
    fn default() -> Self {
        Self { depth: 1, batch: 1, completion: Completion::default(), random: false }
    }
}

/// A function over any model. Each model gets a monomorphised copy of it, so that a blocking call
/// involves no dynamic dispatch.
pub trait DataVisitor {
    /// The result of the function.
    type Output;

    /// Calls the function on `model`.
    fn visit<D: Data + 'static>(self, model: D) -> Self::Output;
}

/// Builds `model` for one thread and calls `visitor` on it.
///
/// ```
/// use fathom_io::Model;
/// use fathom_io::data::{Data, DataOptions, DataVisitor, build};
///
/// struct Depth;
///
/// impl DataVisitor for Depth {
///     type Output = usize;
///
///     fn visit<D: Data + 'static>(self, model: D) -> usize {
///         model.depth()
///     }
/// }
///
/// let options = DataOptions { depth: 8, ..DataOptions::default() };
/// assert_eq!(build(Model::Pool, options, Depth)?, 8);
/// assert!(build(Model::Splice, options, Depth).is_err());
/// # Ok::<(), fathom_io::Unavailable>(())
/// ```
///
/// # Errors
/// If the model cannot run here, or has no byte ranges ([`crate::Use::Ranges`]).
pub fn build<V: DataVisitor>(
    model: Model,
    options: DataOptions,
    visitor: V,
) -> Result<V::Output, Unavailable> {
    let DataOptions { depth, batch, completion, random } = options;
    let ring = RingOptions { depth, batch, completion, registered: false, sqpoll: false };
    let pool = || Pool::new(NativeData, depth, depth, batch).map_err(|error| Unavailable::no_threads(&error));
    Ok(match model {
        Model::Sync => visitor.visit(BlockingData::new(NativeData, Position::Own)),
        Model::Threads(_) => visitor.visit(BlockingData::new(NativeData, Position::Explicit)),
        Model::Aio => visitor.visit(Aio::new(depth, batch)?),
        Model::Uring(_) => visitor.visit(Ring::new(ring)?),
        Model::UringRegistered => visitor.visit(Ring::new(RingOptions { registered: true, ..ring })?),
        Model::UringPolled => visitor.visit(Ring::new(RingOptions { sqpoll: true, ..ring })?),
        Model::Pool => visitor.visit(pool()?),
        Model::Nowait => visitor.visit(Nowait::new(pool()?)),
        Model::Tokio => visitor.visit(TokioFile::new(depth)?),
        Model::Mmap if random => visitor.visit(Mapped::random()),
        Model::Mmap => visitor.visit(Mapped::default()),
        Model::AsyncSeq
        | Model::AsyncPar
        | Model::CopyFileRange
        | Model::Sendfile
        | Model::Splice
        | Model::Auto => return Err(without_ranges(model)),
    })
}

fn without_ranges(model: Model) -> Unavailable {
    let cause = format!("the model {model} has no byte ranges");
    Unavailable { operation: "read or write bytes of a file", errno: Errno::OPNOTSUPP, cause }
}
