//! `--trash`: the user's own trash, and the one at the top of another mount.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::mounts::script;
use super::{left, parts, sorted};
use crate::support::commands::program;
use crate::support::{Tree, needs_mounts};

fn trash(tree: &Tree, fault: Option<&str>, words: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(["rm", "--trash"]).args(words).current_dir(tree.path());
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC-3").env("XDG_DATA_HOME", tree.at("data"));
    command.envs(fault.map(|fault| ("FATHOM_FAULT", fault)));
    command.output().unwrap()
}

/// Returns the value of a key in an information file.
fn value(info: &Path, key: &str) -> String {
    let text = fs::read_to_string(info).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("[Trash Info]"));
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap().to_owned()
}

#[test]
fn files_go_to_the_trash_of_the_user_with_their_place_and_the_local_time() {
    let tree = Tree::parse("d/sub/f 3, d/g 3");
    tree.file("x y", 3);
    assert_eq!(parts(&trash(&tree, None, &["-v", "-r", "d", "x y"])), {
        (0, "trashed 'd'\ntrashed 'x y'\n".into(), String::new())
    });
    let base = tree.path().canonicalize().unwrap();
    let info = tree.at("data/Trash/info/x y.trashinfo");
    assert_eq!(value(&info, "Path"), format!("{}/x%20y", base.display()));
    let date = value(&info, "DeletionDate");
    let now: jiff::civil::DateTime = date.parse().unwrap();
    // Three hours east of Greenwich.
    let utc = now.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(3))).unwrap().timestamp();
    let age = jiff::Timestamp::now().duration_since(utc);
    assert!(date.len() == 19 && age.as_hours() == 0, "{date}: {age:?}");
    assert_eq!(
        left(&tree),
        "data data/Trash data/Trash/files data/Trash/files/d data/Trash/files/d/g data/Trash/files/d/sub \
         data/Trash/files/d/sub/f data/Trash/files/x y data/Trash/info data/Trash/info/d.trashinfo \
         data/Trash/info/x y.trashinfo"
    );
}

#[test]
fn a_dry_run_does_not_say_that_the_trash_frees_anything() {
    let tree = Tree::parse("d/f 3, d/g 3");
    let (status, stdout, stderr) = parts(&trash(&tree, None, &["-r", "--dry-run", "d"]));
    assert_eq!((status, stderr.as_str()), (0, ""));
    let sum = stdout.strip_prefix("would trash 2 files and 1 directory (").unwrap();
    assert!(sum.ends_with(" allocated)\n") && !sum.contains("free"), "{stdout}");
}

#[test]
fn a_killed_run_loses_nothing() {
    for point in ["trash-info", "trash-renamed"] {
        for count in 1..=4 {
            let tree = Tree::parse("1/n, 2/n, 3/n, 4/n");
            (1..=4).for_each(|number| fs::write(tree.at(format!("{number}/n")), number.to_string()).unwrap());
            let paths = ["1/n", "2/n", "3/n", "4/n"];
            let killed = trash(&tree, Some(&format!("{point}:{count}:KILL")), &paths);
            assert_eq!(killed.status.code(), None, "{point} {count}: {killed:?}");
            assert_eq!(contents(&tree), ["1", "2", "3", "4"], "{point} {count}");
            // Another run moves the rest.
            let again = parts(&trash(&tree, None, &[&["-f"], &paths[..]].concat()));
            assert_eq!(again, (0, String::new(), String::new()), "{point} {count}");
            assert_eq!(contents(&tree), ["1", "2", "3", "4"], "{point} {count}");
            assert_eq!(fs::read_dir(tree.at("data/Trash/files")).unwrap().count(), 4);
        }
    }
}

/// Returns the contents of all files, where they were or in the trash with their information,
/// sorted.
fn contents(tree: &Tree) -> Vec<String> {
    let original = (1..=4).map(|number| tree.at(format!("{number}/n")));
    let mut found: Vec<_> = original.filter_map(|path| fs::read_to_string(path).ok()).collect();
    for entry in fs::read_dir(tree.at("data/Trash/files")).unwrap() {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path())).unwrap();
        let content = fs::read_to_string(path).unwrap();
        let info = tree.at("data/Trash/info").join(format!("{}.trashinfo", name.display()));
        assert!(value(&info, "Path").ends_with(&format!("/{content}/n")));
        found.push(content);
    }
    found.sort();
    found
}

#[test]
fn another_mount_has_a_trash_of_its_own_at_its_top() {
    if !needs_mounts() {
        return;
    }
    let uid = rustix::process::geteuid().as_raw();
    let tree = Tree::parse("m/, data/");
    let output = script(
        &tree,
        "export XDG_DATA_HOME=$PWD/data
         mount -t tmpfs none m && mkdir m/a m/b && touch m/a/f m/b/f
         rm --trash m/a/f
         mkdir -m 1777 m/.Trash && rm --trash m/b/f
         cd m && find . | sort && cat .Trash*/info/* .Trash/*/info/*",
    );
    let (status, stdout, stderr) = parts(&output);
    assert_eq!((status, stderr.as_str()), (0, ""));
    let (found, infos) = stdout.split_once("[Trash Info]").unwrap();
    let all = |dir: &str| {
        format!("./{dir}\n./{dir}/files\n./{dir}/files/f\n./{dir}/info\n./{dir}/info/f.trashinfo\n")
    };
    let expected =
        format!(".\n{}./.Trash\n{}./a\n./b\n", all(&format!(".Trash-{uid}")), all(&format!(".Trash/{uid}")));
    assert_eq!(sorted(found), sorted(&expected));
    let paths: Vec<_> = infos.lines().filter_map(|line| line.strip_prefix("Path=")).collect();
    assert_eq!(paths, ["a/f", "b/f"]);
}

#[test]
fn without_a_safe_trash_on_its_mount_a_file_stays() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("m/, data/, elsewhere/, n/");
    let output = script(
        &tree,
        "export XDG_DATA_HOME=$PWD/data
         mount -t tmpfs none m && touch m/f
         ln -s ../elsewhere m/.Trash && ln -s ../elsewhere m/.Trash-$(id -u)
         rm --trash m/f || echo status $?
         unlink m/.Trash-$(id -u) && mkdir -m 777 m/.Trash-$(id -u)
         rm --trash m/f || echo status $?
         mount -t tmpfs none n && touch n/f && mount -o remount,ro n
         rm --trash n/f || echo status $?
         ls m n elsewhere data",
    );
    let (_, stdout, stderr) = parts(&output);
    let message = |path: &str, cause: &str| format!("fathom rm: cannot trash '{path}': {cause}\n");
    let not_safe = message("m/f", "The trash of its file system is not safe to use");
    let none = message("n/f", "Its file system has no trash");
    assert_eq!(stderr, [&not_safe[..], &not_safe, &none].concat());
    assert_eq!(stdout, "status 1\nstatus 1\nstatus 1\ndata:\n\nelsewhere:\n\nm:\nf\n\nn:\nf\n");
}
