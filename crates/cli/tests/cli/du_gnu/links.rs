//! Hard links: the first name counts, later names are not printed. With `-l` each name counts.

use crate::support::{Tree, compare, compare_all, du};

fn linked() -> Tree {
    Tree::parse(
        "a/x 9000, a/y = a/x, a/d/z = a/x, b/w = a/x, b/v 5000, a/d/u = b/v, b/own 100, c/e/t = b/v, \
         s -> a, b/s = s, p |, b/p = p",
    )
}

#[test]
fn a_file_counts_where_it_is_met_first() {
    let tree = linked();
    let out = compare(&tree, "-a").out();
    let names = ["./a/x", "./a/y", "./a/d/z", "./b/w"];
    assert_eq!(names.iter().filter(|name| out.contains(&format!("\t{name}\n"))).count(), 1, "{out}");
    compare_all(
        &tree,
        &["-a", "", "-s", "-ab", "-a a", "-a b", "-s a b c", "-a a/d", "a/d a", "-S", "-aS c b a"],
    );
}

#[test]
fn a_file_counts_once_for_all_operands() {
    let tree = linked();
    compare_all(
        &tree,
        &["-a a b c", "-a c b a", "-s b a", "-sc a b c", "a/x a/y", "-c a/x b/w", "-a a/x a", "b/w a b"],
    );
}

#[test]
fn link_counts_hold_for_apparent_sizes_and_inodes() {
    let tree = linked();
    compare_all(
        &tree,
        &["-b a b", "-ab", "--apparent-size -a a b", "--inodes", "--inodes -a", "--inodes -s a b c"],
    );
}

#[test]
fn special_files_and_symbolic_links_count_once_too() {
    let tree = linked();
    compare_all(&tree, &["-a p b/p", "-a s b/s", "-ab s b", "--inodes -a p s b", "-aL s b/s", "-D s b/s"]);
}

#[test]
fn following_links_remembers_every_inode() {
    let tree = linked().with("c/l -> ../a/x, c/m -> ../b, c/n -> ../b");
    compare_all(
        &tree,
        &["-L", "-aL", "-aL c", "-L c b", "-L b c", "-aL c/l a/x", "-aL c/m c/n", "-abL c", "-lL c"],
    );
}

#[test]
fn every_link_counts_when_asked() {
    let tree = linked();
    let total = |words: &str| -> u64 {
        let out = compare(&tree, words).out();
        out.split('\t').next().and_then(|size| size.trim().parse().ok()).expect("a size comes first")
    };
    assert_eq!(
        total("-lcs a a") * 2,
        compare(&tree, "-lcs a a").out().lines().last().map_or(0, |line| {
            line.trim_end_matches("\ttotal").parse::<u64>().expect("a size comes first")
        })
    );
    compare_all(
        &tree,
        &["-l", "-al", "-al a b", "-l a a", "-lc a a/d a", "-ls a b c", "-lb", "-l --inodes -a", "-lS"],
    );
    compare_all(&tree, &["-lL", "-laL c s", "-lD s a", "-l a/x a/x b/w", "-lc a/x a/x"]);
}

#[test]
fn records_of_files_count_links_as_operands_do() {
    let tree = linked();
    for options in ["-a", "-s", "-al", "-c", "-acb", "--inodes"] {
        let case = du(&tree, options).arg("--files0-from=-");
        case.clone().stdin("a/x\0a/y\0b\0a\0a\0").compare();
        case.clone().stdin("a/x\0").compare();
        case.stdin("a").compare();
    }
}

#[test]
fn many_links_keep_their_order() {
    let mut tree = Tree::parse("o/f0 4000");
    for number in 0..400 {
        let source = format!("src/f{}", number % 50);
        if number < 50 {
            tree.file(&source, number * 100);
        }
        tree.hard_link(format!("d{}/l{number}", number % 13), &source);
    }
    tree = tree.with("o/f1 = src/f1");
    compare_all(
        &tree,
        &["-a", "-a d5 d3 src", "-s d1 d2 d3 d4", "-ab src o", "--inodes -a", "-al", "-S d7 d6"],
    );
}
