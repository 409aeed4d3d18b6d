//! Changes that `fathom diff` classifies, each by itself.

use crate::diff::{after, diff, fathom, objects, scan, shell};
use crate::support::Tree;

#[test]
fn equal_inventories_have_no_differences() {
    assert_eq!(after("s/a/f 7, s/l -> a, s/g = s/a/f", "true"), "");
    assert_eq!(after("s/a/f 7", "cat s/a/f >f"), "", "being read is no change");
    let tree = Tree::parse("s/a/f 7");
    ["old", "new"].into_iter().for_each(|name| scan(&tree, name));
    let (rows, last) = objects(&diff(&tree, &["--json"], 0));
    assert!(rows.is_empty() && last["complete"] == true, "{last}");
    assert_eq!(diff(&tree, &["--dirs"], 0), b"");
}

#[test]
fn each_kind_of_change_has_a_line() {
    assert_eq!(after("s/f 7", "echo >s/g; mkdir s/d; echo >s/d/h"), "+ s/d/\n+ s/d/h\n+ s/g\n");
    assert_eq!(after("s/d/f 7", "rm -r s/d"), "- s/d/\n- s/d/f\n");
    assert_eq!(after("s/f 7", "truncate -s 70000 s/f"), "M s/f: size 7 -> 70000, mtime\n");
    assert_eq!(
        after("s/f 7, s/d/", "chmod 4711 s/f; chmod 700 s/d"),
        "M s/d/: mode 0755 -> 0700\nM s/f: mode 0644 -> 4711\n"
    );
    assert_eq!(
        after("s/l -> a", "touch -hd @9 s/l; ln -sfn bb s/l; touch -hd @9 s/l"),
        "M s/l: size 1 -> 2, mtime, link_target 'a' -> 'bb'\n"
    );
    assert_eq!(after("s/f 7", "touch -d @9 s/f"), "M s/f: mtime\n");
    assert_eq!(after("s/f 7", "chmod 600 s/f; chmod 644 s/f"), "M s/f: ctime\n");
}

#[test]
fn a_renamed_directory_is_one_change() {
    assert_eq!(after("s/a/b/f 7, s/a/g 1", "mv s/a s/z"), "R s/a/ -> s/z/\n");
    assert_eq!(
        after("s/a/b/f 7, s/a/g 1, s/c/", "mv s/a s/c/z; rm s/c/z/g; echo >s/c/z/b/new; mv s/c/z/b/f s"),
        "- s/a/g\nR s/a/ -> s/c/z/\n+ s/c/z/b/new\nR s/a/b/f -> s/f\n"
    );
    assert_eq!(
        after("s/a/f 7, s/b/g 7", "mv s/a x; mv s/b s/a; mv x s/b"),
        "R s/b/ -> s/a/\nR s/a/ -> s/b/\n"
    );
}

#[test]
fn renamed_files_are_found_whatever_took_their_names() {
    assert_eq!(
        after("s/log 7, s/log.1 8", "mv s/log.1 s/log.2; mv s/log s/log.1; echo >s/log"),
        "+ s/log\nR s/log -> s/log.1\nR s/log.1 -> s/log.2\n"
    );
    assert_eq!(after("s/a 7, s/b 8", "mv s/a x; mv s/b s/a; mv x s/b"), "R s/b -> s/a\nR s/a -> s/b\n");
    assert_eq!(after("s/a 7", "mv s/a s/b; chmod 600 s/b"), "R s/a -> s/b: mode 0644 -> 0600\n");
}

#[test]
fn a_file_in_the_place_of_another_is_compared_with_it() {
    assert_eq!(after("s/f 7", "touch -d @9 x; cp -p x s/y; mv s/y s/f"), "M s/f: size 7 -> 0, mtime\n");
    assert_eq!(after("s/f 7", "cp -p s/f x; mv x s/f"), "", "an exact copy");
    assert_eq!(after("s/f 7", "rm s/f; mkdir s/f"), "- s/f\n+ s/f/\n");
    assert_eq!(after("s/d/f 7", "rm -r s/d; echo >s/d"), "- s/d/\n+ s/d\n- s/d/f\n");
    let text = after("s/f 7", "rm s/f; ln -s target s/f; touch -hd @9 s/f");
    assert!(
        text.starts_with("M s/f: type f -> l, size 7 -> 6, mtime, mode 0644 -> 0777, link_target '' -> "),
        "{text}"
    );
    assert_eq!(after("s/d/f 7", "cp -pr s/d x; rm -r s/d; mv x s/d"), "", "a directory made anew");
}

#[test]
fn hard_links_are_created_and_removed() {
    assert_eq!(after("s/a 7", "ln s/a s/b"), "+ s/b\n");
    assert_eq!(after("s/a 7, s/b = s/a", "rm s/a"), "- s/a\n");
    assert_eq!(
        after("s/a 7, s/d/b = s/a", "mv s/d/b s/d/c"),
        "M s/a: ctime\n- s/d/b\n+ s/d/c\n",
        "the other name stays"
    );
    assert_eq!(after("s/a 7, s/b = s/a", "mv s/a s/c; mv s/b s/d"), "R s/a -> s/c\nR s/b -> s/d\n");
    assert_eq!(after("s/a 7, s/b = s/a", "mv s/a s/c; rm s/b"), "- s/b\nR s/a -> s/c\n");
    assert_eq!(after("s/a 7", "mv s/a s/b; ln s/b s/c"), "R s/a -> s/b\n+ s/c\n");
}

#[test]
fn a_copy_is_compared_with_its_original() {
    let tree = Tree::parse("s/a/f 7, s/b/g 8, s/l -> a, t/");
    scan(&tree, "old");
    shell(&tree, "cp -a s t/copy; echo more >>t/copy/b/g; touch -d @9 t/copy/b/g");
    assert!(fathom(&tree, &["scan", "-o", "../new", "t/copy"]).status.success());
    assert_eq!(diff(&tree, &[], 1), b"M t/copy/b/g: size 8 -> 13, mtime\n");
}

#[test]
fn only_selects_kinds_of_changes() {
    let tree = Tree::parse("s/a/f 7, s/a/g 7, s/b/h 7, s/b/gone 7");
    scan(&tree, "old");
    shell(&tree, "mv s/a/g s/b/g; rm s/b/gone; chmod 600 s/a/f s/b/h; mkdir s/c; echo >s/c/new");
    scan(&tree, "new");
    let text = |words: &[&str], status| String::from_utf8(diff(&tree, words, status)).unwrap();
    let mode = "mode 0644 -> 0600";
    assert_eq!(text(&["--only=created,removed"], 1), "- s/b/gone\n+ s/c/\n+ s/c/new\n");
    assert_eq!(text(&["--only", "ren"], 1), "R s/a/g -> s/b/g\n");
    for below in ["a", "s/a", "./a//"] {
        assert_eq!(text(&["--below", below], 1), format!("M s/a/f: {mode}\nR s/a/g -> s/b/g\n"));
    }
    assert_eq!(text(&["--below", "b"], 1), format!("R s/a/g -> s/b/g\n- s/b/gone\nM s/b/h: {mode}\n"));
    assert_eq!(text(&["--below", "c", "--only=m"], 0), "");
    assert_eq!(text(&["--below", "c"], 1), "+ s/c/\n+ s/c/new\n");
    let output = fathom(&tree, &["diff", "--below", "s/x", "../old", "../new"]);
    assert_eq!(output.stderr, b"fathom diff: no inventory has a directory 's/x'\n");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn operands_may_be_files_and_may_overlap() {
    let tree = Tree::parse("s/a/f 7, lone 5, s/a/g 1");
    let scan = |name| {
        let words = ["scan", "-o", name, "s", "s/a", "lone"];
        assert!(fathom(&tree, &words).status.success());
    };
    scan("../old");
    shell(&tree, "mv s/a/f s/a/z; rm s/a/g; mkdir s/a/d; touch -d @9 lone");
    scan("../new");
    let text = String::from_utf8(diff(&tree, &[], 1)).unwrap();
    assert_eq!(text, "M lone: mtime\n+ s/a/d/\n- s/a/g\nR s/a/f -> s/a/z\n");
}
