//! The real programs of the playground at a small size. `playground/test_playground.py` tests their
//! whole protocol.

use std::fs;

use fathom_bench::lang::{Direction, Lang, PlaygroundArm, PlaygroundMethod, RunRequest, Toolchain};
use tempfile::TempDir;

use crate::{GO_ON, machine};

const SIZE_BYTES: u64 = 300_001;
/// The first number of seed 1 and generation 1, from `playground/README.md`.
const FIRST_NUMBER: u64 = 0x102a_ceb9_af8e_2597;

/// Builds the program and lets each available method write a file and read it back.
fn write_and_read(lang: Lang) {
    let dir = TempDir::new().expect("a directory");
    let toolchain = match Toolchain::find(lang, &machine(), &GO_ON) {
        Err(error) if error.is_unavailable() && lang != Lang::Python => {
            println!("skipped: {}", error.cause());
            return;
        }
        toolchain => toolchain.expect("a toolchain"),
    };
    let program = toolchain.build(&dir.path().join("cache"), &GO_ON).expect("a build");
    let offers = program.list(&GO_ON).expect("a list");
    assert_eq!(offers.iter().map(|offer| offer.method).collect::<Vec<_>>(), lang.methods());
    assert!(offers[0].unavailable.is_none(), "blocking always runs");
    let path = dir.path().join("file");
    for offer in offers {
        if let Some(reason) = offer.unavailable {
            println!("skipped: {}", reason.replace('\n', " "));
            continue;
        }
        for direction in [Direction::Write, Direction::Read] {
            let arm = PlaygroundArm { threads: 3, depth: 4, batch: 2, ..arm(lang, offer.method) };
            let request = RunRequest {
                direction,
                arm,
                path: &path,
                size_bytes: SIZE_BYTES,
                block_bytes: 4096,
                direct: false,
                seed: 1,
                generation: 1,
            };
            let answer = program.run(&request, &GO_ON).expect("a row");
            assert_eq!(answer.ops, SIZE_BYTES.div_ceil(4096), "{lang} {arm}");
        }
        check(&fs::read(&path).expect("the file"));
    }
}

fn arm(lang: Lang, method: PlaygroundMethod) -> PlaygroundArm {
    *lang.arms().iter().find(|arm| arm.method == method).expect("each method has arms")
}

fn check(bytes: &[u8]) {
    assert_eq!(bytes.len() as u64, SIZE_BYTES);
    for (offset, page) in (0_u64..).step_by(4096).zip(bytes.chunks(4096)) {
        let stamp = [offset, 1, FIRST_NUMBER].map(u64::to_le_bytes).concat();
        assert_eq!(page[..24], stamp, "page {offset}");
    }
}

#[test]
fn python_writes_and_reads() {
    write_and_read(Lang::Python);
}

#[test]
fn node_writes_and_reads() {
    write_and_read(Lang::Node);
}

#[test]
fn java_writes_and_reads() {
    write_and_read(Lang::Java);
}

#[test]
fn c_writes_and_reads() {
    write_and_read(Lang::C);
}

#[test]
fn go_writes_and_reads() {
    write_and_read(Lang::Go);
}

#[test]
fn zig_writes_and_reads() {
    write_and_read(Lang::Zig);
}
