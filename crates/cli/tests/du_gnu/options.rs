//! How a command line is read: abbreviations, bundles, order, and what is refused.

use crate::support::program::Program;
use crate::support::{Tree, all_same, all_same_as_du, du, same};

fn tree() -> Tree {
    Tree::parse("d/x 9000, d/e/y 100, -a/z 10, f 5000")
}

#[test]
fn long_names_may_be_cut_short() {
    let tree = tree();
    same(&tree, "--tot d").prints("total");
    all_same_as_du(
        &tree,
        &["--al d", "--nul d", "--to", "--sum d", "--si d", "--sep d", "--th=1 d", "--th 1 d", "--thresh -1"],
    );
    all_same_as_du(
        &tree,
        &[
            "--max=1",
            "--m 1",
            "--inod",
            "--hum",
            "--on d",
            "--count d",
            "--no-d d",
            "--deref d",
            "--dereference-a d",
        ],
    );
    all_same_as_du(
        &tree,
        &[
            "--exclude-f /dev/null",
            "--files0 /dev/null",
            "--block=1 d",
            "--bl 1 d",
            "--time d",
            "--tim=atime f",
        ],
    );
    for word in [
        "--a",
        "--s",
        "--t",
        "--d",
        "--de",
        "--e",
        "--ex",
        "--exclude",
        "--f",
        "--i",
        "--n",
        "--o",
        "--b",
        "--c",
        "--h",
        "--ti",
        "--x",
    ] {
        du(&tree, "f").arg(word).same_as_du();
        du(&tree, "f").arg(format!("{word}=1")).same_as_du();
    }
}

#[test]
fn short_options_may_be_bundled() {
    let tree = tree();
    all_same(
        &tree,
        &[
            "-sh d",
            "-csk d f",
            "-ad1 d",
            "-acd 1 d",
            "-aB1 d",
            "-kaB 512 d",
            "-at1 d",
            "-aXf",
            "-lcSm d",
            "-0ac d",
        ],
    );
    all_same_as_du(
        &tree,
        &[
            "-sZ d", "-Zs d", "-d", "-ad", "-aB", "-a-", "-", "-s-d0", "-h5", "-s -", "-?", "-:", "-W", "-I",
            "-e",
        ],
    );
}

#[test]
fn options_and_operands_may_be_mixed_until_two_dashes() {
    let tree = tree();
    all_same(
        &tree,
        &[
            "d -a f -c",
            "d -- -a",
            "-- d -a",
            "-a -- d --",
            "f d -s",
            "-- --",
            "d --total -a -- f",
            "-s d -B1 f",
        ],
    );
}

#[test]
fn values_are_missing_or_not_wanted() {
    let tree = tree();
    let lines = [
        "--all=1 d",
        "--total= d",
        "--max-depth",
        "--max-depth= d",
        "--block-size",
        "--threshold",
        "--exclude",
        "--exclude-from",
        "--files0-from",
        "--time-style",
        "--si=1",
        "--human-readable=x",
        "--null=1",
        "--help=1",
        "--version=1",
        "--unknown",
        "--unknown=1",
        "--=1",
        "--inodes=1",
        "-B",
        "-t",
        "-X",
        "-d",
        "--apparent-sizes",
        "--summarize=yes",
        "--one-file-system=1",
        "--no-dereference=1",
    ];
    all_same_as_du(&tree, &lines);
}

#[test]
fn the_first_mistake_is_the_one_reported() {
    let tree = tree();
    all_same_as_du(
        &tree,
        &[
            "-d x -t -0 d",
            "-t -0 -d x",
            "-B0 -d x",
            "-d x -B0",
            "-as -d x",
            "--time=x -B0",
            "-X missing -d x",
            "-d x -X missing",
        ],
    );
    all_same_as_du(
        &tree,
        &["-as --files0-from=missing", "-as d", "-s -d2 -a d", "--files0-from=missing -Z", "-as missing"],
    );
    all_same_as_du(
        &tree,
        &[
            "--time-style=bad d",
            "--time --time-style=bad -d x d",
            "--time --time-style=bad -as d",
            "-x -d1 -s -a d f",
        ],
    );
}

#[test]
fn help_comes_after_a_mistake_and_says_nothing_of_it() {
    let tree = tree();
    for words in [
        "--help",
        "-d x --help",
        "-B0 --help",
        "-Z --help",
        "--help -Z",
        "-as --help",
        "--version -Z",
        "d --version",
    ] {
        let [gnu, own] = [Program::Gnu, Program::AsDu].map(|program| du(&tree, words).run(program));
        assert_eq!(
            (gnu.end, gnu.err(), gnu.out().is_empty()),
            (own.end, own.err(), own.out().is_empty()),
            "{words}"
        );
    }
}
