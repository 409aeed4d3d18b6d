//! The real programs of the playground at a small size. `playground/test_playground.py` tests their
//! whole protocol.

use std::fs;
use std::path::Path;

use fathom_bench::lang::{Lang, PlaygroundArm, PlaygroundMethod, Program, RunRequest, Toolchain};
use fathom_bench::{ArmNumbers, Workload};
use tempfile::TempDir;

use crate::{GO_ON, machine};

const SIZE_BYTES: u64 = 300_001;
/// The first number of seed 1 and generation 1, from `playground/README.md`.
const FIRST_NUMBER: u64 = 0x102a_ceb9_af8e_2597;

/// Builds the program and lets each available method write a file and read it back, append to one,
/// and walk a tree.
fn runs_each_workload(lang: Lang) {
    let dir = TempDir::new().expect("a directory");
    let toolchain = match Toolchain::find(lang, &machine(), &GO_ON) {
        Err(error) if error.is_unavailable() && lang != Lang::Python => {
            println!("skipped: {}", error.cause());
            return;
        }
        toolchain => toolchain.expect("a toolchain"),
    };
    // Where the tests of `fathom bench` look for it, so that it is built once for all.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/fathom/playground");
    let program = toolchain.build(&cache, &GO_ON).expect("a build");
    fs::create_dir_all(dir.path().join("tree/below")).expect("a tree");
    fs::write(dir.path().join("tree/below/file"), "four").expect("a tree");
    for workload in WORKLOADS {
        let offers = program.list(workload, &GO_ON).expect("a list");
        assert_eq!(offers.iter().map(|offer| offer.method).collect::<Vec<_>>(), lang.methods());
        for offer in offers {
            match offer.unavailable {
                None if offer.method == PlaygroundMethod::Null && workload.writes() => {}
                None => run(&program, workload, offer.method, dir.path()),
                Some(reason) if reason_is_of_machine(offer.method) => {
                    println!("skipped: {}", reason.replace('\n', " "));
                }
                Some(_) => {}
            }
        }
    }
}

/// The workloads that the programs have. The order matters: a file is written before it is read.
const WORKLOADS: [Workload; 6] = [
    Workload::Write,
    Workload::Read,
    Workload::RandomRead,
    Workload::AppendSync,
    Workload::Walk,
    Workload::Stat,
];

/// Returns whether another machine may have the method, which is refused here.
fn reason_is_of_machine(method: PlaygroundMethod) -> bool {
    matches!(method, PlaygroundMethod::Uring | PlaygroundMethod::Virtual)
}

fn run(program: &Program, workload: Workload, method: PlaygroundMethod, dir: &Path) {
    let lang = program.lang();
    let arms = lang.arms(workload, &ArmNumbers::default());
    let arm = *arms.iter().find(|arm| arm.method == method).expect("each method has arms");
    let many = PlaygroundArm { threads: 3, depth: 4, batch: 2, ..arm };
    let arm = if workload == Workload::AppendSync { arm } else { many };
    let (file, tree) = (dir.join("file"), dir.join("tree"));
    let request = RunRequest {
        workload,
        arm,
        path: if workload.is_of_tree() { &tree } else { &file },
        size_bytes: SIZE_BYTES,
        block_bytes: 4096,
        direct: false,
        no_read_ahead: false,
        seed: 1,
        generation: 1,
    };
    let answer = program.run(&request, &GO_ON).expect("a row");
    let blocks = SIZE_BYTES.div_ceil(4096);
    let expected = match workload {
        Workload::AppendSync => (2 * blocks, SIZE_BYTES),
        Workload::Walk => (2, 0),
        Workload::Stat => (2, 4),
        _ => (blocks, SIZE_BYTES),
    };
    assert_eq!((answer.ops, answer.bytes), expected, "{lang} {}", arm.name());
    if workload.writes() && method != PlaygroundMethod::Null {
        check(&fs::read(&file).expect("the file"));
    }
}

fn check(bytes: &[u8]) {
    assert_eq!(bytes.len() as u64, SIZE_BYTES);
    for (offset, page) in (0_u64..).step_by(4096).zip(bytes.chunks(4096)) {
        let stamp = [offset, 1, FIRST_NUMBER].map(u64::to_le_bytes).concat();
        assert_eq!(page[..24], stamp, "page {offset}");
    }
}

#[test]
fn python_runs_each_workload() {
    runs_each_workload(Lang::Python);
}

#[test]
fn node_runs_each_workload() {
    runs_each_workload(Lang::Node);
}

#[test]
fn bun_runs_each_workload() {
    runs_each_workload(Lang::Bun);
}

#[test]
fn deno_runs_each_workload() {
    runs_each_workload(Lang::Deno);
}

#[test]
fn java_runs_each_workload() {
    runs_each_workload(Lang::Java);
}

#[test]
fn c_runs_each_workload() {
    runs_each_workload(Lang::C);
}

#[test]
fn cpp_runs_each_workload() {
    runs_each_workload(Lang::Cpp);
}

#[test]
fn go_runs_each_workload() {
    runs_each_workload(Lang::Go);
}

#[test]
fn rust_crates_run_each_workload() {
    runs_each_workload(Lang::RustCrates);
}

#[test]
fn zig_runs_each_workload() {
    runs_each_workload(Lang::Zig);
}
