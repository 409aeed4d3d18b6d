//! Symbolic links: of `-P`, `-D`, `-H` and `-L` the last one counts.

use crate::support::{Tree, compare, compare_all, du};

fn tree() -> Tree {
    Tree::parse(
        "d/x 9000, d/e/y 100, l -> d, f 5000, m -> f, d/up -> .., d/here -> ., gone -> nowhere, a -> b, b -> a, \
         d/e/l -> ../../f, k/l -> ../l, k/m -> ../d/e, self -> self",
    )
}

#[test]
fn links_are_not_followed_unless_asked() {
    let tree = tree();
    compare_all(&tree, &["-a", "-a l", "-a l m gone a", "-P l", "-aP k", "-s l d", "-b l m gone"]);
}

#[test]
fn operands_are_followed_when_asked() {
    let tree = tree();
    compare(&tree, "-D l").prints("l/e\n");
    compare_all(
        &tree,
        &[
            "-D l m",
            "-aD l",
            "-H l m",
            "-aH k",
            "--dereference-args l k/m m d",
            "-D k/l/e",
            "-D d/up",
            "-cD m f",
        ],
    );
}

#[test]
fn the_last_of_the_ways_to_follow_counts() {
    let tree = tree();
    for first in ["-L", "-P", "-D", "-H"] {
        for last in ["-L", "-P", "-D", "-H"] {
            compare(&tree, &format!("{first} {last} -a k l m"));
        }
    }
}

#[test]
fn all_links_are_followed_when_asked() {
    let tree = tree();
    compare_all(
        &tree,
        &[
            "-L d", "-aL d", "-L k", "-aL k", "-aL l", "-L", "-aL", "-sL k d", "-bL k", "-lL k", "-lL d",
            "-aL m f",
        ],
    );
}

#[test]
fn a_link_upwards_under_follow_changes_nothing() {
    let with = Tree::parse("d/e/x 5000, d/y 100").with("d/e/up -> ..");
    compare(&with, "-L d").says("").status(0);
    compare_all(
        &with,
        &[
            "-aL d",
            "-aL",
            "-L d/e",
            "-L d/e/up",
            "-L d/e/up/e",
            "-lL d",
            "-alL d",
            "-SL d",
            "-L d/e d",
            "-L --inodes",
        ],
    );
}

#[test]
fn links_that_lead_nowhere_under_follow() {
    let tree = tree();
    compare(&tree, "-L gone").says("cannot access 'gone'").status(1);
    assert_eq!(compare(&tree, "-L gone").err().matches(':').count(), 1, "no reason is given");
    compare(&tree, "-L a").status(1);
    compare_all(
        &tree,
        &[
            "-D gone",
            "-D a",
            "-D self d",
            "-H gone m",
            "-L gone f",
            "-aL . gone",
            "gone/",
            "a/",
            "-L d/missing",
        ],
    );
}

#[test]
fn dangling_links_below_under_follow() {
    let tree =
        Tree::parse("d/x 10, d/gone -> nowhere, d/file -> x/y, d/e/far -> /nonexistent/file, d/e/z 5000");
    compare(&tree, "-L d").status(1);
    compare_all(&tree, &["-aL d", "-aL", "-sL d", "-L d/e d", "-aD d/gone d", "-D d/file", "-L d/file"]);
}

#[test]
fn a_chain_too_long_fails_once() {
    let tree = Tree::parse("d/file 100");
    for number in 0..400 {
        tree.symlink(
            format!("d/l{number}"),
            if number == 0 { "file".to_string() } else { format!("l{}", number - 1) },
        );
    }
    tree.symlink("last", "d/l399");
    let failed = compare(&tree, "-L last");
    assert_eq!(failed.err().lines().count(), 1, "{failed:?}");
    failed.status(1);
    compare_all(&tree, &["-D last", "last", "-sL d", "-aL d/l5 d/l39 d/l40 d/l41", "-aL d"]);
}

#[test]
fn following_works_on_paths_not_on_what_is_open() {
    let tree = Tree::new().deep("deep", 30, 200).with("l -> deep");
    compare(&tree, "-L deep").status(1);
    compare_all(&tree, &["-aL l", "-D l", "-aD l", "-sL l deep", "-P l"]);
}

#[test]
fn a_link_into_a_directory_that_was_counted() {
    let tree = Tree::parse("a/x 9000, b/l -> ../a, b/m -> ../a/x, c/n -> ../b");
    compare_all(
        &tree,
        &["-L", "-aL a b c", "-aL c b a", "-aL b", "-aL c", "-cL b c", "-lL b c", "-alL", "-L --inodes b a"],
    );
}

/// With `-L`, GNU du drops the slash after an operand that turns out to be an empty directory.
#[test]
fn slash_after_an_empty_directory() {
    let tree = Tree::parse("empty/, full/x 10, nested/empty/, l -> empty, k -> full");
    compare(&tree, "-L empty/").prints("\tempty\n");
    compare(&tree, "empty/").prints("\tempty/\n");
    compare_all(
        &tree,
        &[
            "-L empty//",
            "-L full/",
            "-aL nested/ empty/ full/",
            "-L l/ k/",
            "-D empty/ l/",
            "-lL empty/ empty/",
            "-L nested/empty/",
            "-L --exclude=x full/ empty/",
            "-aL --exclude=x k/ l/",
            "-L --exclude=* full/",
            "-L --exclude=full/x full/ nested/",
            "-L --exclude=empty nested/",
        ],
    );
}

#[test]
fn slash_after_a_link_is_kept() {
    let tree = tree();
    du(&tree, "-a l/ k/m/").compare().prints("l/e/y\n");
    compare_all(&tree, &["-P l/", "-aP k/m/", "-L l/", "-D l//", "m/", "-sP l/ l d"]);
}

/// The kernel follows at most 40 links in one path, and GNU `du -L` opens entries by their full
/// paths.
#[test]
fn a_path_through_more_links_than_the_kernel_follows() {
    let mut tree = Tree::new();
    for number in 1..50 {
        tree = tree.with(&format!("{number}/s -> ../{}, {number}/f 100", number + 1));
    }
    let tree = tree.with("50/f 10, l -> 1");
    let outcome = compare(&tree, "-L 1");
    outcome.says(": Too many levels of symbolic links\n").status(1);
    compare_all(
        &tree,
        &["-aL 1", "-sL 1 2", "-L -d 3 1 20", "-lL 1", "-L --inodes 12", "-aL 10/s/s", "-D 1 l"],
    );
}
