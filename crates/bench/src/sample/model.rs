//! The methods by name, and the construction of their I/O models.

use fathom_io::Unavailable;
use fathom_io::data::{BlockingData, Data, Mapped, NativeData, Nowait, Pool, Position, TokioFile};
use fathom_io::uring::{Ring, RingOptions};

use super::null::NullModel;
use super::spec::{Method, SampleSpec, Workload};
use crate::pattern::Pattern;

/// The values of `--method`, which `--list` prints.
pub const METHODS: [(&str, Method); 18] = [
    ("blocking", Method::Blocking),
    ("pwrite", Method::Pwrite),
    ("uring", Method::Uring),
    ("uring_registered", Method::UringRegistered),
    ("uring_polled", Method::UringPolled),
    ("pool", Method::Pool),
    ("nowait", Method::Nowait),
    ("tokio", Method::Tokio),
    ("mmap", Method::Mmap),
    ("null", Method::Null),
    ("sync", Method::Sync),
    ("threads", Method::Threads),
    ("async-seq", Method::AsyncSeq),
    ("async-par", Method::AsyncPar),
    ("auto", Method::Auto),
    ("copy_file_range", Method::CopyFileRange),
    ("sendfile", Method::Sendfile),
    ("splice", Method::Splice),
];

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
    Ok(match spec.method {
        Method::Blocking => visitor.visit(BlockingData::new(NativeData, Position::Own)),
        Method::Pwrite => visitor.visit(BlockingData::new(NativeData, Position::Explicit)),
        Method::Uring => visitor.visit(Ring::new(ring)?),
        Method::UringRegistered => visitor.visit(Ring::new(RingOptions { registered: true, ..ring })?),
        Method::UringPolled => visitor.visit(Ring::new(RingOptions { sqpoll: true, ..ring })?),
        Method::Pool => visitor.visit(pool()?),
        Method::Nowait => visitor.visit(Nowait::new(pool()?)),
        Method::Tokio => visitor.visit(TokioFile::new(depth)?),
        Method::Mmap if spec.workload == Workload::RandomRead => visitor.visit(Mapped::random()),
        Method::Mmap => visitor.visit(Mapped::default()),
        Method::Null => visitor.visit(NullModel::new(Pattern::new(spec.seed, spec.generation))),
        _ => unreachable!("a specification that was checked has a method that moves bytes of a file"),
    })
}

fn no_threads(error: &std::io::Error) -> Unavailable {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::AGAIN);
    Unavailable { deed: "start threads", errno, cause: "the limit on processes may be too low".to_owned() }
}
