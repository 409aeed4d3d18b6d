//! The models of the suite: every model with byte ranges, each with the numbers that it heeds.

use fathom_io::data::{Data, DataOptions, DataVisitor, NativeData, Pool, build};
use fathom_io::uring::{Completion, Ring, RingOptions};
use fathom_io::{Model, Unavailable, Use};

/// Operations in flight in models that have more than one.
const DEPTH: usize = 8;

/// Passes a model on.
struct Boxed;

impl DataVisitor for Boxed {
    type Output = Box<dyn Data>;

    fn visit<D: Data + 'static>(self, model: D) -> Box<dyn Data> {
        Box::new(model)
    }
}

/// Returns the options with which a model is tested, each with the end of its name.
fn options_of(model: Model) -> Vec<(&'static str, DataOptions)> {
    let one = DataOptions::default();
    let deep = DataOptions { depth: DEPTH, ..one };
    let in_batches = DataOptions { batch: 4, ..deep };
    match model {
        Model::Mmap => vec![("", one), (" random", DataOptions { random: true, ..one })],
        Model::Pool | Model::Aio => vec![("", one), (", deep", deep), (" in batches", in_batches)],
        Model::Uring(_) => vec![
            ("", one),
            (", deep", deep),
            (" in batches", in_batches),
            (", spinning", DataOptions { completion: Completion::Spin, ..deep }),
            (", adaptive", DataOptions { completion: Completion::Adaptive, batch: 3, ..deep }),
        ],
        _ => vec![("", deep)],
    }
}

fn polled_and_registered() -> Result<Box<dyn Data>, Unavailable> {
    let options =
        RingOptions { sqpoll: true, registered: true, batch: 8, depth: DEPTH, ..RingOptions::default() };
    Ring::new(options).map(|ring| Box::new(ring) as Box<dyn Data>)
}

/// Returns a pool in which operations wait for a thread.
fn pool_of_few() -> Result<Box<dyn Data>, Unavailable> {
    let pool = Pool::new(NativeData, 3, DEPTH, 1).map_err(|error| Unavailable::no_threads(&error))?;
    Ok(Box::new(pool))
}

/// Calls `test` with each model that is available.
pub(crate) fn each(mut test: impl FnMut(&str, Box<dyn Data>)) {
    let built = Model::with(Use::Ranges).flat_map(|model| {
        let options = options_of(model).into_iter();
        options.map(move |(end, options)| (format!("{model}{end}"), build(model, options, Boxed)))
    });
    let others = [
        ("uring-polled, registered".to_owned(), polled_and_registered()),
        ("pool, few threads".to_owned(), pool_of_few()),
    ];
    for (name, model) in built.chain(others) {
        match model {
            Ok(model) => test(&name, model),
            Err(why) => println!("skipped: {name}: {why}"),
        }
    }
}

#[test]
fn every_model_with_byte_ranges_is_built_and_no_other() {
    for model in Model::ALL {
        let built = build(model, DataOptions::default(), Boxed);
        match built {
            Ok(built) => assert!(model.has(Use::Ranges) && built.depth() > 0, "{model}"),
            Err(why) => {
                let is_left_out = why.cause.ends_with("has no byte ranges");
                assert_eq!(is_left_out, !model.has(Use::Ranges), "{model}: {why}");
                if !is_left_out {
                    println!("skipped: {model}: {why}");
                }
            }
        }
    }
}
