//! `fathom grew`: the growth between two inventories of a store.

use std::fs;

use serde_json::json;

use crate::support::Tree;
use crate::support::commands::{fathom, stdout_of};
use crate::{age, objects, run};

/// A directory that was changed this long ago need not be read again.
const SETTLED: std::time::Duration = std::time::Duration::from_millis(3100);

/// A store with an old inventory and a new one of a tree that has grown meanwhile.
fn grown() -> Tree {
    let tree = Tree::parse("t/deep/er/old.log 4096, t/gone/x.iso 8192, t/same/y 4096");
    run(&tree, &["scan", "--keep", "store", "t"]);
    age(&tree, "2025-01-01T00-00-00Z");
    fs::write(tree.at("t/deep/er/new.log"), vec![7; 1 << 20]).unwrap();
    fs::write(tree.at("t/same/z.iso"), vec![7; 65536]).unwrap();
    fs::remove_file(tree.at("t/gone/x.iso")).unwrap();
    run(&tree, &["scan", "--keep", "store", "--full", "t"]);
    tree
}

#[test]
fn the_directory_that_has_the_growth_has_the_line() {
    let tree = grown();
    let rows = objects(&tree, &["grew", "--json", "store"]);
    let (last, rows) = rows.split_last().unwrap();
    // Those above have hardly more growth.
    let paths: Vec<_> =
        rows.iter().map(|row| (row["path"].as_str().unwrap(), row["entries"].as_i64().unwrap())).collect();
    assert_eq!(paths, [("t/deep/er", 1), ("t/same", 1)]);
    assert!(rows[0]["apparent"] == json!(1 << 20) && rows[0]["complete"] == json!(true));
    assert_eq!(last["total"]["apparent"], json!((1 << 20) + 65536 - 8192));
    assert_eq!(last["total"]["entries"], json!(1));
    assert!(last["available"].as_u64().unwrap() > 0 && last["complete"] == json!(true));
    // `diff --dirs` has every directory.
    let all = objects_of_diff(&tree, last["old"].as_str().unwrap(), last["new"].as_str().unwrap());
    assert!(all.contains(&"t".to_owned()) && all.contains(&"t/gone".to_owned()));
    let text = String::from_utf8(stdout_of(&tree, &["grew", "-n", "1", "store"])).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() == 2 && lines[1].ends_with("\tt/deep/er") && lines[0].contains(" days: +"), "{text}");
}

fn objects_of_diff(tree: &Tree, old: &str, new: &str) -> Vec<String> {
    let output = fathom(tree, ["diff", "--dirs", "--json", old, new]);
    let text = String::from_utf8(output.stdout).unwrap();
    let objects = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    objects.filter_map(|object| object["path"].as_str().map(str::to_owned)).collect()
}

#[test]
fn groups_grow_too() {
    let tree = grown();
    let keys = |by: &str| -> Vec<(String, i64)> {
        let mut rows = objects(&tree, &["grew", "--json", "--by", by, "store"]);
        rows.pop();
        let key = |row: &serde_json::Value| {
            row["key"].as_str().map_or_else(|| row["id"].to_string(), str::to_owned)
        };
        rows.iter().map(|row| (key(row), row["apparent"].as_i64().unwrap())).collect()
    };
    assert_eq!(keys("ext"), [("log".to_owned(), 1 << 20), ("iso".to_owned(), 65536 - 8192)]);
    assert_eq!(keys("type"), [("regular".to_owned(), (1 << 20) + 65536 - 8192)]);
    assert_eq!(keys("owner").len(), 1);
}

#[test]
fn the_moment_chooses_the_inventory() {
    let tree = grown();
    let new = objects(&tree, &["grew", "--json", "store"]).pop().unwrap();
    let old = new["old"].as_str().unwrap();
    let chosen = |since: &str| {
        let (out, errors) = run(&tree, &["grew", "--json", "--since", since, "store"]);
        let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        (last["old"].as_str().unwrap().to_owned(), errors)
    };
    for since in ["yesterday", "Mon", "7d", "2025-06-01", "@1740000000"] {
        assert_eq!(chosen(since), (old.to_owned(), String::new()), "{since}");
    }
    let younger = "fathom grew: 'store' has no inventory that old: compared with the oldest one\n";
    assert_eq!(chosen("2001-01-01"), (old.to_owned(), younger.to_owned()));
    // Two inventories without a store.
    let path = new["new"].as_str().unwrap();
    let same = objects(&tree, &["grew", "--json", path, path]).pop().unwrap();
    assert_eq!(
        (&same["days"], &same["total"]["bytes"], &same["days_until_full"]),
        (&json!(0.0), &json!(0), &json!(null))
    );
}

#[test]
fn what_cannot_be_known_is_said() {
    let tree = grown();
    // The scanned directory is another one.
    fs::rename(tree.at("t"), tree.at("former")).unwrap();
    fs::create_dir(tree.at("t")).unwrap();
    let (out, errors) = run(&tree, &["grew", "--json", "store"]);
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&last["available"], &last["days_until_full"]), (&json!(null), &json!(null)));
    assert!(errors.contains("the scanned directory is not there, or is another one"), "{errors}");
    // Files in directories that were not read have their former sizes.
    std::thread::sleep(SETTLED);
    run(&tree, &["scan", "--keep", "other", "former"]);
    run(&tree, &["scan", "--keep", "other", "former"]);
    let (_, errors) = run(&tree, &["grew", "other"]);
    assert!(errors.contains("had not changed and were not read"), "{errors}");
    let table: [(&[&str], i32, &str); 5] = [
        (&["grew", "--since", "soon", "store"], 2, "invalid time"),
        (&["grew", "--since", "7d", "a", "b"], 2, "--since chooses from a store"),
        (&["grew", "nowhere"], 2, "cannot read 'nowhere'"),
        (&["grew", "t"], 2, "'t' has no inventory whose scan came to its end"),
        (&["grew", "a", "b"], 1, "cannot read 'a/manifest.json'"),
    ];
    for (words, status, why) in table {
        let output = fathom(&tree, words);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(why), "{words:?}");
    }
}
