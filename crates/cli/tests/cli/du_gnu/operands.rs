//! Operands that repeat or contain each other. With two or more operands, every inode counts once
//! for all of them.

use crate::support::{Tree, compare, compare_all, du};

fn nested() -> Tree {
    Tree::parse("a/b/x 9000, a/b/y 100, a/c/z 20000, a/f 5000, g 3000, l -> a, m -> g")
}

/// Workers change their current directory into directories with many files. Relative operands must
/// still resolve against the initial current directory.
#[test]
fn relative_operands_stay_relative_to_where_the_program_was_started() {
    let mut tree = Tree::new();
    for (number, dir) in ["a", "a/a", "a/b/c", "b", "b/a", "c"].into_iter().enumerate() {
        for file in 0..20 {
            tree = tree.with(&format!("{dir}/f{number}-{file} 1000"));
        }
    }
    let tree = tree.with("l -> a/b, b/l -> ../a");
    compare_all(
        &tree,
        &["-a a b c", "-a b/../a/b c a", "-aL l b", "-ac . ../t/b", "-aD l c/../l/c", "-s a/* b/*"],
    );
    for limit in [20, 24, 32] {
        du(&tree, "-a a b c l/c ./a/b/../a").after(&format!("ulimit -n {limit}")).compare();
    }
}

#[test]
fn a_repeated_operand_gets_one_line() {
    let tree = nested();
    assert_eq!(compare(&tree, "-s a a").out().lines().count(), 1);
    compare_all(&tree, &["a a", "-a a a", "a ./a", "a a/", "a/ a", "a//b a/b", "g g", "-c g g", "-ac a a a"]);
}

#[test]
fn a_directory_below_an_earlier_operand_is_silent() {
    let tree = nested();
    assert_eq!(compare(&tree, "a a/b").out(), compare(&tree, "a").out());
    compare_all(&tree, &["-a a a/b a/f", "-s a a/b a/b/x", "-c a a/f", ". a a/b", "-S a a/b", "-d0 . g"]);
}

#[test]
fn an_earlier_operand_is_left_out_of_a_later_total() {
    let tree = nested();
    let alone = compare(&tree, "-s a").out();
    assert!(!compare(&tree, "-s a/b a").out().contains(&alone));
    compare_all(&tree, &["a/b a", "-a a/b a", "-a a/b/x a", "-ab a/b/x a/c a .", "-c a/c a/b a", "-S a/b a"]);
    compare_all(&tree, &["--inodes a/b a", "--time a/c a", "a/b/x g a/f a", "-sc a/b/x a/b a"]);
}

#[test]
fn the_total_of_all_operands_counts_each_inode_once() {
    let tree = nested();
    compare_all(
        &tree,
        &["-c a", "-c a a/b g", "-sc a/b a g", "-c --inodes a a/c .", "-cS a a/b", "-cd0 a/b a", "-cb"],
    );
}

#[test]
fn links_among_operands_count_with_their_targets_when_followed() {
    let tree = nested();
    compare_all(
        &tree,
        &["-D l a", "-L l a", "l a", "-D a l", "-L m g l", "-Hc g m", "-aL . a", "-P l a m g"],
    );
}

#[test]
fn missing_operands_do_not_change_how_the_others_count() {
    let tree = nested();
    compare(&tree, "a missing").status(1);
    compare_all(
        &tree,
        &["missing", "missing a", "missing missing", "-c missing", "-s a missing a/b", "a missing a"],
    );
}

#[test]
fn no_operand_means_the_current_directory() {
    let tree = nested();
    assert_eq!(compare(&tree, "").out(), compare(&tree, ".").out());
    compare_all(&tree, &["-s", "-a", "-c", "-l", "-x", "--inodes", "--", "-d1 --"]);
    du(&tree, "-s").after("cd a/b").compare();
    du(&tree, "-s .. . ../c").after("cd a/b").compare();
}

#[test]
fn absolute_and_roundabout_operands_keep_their_spelling() {
    let tree = nested();
    let base = tree.path().display().to_string();
    for name in
        ["a", "a/", "a//", "./a", ".//a", "a/.", "a/b/..", "a/../a", "..", "../t", "/dev/null", "./", ".//"]
    {
        compare(&tree, name);
        compare(&tree, &format!("-a {name}"));
        compare(&tree, &format!("-a a/b {name}"));
    }
    compare_all(
        &tree,
        &[&format!("-a {base}"), &format!("{base}/a a"), &format!("-s {base}/a/ {base}//a/b")],
    );
}

#[test]
fn trailing_slashes_are_kept_and_follow_a_link() {
    let tree = nested();
    compare(&tree, "l/").prints("l/b\n");
    compare_all(
        &tree,
        &["-a l/", "l//", "-a a//", "l", "-L l/", "-P l/", "g/", "-a m/", "l/b/", "l/. a", "-D l/ l"],
    );
}

#[test]
fn an_empty_operand_is_not_there() {
    let tree = nested();
    du(&tree, "-s a").arg("").arg("g").compare().says("du: invalid zero-length file name\n").status(1);
    du(&tree, "").arg("").compare().status(1);
}

#[test]
fn operands_leave_nothing_open() {
    let mut tree = Tree::new();
    for number in 0..1296 {
        tree = tree.with(&format!("d{number}/x 10"));
    }
    let names: Vec<String> = (0..1296).map(|number| format!("d{number}")).collect();
    du(&tree, "-a").args(&names).after("ulimit -n 32").compare().says("");
    du(&tree, "-sc").args(names.iter().rev()).after("ulimit -n 32").compare().says("");
}
