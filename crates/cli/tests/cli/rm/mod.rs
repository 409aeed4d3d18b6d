//! `fathom rm`: messages, exit statuses, lists of paths, dry runs and the log, as a user sees them.

mod counted;
mod listed;
mod mounts;
mod question;
mod signals;
mod trash;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};

use crate::support::commands::{fathom, program};
use crate::support::{Tree, needs_tool};
use serde_json::Value;

/// Returns exit status, standard output and standard error.
fn run(tree: &Tree, words: &[&str]) -> (i32, String, String) {
    parts(&fathom(tree, [&["rm"], words].concat()))
}

fn parts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Returns the lines of a text, sorted.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Returns the paths below the tree, sorted and separated by spaces.
fn left(tree: &Tree) -> String {
    let (mut found, mut dirs) = (Vec::new(), vec![tree.path().to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().strip_prefix(tree.path()).unwrap().display().to_string());
            dirs.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
        }
    }
    found.sort();
    found.join(" ")
}

/// Returns the bytes in the words of the program: `freed` are removed, of `others` only some links.
fn amount(tree: &Tree, freed: &[&str], others: &[&str]) -> String {
    let sum = |names: &[&str]| -> u64 {
        names.iter().map(|name| fs::metadata(tree.at(name)).unwrap().blocks() / 2).sum()
    };
    let human = |kib: u64| match kib {
        0 => "0".to_owned(),
        1..10 => format!("{kib}.0K"),
        _ => format!("{kib}K"),
    };
    let (freed, others) = (sum(freed), sum(others));
    format!("({} allocated, {} would be free)", human(freed + others), human(freed))
}

#[test]
fn files_are_removed_and_directories_with_r_only() {
    let tree = Tree::parse("a 3, b 3, d/e/f 3, d/l -> ../b, kept");
    let (status, stdout, stderr) = run(&tree, &["a", "d", "b"]);
    assert_eq!((status, stdout.as_str()), (1, ""));
    assert_eq!(stderr, "fathom rm: cannot remove 'd': Is a directory\n");
    assert_eq!(left(&tree), "d d/e d/e/f d/l kept");
    for flag in ["-r", "-R", "--recursive"] {
        tree.file("d/e/f", 3);
        assert_eq!(run(&tree, &[flag, "d"]), (0, String::new(), String::new()), "{flag}");
        assert_eq!(left(&tree), "kept");
    }
}

#[test]
fn each_removed_entry_is_named_with_v() {
    let tree = Tree::parse("d/e/f 3, d/l -> nothing");
    tree.file(OsStr::from_bytes(b"d/\x1b[2J\xff"), 1);
    let (status, stdout, stderr) = run(&tree, &["-rv", "d"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(
        sorted(&stdout),
        [
            "removed 'd/'$'\\033''[2J'$'\\377'",
            "removed 'd/e/f'",
            "removed 'd/l'",
            "removed directory 'd'",
            "removed directory 'd/e'",
        ]
    );
    assert!(stdout.ends_with("removed directory 'd'\n"));
}

#[test]
fn a_missing_path_is_an_error_unless_f_is_given() {
    let tree = Tree::parse("file 3");
    let message = "fathom rm: cannot remove 'no': No such file or directory\n";
    assert_eq!(run(&tree, &["no"]), (1, String::new(), message.into()));
    assert_eq!(run(&tree, &["-f", "no", "file/no"]), (0, String::new(), String::new()));
    assert_eq!(run(&tree, &["-f"]), (0, String::new(), String::new()));
    assert_eq!(left(&tree), "file");
}

#[test]
fn the_root_dots_and_the_working_directory_are_refused() {
    let tree = Tree::parse("d/sub/f");
    let words = ["-rf", "/", "//", ".", "..", "d/.", "d/..", "./", "../t", "../../"];
    let (status, _, stderr) = run(&tree, &words);
    let dots = |path: &str| format!("fathom rm: cannot remove '{path}': The path ends in '.' or '..'");
    let root = |path: &str| format!("fathom rm: cannot remove '{path}': It is the root directory");
    let mut expected = vec![
        root("/"),
        root("//"),
        dots("."),
        dots(".."),
        dots("d/."),
        dots("d/.."),
        dots("./"),
        dots("../../"),
        "fathom rm: cannot remove '../t': It is the working directory or contains it".into(),
    ];
    expected.sort();
    assert_eq!((status, sorted(&stderr)), (1, expected.iter().map(String::as_str).collect()));
    let output = Command::new(program())
        .args(["rm", "-rf"])
        .arg(tree.at("d"))
        .current_dir(tree.at("d/sub"))
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let message = format!(
        "fathom rm: cannot remove '{}': It is the working directory or contains it\n",
        tree.at("d").display()
    );
    assert_eq!(parts(&output), (1, String::new(), message));
    assert_eq!(left(&tree), "d d/sub d/sub/f");
}

#[test]
fn a_wrong_command_line_removes_nothing() {
    let tree = Tree::parse("file 3, list");
    for (words, message) in [
        (&[][..], "missing operand"),
        (&["--from0", "list", "file"], "PATH cannot be combined with --from0"),
        (&["--ids", "file"], "--root and --ids require --from0"),
        (&["--root=d", "file"], "--root and --ids require --from0"),
        (&["file", ""], "invalid zero-length file name"),
        (&["--log=", "file"], "invalid zero-length file name"),
    ] {
        let expected = format!("fathom rm: {message}\nTry 'fathom rm --help' for more information.\n");
        assert_eq!(run(&tree, words), (2, String::new(), expected), "{words:?}");
    }
    for (words, name) in [(["--from0", "no"], "no"), (["--log=no/log", "file"], "no/log")] {
        let expected = format!("fathom rm: cannot open '{name}': No such file or directory\n");
        assert_eq!(run(&tree, &words), (2, String::new(), expected), "{words:?}");
    }
    assert_eq!(left(&tree), "file list");
}

#[test]
fn a_dry_run_says_how_much_and_changes_nothing() {
    let tree = Tree::parse("d/e/f 5000, d/g = d/e/f, d/out 9000, keep = d/out, log 7");
    let sums = amount(&tree, &["d", "d/e", "d/g"], &["keep"]);
    let before = left(&tree);
    let (status, stdout, stderr) = run(&tree, &["-r", "--dry-run", "--log", "log", "d"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(stdout, format!("would remove 3 files and 2 directories {sums}\n"));
    let (_, stdout, _) = run(&tree, &["-rv", "--dry-run", "d/e"]);
    let all = ["would remove 'd/e/f'", "would remove directory 'd/e'"];
    assert_eq!(stdout.lines().take(2).collect::<Vec<_>>(), all);
    let (status, stdout, stderr) = run(&tree, &["--dry-run", "d", "no"]);
    assert_eq!((status, stdout.as_str()), (1, "would remove 0 files (0 allocated, 0 would be free)\n"));
    assert_eq!(
        sorted(&stderr),
        [
            "fathom rm: cannot remove 'd': Is a directory",
            "fathom rm: cannot remove 'no': No such file or directory",
        ]
    );
    assert_eq!(left(&tree), before);
    assert_eq!(fs::metadata(tree.at("log")).unwrap().len(), 7);
}

/// The name of a process once reached the terminal as it was.
#[test]
fn the_name_of_a_process_is_escaped() {
    let tree = Tree::parse("d/log 500000");
    let sleep = tree.at("a\u{1b}]0;b");
    std::fs::copy("/bin/sleep", &sleep).unwrap();
    let open = std::fs::File::open(tree.at("d/log")).unwrap();
    let mut held = Command::new(&sleep).arg("1000").stdin(open).spawn().unwrap();
    let (_, stdout, _) = run(&tree, &["-r", "--dry-run", "d"]);
    held.kill().and_then(|()| held.wait()).unwrap();
    assert!(stdout.contains(&format!("]0;b (pid {})", held.id())), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout:?}");
}

#[test]
fn an_open_file_would_not_be_free_until_it_is_closed() {
    let tree = Tree::parse("d/log 500000, d/other 100000");
    let open = std::fs::File::open(tree.at("d/log")).unwrap();
    let mut sleep = Command::new("sleep").arg("1000").stdin(open).spawn().unwrap();
    let (status, stdout, _) = run(&tree, &["-r", "--dry-run", "d"]);
    let pid = sleep.id();
    sleep.kill().and_then(|()| sleep.wait()).unwrap();
    assert_eq!(status, 0);
    assert!(
        stdout.contains(&format!(
            "; 492K more when open files are closed, the largest by sleep (pid {pid}))\n"
        )),
        "{stdout}"
    );
    assert!(!run(&tree, &["-r", "--dry-run", "d"]).1.contains("more when"));
}

/// Runs with `list` as standard input.
fn run_with_input(tree: &Tree, words: &[&str], list: &[u8]) -> (i32, String, String) {
    let mut command = Command::new(program());
    command.arg("rm").args(words).current_dir(tree.path()).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(list).unwrap();
    parts(&child.wait_with_output().unwrap())
}

#[test]
fn a_list_of_paths_may_hold_any_bytes() {
    let names: [&[u8]; 6] = [b"-rf", b"a\nb", b" ", b"\xff\xfe", b"\x1b[2J", b"*"];
    for source in ["-", "../list"] {
        let tree = Tree::parse("kept");
        for name in names {
            tree.file(OsStr::from_bytes(name), 1);
            tree.file(OsStr::from_bytes(&[b"d/", name].concat()), 1);
        }
        let list = [&names.join(&0)[..], b"\0./d/*"].concat();
        tree.holding("../list", &list);
        let ended =
            run_with_input(&tree, &["-f", "--from0", source], if source == "-" { &list } else { b"" });
        assert_eq!(ended, (0, String::new(), String::new()));
        assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 2, "kept and d");
        assert_eq!(fs::read_dir(tree.at("d")).unwrap().count(), 5);
    }
}

#[test]
fn a_list_with_an_empty_path_ends_there() {
    let tree = Tree::parse("a, b");
    let message = "fathom rm: '-' has an empty path: stopping there\n";
    assert_eq!(run_with_input(&tree, &["-f", "--from0=-"], b"a\0\0b\0"), (1, String::new(), message.into()));
    assert_eq!(left(&tree), "b");
    assert_eq!(run_with_input(&tree, &["-f", "--from0=-"], b""), (0, String::new(), String::new()));
}

#[test]
fn the_log_has_an_object_for_each_entry_and_grows() {
    let tree = Tree::parse("d/f 5000, d/l -> f, file 1, log 0");
    tree.file(OsStr::from_bytes(b"\xff"), 0);
    let ino = |name: &str| fs::symlink_metadata(tree.at(name)).unwrap().ino();
    let inodes = ["d/f", "d/l", "d", "file"].map(ino);
    assert_eq!(run(&tree, &["-r", "--log", "log", "d", "no"]).0, 1);
    let list = run_with_input(&tree, &["-f", "--log", "log", "--from0=-"], b"file\0\xff\0");
    assert_eq!(list, (0, String::new(), String::new()));
    let text = fs::read_to_string(tree.at("log")).unwrap();
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = |path: &str| objects.iter().find(|object| object["path"] == path).unwrap();
    assert_eq!(objects.len(), 5);
    for ((path, kind), ino) in
        [("d/f", "regular"), ("d/l", "symlink"), ("d", "directory"), ("file", "regular")].iter().zip(inodes)
    {
        let object = found(path);
        assert_eq!((&object["type"], &object["ino"]), (&Value::from(*kind), &Value::from(ino)), "{path}");
        assert_eq!(object["action"], "remove");
        assert!(object["time"].as_str().unwrap().ends_with('Z'));
    }
    assert!(found("d/f")["bytes"].as_u64().unwrap() >= 5000);
    assert_eq!(found("\u{fffd}")["path_bytes"], "ff");
}

#[test]
fn a_log_that_cannot_be_written_stops_the_removal() {
    let tree = Tree::parse("").wide("d", 3000);
    let (status, _, stderr) = run(&tree, &["-r", "--threads=1", "--log=/dev/full", "d"]);
    assert_eq!((status, stderr.as_str()), (1, "fathom rm: cannot write the log: No space left on device\n"));
    let left = fs::read_dir(tree.at("d")).unwrap().count();
    assert!((1..3000).contains(&left), "{left}");
}

/// Options of setpriv that take root's exemption from permission checks.
const LESS: [&str; 2] =
    ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"];

/// Runs `program` with arguments, without root's exemption from permission checks.
fn with_less(tree: &Tree, program: &std::path::Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(LESS);
    }
    parts(&command.arg(program).args(words).current_dir(tree.path()).env("LC_ALL", "C").output().unwrap())
}

#[test]
fn a_directory_that_may_not_be_changed_stays_with_those_above_it_as_with_rm() {
    if !needs_tool("setpriv") {
        return;
    }
    let spec = "d/locked/f 1, d/locked/sub/f, d/unreadable/f 1, d/empty/, d/nosearch/f, d/open/f 1, e/f";
    let modes = [("d/locked", 0o555), ("d/unreadable", 0), ("d/empty", 0), ("d/nosearch", 0o444)];
    let tree = || modes.iter().fold(Tree::parse(spec), |tree, (name, mode)| tree.mode(name, *mode));
    let (ours, gnu) = (tree(), tree());
    let (status, _, stderr) = with_less(&ours, &program(), &["rm", "-rf", "d", "e"]);
    let (gnu_status, _, _) = with_less(&gnu, "rm".as_ref(), &["-rf", "d", "e"]);
    assert_eq!((status, gnu_status), (1, 1));
    assert_eq!(
        sorted(&stderr),
        [
            "fathom rm: cannot open directory 'd/unreadable': Permission denied",
            "fathom rm: cannot remove 'd/locked/f': Permission denied",
            "fathom rm: cannot remove 'd/locked/sub': Permission denied",
            "fathom rm: cannot remove 'd/nosearch/f': Permission denied",
        ]
    );
    for tree in [&ours, &gnu] {
        for (name, _) in modes.iter().filter(|(name, _)| *name != "d/empty") {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(tree.at(name), mode).unwrap();
        }
    }
    assert_eq!(left(&ours), left(&gnu));
    assert_eq!(run(&ours, &["-r", "d"]), (0, String::new(), String::new()));
}
