//! The models of the suite.

use fathom_io::Unavailable;
use fathom_io::data::{Aio, BlockingData, Data, Mapped, NativeData, Nowait, Pool, Position, TokioFile};
use fathom_io::uring::{Completion, Ring, RingOptions};

/// Operations in flight in models that have more than one.
const DEPTH: usize = 8;

type Make = Box<dyn Fn() -> Result<Box<dyn Data>, Unavailable>>;

fn pool(batch: usize) -> Pool {
    Pool::new(NativeData, 3, DEPTH, batch).unwrap()
}

fn ring(options: RingOptions) -> Make {
    Box::new(move || Ring::new(options).map(|ring| Box::new(ring) as Box<dyn Data>))
}

fn aio(depth: usize, batch: usize) -> Make {
    Box::new(move || Aio::new(depth, batch).map(|model| Box::new(model) as Box<dyn Data>))
}

fn plain<D: Data + 'static>(make: impl Fn() -> D + 'static) -> Make {
    Box::new(move || Ok(Box::new(make())))
}

/// Returns every model with its name.
pub(crate) fn models() -> Vec<(&'static str, Make)> {
    let deep = RingOptions { depth: DEPTH, ..RingOptions::default() };
    vec![
        ("blocking", plain(|| BlockingData::new(NativeData, Position::Explicit))),
        ("blocking at its own position", plain(|| BlockingData::new(NativeData, Position::Own))),
        ("mmap", plain(Mapped::default)),
        ("mmap random", plain(Mapped::random)),
        ("pool", plain(|| pool(1))),
        ("pool in batches", plain(|| pool(4))),
        ("nowait", plain(|| Nowait::new(pool(1)))),
        ("tokio", Box::new(|| TokioFile::new(DEPTH).map(|model| Box::new(model) as Box<dyn Data>))),
        ("aio", aio(1, 1)),
        ("aio, deep", aio(DEPTH, 1)),
        ("aio in batches", aio(DEPTH, 4)),
        ("uring", ring(RingOptions { depth: 1, ..deep })),
        ("uring, deep", ring(deep)),
        ("uring in batches", ring(RingOptions { batch: 4, ..deep })),
        ("uring, spinning", ring(RingOptions { completion: Completion::Spin, ..deep })),
        ("uring, adaptive", ring(RingOptions { completion: Completion::Adaptive, batch: 3, ..deep })),
        ("uring, registered", ring(RingOptions { registered: true, ..deep })),
        ("uring, polled", ring(RingOptions { sqpoll: true, ..deep })),
        (
            "uring, polled and registered",
            ring(RingOptions { sqpoll: true, registered: true, batch: 8, ..deep }),
        ),
    ]
}

/// Calls `test` with each model that is available.
pub(crate) fn each(mut test: impl FnMut(&str, Box<dyn Data>)) {
    for (name, make) in models() {
        match make() {
            Ok(model) => test(name, model),
            Err(why) => println!("skipped: {name}: {why}"),
        }
    }
}
