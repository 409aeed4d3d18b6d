//! `fathom grew`: the growth between two inventories of a store.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::history::{age, names, objects, run};
use crate::support::commands::{fathom, program, stdout_of};
use crate::support::manifest::{start_earlier, with_checksum};
use crate::support::{Tree, needs_mounts};

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
    run(&tree, &["scan", "--keep", "store", "t"]);
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
    let [log, iso] = [tree.at("t/deep/er"), tree.at("t/same")];
    assert_eq!(paths, [(log.to_str().unwrap(), 1), (iso.to_str().unwrap(), 1)]);
    assert!(rows[0]["apparent"] == json!(1 << 20) && rows[0]["complete"] == json!(true));
    assert_eq!(last["total"]["apparent"], json!((1 << 20) + 65536 - 8192));
    assert_eq!(last["total"]["entries"], json!(1));
    assert!(last["available"].as_u64().unwrap() > 0 && last["complete"] == json!(true));
    // `diff --dirs` has every directory, with the same numbers.
    let all = objects_of_diff(&tree, last["old"].as_str().unwrap(), last["new"].as_str().unwrap());
    let of = |path: &std::path::Path| all.iter().find(|row| row["path"] == path.to_str().unwrap()).unwrap();
    for row in rows {
        let same = of(row["path"].as_str().unwrap().as_ref());
        for number in ["bytes", "apparent", "entries"] {
            assert_eq!(row[number], same[number], "{row} {same}");
        }
        assert!(row["bytes"].as_i64() > Some(0), "{row}");
    }
    assert_eq!(of(&tree.at("t"))["bytes"], last["total"]["bytes"]);
    assert!(of(&tree.at("t/gone"))["apparent"] == json!(-8192));
    let text = String::from_utf8(stdout_of(&tree, &["grew", "-n", "1", "store"])).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines.len() == 2 && lines[1].ends_with("/t/deep/er") && lines[0].contains(" minutes: +"),
        "{text}"
    );
    // The rate of a moment says nothing.
    assert!(!lines[0].contains("per day") && lines[1].contains("\t-\t"), "{text}");
}

fn objects_of_diff(tree: &Tree, old: &str, new: &str) -> Vec<Value> {
    let output = fathom(tree, ["diff", "--dirs", "--json", old, new]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The scans are four days apart, as their manifests have it.
#[test]
fn the_days_are_those_of_the_rate_and_the_free_space() {
    let tree = grown();
    let last = objects(&tree, &["grew", "--json", "store"]).pop().unwrap();
    let manifest = tree.at(format!("{}/manifest.json", last["old"].as_str().unwrap()));
    let text = fs::read_to_string(&manifest).unwrap();
    let start = |sec: i64| format!("\"start\": {sec},");
    let [was, end] = ["start", "end"].map(|name| last[name].as_i64().unwrap());
    assert!(text.contains(&start(was)), "{text}");
    let text = text.replace(&start(was), &start(end - 4 * 86_400));
    fs::write(&manifest, with_checksum(&text)).unwrap();
    let mut rows = objects(&tree, &["grew", "--json", "store"]);
    let last = rows.pop().unwrap();
    assert_eq!(last["days"], json!(4.0));
    for row in &rows {
        assert_eq!(row["bytes_per_day"], json!(row["bytes"].as_i64().unwrap() / 4), "{row}");
        assert!(row["bytes_per_day"].as_i64() > Some(0));
    }
    let number = |value: &Value| value.as_f64().unwrap();
    let expected = number(&last["available"]) / (number(&last["total"]["bytes"]) / 4.0);
    let days = number(&last["days_until_full"]);
    assert!(days > 0.0 && (days - expected).abs() <= 0.002 + expected * 1e-9, "{days} {expected}");
    let text = String::from_utf8(stdout_of(&tree, &["grew", "store"])).unwrap();
    let full = text.lines().next().unwrap().rsplit_once(" free, full in ").unwrap().1;
    // The free space changes meanwhile.
    let shown: f64 = full.strip_suffix(" days").unwrap().parse().unwrap();
    assert!((shown / expected - 1.0).abs() < 0.5, "{text}");
    assert!(text.lines().next().unwrap().contains(", 4.0 days: +"), "{text}");
}

#[test]
fn growth_on_several_filesystems_fills_none() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("t/a/f 5000, t/m/");
    let script = format!(
        "set -e; fathom() {{ '{}' \"$@\"; }}
         mount -t tmpfs none t/m; mkdir t/m/inner
         fathom scan --keep all t; fathom scan --keep one -x t
         head -c 100000 /dev/zero >t/m/inner/new; head -c 100000 /dev/zero >t/new
         fathom scan --keep all t; fathom scan --keep one -x t
         fathom grew --json all | tail -n 1; fathom grew --json one | tail -n 1",
        program().display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.output().unwrap();
    let (out, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{errors}");
    assert_eq!((&rows[0]["available"], &rows[0]["days_until_full"]), (&json!(null), &json!(null)));
    assert!(rows[1]["available"].as_u64() > Some(0) && rows[1]["days_until_full"].is_null(), "{out}");
    assert_eq!(errors.matches("the trees are on several file systems").count(), 1, "{errors}");
}

#[test]
fn every_view_has_the_same_total() {
    let tree = grown();
    run(&tree, &["scan", "-o", "both", "t", "store"]);
    run(&tree, &["scan", "-o", "one", "t"]);
    let last = |by: &str| objects(&tree, &["grew", "--json", "--by", by, "store"]).pop().unwrap();
    let mut expected = last("dir");
    for by in ["owner", "ext", "type"] {
        let mut found = last(by);
        for changing in ["available", "days_until_full"] {
            (found[changing], expected[changing]) = (json!(null), json!(null));
        }
        assert_eq!(found, expected, "{by}");
        for words in [["both", "one"], ["one", "both"]] {
            let output = fathom(&tree, [&["grew", "--by", by][..], &words].concat());
            let why = "fathom grew: only one inventory has 'store': --by owner, ext and type compare inventories of the same trees\n";
            assert_eq!((output.status.code(), &*String::from_utf8(output.stderr).unwrap()), (Some(2), why));
        }
    }
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
    let younger = "fathom grew: 'store' has no inventory that old: comparing with the oldest\n";
    assert_eq!(chosen("2001-01-01"), (old.to_owned(), younger.to_owned()));
    // Two inventories without a store.
    let path = new["new"].as_str().unwrap();
    let same = objects(&tree, &["grew", "--json", path, path]).pop().unwrap();
    assert_eq!(
        (&same["days"], &same["total"]["bytes"], &same["days_until_full"]),
        (&json!(0.0), &json!(0), &json!(null))
    );
}

/// A log that grew in place once gave no growth.
#[test]
fn growth_in_place_is_seen() {
    let tree = Tree::parse("t/log/app.log 4096");
    run(&tree, &["scan", "--keep", "store", "t"]);
    age(&tree, "2025-01-01T00-00-00Z");
    let mut log = fs::File::options().append(true).open(tree.at("t/log/app.log")).unwrap();
    std::io::Write::write_all(&mut log, &vec![7; 3 << 20]).unwrap();
    let (_, errors) = run(&tree, &["scan", "--keep", "store", "t"]);
    assert_eq!(errors, "");
    let rows = objects(&tree, &["grew", "--json", "store"]);
    assert_eq!(rows.last().unwrap()["total"]["apparent"], json!(3 << 20));
}

#[test]
fn a_limit_that_is_reached_has_an_exit_status_of_its_own() {
    let tree = grown();
    let grew = |words: &[&str]| {
        let output = fathom(&tree, [&["grew"], words, &["store"]].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (shown, limit, status) in [("2.0M", "2M", 0), ("1.0M", "1M", 3), ("1", "1", 3)] {
        let (ended, errors) = grew(&["--fail-if-grew", limit]);
        assert_eq!(ended, Some(status), "{limit}: {errors}");
        let message = format!("limit reached: grew by 1.1M, at least {shown}\n");
        assert_eq!(errors, if status == 3 { format!("fathom grew: {message}") } else { String::new() });
    }
    // Both scans began within an hour: whether the file system will be full cannot be said.
    let (ended, errors) = grew(&["--fail-if-full-within", "14d"]);
    assert_eq!(ended, Some(1), "{errors}");
    assert!(errors.contains("--fail-if-full-within: the scans are less than an hour apart"), "{errors}");
    // Two days apart, 1 MiB of growth fills no file system soon, but some day.
    let old = names(&tree).pop_first().unwrap();
    start_earlier(&tree.at(format!("store/{old}")), 2 * 86_400);
    assert_eq!(grew(&["--fail-if-full-within", "1h"]).0, Some(0));
    let (ended, errors) = grew(&["--fail-if-full-within", "100000000d"]);
    assert_eq!(ended, Some(3), "{errors}");
    assert!(
        errors.contains("limit reached: the file system will be full in ") && errors.contains(" days"),
        "{errors}"
    );
    // Nothing that grows fills it.
    fs::remove_file(tree.at("t/deep/er/new.log")).unwrap();
    fs::remove_file(tree.at("t/same/z.iso")).unwrap();
    run(&tree, &["scan", "--keep", "store", "t"]);
    let (ended, errors) =
        grew(&["--since", "2020-01-01", "--fail-if-full-within", "9000w", "--fail-if-grew", "1"]);
    assert_eq!(ended, Some(0), "{errors}");
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
    assert!(errors.contains("the scanned directory is gone or was replaced"), "{errors}");
    // Files in directories that were not read have their former sizes.
    std::thread::sleep(SETTLED);
    run(&tree, &["scan", "--keep", "other", "former"]);
    run(&tree, &["scan", "--keep", "other", "--only-changed", "former"]);
    let (_, errors) = run(&tree, &["grew", "other"]);
    assert!(errors.contains("had not changed and were not read"), "{errors}");
    let table: [(&[&str], i32, &str); 5] = [
        (&["grew", "--since", "soon", "store"], 2, "invalid time"),
        (&["grew", "--since", "7d", "a", "b"], 2, "--since requires a store"),
        (&["grew", "nowhere"], 2, "cannot read 'nowhere'"),
        (&["grew", "t"], 2, "'t' has no finished inventory"),
        (&["grew", "a", "b"], 1, "cannot read 'a/manifest.json'"),
    ];
    for (words, status, why) in table {
        let output = fathom(&tree, words);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(why), "{words:?}");
    }
}
