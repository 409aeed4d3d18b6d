//! The methods by name, and the model each is.

use fathom_io::Unavailable;
use fathom_io::data::{Blocking, Data, Mapped, NativeData, Nowait, Pool, Position, TokioFile};
use fathom_io::uring::{Ring, RingOptions};

use super::null::Null;
use super::spec::{Deed, Method, Spec};
use crate::pattern::Pattern;

/// What `--method` takes, and `--list` shows.
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

/// Somebody who goes on with a model, whichever it is: each has its own copy of the loop, so that a blocking call is nothing else.
pub(super) trait With {
    type Out;

    fn with(self, model: impl Data) -> Self::Out;
}

/// Makes the model of `spec` for one thread and has `with` go on with it.
pub(super) fn make<W: With>(spec: &Spec, with: W) -> Result<W::Out, Unavailable> {
    let Spec { depth, batch, completion, .. } = *spec;
    let ring = RingOptions { depth, batch, completion, registered: false, sqpoll: false };
    let pool = || Pool::new(NativeData, depth, depth, batch).map_err(|error| no_threads(&error));
    Ok(match spec.method {
        Method::Blocking => with.with(Blocking::new(NativeData, Position::Own)),
        Method::Pwrite => with.with(Blocking::new(NativeData, Position::Explicit)),
        Method::Uring => with.with(Ring::new(ring)?),
        Method::UringRegistered => with.with(Ring::new(RingOptions { registered: true, ..ring })?),
        Method::UringPolled => with.with(Ring::new(RingOptions { sqpoll: true, ..ring })?),
        Method::Pool => with.with(pool()?),
        Method::Nowait => with.with(Nowait::new(pool()?)),
        Method::Tokio => with.with(TokioFile::new(depth)?),
        Method::Mmap if spec.deed == Deed::RandomRead => with.with(Mapped::random()),
        Method::Mmap => with.with(Mapped::default()),
        Method::Null => with.with(Null::new(Pattern::new(spec.seed, spec.generation))),
        _ => unreachable!("a specification that was checked has a method that moves bytes of a file"),
    })
}

fn no_threads(error: &std::io::Error) -> Unavailable {
    let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::AGAIN);
    Unavailable { deed: "start threads", errno, cause: "the limit on processes may be too low".to_owned() }
}
