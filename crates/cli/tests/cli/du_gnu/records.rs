//! `--files0-from`: operands from a file or from standard input.

use crate::support::{Tree, compare, du, needs_gnu};

fn tree() -> Tree {
    Tree::parse("a/x 9000, a/y/z 100, b 5000, -/w 10, new/, l -> a")
}

#[test]
fn records_are_operands() {
    let tree = tree();
    for records in
        ["a\0b\0", "a\0b", "b\0a\0a\0", "a/y\0a\0", "missing\0a\0", "a\0missing\0b", "./a//\0", "l\0l/\0", ""]
    {
        tree.holding("list", records);
        for options in ["", "-a", "-s", "-c", "-L", "-D", "-l", "-0", "-b --inodes", "-x -d1"] {
            du(&tree, options).arg("--files0-from=list").compare();
        }
        du(&tree, "-a --files0-from=-").stdin(records).compare();
        du(&tree, "-a --files0-from=/dev/stdin").stdin(records).compare();
    }
}

#[test]
fn a_record_alone_counts_each_inode_once_as_several_do() {
    let tree = Tree::parse("d/x 100, d/y = d/x, m/");
    tree.holding("list", "d\0d\0");
    compare(&tree, "-a --files0-from=list").prints("d\n");
    tree.holding("list", "d");
    compare(&tree, "-a --files0-from=list");
}

#[test]
fn empty_records_are_reported_by_number() {
    let tree = tree();
    for records in ["\0", "a\0\0b\0", "\0\0\0", "a\0\0", "\0a", "a\0b\0\0\0a\0"] {
        tree.holding("list", records);
        compare(&tree, "-s --files0-from=list").says("list:").says("invalid zero-length file name").status(1);
        du(&tree, "-s --files0-from=-").stdin(records).compare().says("-:").status(1);
    }
}

#[test]
fn operands_beside_records_are_refused() {
    let tree = tree();
    tree.holding("list", "a\0");
    compare(&tree, "--files0-from=list b").says("extra operand").status(1);
    compare(&tree, "b --files0-from=list a");
    du(&tree, "--files0-from=- b").stdin("a\0").compare().status(1);
    compare(&tree, "--files0-from=missing b").status(1);
}

#[test]
fn a_list_that_cannot_be_read() {
    let tree = tree();
    compare(&tree, "--files0-from=missing").says("cannot open 'missing' for reading").status(1);
    compare(&tree, "--files0-from=a").says("read error").status(1);
    compare(&tree, "-c --files0-from=a").status(1);
    compare(&tree, "--files0-from=");
    compare(&tree, "--files0-from");
    tree.holding("list", "a\0");
    du(&tree, "--files0-from=list").after("chmod 0 list").unprivileged().compare().status(1);
    du(&tree, "-s --files0-from=-").redirect("<&-").compare();
    du(&tree, "-s --files0-from=-").redirect("<a").compare();
}

#[test]
fn the_last_list_counts() {
    let tree = tree();
    tree.holding("one", "a\0");
    tree.holding("two", "b\0");
    compare(&tree, "-a --files0-from=one --files0-from=two");
    du(&tree, "-a --files0-from=- --files0-from=two").stdin("a\0").compare();
}

#[test]
fn a_dash_in_standard_input_is_refused() {
    let tree = tree();
    if needs_gnu(9, 10) {
        du(&tree, "-s --files0-from=-").stdin("-\0").compare().says("-").status(1);
        du(&tree, "-s --files0-from=-").stdin("a\0-\0b\0").compare().status(1);
        du(&tree, "-s --files0-from=-").stdin("a\0-").compare().status(1);
    }
    tree.holding("list", "a\0-\0./-\0b\0");
    compare(&tree, "-s --files0-from=list").prints("-\n");
}

#[test]
fn newlines_are_part_of_a_record() {
    let tree = tree();
    tree.file("two\nlines", 10);
    tree.holding("list", "two\nlines\0a\n\0b");
    compare(&tree, "-a --files0-from=list").prints("two\nlines\n").status(1);
}

#[test]
fn many_records() {
    let mut tree = Tree::new();
    let mut records = Vec::new();
    for number in 0..3000 {
        tree = tree.with(&format!("d{}/f{number} {}", number % 40, number % 5));
        records.extend(format!("d{}/f{number}\0", number % 40).bytes());
    }
    records.extend(b"d3\0d4\0");
    tree.holding("list", &records);
    for options in ["-a", "-c", "-s --inodes", "-lc"] {
        du(&tree, options).arg("--files0-from=list").after("ulimit -n 32").compare().says("");
    }
}

#[test]
fn excluded_records_are_silent() {
    let tree = tree();
    tree.holding("list", "a\0b\0missing\0");
    for words in ["--exclude=a", "--exclude=missing", "--exclude=*", "-c --exclude=[ab]"] {
        du(&tree, words).arg("--files0-from=list").compare();
    }
}
