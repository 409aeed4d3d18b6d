//! `--top`: exactly the largest entries of `du -a`.

use crate::support::{Tree, du};
use crate::views::{FATHOM, prints, run};

/// Returns a tree with links within and across operands, equal sizes and names of arbitrary bytes.
fn forest() -> Tree {
    let tree = Tree::parse(
        "t/a/x 600, t/a/y 100, t/b 100, t/c/z = t/a/x, t/c/e, t/l -> a/x, t/p |, t/s %, u/w = t/b, u/v ~9000",
    );
    tree.file(std::ffi::OsStr::new("t/\u{e9} f"), 100);
    tree
}

/// Returns the sizes and paths that `du -a` prints, sorted by size in descending order and then by
/// path.
fn sorted(text: &str) -> Vec<(u64, String)> {
    let mut lines = listed(text);
    lines.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    lines
}

/// Returns the first and the last column, size and path, of `du -a` or of `--top`.
fn listed(text: &str) -> Vec<(u64, String)> {
    let columns = |line: &str| {
        let (size, rest) = line.split_once('\t')?;
        Some((size.parse().ok()?, rest.rsplit('\t').next()?.to_string()))
    };
    text.lines().map(|line| columns(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[test]
fn top_prints_the_first_lines_of_sorted_du() {
    let tree = forest();
    for words in
        ["-b t", "-B1 t", "-B1 t u", "-B1 u t t/a", "-bl t u t", "--inodes t", "-B1 -S t", "-b -d1 t u"]
    {
        let all = sorted(&prints(&tree, &format!("-a {words}")));
        for count in [1, 2, 5, 1000] {
            let top = listed(&prints(&tree, &format!("--top {count} -B1 {words}")));
            assert_eq!(top, all[..all.len().min(count)], "--top {count} {words}");
        }
    }
}

#[test]
fn each_row_has_its_type() {
    assert_eq!(prints(&forest(), "--top=2 -b u"), "9100\td\tu\n9000\tf\tu/v\n");
    let types = prints(&forest(), "--top=99 -bc t");
    for row in ["d\tt\n", "l\tt/l\n", "p\tt/p\n", "s\tt/s\n", "f\tt/b\n", "-\ttotal\n"] {
        assert!(types.contains(&format!("\t{row}")), "{row}: {types}");
    }
}

#[test]
fn sizes_are_short_and_paths_as_they_are() {
    let tree = Tree::parse("t/");
    tree.file("t/a\nb", 3000);
    let outcome = du(&tree, "--top=2 -A0 t").run(FATHOM);
    assert_eq!(outcome.out(), "3.0K\td\tt\x003.0K\tf\tt/a\nb\0");
}

#[test]
fn threshold_and_times_apply_to_top() {
    let tree = Tree::parse("t/a 5, t/b 9, t/c 7");
    assert_eq!(prints(&tree, "--top=9 -bt-7 t"), "7\tf\tt/c\n5\tf\tt/a\n");
    let tree = tree.time("t/b", 1_000_000_000);
    assert_eq!(prints(&tree, "--top=9 -b --time t/b"), "9\t2001-09-09 01:46\tf\tt/b\n");
}

#[test]
fn errors_are_reported() {
    let outcome = run(&forest(), "--top=1 -b missing u");
    outcome.status(1).says("du: cannot access 'missing'");
    assert_eq!(outcome.out(), "9100\td\tu\n");
}
