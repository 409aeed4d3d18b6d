//! Runs the queries of docs/queries.md, taken from the page, and checks their results.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::query::engine::engines;
use crate::query::home::ScannedTree;
use crate::query::truth::{Entry, ExpectedEntries, assert_same};

const DAY: i64 = 86_400;

/// Returns the headings of the page, and the query below each.
fn queries() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/queries.md");
    let page = std::fs::read_to_string(path).unwrap();
    let sections = page.split("\n## ").skip(1);
    let queries = sections.map(|section| {
        let (heading, text) = section.split_once('\n').unwrap();
        let query = text.split_once("```sql\n").and_then(|(_, rest)| rest.split_once("\n```")).unwrap().0;
        (heading.to_owned(), query.to_owned())
    });
    queries.collect()
}

/// Returns the rows reduced to these columns.
fn only(rows: &[Value], columns: &[&str]) -> Vec<Value> {
    let pick =
        |row: &Value| columns.iter().map(|column| ((*column).to_owned(), row[*column].clone())).collect();
    rows.iter().map(|row| Value::Object(pick(row))).collect()
}

fn column(rows: &[Value], name: &str) -> Vec<u64> {
    rows.iter().map(|row| row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))).collect()
}

#[test]
fn every_query_of_the_page_is_answered_and_right() {
    let queries = queries();
    assert!(queries.len() >= 10, "{queries:#?}");
    let home = ScannedTree::new();
    let truth = ExpectedEntries::of(home.path());
    for engine in engines() {
        for (heading, sql) in &queries {
            let rows = engine.rows(home.path(), sql);
            assert!(!rows.is_empty(), "{heading}");
            check(heading, &rows, &truth);
        }
    }
}

/// Asserts that `rows` are the result that the query below `heading` should have. Panics for an
/// unknown heading.
#[track_caller]
fn check(heading: &str, rows: &[Value], truth: &ExpectedEntries) {
    match heading {
        "The largest files" => largest(rows, truth),
        "Space by owner" => assert_same(only(rows, &["entries", "bytes"]), owners(truth), heading),
        "Space by extension" => assert_same(rows.to_vec(), extensions(truth), heading),
        "Not read for a year" => assert_same(only(rows, &["size", "path"]), unread(truth), heading),
        "Where data grows" => assert_same(rows.to_vec(), growing(truth), heading),
        "Likely duplicates" => assert_same(rows.to_vec(), duplicates(truth), heading),
        "Files with several names, counted once" => {
            assert_eq!(column(rows, "bytes"), [ExpectedEntries::allocated_once(truth.files())]);
        }
        "The largest subtrees below a directory" => assert_same(rows.to_vec(), subtrees(truth), heading),
        "The files below a directory" => {
            assert_same(only(rows, &["entries", "bytes"]), [below(truth, "home/src")], heading);
        }
        "Sizes of directories, as du prints them" => assert_same(rows.to_vec(), du(truth), heading),
        "Empty directories" => assert_same(rows.to_vec(), empty(truth), heading),
        "Directories with the most names" => assert_eq!(column(rows, "names")[0], 3000),
        "Errors by cause" => {
            let cause = "No such file or directory";
            assert_eq!(
                rows,
                [json!({"message": cause, "op": "access", "errors": 1, "one_of_them": "absent"})]
            );
        }
        "World-writable entries" => assert_same(rows.to_vec(), writable(truth), heading),
        "Programs that run as their owner" => {
            assert_eq!(only(rows, &["mode", "path"]), [json!({"mode": "4755", "path": "home/program"})]);
        }
        "How old the data is" => {
            let sizes = regular(truth).map(|entry| entry.meta.size()).sum::<u64>();
            assert_eq!(column(rows, "bytes").iter().sum::<u64>(), sizes);
            assert!(rows.len() >= 3, "{rows:?}");
        }
        _ => panic!("the query below '{heading}' has no check"),
    }
}

fn regular(truth: &ExpectedEntries) -> impl Iterator<Item = &Entry> {
    truth.files().filter(|entry| entry.kind() == 'f')
}

fn largest(rows: &[Value], truth: &ExpectedEntries) {
    let mut sizes: Vec<u64> = truth.files().map(|entry| entry.meta.size()).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(column(rows, "size"), sizes[..20]);
    assert_eq!(rows[0]["path"], "home/hole");
}

fn owners(truth: &ExpectedEntries) -> Vec<Value> {
    let mut owners: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for entry in &truth.0 {
        let owner = owners.entry(entry.meta.uid()).or_default();
        *owner = (owner.0 + 1, owner.1 + entry.meta.blocks() * 512);
    }
    owners.into_values().map(|(entries, bytes)| json!({"entries": entries, "bytes": bytes})).collect()
}

fn extensions(truth: &ExpectedEntries) -> Vec<Value> {
    let mut found: BTreeMap<Option<String>, (u64, u64)> = BTreeMap::new();
    for entry in regular(truth) {
        let sums = found.entry(entry.ext()).or_default();
        *sums = (sums.0 + 1, sums.1 + entry.meta.size());
    }
    found
        .into_iter()
        .map(|(ext, (files, bytes))| json!({"ext": ext, "files": files, "bytes": bytes}))
        .collect()
}

fn now() -> i64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs().cast_signed()
}

fn unread(truth: &ExpectedEntries) -> Vec<Value> {
    let old: Vec<_> = regular(truth).filter(|entry| entry.meta.atime() < now() - 365 * DAY).collect();
    assert_eq!(old.len(), 2);
    old.iter().map(|entry| json!({"size": entry.meta.size(), "path": entry.path()})).collect()
}

fn growing(truth: &ExpectedEntries) -> Vec<Value> {
    let mut rows = Vec::new();
    for dir in truth.dirs() {
        let children = truth.children(dir).into_iter().filter(|entry| entry.kind() == 'f');
        let new: Vec<_> = children.filter(|entry| entry.meta.mtime() > now() - 7 * DAY).collect();
        let bytes: u64 = new.iter().map(|entry| entry.meta.size()).sum();
        rows.push(json!({"path": dir.path(), "files": new.len(), "bytes": bytes}));
    }
    rows.retain(|row| row["files"] != 0);
    rows
}

fn duplicates(truth: &ExpectedEntries) -> Vec<Value> {
    // The inodes and paths of the files with one name and size.
    type Copies = (BTreeSet<u64>, BTreeSet<String>);
    let mut groups: BTreeMap<(&[u8], u64), Copies> = BTreeMap::new();
    for entry in regular(truth).filter(|entry| entry.meta.size() > 0) {
        let group = groups.entry((&entry.name, entry.meta.size())).or_default();
        group.0.insert(entry.meta.ino());
        group.1.insert(entry.path());
    }
    groups.retain(|_, (inodes, _)| inodes.len() > 1);
    assert!(!groups.is_empty());
    let row = |((name, size), (inodes, paths)): (_, Copies)| {
        let spare = size * (inodes.len() as u64 - 1);
        json!({"name": crate::query::truth::text(name), "size": size, "copies": inodes.len(), "spare_bytes": spare, "paths": paths})
    };
    groups.into_iter().map(row).collect()
}

/// Returns the expected `t_blocks` of a directory.
fn blocks(truth: &ExpectedEntries, dir: &Entry) -> u64 {
    dir.meta.blocks() + truth.below(dir).iter().map(|entry| entry.meta.blocks()).sum::<u64>()
}

fn subtrees(truth: &ExpectedEntries) -> Vec<Value> {
    let top = truth.at("home/src");
    let dirs = truth.below(top).into_iter().filter(|entry| entry.meta.is_dir()).chain([top]);
    let row = |dir: &Entry| {
        let files = truth.below(dir).iter().filter(|entry| entry.kind() == 'f').count();
        json!({"bytes": blocks(truth, dir) * 512, "files": files, "path": dir.path()})
    };
    dirs.map(row).collect()
}

fn below(truth: &ExpectedEntries, path: &str) -> Value {
    let files = truth.below(truth.at(path)).into_iter().filter(|entry| !entry.meta.is_dir());
    let sizes: Vec<u64> = files.map(|entry| entry.meta.size()).collect();
    json!({"entries": sizes.len(), "bytes": sizes.iter().sum::<u64>()})
}

fn du(truth: &ExpectedEntries) -> Vec<Value> {
    let roots: Vec<&Entry> = truth.dirs().filter(|dir| dir.parent.is_none()).collect();
    let is_high =
        |dir: &&Entry| dir.parent.as_ref().is_none_or(|parent| roots.iter().any(|root| root.path == *parent));
    let row = |dir: &Entry| json!({"kib": blocks(truth, dir) / 2, "path": dir.path()});
    truth.dirs().filter(is_high).map(row).collect()
}

fn empty(truth: &ExpectedEntries) -> Vec<Value> {
    let empty = truth.dirs().filter(|dir| truth.children(dir).is_empty());
    empty.map(|dir| json!({"path": dir.path()})).collect()
}

fn writable(truth: &ExpectedEntries) -> Vec<Value> {
    let meant = |entry: &Entry| entry.meta.is_dir() && entry.meta.mode() & 0o1000 != 0;
    let found =
        truth.0.iter().filter(|entry| entry.meta.mode() & 2 != 0 && entry.kind() != 'l' && !meant(entry));
    found
        .map(|entry| {
            let mode = format!("{:o}", entry.meta.mode() & 0o7777);
            json!({"mode": mode, "type": entry.kind().to_string(), "path": entry.path()})
        })
        .collect()
}
