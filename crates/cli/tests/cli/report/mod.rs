//! `fathom report`: the numbers of the page equal the numbers of other commands, the page is
//! bounded and safe for any names, and a browser shows it.

mod browser;
mod numbers;
mod output;
mod size;

use crate::support::Tree;
use crate::support::commands::stdout_of;
use serde_json::Value;

/// Returns the data of a page. Bytes that are no characters become `?`.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    let mut text = String::new();
    let mut parts = json.split("\\udc");
    text.push_str(parts.next().unwrap());
    parts.for_each(|part| text.extend(["?", &part[2..]]));
    serde_json::from_str(&text).unwrap()
}

/// Returns the page of the inventory `i`.
#[track_caller]
fn page(tree: &Tree) -> String {
    String::from_utf8(stdout_of(tree, &["report", "-o", "-", "i"])).unwrap()
}

/// Returns the objects of a command's output, one a line.
#[track_caller]
fn objects(tree: &Tree, words: &[&str]) -> Vec<Value> {
    let text = stdout_of(tree, words);
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Returns the three sums in an object.
fn sums(object: &Value) -> [i64; 3] {
    ["bytes", "apparent", "entries"].map(|name| object[name].as_i64().unwrap())
}

/// Returns the numbers at the end of a row.
fn last_three(row: &Value) -> [i64; 3] {
    let row = row.as_array().unwrap();
    [3, 2, 1].map(|back| row[row.len() - back].as_i64().unwrap())
}
