//! The programs of the guide work as documented, and the guide shows their exact sources.

use std::fs;
use std::path::Path;

use crate::support::tree::{Chain, Tree, bushy, fill, mixed};
use crate::support::{Watchdog, skip};

#[path = "../../../examples/delete.rs"]
#[allow(dead_code, reason = "its main")]
mod delete;
#[path = "../../../examples/duplicates.rs"]
#[allow(dead_code, reason = "its main")]
mod duplicates;
#[path = "../../../examples/hash_all.rs"]
#[allow(dead_code, reason = "its main")]
mod hash_all;
#[path = "../../../examples/sync_list.rs"]
#[allow(dead_code, reason = "its main")]
mod sync_list;

#[test]
fn the_guide_shows_the_programs_that_are_tested() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(guide) = fs::read_to_string(here.join("../../docs/gatherer.md")) else {
        return skip("the package of the crate does not contain the guide");
    };
    for name in ["delete", "sync_list", "hash_all", "duplicates"] {
        let program = fs::read_to_string(here.join(format!("examples/{name}.rs"))).unwrap();
        assert!(guide.contains(&format!("```rust\n{program}```")), "docs/gatherer.md differs from {name}.rs");
    }
}

#[test]
fn delete_removes_every_tree() {
    let tree = Tree::new();
    let _watchdog = Watchdog::new("delete");
    let trees = ["bushy", "wide", "mixed", "empty"].map(|name| tree.dir(name));
    bushy(&trees[0], 4, 4);
    fill(&trees[1], 20_000);
    for number in 0..200 {
        tree.dir(&format!("wide/d{number}/x"));
    }
    let other = Tree::new();
    mixed(&other);
    fs::rename(other.path("a"), tree.path("mixed/a")).unwrap();
    assert_eq!(delete::delete(&trees).unwrap(), 0);
    assert_eq!(fs::read_dir(tree.root()).unwrap().count(), 0, "nothing is left");
    // The target of a symbolic link is not part of the tree.
    tree.dir("kept");
    tree.file("kept/f");
    tree.dir("gone");
    tree.symlink("../kept", "gone/link");
    assert_eq!(delete::delete(&[tree.path("gone")]).unwrap(), 0);
    assert!(tree.path("kept/f").exists() && !tree.path("gone").exists());
    assert_eq!(delete::delete(&[tree.path("missing")]).unwrap(), 1);
}

#[test]
fn delete_removes_a_tree_deeper_than_any_path() {
    let chain = Chain::new(3_000, &[c"x", c"y"]);
    let _watchdog = Watchdog::new("delete a chain");
    assert_eq!(delete::delete(&[chain.root()]).unwrap(), 0);
    assert!(!chain.root().exists());
}

#[test]
fn sync_list_lists_the_differences_of_a_copy() {
    let tree = Tree::new();
    for (dir, files) in [("source/a", ["same", "longer", "new"]), ("copy/a", ["same", "longer", "old"])] {
        tree.dir(dir);
        files.iter().for_each(|name| tree.file(&format!("{dir}/{name}")));
    }
    tree.dir("copy/gone/deeper");
    fs::write(tree.path("source/a/longer"), "longer than before").unwrap();
    let time = fs::metadata(tree.path("source/a/same")).unwrap().modified().unwrap();
    fs::write(tree.path("copy/a/same"), fs::read(tree.path("source/a/same")).unwrap()).unwrap();
    fs::File::options().write(true).open(tree.path("copy/a/same")).unwrap().set_modified(time).unwrap();
    let [source, copy] = ["source", "copy"].map(|name| tree.path(name));
    let lines = sync_list::sync_list(&source, &copy).unwrap().unwrap();
    let expected = ["copy a/longer", "copy a/new", "delete gone/deeper", "delete gone", "delete a/old"];
    assert_eq!(lines, expected);
    assert_eq!(sync_list::sync_list(&source, &source).unwrap(), Some(Vec::new()));
    assert_eq!(sync_list::sync_list(&tree.path("missing"), &copy).unwrap(), None, "nothing is deleted");
}

#[test]
fn hash_all_hashes_every_file() {
    let tree = Tree::new();
    tree.dir("a");
    fs::write(tree.path("a/abc"), "abc").unwrap();
    fs::write(tree.path("empty"), "").unwrap();
    tree.symlink("a/abc", "link");
    let (hashes, is_all) = hash_all::hash_all(&[tree.root()]).unwrap();
    // `xxhsum -H64` prints the same hashes.
    let expected = [(tree.path("a/abc"), 0x44bc_2cf5_ad77_0999), (tree.path("empty"), 0xef46_db37_51d8_e999)];
    assert_eq!((hashes.as_slice(), is_all), (expected.as_slice(), true));
    assert!(!hash_all::hash_all(&[tree.path("missing")]).unwrap().1);
}

#[test]
fn duplicates_are_files_with_the_same_contents() {
    let tree = Tree::new();
    tree.dir("a");
    let long = "x".repeat(10_000);
    for (name, text) in [
        ("a/one", long.clone()),
        ("two", long.clone()),
        // This file has the same size and the same beginning.
        ("a/other", format!("{}y", &long[1..])),
        ("three", "text".to_owned()),
        ("a/four", "text".to_owned()),
        ("empty", String::new()),
        ("a/empty", String::new()),
    ] {
        fs::write(tree.path(name), text).unwrap();
    }
    fs::hard_link(tree.path("two"), tree.path("a/zwei")).unwrap();
    let groups = duplicates::duplicates(&[tree.root()]).unwrap();
    let groups: Vec<Vec<_>> =
        groups.iter().map(|group| group.iter().map(|path| path.below_root()).collect()).collect();
    let expected =
        [["a/four", "three"], ["a/one", "a/zwei"]].map(|group| group.map(std::path::PathBuf::from).to_vec());
    assert_eq!(groups, expected);
}
