//! The order of lines: depth-first, entries in the order in which their directory lists them.

use crate::support::fuse::{ScriptedFs, TOP};
use crate::support::{Tree, compare, compare_all, compare_all_as_du, du, needs_fuse, skip};

const FORMS: &[&str] = &["", "-a", "-ab w", "-s w", "-S", "-d1", "--inodes", "-a w w", "-lac w ."];

#[test]
fn children_come_as_listed_and_before_their_directory() {
    let mut tree = Tree::new();
    for number in 0..300 {
        tree = tree.with(&format!("w/x{}y/f{number} {}, w/z{number} 10", number % 17, number * 7));
    }
    compare_all(&tree, FORMS);
}

#[test]
fn operands_come_in_the_order_given() {
    let tree = Tree::parse("a/x/y 1, b/x 2, c/x 3, f 4");
    compare(&tree, "-a c f a b").prints("c\n");
    compare_all(&tree, &["c/x b a/x", "b -s c -c a", "-- c a"]);
}

#[test]
fn ten_thousand_entries_come_as_listed_and_one_more_by_inode() {
    let tree = Tree::new().wide("w", 9_995).with("w/a/x, w/b/x, w/c/x, w/d/x, w/e/x");
    compare_all_as_du(&tree, FORMS);
    let listed = compare(&tree, "-a").out();
    let tree = tree.with("w/f/x");
    compare_all_as_du(&tree, FORMS);
    let sorted = compare(&tree, "-a").out();
    let common = |line: &&str| line.ends_with(char::is_numeric);
    let orders = [&listed, &sorted].map(|out| out.lines().filter(common).collect::<Vec<_>>());
    if Tree::is_on_tmpfs(&tree) {
        skip("temporary files are on tmpfs, where directories are not read in inode order");
    } else {
        assert_ne!(orders[0], orders[1]);
    }
}

#[test]
fn ten_thousand_directories_come_by_inode() {
    let mut tree = Tree::new();
    for number in 0..10_050 {
        tree.dir(format!("w/d{number}"));
    }
    tree = tree.with("w/d77/x 5000, w/d9999/x/y 100");
    compare_all(&tree, &["", "-a w/d77 w"]);
    compare_all_as_du(&tree, &["-a", "--inodes -d1", "-t 5K"]);
}

#[test]
fn more_than_a_hundred_thousand_entries_come_in_batches() {
    let tree = Tree::new().wide("w", 100_300).with("w/sub/x 100, w/y = w/f500, v = w/f90000");
    compare_all(&tree, &["-a"]);
    compare_all_as_du(&tree, &["-s", "-s --inodes v w", "--inodes w v", "-ab v w"]);
}

#[test]
fn a_hundred_thousand_errors_come_in_batches_by_inode() {
    let tree = Tree::new().wide("w", 104_000).with("v/x 10").mode("w", 0o444);
    let out = du(&tree, "-s v w v").unprivileged().compare_as_du();
    assert_eq!(out.err().lines().count(), 104_000);
    du(&tree, "-a w").unprivileged().compare_as_du();
}

#[test]
fn entries_on_tmpfs_come_as_listed_however_many() {
    let tree = Tree::on_tmpfs().wide("w", 10_500).with("w/sub/x 100, w/y = w/f500");
    compare_all(&tree, &["-a", "", "-s w/sub w"]);
}

#[test]
fn errors_stand_between_the_lines_where_they_happen() {
    let mut tree = Tree::new();
    for number in 0..40 {
        let dir = format!("d{number}");
        tree = tree.with(&format!("{dir}/a/x 10, {dir}/b/, {dir}/c/y 10"));
        tree = tree.mode(format!("{dir}/b"), if number % 2 == 0 { 0 } else { 0o755 });
    }
    let merged = du(&tree, "-a . missing d3").unprivileged().redirect("2>&1").compare();
    merged.prints("cannot read directory './d0/b'").prints("cannot access 'missing'").status(1);
}

#[test]
fn a_name_that_vanishes_is_reported_in_order() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    for number in 0..30 {
        let dir = script.dir(TOP, &format!("d{number}"));
        script.file(dir, "a", 8);
        script.failing(dir, "gone", rustix::io::Errno::NOENT);
        script.file(dir, "z", 16);
    }
    let merged = du(&tree, "-a mnt").mounting(&script).redirect("2>&1 </dev/null").compare();
    merged.prints("8\tmnt/d29/z\n").prints("cannot access 'mnt/d29/gone'").status(1);
}
