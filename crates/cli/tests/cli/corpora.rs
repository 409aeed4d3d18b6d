//! The fuzz targets without a fuzzer: each runs the inputs of fuzz/seeds/, and beginnings and
//! variations of them. `make fuzz` looks for new inputs.

use std::fs;
use std::path::Path;

use fathom_io::Random;

/// The macro of libFuzzer: a function for one input.
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:expr) => {
        pub(super) fn run($bytes: &[u8]) {
            $body
        }
    };
}
pub(crate) use fuzz_target;

/// Inputs that are made of each input of a target.
const VARIATIONS: usize = 1_000;

/// Makes a module and a test of a target.
macro_rules! targets {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[path = $path]
            #[allow(unused_attributes, unused_imports, reason = "a target is a program without a main function")]
            mod $name;

            #[test]
            fn $name() {
                run_corpus(stringify!($name), $name::run);
            }
        )*

        #[test]
        fn every_target_has_a_test() {
            let mut tested = vec![$(concat!(stringify!($name), ".rs")),*];
            tested.sort_unstable();
            assert_eq!(names("fuzz_targets"), tested);
        }
    };
}

targets! {
    accept: "../../../../fuzz/fuzz_targets/accept.rs",
    conditional: "../../../../fuzz/fuzz_targets/conditional.rs",
    dirent: "../../../../fuzz/fuzz_targets/dirent.rs",
    import: "../../../../fuzz/fuzz_targets/import.rs",
    inventory: "../../../../fuzz/fuzz_targets/inventory.rs",
    measurement: "../../../../fuzz/fuzz_targets/measurement.rs",
    proxies: "../../../../fuzz/fuzz_targets/proxies.rs",
    range: "../../../../fuzz/fuzz_targets/range.rs",
    run: "../../../../fuzz/fuzz_targets/run.rs",
    target: "../../../../fuzz/fuzz_targets/target.rs",
}

fn run_corpus(name: &str, run: fn(&[u8])) {
    let seeds = names(&format!("seeds/{name}"));
    let read = |seed: &String| fs::read(top().join("seeds").join(name).join(seed)).unwrap();
    let mut inputs: Vec<Vec<u8>> = seeds.iter().map(read).collect();
    inputs.push(Vec::new());
    for input in inputs {
        run(&input);
        let mut random = Random::new(input.len() as u64);
        for _ in 0..fathom_cases::count(VARIATIONS) {
            run(&varied(&input, &mut random));
        }
    }
}

/// Returns a beginning of `input` with some bytes replaced and some added.
fn varied(input: &[u8], random: &mut Random) -> Vec<u8> {
    let mut varied = input[..input.len() - random.below(input.len() + 1) / 2].to_vec();
    for _ in 0..random.below(4) {
        let place = random.below(varied.len());
        varied.splice(
            place..(place + random.below(3)).min(varied.len()),
            random.bytes(random.clone().below(4)),
        );
    }
    varied
}

fn top() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"))
}

/// Returns the names in a directory of fuzz/, sorted; none if it is missing.
fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(top().join(directory)).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}
