//! `-t`: a line for sizes above or below a threshold.

use crate::support::{Tree, compare, compare_all, du, needs_gnu};

fn tree() -> Tree {
    Tree::parse("d/e/x 4096, d/y 8192, d/z 8193, d/empty, d/h ~1M, d/sub/sub/w 100000, f/g 1000")
}

#[test]
fn from_the_threshold_upwards() {
    let tree = tree();
    compare(&tree, "-a -t 8K d/y d/e/x").prints("8\td/y\n");
    compare_all(
        &tree,
        &[
            "-t1",
            "-t0",
            "-t 4096",
            "-t 4097",
            "-t 8K",
            "-a -t 8192",
            "-a -t 8193",
            "-at12K",
            "-t 1M",
            "-t 1E",
        ],
    );
}

#[test]
fn from_the_threshold_downwards() {
    let tree = tree();
    compare(&tree, "-a -t -8K d/y").prints("8\td/y\n");
    compare_all(
        &tree,
        &[
            "-t -1",
            "-t -4096",
            "-a -t -4096",
            "-a -t-8192",
            "-t -8193",
            "-at -12K",
            "--threshold=-1M",
            "-t -8E",
        ],
    );
}

#[test]
fn suffixes_are_those_of_sizes() {
    let tree = tree();
    for suffix in [
        "k", "K", "KiB", "kB", "KB", "m", "M", "MB", "MiB", "g", "G", "T", "P", "E", "Z", "Y", "R", "Q", "b",
        "B",
    ] {
        for number in ["", "1", "8", "-1", "-8", "0"] {
            du(&tree, "-a").arg(format!("-t{number}{suffix}")).compare_as_du();
        }
    }
}

#[test]
fn a_threshold_of_minus_nought_is_refused() {
    let tree = tree();
    compare(&tree, "-t -0").says("invalid --threshold argument '-0'").status(1);
    compare_all(
        &tree,
        &["-t-0", "--threshold=-0", "--th=-0K", "-t -00", "-t 0", "-t +0", "-t +8K", "-t --1"],
    );
}

#[test]
fn an_invalid_threshold_is_refused() {
    let tree = tree();
    for value in [
        "x",
        "1x",
        "",
        "-",
        "-x",
        "K1",
        "1KK",
        "99999999999999999999",
        "-99999999999999999999",
        "8Y",
        "-8Y",
        "1.5",
        " 1",
    ] {
        du(&tree, "-s").arg(format!("--threshold={value}")).compare_as_du();
        du(&tree, "-s -t").arg(value).compare_as_du();
    }
}

#[test]
fn the_printed_value_is_compared() {
    let tree = tree();
    compare_all(
        &tree,
        &[
            "-S -t 9K",
            "-S -t -9K",
            "-aS -t 5K",
            "--inodes -t 3",
            "--inodes -t -2 -a",
            "--inodes -S -t 4",
            "-h -t 20K",
        ],
    );
    compare_all(&tree, &["-s -t 1M", "-s -t 1M d f", "-d1 -t 50K", "-l -t 8K -a"]);
    if needs_gnu(9, 2) {
        compare_all(&tree, &["-b -t 1M -a", "-ab -t -4096", "-b -t 8193", "-a --app -t 1000"]);
    }
}

#[test]
fn the_total_is_never_left_out() {
    let tree = tree();
    compare(&tree, "-c -t 1G").prints("\ttotal\n");
    compare_all(&tree, &["-c -t -1", "-sc -t 1M d f", "-sc -t -1 d f", "-c --inodes -t 1000", "-cS -t 1G"]);
}
