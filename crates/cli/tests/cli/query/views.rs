//! The views, compared with the tree row by row.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::query::engine::engines;
use crate::query::home::ScannedTree;
use crate::query::truth::{Entry, ExpectedEntries, ROW, assert_same};

#[test]
fn files_are_all_but_directories_with_their_paths() {
    let home = ScannedTree::new();
    let truth = ExpectedEntries::of(home.path());
    for engine in engines() {
        let found = engine.rows(home.path(), &format!("SELECT {ROW} FROM files v"));
        assert_same(found, truth.files().map(Entry::row), "files");
        let alone = engine.rows(home.path(), "SELECT path, hex(path_raw) AS raw FROM files WHERE dir_id = 0");
        let expected = [
            json!({"path": "alone\\xff.Txt", "raw": "616C6F6E65FF2E547874"}),
            json!({"path": "link", "raw": null}),
        ];
        assert_same(alone, expected, "operands that are no directories");
    }
}

#[test]
fn entries_are_files_and_directories() {
    let home = ScannedTree::new();
    let truth = ExpectedEntries::of(home.path());
    for engine in engines() {
        let found = engine.rows(home.path(), &format!("SELECT {ROW} FROM entries v"));
        assert_same(found, truth.0.iter().map(Entry::row), "entries");
        let columns =
            |view: &str| engine.rows(home.path(), &format!("SELECT column_name FROM (DESCRIBE {view})"));
        assert_eq!(columns("files"), columns("entries"));
    }
}

#[test]
fn directories_have_the_sums_of_what_is_below() {
    let home = ScannedTree::new();
    let truth = ExpectedEntries::of(home.path());
    let sql = "SELECT path, name, mode, n_files, n_dirs, n_other, sum_size, sum_blocks, t_files, t_dirs, t_other, t_size, t_blocks,
         state, errno, post - pre AS inside, dir_id = pre AS first,
         (SELECT p.path FROM dirs p WHERE p.dir_id = d.parent_id) AS parent FROM dirs d";
    for engine in engines() {
        assert_same(engine.rows(home.path(), sql), truth.dirs().map(|dir| directory(&truth, dir)), "dirs");
    }
}

fn directory(truth: &ExpectedEntries, dir: &Entry) -> Value {
    let (own, below) = (truth.children(dir), truth.below(dir));
    let files = |entries: &[&Entry]| entries.iter().filter(|entry| entry.kind() == 'f').count();
    let dirs = |entries: &[&Entry]| entries.iter().filter(|entry| entry.meta.is_dir()).count();
    let other = |entries: &[&Entry]| entries.len() - files(entries) - dirs(entries);
    let plain = |entries: &[&Entry], sum: fn(&Entry) -> u64| -> u64 {
        entries.iter().filter(|entry| !entry.meta.is_dir()).map(|entry| sum(entry)).sum()
    };
    let blocks = dir.meta.blocks() + below.iter().map(|entry| entry.meta.blocks()).sum::<u64>();
    let row = dir.row();
    json!({
        "path": row["path"], "name": row["name"], "mode": row["mode"], "n_files": files(&own), "n_dirs": dirs(&own),
        "n_other": other(&own), "sum_size": plain(&own, |entry| entry.meta.size()),
        "sum_blocks": plain(&own, |entry| entry.meta.blocks()), "t_files": files(&below), "t_dirs": dirs(&below),
        "t_other": other(&below), "t_size": plain(&below, |entry| entry.meta.size()), "t_blocks": blocks,
        "state": "complete", "errno": null, "inside": dirs(&below), "first": true, "parent": row["parent"],
    })
}

#[test]
fn links_are_the_names_of_files_that_have_several() {
    let home = ScannedTree::new();
    let truth = ExpectedEntries::of(home.path());
    let sql = "SELECT (SELECT d.path FROM dirs d WHERE d.dir_id = l.dir_id) AS parent, ino, size, blocks, nlink FROM links l";
    let linked = truth.files().filter(|entry| entry.meta.nlink() > 1);
    let expected: Vec<Value> = linked
        .map(|entry| {
            let row = entry.row();
            json!({"parent": row["parent"], "ino": row["ino"], "size": row["size"], "blocks": row["blocks"], "nlink": row["nlink"]})
        })
        .collect();
    assert_eq!(expected.len(), 5);
    for engine in engines() {
        assert_same(engine.rows(home.path(), sql), expected.clone(), "links");
    }
}

#[test]
fn owners_have_the_names_that_the_machine_gives_them() {
    let home = ScannedTree::new();
    let truth = ExpectedEntries::of(home.path());
    let table = |file: &str, ids: BTreeSet<u32>| -> Vec<Value> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let name = |id: u32| {
            let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
            lines
                .find(|fields| fields.get(2) == Some(&&id.to_string()[..]))
                .map(|fields| fields[0].to_owned())
        };
        ids.into_iter().map(|id| json!({"id": id, "name": name(id)})).collect()
    };
    let users = table("/etc/passwd", truth.0.iter().map(|entry| entry.meta.uid()).collect());
    let groups = table("/etc/group", truth.0.iter().map(|entry| entry.meta.gid()).collect());
    for engine in engines() {
        assert_same(engine.rows(home.path(), "FROM users"), users.clone(), "users");
        assert_same(engine.rows(home.path(), "FROM groups"), groups.clone(), "groups");
    }
}

#[test]
fn errors_have_the_unreadable_entries() {
    let home = ScannedTree::new();
    let expected = json!({
        "dir_id": null, "name": "absent", "name_raw": null, "path": "absent", "path_raw": null, "op": "access", "errno": 2,
        "message": "No such file or directory"
    });
    for engine in engines() {
        assert_same(engine.rows(home.path(), "FROM errors"), [expected.clone()], "errors");
    }
}
