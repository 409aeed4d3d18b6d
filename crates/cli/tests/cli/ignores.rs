//! `fathom list --ignore-vcs` ignores the entries that fd and git ignore, in every directory and
//! with every traversal.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::Tree;
use crate::support::program::Program;
use crate::support::random::Random;

/// Returns a command that runs in `dir` of `tree`, with the directory `home` beside the tree as
/// `$HOME`.
fn program(name: impl AsRef<std::ffi::OsStr>, tree: &Tree, dir: &str) -> Command {
    let mut command = Command::new(name);
    let home = tree.path().with_file_name("home");
    command.current_dir(tree.at(dir)).env("HOME", &home).env("XDG_CONFIG_HOME", home.join(".config"));
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_GLOBAL", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    // Keep the settings of the machine and of its user away from git.
    command.env("GIT_CONFIG_SYSTEM", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8");
    command
}

fn fathom(tree: &Tree, dir: &str, words: &[&str]) -> Output {
    let mut command = program(Program::AsDu.bin().join("fathom"), tree, dir);
    command.args(["list", "--ignore-vcs"]).args(words).output().unwrap()
}

/// Returns the entries that fathom lists below `dir`, without `dir` itself.
#[track_caller]
fn listed(tree: &Tree, dir: &str, words: &[&str]) -> BTreeSet<String> {
    let output = fathom(tree, dir, &[&["-0", "--min-depth=1"], words].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    records(&output, "./")
}

fn records(output: &Output, prefix: &str) -> BTreeSet<String> {
    let paths = std::str::from_utf8(&output.stdout).unwrap().split('\0').filter(|path| !path.is_empty());
    paths.map(|path| path.strip_prefix(prefix).unwrap_or(path).trim_end_matches('/').to_owned()).collect()
}

/// Asserts that exactly these entries are listed, in both orders.
#[track_caller]
fn lists(tree: &Tree, dir: &str, words: &[&str], expected: &str) {
    let expected: BTreeSet<String> = expected.split_whitespace().map(String::from).collect();
    for order in ["--order=path", "--order=any"] {
        assert_eq!(listed(tree, dir, &[&[order], words].concat()), expected, "{words:?} {order}");
    }
}

/// Returns a tree with ignore files. Each line of `files` is `path: line|line`.
fn ruled(spec: &str, files: &str) -> Tree {
    let tree = Tree::parse(spec);
    for file in files.lines().map(str::trim).filter(|file| !file.is_empty()) {
        let (path, text) = file.split_once(": ").unwrap();
        tree.holding(path, text.replace('|', "\n"));
    }
    tree
}

#[test]
fn gitignore_files_apply_in_a_repository_and_below_it() {
    let tree = ruled(
        "r/.git/, r/a.o, r/b.c, r/sub/a.o, r/sub/keep.o, r/target/x/y, r/sub/target, r/x/deep/b.c",
        "r/.gitignore: *.o|target/|/b.c
         r/sub/.gitignore: !keep.o",
    );
    let expected =
        "r r/.git r/.gitignore r/sub r/sub/.gitignore r/sub/keep.o r/sub/target r/x r/x/deep r/x/deep/b.c";
    lists(&tree, "", &[], expected);
    lists(&tree, "r/x/deep", &[], "b.c");
    lists(&tree, "r/sub", &["--no-hidden"], "keep.o target");
}

#[test]
fn outside_repositories_only_ignore_files_count() {
    let tree = ruled(
        "a/x, a/y, a/z, r/.git/, r/x, r/y",
        ".gitignore: x
         .ignore: y
         a/.gitignore: z",
    );
    lists(&tree, "", &["--no-hidden"], "a a/x a/z r r/x");
}

#[test]
fn ignore_files_override_gitignore_files_below_them() {
    let tree = ruled(
        ".git/, a/x, a/y",
        ".ignore: !x|y
         .gitignore: x
         a/.gitignore: x|!y",
    );
    lists(&tree, "", &["--no-hidden"], "a a/x");
}

#[test]
fn info_exclude_and_the_users_ignore_file_apply() {
    let tree = ruled(
        "r/.git/, r/a, r/b, r/c, r/d/e, r/d/f, r/in/.git/, r/in/a, r/in/b, outside/b",
        "r/.git/info/exclude: a|/d/e
         ../home/.gitconfig: [core]|excludesFile = ~/mine
         ../home/mine: b|/d/f",
    );
    lists(&tree, "", &["--no-hidden"], "r r/c r/d r/in r/in/a outside outside/b");
    tree.holding("../home/.gitconfig", "[user]\nname = x\n");
    tree.holding("../home/.config/git/ignore", "c\n");
    lists(&tree, "r", &["--no-hidden"], "b d d/f in in/a in/b");
}

#[test]
fn a_work_tree_that_keeps_its_repository_elsewhere() {
    let tree = ruled(
        "w/a, w/b, m/a, m/b",
        "main/.git/info/exclude: a
         main/.git/worktrees/w/commondir: ../..
         w/.git: gitdir: ../main/.git/worktrees/w
         modules/m/info/exclude: b
         m/.git: gitdir: ../modules/m",
    );
    lists(&tree, "w", &["--no-hidden"], "b");
    lists(&tree, "m", &["--no-hidden"], "a");
}

#[test]
fn operands_are_listed_and_rules_above_them_apply() {
    let tree = ruled(
        ".git/, a/b/x.o, a/b/x.c, c.o",
        ".gitignore: *.o|b
         .ignore: /a/b/x.c",
    );
    lists(&tree, "a/b", &[], "");
    lists(&tree, "a", &["b/", "../a//b", "../c.o"], "");
    let output = fathom(&tree, "", &["c.o", "a/b", "./a"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "c.o\na/b\n./a\n");
}

#[test]
fn the_root_of_a_link_is_where_it_leads() {
    let tree = ruled("r/.git/, r/d/x, r/d/y, link -> r/d", "r/.gitignore: /d/x");
    lists(&tree, "", &["-L", "link"], "link/y");
    let tree =
        ruled("r/.git/, r/real/f, r/as-dir -> real, r/as-file -> real/f", "r/.gitignore: as-*/|real/f");
    lists(&tree, "r", &["--no-hidden"], "real as-dir as-file");
    lists(&tree, "r", &["--no-hidden", "-L"], "real as-file");
}

#[test]
fn rules_are_found_in_a_directory_of_several_batches() {
    let tree = Tree::on_tmpfs().with(".git/").wide("w", 9_000);
    tree.holding("w/.gitignore", "f*\n!f17\n!.gitignore\n");
    lists(&tree, "", &["--no-hidden"], "w w/f17");
}

#[test]
fn an_error_in_an_ignore_file_is_reported_once_and_the_rest_applies() {
    let tree = ruled("r/.git/, r/d/, r/x, r/y, r/loop/.ignore -> ../x", "r/.gitignore: {a|x|b[z-a]");
    for order in ["path", "any"] {
        let output = fathom(&tree, "", &["--order", order, "--no-hidden", "r"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let stderr: Vec<&str> = stderr.lines().collect();
        assert_eq!(stderr.len(), 2, "{stderr:?}");
        let rule = "fathom list: warning: line 1 of 'r/.gitignore' (and 1 more) has no effect: ";
        assert!(stderr[0].starts_with(rule), "{stderr:?}");
        assert_eq!(stderr[1], "fathom list: cannot read 'r/loop/.ignore': Too many levels of symbolic links");
        assert_eq!(output.status.code(), Some(1));
        let listed: BTreeSet<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
        assert_eq!(listed, BTreeSet::from([&b""[..], b"r", b"r/d", b"r/y", b"r/loop"]));
    }
    std::fs::remove_file(tree.at("r/loop/.ignore")).unwrap();
    assert_eq!(fathom(&tree, "", &["r"]).status.code(), Some(0), "a warning is no failure");
}

#[test]
fn an_ignore_file_that_is_not_a_regular_file_has_no_effect() {
    let tree = ruled("r/.git/, r/a, r/.gitignore/x, r/p/.ignore |, r/p/a", "r/.git/info/exclude: a");
    lists(&tree, "r", &["--no-hidden"], "p");
}

/// Names and patterns are made of few letters, so that patterns often match.
const NAMES: [&str; 12] = ["a", "b", "ab", "a.o", "b.o", "foo", "foo.c", ".h", "a b", "#c", "!d", "ba"];
const PARTS: [&str; 19] = [
    "a", "b", "ab", "a.o", "foo", "*", "?", "*.o", "[ab]", "[!a]*", "[a-c]?", "**", "a*", "*b", ".*",
    "foo.?", "\\#c", "a b", "ba",
];

fn make_files(random: &mut Random, tree: &Tree, dir: &str, levels: usize) {
    for name in NAMES {
        let path = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
        match random.weighted(&[4, 3, 2]) {
            0 => {}
            1 => tree.file(&path, 0),
            _ if levels == 0 => tree.symlink(&path, "a"),
            _ => {
                tree.file(format!("{path}/last"), 0);
                make_files(random, tree, &path, levels - 1);
            }
        }
    }
}

fn pattern(random: &mut Random) -> String {
    let parts: Vec<&str> = (0..random.weighted(&[0, 5, 3, 1])).map(|_| random.pick(&PARTS)).collect();
    let mut pattern = parts.join("/");
    if random.chance(25) {
        pattern.insert(0, '/');
    }
    if random.chance(20) {
        pattern.push('/');
    }
    if random.chance(30) {
        pattern.insert(0, '!');
    }
    match random.below(12) {
        0 => format!("# {pattern}"),
        1 => pattern + "  ",
        2 => pattern + "\r",
        _ => pattern,
    }
}

fn rules(random: &mut Random) -> String {
    (0..1 + random.below(4)).map(|_| pattern(random) + "\n").collect()
}

/// Whether a rule applies to names in every directory.
fn is_anywhere(line: &str) -> bool {
    !line.trim_end().trim_end_matches('/').contains('/')
}

/// Puts ignore files called `names` into `percent` of the directories.
fn make_rules(random: &mut Random, tree: &Tree, names: &[&str], percent: usize) {
    let mut dirs = listed_dirs(tree);
    dirs.insert(0, String::new());
    for dir in dirs {
        for name in names {
            if random.chance(if dir.is_empty() { 80 } else { percent }) {
                tree.holding(format!("./{dir}/{name}"), rules(random));
            }
        }
    }
}

fn listed_dirs(tree: &Tree) -> Vec<String> {
    let output = Command::new("find")
        .args([".", "-mindepth", "1", "-type", "d", "-printf", "%P\\0"])
        .current_dir(tree.path())
        .output();
    records(&output.unwrap(), "").into_iter().filter(|dir| !dir.starts_with(".git")).collect()
}

#[track_caller]
fn assert_same(tree: &Tree, seed: u64, expected: &BTreeSet<String>, found: &BTreeSet<String>, what: &str) {
    let missing: Vec<_> = expected.difference(found).collect();
    let surplus: Vec<_> = found.difference(expected).collect();
    if missing.is_empty() && surplus.is_empty() {
        return;
    }
    let rules = Command::new("sh")
        .args(["-c", "find ../home . -name '*ignore' -o -name exclude | xargs -d '\\n' grep -n ''"])
        .current_dir(tree.path())
        .output()
        .unwrap();
    let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
    panic!("seed {seed}, {what}: missing {missing:?}, surplus {surplus:?}\n{rules}");
}

#[test]
fn git_ignores_the_same_entries() {
    if !crate::support::needs_tool("git") {
        return;
    }
    for seed in fathom_cases::seeds(40) {
        let (tree, mut random) = (Tree::new(), Random::new(seed));
        let made = program("git", &tree, "").args(["init", "-q", "."]).status().unwrap();
        assert!(made.success());
        make_files(&mut random, &tree, "", 2);
        make_rules(&mut random, &tree, &[".gitignore"], 25);
        tree.holding(".git/info/exclude", rules(&mut random));
        tree.holding("../home/.config/git/ignore", rules(&mut random));
        for dir in std::iter::once(String::new()).chain(listed_dirs(&tree)).take(3) {
            let ask = ["ls-files", "-z", "--others", "--exclude-standard", "."];
            let output = program("git", &tree, &dir).args(ask).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let expected = records(&output, "");
            // git reports nothing for an ignored directory that is queried itself, whereas fathom
            // lists an operand.
            if !dir.is_empty() && expected.is_empty() {
                continue;
            }
            let found = listed(&tree, &dir, &["-t", "f,l", "--prune", ".git"]);
            assert_same(&tree, seed, &expected, &found, &dir);
        }
    }
}

#[test]
fn a_scan_marks_the_entries_that_a_list_leaves_out() {
    for seed in fathom_cases::seeds(20) {
        let (tree, mut random) = (Tree::new(), Random::new(seed));
        tree.holding(".git/info/exclude", rules(&mut random));
        make_files(&mut random, &tree, "", 2);
        make_rules(&mut random, &tree, &[".gitignore", ".ignore"], 25);
        let fathom = |words: &[&str]| {
            let mut command = program(Program::AsDu.bin().join("fathom"), &tree, "");
            command.args(words).output().unwrap()
        };
        let scan = fathom(&["scan", "--also", "ignored", "-o", "../inventory", "."]);
        assert_eq!(scan.status.code(), Some(0), "{scan:?}");
        let lines = fathom(&["export", "--to", "jsonl", "../inventory"]).stdout;
        let lines = std::str::from_utf8(&lines).unwrap().lines();
        let rows = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let kept = rows.filter(|row| row["ignored"] == false && row["path"] != ".");
        let path = |row: serde_json::Value| row["path"].as_str().unwrap().trim_start_matches("./").to_owned();
        assert_same(&tree, seed, &listed(&tree, "", &[]), &kept.map(path).collect(), "a scan");
    }
}

fn fd() -> Option<PathBuf> {
    ["fdfind", "fd"].iter().find_map(|name| crate::support::program::on_path(name))
}

#[test]
fn fd_ignores_the_same_entries() {
    let Some(fd) = fd() else { return crate::support::skip("needs fdfind") };
    for seed in fathom_cases::seeds(40) {
        let (tree, mut random) = (Tree::new(), Random::new(seed));
        make_files(&mut random, &tree, "", 2);
        make_rules(&mut random, &tree, &[".gitignore", ".ignore"], 20);
        if random.chance(80) {
            tree.holding(".git/info/exclude", rules(&mut random));
        }
        // fd resolves the user's rules against its current directory; git and fathom against the
        // top of the repository.
        let global: String =
            rules(&mut random).split_inclusive('\n').filter(|line| is_anywhere(line)).collect();
        tree.holding("../home/.config/git/ignore", global);
        for dir in listed_dirs(&tree) {
            if random.chance(5) {
                tree.dir(format!("{dir}/.git"));
            }
        }
        let ask = ["--hidden", "--exclude=.git", "--print0", ".", "."];
        let output = program(&fd, &tree, "").args(ask).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let expected = records(&output, "./");
        for order in ["--order=path", "--order=any", "--threads=1", "--io=async-par"] {
            assert_same(&tree, seed, &expected, &listed(&tree, "", &["--prune=.git", order]), order);
        }
    }
}
