//! Entries, files and directories mean the same in all commands: an entry is a name, the root of a
//! tree is one, and directories and files are the two kinds.

use serde_json::Value;

use crate::support::Tree;
use crate::support::commands::stdout_of;

fn text(tree: &Tree, words: &[&str]) -> String {
    String::from_utf8(stdout_of(tree, words)).unwrap()
}

/// Returns the last object of a command.
fn last(tree: &Tree, words: &[&str]) -> Value {
    serde_json::from_str(text(tree, words).lines().last().unwrap()).unwrap()
}

/// One inventory once gave 203,156 entries in one command, and 179,156 in another.
#[test]
fn all_commands_count_the_same_entries() {
    let tree =
        Tree::parse("t/a/f 5000, t/a/g = t/a/f, t/b/h = t/a/f, t/b/c/d/z 9, t/e/, t/p |, t/l -> a, t/q 1");
    let (entries, directories) = (13, 6);
    let files = entries - directories;
    assert_eq!(text(&tree, &["list", "t"]).lines().count(), entries);
    assert_eq!(text(&tree, &["list", "-t", "d", "t"]).lines().count(), directories);
    text(&tree, &["scan", "--keep", "store", "t"]);
    assert_eq!(last(&tree, &["history", "--json", "store"])["entries"], entries);
    assert_eq!(text(&tree, &["list", "--from", "store"]).lines().count(), entries);
    for by in ["dir", "file", "user", "group", "ext", "age", "size", "type", "depth"] {
        assert_eq!(last(&tree, &["top", "--json", "--by", by, "store"])["total"]["entries"], entries, "{by}");
    }
    let by_type = text(&tree, &["top", "--json", "--by", "type", "store"]);
    let is_directory = |row: &&str| row.contains("\"directory\"");
    let row: Value = serde_json::from_str(by_type.lines().find(is_directory).unwrap()).unwrap();
    assert_eq!(row["entries"], directories);
    let metrics = text(&tree, &["export", "--to", "prometheus", "store"]);
    let metric = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(metric("fathom_entries{"), entries);
    assert_eq!(metric("fathom_owner_entries{"), entries);
    assert_eq!(metric("fathom_directory_entries{"), entries);
    assert_eq!(metric("fathom_directories{"), directories);
    let estimate = last(&tree, &["scan", "--estimate", "60s", "--json", "t"]);
    assert_eq!(
        (&estimate["total"]["entries"]["estimate"], &estimate["total"]["dirs"]["estimate"]),
        (&entries.into(), &directories.into())
    );
    let amount = format!("{files} files and {directories} directories ");
    let dry_run = text(&tree, &["rm", "-r", "--dry-run", "t"]);
    assert!(dry_run.contains(&amount), "{dry_run}");
    // Growth is in entries, too.
    std::fs::hard_link(tree.at("t/q"), tree.at("t/e/again")).unwrap();
    text(&tree, &["scan", "--keep", "store", "t"]);
    assert_eq!(last(&tree, &["grew", "--json", "store"])["total"]["entries"], 1);
}
