//! The directories that get a line, and the entries that a line covers: `-S`, `-s`, `-d`.

use crate::support::{Tree, compare, compare_all, du, needs_gnu};

fn tree() -> Tree {
    Tree::parse("a/b/c/x 9000, a/b/y 100, a/z 20000, a/e/, d/f 5, g 600")
}

#[test]
fn separate_directories_leave_out_their_subdirectories() {
    let tree = tree();
    compare_all(&tree, &["-S", "-S a", "-aS", "-bS", "-S --inodes", "-S -d1", "-Sh", "-S a/b a", "-Sl a a"]);
    assert_ne!(compare(&tree, "-sS a").out(), compare(&tree, "-s a").out());
    assert_eq!(
        compare(&tree, "-csS a").out().lines().last().map(|line| line.replace("total", "a")),
        compare(&tree, "-s a").out().lines().next().map(String::from)
    );
    compare_all(&tree, &["-sS", "-scS a d", "-S -t 8K", "-S -t -8K", "-S --time a", "-aS --time"]);
}

#[test]
fn separate_directories_have_their_own_times_only() {
    let tree =
        tree().time("a/b/c/x", 1_500_000_000).time("a/b/c", 1_400_000_000).time("a/b/y", 1_450_000_000);
    let tree = tree.time("a/b", 1_300_000_000).time("a/z", 1_200_000_000).time("a/e", 1_600_000_000);
    let tree = tree.time("a", 1_100_000_000);
    assert_ne!(compare(&tree, "-S --time a").out(), compare(&tree, "--time a").out());
    compare_all(
        &tree,
        &["-S --time -a a", "--time -a a", "-sS --time a", "-cS --time a d", "-S --time=ctime -d1"],
    );
}

/// GNU du starts the times of the levels above the first entry, and of the total, at the epoch, and
/// all others at the earliest time.
#[test]
fn times_before_the_epoch_count_except_at_first() {
    let tree = Tree::parse("a/b/x 10, a/b/y 10, a/c/x 10, d/, e 10");
    let mut tree = tree;
    for (second, name) in ["a/b/x", "a/b/y", "a/c/x", "e", "a/b", "a/c", "a", "d", "."].iter().enumerate() {
        tree = tree.time(name, -1_000_000_000 + second as i64 * 1000);
    }
    compare(&tree, "--time a").prints("1970-01-01 00:00\ta\n");
    compare(&tree, "--time d").prints("\t1938-");
    let lines = [
        "--time -a a",
        "--time",
        "--time a d e",
        "--time -c e",
        "-S --time",
        "-aS --time d a",
        "--time -s e d a",
        "--time -cl e e",
    ];
    compare_all(&tree, &lines);
}

#[test]
fn levels_below_the_depth_are_counted_and_silent() {
    let tree = tree();
    compare_all(
        &tree,
        &["-d0", "-d1", "-d 2", "--max-depth=3", "-d4", "-d99999999999", "-ad1", "-ad2 a g", "-d1 a a/b"],
    );
    compare_all(
        &tree,
        &["-s", "-s a d", "-s g", "-d0 g a", "-sa -d0 a", "-d0x10", "-d 0x1", "-d 010", "-d 0", "-cd1"],
    );
}

#[test]
fn a_summary_is_depth_nought() {
    let tree = tree();
    assert_eq!(compare(&tree, "-s a d").out(), compare(&tree, "-d0 a d").out());
    compare(&tree, "-s -d0 a").says("warning: summarizing is the same as using --max-depth=0").status(0);
    compare(&tree, "-s -d1 a").says("conflicts with --max-depth=1").status(1);
    compare(&tree, "-as a").says("cannot both summarize and show all entries").status(1);
    compare_all(&tree, &["-d0 -s a", "-d1 -s", "-s -d2 -d0 a", "-s -a -d1", "-d2 -sa", "-s -s a"]);
}

#[test]
fn a_depth_that_is_no_number_is_refused() {
    let tree = tree();
    compare(&tree, "-d1x a").says("invalid maximum depth").status(1);
    compare_all(
        &tree,
        &["-dx", "-d 1k", "-d +1", "-d 0x", "-d 99999999999999999999", "-d1.5", "-d1 -dz -s", "-dx -dy"],
    );
    du(&tree, "-d").arg("").compare();
    du(&tree, "-d").arg(" 1").compare();
    du(&tree, "-d").compare().says("requires an argument").status(1);
}

#[test]
fn a_negative_depth() {
    let tree = tree();
    if needs_gnu(9, 4) {
        compare_all(&tree, &["-d -1", "-d-1 a", "--max-depth=-7 -a", "-d -0", "-d -99999999999999999999"]);
    }
}
