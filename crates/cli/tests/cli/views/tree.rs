//! `--tree`: the selection, order and appearance of rows, and that they fit the screen.

use crate::support::{Tree, du};
use crate::views::{FATHOM, prints, run};

fn sources() -> Tree {
    Tree::parse("t/a/x 600, t/a/y 100, t/b 200, t/c/z 50, t/c/e, t/d/")
}

#[test]
fn the_largest_come_first_with_their_shares() {
    let expected = "\
950 100% ████████████████ t/
700  74% ███████████▊     ├─ a/
600  63% ██████████▏      │  ├─ x
100  11% █▋               │  └─ y
200  21% ███▍             ├─ b
 50   5% ▉                ├─ c/
 50   5% ▉                │  ├─ z
  0   0%                  │  └─ e
  0   0%                  └─ d/
";
    assert_eq!(prints(&sources(), "--tree -ab t"), expected);
}

#[test]
fn without_utf_8_the_tree_is_drawn_in_ascii() {
    let expected = "\
950 100% ############ t
700  74% #########    |- a
 50   5% #            |- c
  0   0%              |- d
200  21% ###          `- 1 more
";
    let outcome = du(&sources(), "--tree -b t").env("LC_ALL", "C").env("COLUMNS", "60").run(FATHOM);
    // The entries of a and c need no rows: the rows of a and c give their sizes.
    assert_eq!(outcome.out(), expected);
}

#[test]
fn narrow_screens_have_no_bars_and_no_row_is_wider_or_lower_than_the_screen() {
    let tree = sources().deep("t/deep", 40, 30).wide("t/wide", 300);
    tree.file("t/wide/日本語の名前".repeat(5), 7);
    for (lines, columns) in [("4", "40"), ("6", "45"), ("24", "80"), ("60", "59"), ("500", "300")] {
        for words in ["--tree -a t", "--tree -ac --time t", "--tree --inodes -a t t/wide", "--tree -a -d1 t"]
        {
            let outcome = du(&tree, words).env("LINES", lines).env("COLUMNS", columns).run(FATHOM);
            let text = outcome.out();
            assert!(text.lines().count() < lines.parse().unwrap(), "{words} {lines}:\n{text}");
            for line in text.lines() {
                let cells: usize = line.chars().map(|c| if c >= '\u{3000}' { 2 } else { 1 }).sum();
                assert!(cells <= columns.parse().unwrap(), "{words} {columns}:\n{text}");
            }
        }
    }
}

#[test]
fn rows_are_as_many_as_fit() {
    let tree = Tree::new().wide("t", 300);
    for (lines, rows) in [("8", 7), ("299", 298), ("302", 301), ("9000", 301)] {
        let text = du(&tree, "--tree --inodes -a t").env("LINES", lines).run(FATHOM).out();
        assert_eq!(text.lines().count(), rows, "{lines}");
        assert_eq!(text.contains(" more"), rows < 301, "{lines}");
    }
}

#[test]
fn entries_without_a_row_are_counted() {
    let tree = Tree::parse("t/a 50, t/b 40, t/c/d 20, t/c/e 15, t/f 34, t/g 33");
    let expected = "\
192 100% ████████████████ t/
 50  26% ████▏            ├─ a
 40  21% ███▍             ├─ b
102  53% ████████▌        └─ 5 more
";
    assert_eq!(du(&tree, "--tree -ab t").env("LINES", "5").run(FATHOM).out(), expected);
    let directories = "\
192 100% ████████████████ t
 35  18% ██▉              ├─ c
157  82% █████████████▏   └─ 4 more
";
    assert_eq!(prints(&tree, "--tree -b t"), directories);
}

#[test]
fn depth_and_threshold_limit_what_is_shown_and_not_what_is_counted() {
    let shown = |words| {
        let text = prints(&sources(), words);
        let names = text.lines().map(|line| line.rsplit(' ').next().unwrap_or_default().to_string());
        names.collect::<Vec<_>>().join(" ") + " " + text.split(' ').next().unwrap_or_default()
    };
    assert_eq!(shown("--tree -abd1 t"), "t/ a/ b c/ d/ 950");
    assert_eq!(shown("--tree -bs t"), "t 950");
    assert_eq!(shown("--tree -abt100 t"), "t/ a/ x y b more 950");
}

#[test]
fn operands_are_trees_side_by_side() {
    let expected = "\
700  74% ███████████▊     t/a/
600  63% ██████████▏      ├─ x
100  11% █▋               └─ y
250  26% ████▎            t/
200  21% ███▍             ├─ b
 50   5% ▉                ├─ c/
 50   5% ▉                │  ├─ z
  0   0%                  │  └─ e
  0   0%                  └─ d/
";
    assert_eq!(prints(&sources(), "--tree -ab t/a t"), expected);
    assert!(prints(&sources(), "--tree -abc t/a t/b").ends_with("900 100% ████████████████ total\n"));
}

#[test]
fn names_cannot_control_a_terminal_even_through_a_pager() {
    let tree = Tree::new();
    for name in ["a\x1b[2J", "b\nc", "d\u{9b}31m", "e f", "g\r\x07"] {
        tree.file(format!("t/{name}"), 5);
    }
    let text = prints(&tree, "--tree -ab t");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    assert_eq!(text.lines().count(), 6);
    assert!(text.contains("├─ 'b'$'\\n''c'\n"), "{text}");
}

#[test]
fn errors_are_reported_and_the_rest_is_shown() {
    let outcome = run(&sources(), "--tree -b t/c missing");
    outcome.status(1).prints("t/c\n").says("du: cannot access 'missing': No such file or directory\n");
    assert_eq!(run(&sources(), "--tree missing").out(), "");
}

#[test]
fn separate_directories_conflict_with_tree() {
    let outcome = run(&sources(), "--tree -abS t");
    outcome.status(0).says("du: warning: option --separate-dirs is ineffective with --tree\n");
    assert_eq!(outcome.out(), prints(&sources(), "--tree -ab t"));
}

#[test]
fn sizes_are_short_unless_an_option_chooses() {
    let tree = Tree::parse("t/f 3000");
    let size = |words| prints(&tree, words).split(' ').next().unwrap_or_default().to_string();
    assert_eq!(size("--tree -sA t"), "3.0K");
    assert_eq!(size("--tree -sAB1 t"), "3000");
    assert_eq!(size("--tree -sA --si t"), "3.0k");
    assert_eq!(size("--tree -s --inodes t"), "2");
}
