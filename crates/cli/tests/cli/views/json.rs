//! `--json`: objects with the contents of the text output, and whether they are complete.

use serde_json::{Value, json};

use crate::support::tree::name;
use crate::support::{Tree, du, needs_mounts};
use crate::views::{FATHOM, prints, run};

fn forest() -> Tree {
    Tree::parse("t/a/x 600, t/a/y 100, t/b.rs 200, t/l -> b.rs, t/p |")
}

fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

fn prints_objects(tree: &Tree, words: &str) -> Vec<Value> {
    objects(&prints(tree, words))
}

fn complete_totals(total: Value) -> Value {
    json!({ "total": total, "complete": true, "errors": 0 })
}

#[test]
fn an_object_for_each_line_in_the_same_order() {
    let tree = forest();
    for words in ["t", "-a t", "-s t", "-ad1 t", "-aS t", "-at 100 t", "t/b.rs t/a"] {
        let mut objects = prints_objects(&tree, &format!("--json -b {words}"));
        assert_eq!(objects.pop().unwrap()["complete"], true);
        let lines =
            objects.iter().map(|line| format!("{}\t{}\n", line["bytes"], line["path"].as_str().unwrap()));
        assert_eq!(lines.collect::<String>(), prints(&tree, &format!("-b {words}")), "{words}");
    }
}

#[test]
fn lines_know_depth_and_type() {
    let objects = prints_objects(&forest(), "--json -ab t/a t/l t/p");
    let line =
        |path, depth, of_type, bytes| json!({"path": path, "depth": depth, "type": of_type, "bytes": bytes});
    assert!(objects.contains(&line("t/a/x", 1, "regular", 600)), "{objects:?}");
    assert!(objects.contains(&line("t/a", 0, "directory", 700)), "{objects:?}");
    assert_eq!(objects[3], line("t/l", 0, "symlink", 4));
    assert_eq!(objects[4], line("t/p", 0, "fifo", 0));
    assert_eq!(objects[5], complete_totals(json!({ "bytes": 704 })));
}

#[test]
fn inodes_and_times_are_there_where_they_are_asked_for() {
    let tree = Tree::parse("f").time("f", 1_000_000_000);
    let time = "2001-09-09 01:46";
    let objects = prints_objects(&tree, "--json --inodes --time f");
    assert_eq!(objects[0], json!({ "path": "f", "depth": 0, "type": "regular", "inodes": 1, "time": time }));
    assert_eq!(objects[1], complete_totals(json!({ "inodes": 1, "time": time })));
    let style = prints_objects(&tree, "--json -b --time --time-style=+%s f");
    assert_eq!(style[0]["time"], "1000000000");
}

#[test]
fn names_that_are_not_utf_8_have_their_bytes() {
    let tree = Tree::new();
    tree.file(name(b"t/\xff\n"), 1);
    let objects = prints_objects(&tree, "--json -ab t");
    assert_eq!(objects[0]["path"], "t/\u{fffd}\n");
    assert_eq!(objects[0]["path_bytes"], "742fff0a");
    assert_eq!(objects[1].get("path_bytes"), None);
}

#[test]
fn errors_are_counted_and_make_the_status_1() {
    let outcome = run(&forest(), "--json -b missing t/b.rs gone");
    outcome.status(1).says("du: cannot access 'missing'");
    let objects = objects(&outcome.out());
    assert_eq!(objects[1], json!({ "total": { "bytes": 200 }, "complete": true, "errors": 2 }));
}

#[test]
fn unreadable_directories_are_errors_in_every_view() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("t/closed/").mode("t/closed", 0);
    for view in ["", "--tree", "--top=9", "--by=type"] {
        let outcome = du(&tree, &format!("--json {view} t")).unprivileged().run(FATHOM);
        assert_eq!(objects(&outcome.status(1).out()).last().unwrap()["errors"], 1, "{view}");
    }
}

#[test]
fn rows_of_the_largest_are_those_of_the_text() {
    let mut objects = prints_objects(&forest(), "--json --top=3 -b t");
    assert_eq!(objects.pop(), Some(complete_totals(json!({ "bytes": 904 }))));
    let row =
        |path, depth, of_type, bytes| json!({"path": path, "depth": depth, "type": of_type, "bytes": bytes});
    let expected =
        [row("t", 0, "directory", 904), row("t/a", 1, "directory", 700), row("t/a/x", 2, "regular", 600)];
    assert_eq!(objects, expected);
}

#[test]
fn rows_of_the_tree_are_those_of_the_text() {
    let outcome = du(&forest(), "--json --tree -ab t").env("LINES", "5").run(FATHOM);
    let objects = objects(&outcome.out());
    let expected = [
        json!({ "path": "t", "depth": 0, "type": "directory", "bytes": 904, "share": 1.0 }),
        json!({ "path": "t/a", "depth": 1, "type": "directory", "bytes": 700, "share": 0.774 }),
        json!({ "path": "t/a/x", "depth": 2, "type": "regular", "bytes": 600, "share": 0.664 }),
        json!({ "path": "t/b.rs", "depth": 1, "type": "regular", "bytes": 200, "share": 0.221 }),
        complete_totals(json!({ "bytes": 904 })),
    ];
    assert_eq!(objects, expected);
    let outcome = du(&forest(), "--json --tree -b t").env("LINES", "5").run(FATHOM);
    let more = json!({ "path": "t", "more": 3, "bytes": 204, "share": 0.226 });
    assert_eq!(self::objects(&outcome.out())[2], more);
}

#[test]
fn groups_have_a_key_or_say_why_not() {
    let expected = [
        json!({ "by": "ext", "key": null, "bytes": 704, "inodes": 4, "share": 0.779 }),
        json!({ "by": "ext", "key": "rs", "bytes": 200, "inodes": 1, "share": 0.221 }),
        json!({ "by": "ext", "key": null, "type": "directory", "bytes": 0, "inodes": 2, "share": 0.0 }),
        complete_totals(json!({ "bytes": 904 })),
    ];
    assert_eq!(prints_objects(&forest(), "--json --by=ext -b t"), expected);
    let users = prints_objects(&forest(), "--json --by=user --inodes t");
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!((&users[0]["id"], &users[0]["inodes"]), (&json!(uid), &json!(7)));
}
