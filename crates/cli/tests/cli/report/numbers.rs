//! The numbers of the page equal the numbers of `fathom top` and `fathom diff`.

use serde_json::Value;

use crate::report::{data, last_three, objects, page, sums};
use crate::support::Tree;
use crate::support::commands::stdout_of;

/// Files of many sizes and types, and inodes with several names: in one directory, in two, and at
/// different depths.
const SPEC: &str = "s/a/one.rs 5000, s/a/two.RS 70000, s/a/same.rs = s/a/one.rs, s/b/c/far.txt 300000, \
    s/b/near.txt = s/b/c/far.txt, s/b/c/d/deep 1, s/top.rs = s/a/one.rs, s/empty, s/none/, s/hole.img ~3G, s/l -> a, \
    s/pipe |, s/b/sock %, s/x/y/z/.dot 4096, s/x/y/film.mkv 900000, o 8000";

fn scanned(operands: &[&str]) -> Tree {
    let tree = Tree::parse(SPEC);
    stdout_of(&tree, &[&["scan", "-o", "i"], operands].concat());
    tree
}

/// Returns the text and the sums of each row of `fathom top`, and the total.
fn top(tree: &Tree, by: &str) -> (Vec<(String, [i64; 3])>, [i64; 3]) {
    let mut rows = objects(tree, &["top", "--json", "-n", "50", "--by", by, "i"]);
    let total = sums(&rows.pop().unwrap()["total"]);
    let text = |row: &Value| {
        let text = row.get("path").or(row.get("key")).and_then(Value::as_str).map(str::to_owned);
        text.unwrap_or_else(|| if row.get("type").is_some() { "(directory)" } else { "(none)" }.to_owned())
    };
    (rows.iter().map(|row| (text(row), sums(row))).collect(), total)
}

/// Returns the path and the sums of a node.
fn node(data: &Value, at: &Value) -> (String, [i64; 3]) {
    let (nodes, at) = (&data["nodes"], usize::try_from(at.as_u64().unwrap()).unwrap());
    let number = |column: &str| nodes[column][at].as_i64().unwrap();
    let name = nodes["name"][at].as_str().unwrap();
    let parent = &nodes["parent"][at];
    let path = match parent.as_i64() {
        Some(-1) => name.to_owned(),
        _ => format!("{}/{name}", node(data, parent).0),
    };
    (path, [number("blocks") * 512, number("apparent"), number("entries").max(1)])
}

#[test]
fn every_table_has_the_rows_of_top() {
    // The last operands overlap, and one is a file.
    for operands in [&["s"][..], &["s/b", "s"], &["s", "o", "s/x"], &["s/a/one.rs", "s/a"]] {
        let tree = scanned(operands);
        let data = data(&page(&tree));
        for by in ["user", "ext", "age", "size"] {
            let rows = data["by"][by].as_array().unwrap().iter();
            let rows: Vec<_> =
                rows.map(|row| (row[0].as_str().unwrap().to_owned(), last_three(row))).collect();
            let (expected, total) = top(&tree, by);
            assert_eq!(rows, expected, "{operands:?} by {by}");
            assert_eq!(serde_json::json!(total), data["total"]);
        }
        for (list, by) in [("topDirs", "dir"), ("topFiles", "file")] {
            let rows = data[list].as_array().unwrap();
            let found: Vec<_> =
                rows.iter().map(|row| (row[0].as_str().unwrap().to_owned(), last_three(row))).collect();
            assert_eq!(found, top(&tree, by).0, "{operands:?} by {by}");
            for row in rows.iter().filter(|row| row[1] != -1) {
                let (place, text) = (node(&data, &row[1]).0, row[0].as_str().unwrap());
                assert!(text == place || text.rsplit_once('/').unwrap().0 == place, "{text} in {place}");
            }
        }
        let kinds = data["by"]["kind"].as_array().unwrap().iter().map(last_three);
        let all = kinds.fold([0; 3], |all, row| [0, 1, 2].map(|at| all[at] + row[at]));
        assert_eq!(serde_json::json!(all), data["total"], "{operands:?}");
    }
}

#[test]
fn the_largest_files_are_those_of_top_without_a_node_of_their_own() {
    let tree = Tree::new();
    // Each directory takes more than its file, and there are more of them than nodes.
    for number in 0..20_500 {
        tree.file(format!("s/{number}/f"), 1);
    }
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    let data = data(&page(&tree));
    let files = data["nodes"]["entries"].as_array().unwrap().iter().filter(|entries| **entries == 0);
    assert_eq!(files.count(), 0, "every node is a directory");
    for (list, by) in [("topDirs", "dir"), ("topFiles", "file")] {
        let rows = data[list].as_array().unwrap().iter();
        let rows: Vec<_> = rows.map(|row| (row[0].as_str().unwrap().to_owned(), last_three(row))).collect();
        assert_eq!((rows.len(), &rows), (50, &top(&tree, by).0));
    }
}

#[test]
fn what_version_control_ignores_has_a_sum_and_a_column() {
    let tree = Tree::parse("s/.git/, s/target/a 5000, s/target/d/b 70000, s/src/x.rs 300");
    tree.holding("s/.gitignore", "target\n");
    stdout_of(&tree, &["scan", "--also", "ignored", "-o", "i", "s"]);
    let data = data(&page(&tree));
    assert_eq!((&data["ignored"][1], &data["ignored"][2]), (&75_000.into(), &2.into()));
    let nodes = 0..data["nodes"]["name"].as_array().unwrap().len();
    let of = |wanted: i64| {
        let is_wanted = |at: &usize| data["nodes"]["ignored"][*at] == wanted;
        let mut paths: Vec<_> = nodes.clone().filter(is_wanted).map(|at| node(&data, &at.into()).0).collect();
        paths.sort();
        paths
    };
    assert_eq!(of(1), ["s/target/a", "s/target/d/b"]);
    assert_eq!(of(0), ["s/.gitignore", "s/src/x.rs"]);
    // The entries of these directories all have nodes of their own.
    assert_eq!(of(-1), ["s", "s/.git", "s/src", "s/target", "s/target/d"]);
    stdout_of(&tree, &["scan", "-o", "plain", "s"]);
    let plain = String::from_utf8(stdout_of(&tree, &["report", "-o", "-", "plain"])).unwrap();
    let plain = crate::report::data(&plain);
    assert_eq!((&plain["ignored"], &plain["nodes"]["ignored"]), (&Value::Null, &Value::Array(Vec::new())));
}

#[test]
fn a_directory_is_the_sum_of_its_entries() {
    let tree = Tree::parse("s/a/f 5000, s/a/g 70000, s/b/h 1, s/b/c/i 300000, s/j 7");
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    let data = data(&page(&tree));
    let count = data["nodes"]["name"].as_array().unwrap().len();
    assert_eq!(count, 9, "every entry has a node");
    for at in 0..count {
        let (path, all) = node(&data, &at.into());
        let children = (0..count).filter(|child| data["nodes"]["parent"][*child] == at);
        let inside = children.map(|child| node(&data, &child.into()).1);
        let inside = inside.fold([0; 3], |all, one| [0, 1, 2].map(|at| all[at] + one[at]));
        if data["nodes"]["entries"][at] != 0 {
            assert_eq!([all[1], all[2] - 1], [inside[1], inside[2]], "{path}");
        }
    }
}

#[test]
fn growth_is_that_of_diff() {
    let tree = Tree::parse("s/a/f 5000, s/a/g 70000, s/b/c/h 1, s/gone/x 90000, s/same/y 4096");
    stdout_of(&tree, &["scan", "-o", "old", "s"]);
    std::fs::remove_dir_all(tree.at("s/gone")).unwrap();
    let tree = tree.with("s/b/c/big 800000, s/new/file 20000, s/a/f 1");
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    let page = stdout_of(&tree, &["report", "-o", "-", "--since", "old", "i"]);
    let growth = &data(std::str::from_utf8(&page).unwrap())["growth"];
    let output =
        crate::support::commands::fathom(&tree, ["diff", "--dirs", "--json", "-n", "50", "old", "i"]);
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut expected: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let total = sums(&expected.pop().unwrap()["total"]);
    let rows = growth["rows"].as_array().unwrap();
    let texts: Vec<_> = rows.iter().map(|row| row[0].as_str().unwrap()).collect();
    assert!(texts.contains(&"s/gone") && texts.contains(&"s/new") && !texts.contains(&"s/same"), "{texts:?}");
    let found: Vec<_> =
        rows.iter().map(|row| (row[0].clone(), [2, 3, 4].map(|at| row[at].as_i64().unwrap()))).collect();
    let expected: Vec<_> = expected.iter().map(|row| (row["path"].clone(), sums(row))).collect();
    assert_eq!((found, &growth["total"]), (expected, &serde_json::json!(total)));
    // A removed directory is not on the map.
    let place = texts.iter().position(|text| *text == "s/gone").unwrap();
    assert_eq!(rows[place][1], -1);
}
