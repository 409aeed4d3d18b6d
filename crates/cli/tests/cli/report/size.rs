//! The page has less than 1.5 MB for any tree.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use serde_json::Value;

use crate::report::{data, page};
use crate::support::Tree;
use crate::support::commands::stdout_of;

const PAGE_BYTES_MAX: usize = 1_500_000;

fn numbers<'a>(data: &'a Value, column: &str) -> impl Iterator<Item = i64> + use<'a> {
    data["nodes"][column].as_array().unwrap().iter().map(|number| number.as_i64().unwrap())
}

#[test]
fn the_rest_of_a_directory_is_in_its_sums() {
    let tree = Tree::parse("s/big 50000").wide("s/wide", 21_000);
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    let page = page(&tree);
    let data = data(&page);
    assert!(page.len() < PAGE_BYTES_MAX, "{}", page.len());
    assert_eq!(data["nodes"]["name"].as_array().unwrap().len(), 20_000);
    assert_eq!(data["total"][2], 21_003);
    let wide = data["nodes"]["name"].as_array().unwrap().iter().position(|name| name == "wide").unwrap();
    assert_eq!(numbers(&data, "entries").nth(wide), Some(21_001));
    let shown = numbers(&data, "parent").filter(|parent| *parent == wide as i64).count();
    assert_eq!(shown, 19_997, "the others of 20,000 are the root, the directory and the largest file");
}

#[test]
fn long_hostile_names_do_not_make_it_longer() {
    let tree = Tree::new();
    for number in 0..1500 {
        let name = [format!("s/{number:04}").as_bytes(), &b"\xff<".repeat(125)].concat();
        tree.file(OsString::from_vec(name), number);
    }
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    let page = page(&tree);
    assert!((1_000_000..PAGE_BYTES_MAX).contains(&page.len()), "{}", page.len());
    let data = data(&page);
    let nodes = data["nodes"]["name"].as_array().unwrap().len();
    assert!((500..1501).contains(&nodes), "{nodes}");
    // The largest ones are those that are shown.
    let parents: Vec<_> = numbers(&data, "parent").collect();
    assert!(parents.iter().enumerate().all(|(at, parent)| *parent < at as i64), "{parents:?}");
}

#[test]
fn a_deep_tree_with_long_paths_is_bounded() {
    let tree = Tree::new().deep("s", 60, 200);
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    let page = page(&tree);
    assert!(page.len() < PAGE_BYTES_MAX / 5, "{}", page.len());
    assert!(data(&page)["nodes"]["name"].as_array().unwrap().len() > 60);
}
