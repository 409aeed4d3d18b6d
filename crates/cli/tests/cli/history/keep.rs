//! Scans into a store, the list of it, and the removal of old inventories.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::history::{age, names, objects, run};
use crate::support::commands::{fathom, halted_at, out_of_time, program};
use crate::support::{Tree, needs_faults, needs_mounts};

#[test]
fn with_only_changed_each_scan_continues_from_the_one_before() {
    let tree = Tree::parse("t/a/f 5000, t/b/g 3, u/x 1");
    let scan = |words: &[&str]| run(&tree, &[&["scan", "--keep", "store", "--only-changed"], words].concat());
    let (out, errors) = scan(&["t"]);
    let first = "fathom scan: 'store' has no earlier inventory of the same trees and options: reading every directory\n";
    assert_eq!((out.as_str(), errors.as_str()), ("", first));
    assert_eq!(fs::metadata(tree.at("store")).unwrap().permissions().mode() & 0o777, 0o700);
    let (_, errors) = scan(&["t"]);
    assert!(errors.contains("directories had not changed: their"), "{errors}");
    let (_, errors) = scan(&["-x", "t"]);
    assert_eq!(errors, first);
    let (_, errors) = run(&tree, &["scan", "--keep", "store", "t"]);
    assert_eq!(errors, "");
    let (_, errors) = scan(&["u"]);
    assert_eq!(errors, first);
    assert_eq!(names(&tree).len(), 5);
    let listed = objects(&tree, &["history", "--json", "store"]);
    let list: Vec<_> = listed
        .iter()
        .map(|one| (one["roots"][0].as_str().unwrap(), one["entries"].as_u64().unwrap()))
        .collect();
    let [t, u] = [tree.at("t"), tree.at("u")].map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(list, [(&*t, 5), (&*t, 5), (&*t, 5), (&*t, 5), (&*u, 2)]);
    for one in &listed {
        assert_eq!(
            (&one["state"], &one["complete"], &one["ratio"]),
            (&"ended".into(), &true.into(), &1.0.into())
        );
        assert!(one["bytes"].as_u64() >= one["apparent"].as_u64() && one["disk_bytes"].as_u64() > Some(1000));
        assert!(one["path"].as_str().unwrap().starts_with("store/20"));
    }
}

#[test]
fn the_list_says_how_far_each_scan_came() {
    let tree = Tree::parse("t/a/f 5000, t/b/g 3, store/home.inv/file 1, store/notes 1");
    run(&tree, &["scan", "--keep", "store", "t"]);
    fs::create_dir(tree.at("store/2001-02-03T04-05-06Z.inv.part")).unwrap();
    let (out, errors) = run(&tree, &["history", "store"]);
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(errors, "");
    assert_eq!(lines[0][1..], ["-", "-", "unfinished", "-", "2001-02-03T04-05-06Z.inv.part"]);
    let root = tree.at("t");
    assert_eq!(
        (lines.len(), lines[1][2], lines[1][3], lines[1][6]),
        (2, "5", "100.00%", root.to_str().unwrap())
    );
    fs::create_dir(tree.at("store/2001-02-03T04-05-07Z.inv")).unwrap();
    let output = fathom(&tree, ["history", "store"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("unreadable"));
    let output = fathom(&tree, ["history", "nowhere"]);
    let message = "fathom history: cannot read 'nowhere': No such file or directory\n";
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
        (Some(2), message)
    );
}

#[test]
fn old_inventories_are_removed_and_nothing_else() {
    let tree = Tree::parse("t/a/f 5000, store/home.inv/manifest.json 1");
    let times =
        ["2025-01-01T00-00-00Z", "2025-01-01T12-00-00Z", "2025-01-02T12-00-00Z", "2025-03-01T12-00-00Z"];
    let aged: Vec<String> = times
        .iter()
        .map(|time| {
            run(&tree, &["scan", "--keep", "store", "t"]);
            fs::rename(tree.at("store/home.inv"), tree.at("home")).ok();
            age(&tree, time)
        })
        .collect();
    fs::rename(tree.at("home"), tree.at("store/home.inv")).unwrap();
    let prune = |words: &[&str]| run(&tree, &[&["history", "prune"], words, &["store"]].concat()).0;
    let shown = prune(&["--keep-daily", "2", "--dry-run"]);
    assert_eq!(shown, format!("store/{}\nstore/{}\n", aged[0], aged[1]));
    assert_eq!(names(&tree).len(), 5);
    assert_eq!(prune(&["--keep-daily", "2", "--keep-monthly", "2"]), shown);
    assert_eq!(prune(&["--keep-daily", "2", "--keep-monthly", "2"]), "");
    let left: Vec<_> = names(&tree).into_iter().collect();
    assert_eq!(left, [&aged[2], &aged[3], "home.inv"]);
    // A scan prunes as well, and keeps its own inventory.
    run(&tree, &["scan", "--keep", "store", "--keep-last", "1", "t"]);
    let left = names(&tree);
    assert!(left.len() == 2 && left.contains("home.inv") && !left.contains(&aged[3]), "{left:?}");
}

#[test]
fn a_dry_run_and_a_removal_say_the_same() {
    let tree = Tree::parse("t/f 5");
    for time in ["2025-01-01T00-00-00Z", "2025-01-02T00-00-00Z", "2025-01-03T00-00-00Z"] {
        run(&tree, &["scan", "--keep", "store", "t"]);
        age(&tree, time);
    }
    let foreign = tree.at("store/2025-01-01T00-00-00Z.inv/notes.txt");
    fs::write(foreign, "mine").unwrap();
    let prune = |words: &[&str]| {
        let words = [&["history", "prune", "--keep-last", "1"], words, &["store"]].concat();
        let output = fathom(&tree, words);
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    let (status, shown, errors) = prune(&["--dry-run"]);
    assert_eq!((status, &shown[..]), (Some(1), &b"store/2025-01-02T00-00-00Z.inv\n"[..]), "{errors}");
    assert!(errors.contains("notes.txt") && names(&tree).len() == 3, "{errors}");
    assert_eq!(prune(&[]), (status, shown, errors));
    assert_eq!(names(&tree).len(), 2);
}

#[test]
fn no_directory_is_made_of_which_only_the_parent_is_meant() {
    let tree = Tree::parse("t/f 5");
    for store in ["none/..", "none/../store"] {
        let output = fathom(&tree, ["scan", "--keep", store, "t"]);
        let why = format!("fathom scan: cannot create '{store}': No such file or directory\n");
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(2), why));
        assert!(!tree.at("none").exists() && !tree.at("store").exists());
    }
    run(&tree, &["scan", "--keep", "t/../store", "t"]);
    assert_eq!(names(&tree).len(), 1);
}

#[test]
fn those_who_may_read_the_inventories_may_enter_a_new_store() {
    let tree = Tree::parse("t/f 5");
    let mode = |path: &str| fs::metadata(tree.at(path)).unwrap().permissions().mode() & 0o777;
    run(&tree, &["scan", "--keep", "private", "t"]);
    run(&tree, &["scan", "--keep", "shared", "--mode=640", "t"]);
    assert_eq!((mode("private"), mode("shared")), (0o700, 0o750));
    fs::set_permissions(tree.at("shared"), Permissions::from_mode(0o700)).unwrap();
    run(&tree, &["scan", "--keep", "shared", "--mode=644", "t"]);
    assert_eq!(mode("shared"), 0o700, "a directory that is there stays as it is");
}

/// Returns the exit status of a scan that is kept and comes to its deadline.
fn stopped(tree: &Tree, words: &[&str]) -> Option<i32> {
    let mut command = Command::new(program());
    command.args(["scan", "--keep", "store"]).args(words).current_dir(tree.path());
    out_of_time(&mut command).output().unwrap().status.code()
}

#[test]
fn a_scan_that_was_stopped_can_be_gone_on_with() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("t/a/f 5000, t/b/g 3, t/c/d/e 1");
    assert_eq!(stopped(&tree, &["--keep-last", "1", "t"]), Some(1));
    let stopped = objects(&tree, &["history", "--json", "store"]);
    assert_eq!(
        (stopped.len(), &stopped[0]["state"], &stopped[0]["complete"]),
        (1, &"stopped".into(), &false.into())
    );
    run(&tree, &["scan", "--keep", "store", "--resume"]);
    let ended = objects(&tree, &["history", "--json", "store"]);
    assert_eq!((&ended[0]["path"], &ended[0]["state"]), (&stopped[0]["path"], &"ended".into()));
    let output = fathom(&tree, ["scan", "--keep", "store", "--resume"]);
    let why = "fathom scan: no scan to continue in 'store': give a PATH\n";
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(2), why));
    run(&tree, &["scan", "--keep", "store", "--resume", "t"]);
    assert_eq!(names(&tree).len(), 2);
}

#[test]
fn only_a_scan_of_the_same_trees_is_gone_on_with() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("t/a/f 5000, t/b/g 3, t/c/d/e 1, u/x 1");
    assert_eq!(stopped(&tree, &["t"]), Some(1));
    // Another tree is begun with.
    run(&tree, &["scan", "--keep", "store", "--resume", "u"]);
    let states = || -> Vec<(String, String)> {
        let text = |one: &serde_json::Value| one.as_str().unwrap().to_owned();
        let listed = objects(&tree, &["history", "--json", "store"]);
        listed.iter().map(|one| (text(&one["roots"][0]), text(&one["state"]))).collect()
    };
    let of = |name: &str, state: &str| (tree.at(name).to_str().unwrap().to_owned(), state.to_owned());
    assert_eq!(states(), [of("t", "stopped"), of("u", "ended")]);
    run(&tree, &["scan", "--keep", "store", "--resume", "./t/"]);
    assert_eq!(states(), [of("t", "ended"), of("u", "ended")]);
}

#[test]
fn a_shallow_scan_removes_no_inventory_of_everything() {
    let tree = Tree::parse("t/a/f 5000, t/b/g 3");
    run(&tree, &["scan", "--keep", "store", "t"]);
    let full = age(&tree, "2025-01-01T00-00-00Z");
    for words in [&["--max-depth", "1"][..], &["--exclude", "f"], &["-x"], &["--ignore-vcs"]] {
        let words = [&["scan", "--keep", "store", "--keep-last", "1"], words, &["t"]].concat();
        run(&tree, &words);
    }
    assert!(names(&tree).contains(&full) && names(&tree).len() == 5, "{:?}", names(&tree));
    let output = fathom(&tree, ["grew", "store"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    run(&tree, &["scan", "--keep", "store", "--keep-last", "1", "t"]);
    assert!(!names(&tree).contains(&full) && names(&tree).len() == 5, "{:?}", names(&tree));
}

#[test]
fn a_root_is_one_however_it_is_spelled() {
    let tree = Tree::parse("t/a/f 5000, u/x 1");
    tree.symlink("link", "t");
    let run_in = |directory: &str, root: &str| {
        let store = tree.at("store");
        let mut command = Command::new(program());
        command.args(["scan", "--keep", store.to_str().unwrap(), "--keep-last", "1", root]);
        let output = command.current_dir(tree.at(directory)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let roots = || -> Vec<String> {
        let listed = objects(&tree, &["history", "--json", "store"]);
        let top = tree.path().to_str().unwrap();
        let path = |one: &serde_json::Value| one["roots"][0].as_str().unwrap().to_owned();
        listed.iter().map(|one| path(one).strip_prefix(top).unwrap().to_owned()).collect()
    };
    run_in("t", ".");
    run_in("u", ".");
    assert_eq!(roots(), ["/t", "/u"]);
    for (directory, root) in [(".", "t/"), (".", ".//t/."), ("t/a", tree.at("t").to_str().unwrap())] {
        run_in(directory, root);
        assert_eq!(roots(), ["/u", "/t"], "{root}");
    }
    for (directory, root) in [
        ("u", "../t"),
        (".", "t/a/../../u/../t"),
        (".", "link/../u/../t"),
        (".", "t/a/.."),
        ("u", "../link/a/.."),
    ] {
        run_in(directory, root);
        assert_eq!(roots(), ["/u", "/t"], "{root}");
    }
    run_in(".", "link");
    run_in(".", "link/");
    assert_eq!(roots(), ["/u", "/t", "/link", "/link/"]);
    let entries: Vec<_> =
        objects(&tree, &["history", "--json", "store"]).iter().map(|one| one["entries"].as_u64()).collect();
    assert_eq!(entries[2..], [Some(1), Some(3)]);
}

#[test]
fn a_leftover_that_stays_blocks_nothing_else() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("t/a/f 5000, store/.2001-01-01T00-00-00Z.inv.removed/");
    for time in ["2025-01-01T00-00-00Z", "2025-01-02T00-00-00Z", "2025-01-03T00-00-00Z"] {
        run(&tree, &["scan", "--keep", "store", "t"]);
        let last = names(&tree).into_iter().next_back().unwrap();
        fs::rename(tree.at(format!("store/{last}")), tree.at(format!("store/{time}.inv"))).unwrap();
    }
    let script = format!(
        "mount -t tmpfs none store/.2001-01-01T00-00-00Z.inv.removed
         '{0}' history prune --keep-last 2 store; echo status $?
         '{0}' scan --keep store --keep-last 1 t; echo status $?",
        program().display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.output().unwrap();
    let (out, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(out, "store/2025-01-01T00-00-00Z.inv\nstatus 1\nstatus 1\n", "{errors}");
    let why = "cannot remove 'store/.2001-01-01T00-00-00Z.inv.removed': Device or resource busy";
    assert_eq!(errors.matches(why).count(), 2, "{errors}");
    assert_eq!(names(&tree).len(), 2, "{:?}", names(&tree));
}

/// Once, each night left one more.
#[test]
fn scans_that_find_no_room_leave_one_behind() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("t/a/f 5000, u/x 1, store/");
    for number in 0..3000 {
        fs::write(tree.at(format!("t/a/{number:0>60}")), "").unwrap();
    }
    let script = format!(
        "mount -t tmpfs -o size=400k none store
         scan() {{ '{0}' scan --keep store --keep-last 3 $1; }}
         scan u; scan t; scan t; dd if=/dev/zero of=store/full bs=1k count=1000
         for round in 1 2 3 4; do scan t; echo status $?; ls -d store/*.part | wc -l; done
         rm store/full; scan t && ls -d store/*.part",
        program().display()
    );
    let mut command = Command::new("unshare");
    let command = command.args(["-m", "sh", "-c", &script]).current_dir(tree.path()).env("LC_ALL", "C");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines, ["status 2", "1", "status 2", "1", "status 2", "1", "status 2", "1"], "{errors}");
    assert!(errors.contains("No space left on device") && errors.contains("store/*.part"), "{errors}");
}

#[test]
fn one_run_at_a_time_adds_to_a_store() {
    if !needs_faults() {
        return;
    }
    let tree = Tree::parse("t/a/f 5000, t/b/g 3, t/c/d/e 1");
    let mut first = Command::new(program());
    first.args(["scan", "--keep", "store", "t"]).current_dir(tree.path());
    // It has recorded its trees, and holds the store's lock.
    let mut first = halted_at(&mut first, "directory-left");
    for words in [&["scan", "--keep", "store", "t"][..], &["history", "prune", "--keep-last", "1", "store"]] {
        let output = fathom(&tree, words);
        let why = "another scan or merge is writing to it";
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(why));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // A later run continues the scan of the killed one.
    run(&tree, &["scan", "--keep", "store", "--resume"]);
    let listed = objects(&tree, &["history", "--json", "store"]);
    assert_eq!((listed.len(), &listed[0]["state"], &listed[0]["entries"]), (1, &"ended".into(), &8.into()));
}

#[test]
fn wrong_command_lines_are_refused() {
    let tree = Tree::parse("t/f 1");
    let table: [(&[&str], &str); 9] = [
        (&["scan", "--keep", "store"], "missing operand: PATH to scan"),
        (&["scan", "--keep", "store", "-o", "i", "t"], "--keep cannot be combined with -o or --since"),
        (&["scan", "--keep-daily", "3", "-o", "i", "t"], "require --keep"),
        (&["scan", "--only-changed", "-o", "i", "t"], "require --keep"),
        (&["scan", "--keep", "store", "--estimate", "1s", "t"], "cannot be combined with --keep"),
        (&["scan", "--keep", "store", "--keep-last", "0", "t"], "a number, at least 1"),
        (&["history", "--keep-last", "1"], "require prune"),
        (&["history", "prune", "store"], "missing option: what to keep"),
        (&["history", "prune", "--keep-last", "1"], "missing operand: DIR, the store to prune"),
    ];
    for (words, why) in table {
        let output = fathom(&tree, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains(why), "{words:?}");
    }
    assert!(!tree.at("store").exists());
}

#[test]
fn commands_that_take_an_inventory_take_the_newest_of_a_store() {
    let tree = Tree::parse("d/old 5000");
    run(&tree, &["scan", "--keep", "store", "d"]);
    age(&tree, "2026-01-01T00-00-00Z");
    fs::rename(tree.at("d/old"), tree.at("d/new")).unwrap();
    run(&tree, &["scan", "--keep", "store", "d"]);
    let newest = names(&tree).into_iter().next_back().unwrap();
    let newest = format!("store/{newest}");
    // An unfinished scan is no inventory yet.
    fs::create_dir(tree.at("store/2999-01-01T00-00-00Z.inv.part")).unwrap();
    for words in [
        &["top", "--by", "file", "IT"][..],
        &["list", "--from", "IT"],
        &["du", "-a", "--from", "IT"],
        &["export", "--to", "nul", "IT"],
        &["report", "-o", "-", "IT"],
    ] {
        let of = |inventory: &str| {
            let words: Vec<&str> =
                words.iter().map(|word| if *word == "IT" { inventory } else { word }).collect();
            run(&tree, &words).0
        };
        let text = of("store");
        assert!(text.contains("new") && !text.contains("d/old"), "{words:?}: {text}");
        assert_eq!(text, of(&newest), "{words:?}");
    }
    fs::create_dir(tree.at("empty")).unwrap();
    let output = fathom(&tree, ["top", "empty"]);
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("'empty/manifest.json'"),
        "{:?}",
        output.status
    );
}
