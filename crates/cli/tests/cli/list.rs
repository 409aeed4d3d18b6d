//! `fathom list` lists the entries that find(1) lists, by default in its order, with every I/O
//! model. Its filters select what find's select. It refuses invalid input.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

use crate::support::Tree;
use crate::support::process::wait_until_idle;
use crate::support::program::Program;

const MODELS: [&str; 6] = ["sync", "threads=3", "async-seq", "async-par", "uring", "auto"];

fn fathom() -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.arg("list").env("LC_ALL", "C.UTF-8").env("TZ", "UTC0");
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the standard output of `fathom list` with `words` in shell syntax. Panics unless it
/// succeeds with an empty standard error.
#[track_caller]
fn list(tree: &Tree, words: &str) -> Vec<u8> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" list {words}")]).arg(Program::AsDu.bin().join("fathom"));
    command.current_dir(tree.path()).env("LC_ALL", "C.UTF-8").env("TZ", "UTC0");
    stdout_of(&mut command)
}

#[track_caller]
fn find(tree: &Tree, words: &str) -> Vec<u8> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec find {words}")]).current_dir(tree.path());
    stdout_of(command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC0"))
}

#[track_caller]
fn stdout_of(command: &mut Command) -> Vec<u8> {
    let output = run(command);
    assert!(output.status.success() && output.stderr.is_empty(), "{command:?}: {output:?}");
    output.stdout
}

fn sorted(lines: &[u8], end: u8) -> Vec<&[u8]> {
    let mut lines: Vec<_> = lines.split(|byte| *byte == end).collect();
    lines.sort();
    lines
}

/// Asserts that list prints the same bytes as find in traversal order, and the same lines in any
/// other order.
#[track_caller]
fn compare(tree: &Tree, list_words: &str, find_words: &str) -> Vec<u8> {
    let expected = find(tree, find_words);
    let found = list(tree, list_words);
    let text = String::from_utf8_lossy;
    assert!(expected == found, "{list_words}\nexpected:\n{}\nfound:\n{}", text(&expected), text(&found));
    let any = list(tree, &format!("{list_words} --order=any"));
    let end = if find_words.ends_with("-print0") { 0 } else { b'\n' };
    assert_eq!(sorted(&expected, end), sorted(&any, end), "{list_words}");
    expected
}

/// Returns a tree with files of every type, sizes around the units, and names of arbitrary bytes.
fn mixed() -> Tree {
    let tree = Tree::parse(
        "a/b/c/d/e 5, a/b/.hidden/f 1, a/.git/config 12, a/empty/, a/x.rs 1023, a/y.rs 1024, a/Z.RS 1025, a/big ~20M, \
         a/link -> x.rs, a/dangling -> nowhere, a/to-dir -> b, p |, s %, a/hard = a/x.rs, zero 0",
    );
    for name in
        [b"with space".as_slice(), b"new\nline", b"\xff\xfe", "\u{e9}\u{4e2d}".as_bytes(), b"-dash", b"*"]
    {
        tree.file(OsStr::from_bytes(name), 3);
    }
    tree
}

#[test]
fn every_entry_is_listed_in_the_order_of_find() {
    let tree = mixed();
    assert!(compare(&tree, "", ".").split(|byte| *byte == b'\n').count() > 25);
    compare(&tree, "-0", ". -print0");
    compare(&tree, "a/ ./a//b p a", "a/ ./a//b p a");
}

#[test]
fn output_is_the_same_with_every_model_and_number_of_workers() {
    let tree = mixed();
    for number in 0..40 {
        (0..30).for_each(|file| tree.file(format!("many/{number}/{}/{file}", number % 7), 0));
    }
    let expected = list(&tree, "");
    for words in MODELS
        .map(|model| format!("--io={model}"))
        .iter()
        .chain(&["--threads=1".into(), "--threads=64".into()])
    {
        assert!(list(&tree, words) == expected, "{words}");
        let any = list(&tree, &format!("{words} --order=any"));
        assert_eq!(sorted(&any, b'\n'), sorted(&expected, b'\n'), "{words}");
    }
}

#[test]
fn filters_select_the_entries_that_finds_select() {
    let tree = mixed();
    for (list_words, find_words) in [
        ("-t f", ". -type f"),
        ("-t d,l", ". -type d,l"),
        ("-t p --type=s", ". -type p,s"),
        ("-n '*.rs'", ". -name '*.rs'"),
        ("-n '*.rs' -n e", ". -name '*.rs' -o -name e"),
        ("-n '?'", ". -name '?'"),
        ("-n '[a-e]' a/b/", "a/b/ -name '[a-e]'"),
        ("-n a a", "a -name a"),
        ("-n '\\*'", ". -name '\\*'"),
        ("--regex '.*/[xy]\\.rs'", ". -regex '.*/[xy]\\.rs'"),
        ("--regex '\\./a/b'", ". -regex '\\./a/b'"),
        ("-t f -s +1023", ". -type f -size +1023c"),
        ("-t f -s -1K", ". -type f -size -1024c"),
        ("-t f -s 1K", ". -type f -size 1024c"),
        ("-s +1000 -s -1025 -t f", ". -size +1000c -size -1025c -type f"),
        ("--empty", ". -empty"),
        ("--empty -t d", ". -empty -type d"),
        ("--empty --regex '.*/em.*'", ". -empty -regex '.*/em.*'"),
        ("--empty a/empty a/x.rs s zero", "a/empty a/x.rs s zero -empty"),
        ("--empty -d 0 a/empty", "a/empty -maxdepth 0 -empty"),
        ("--empty -d 2", ". -maxdepth 2 -empty"),
        ("-L --empty", "-L . -empty"),
        ("--min-depth 2", ". -mindepth 2"),
        ("-d 1", ". -maxdepth 1"),
        ("-d 0", ". -maxdepth 0"),
        ("--min-depth 2 -d 3 -t d", ". -mindepth 2 -maxdepth 3 -type d"),
        ("--prune b", ". -name b -prune -o -print"),
        ("--prune '.git' --prune '*.rs'", ". '(' -name .git -o -name '*.rs' ')' -prune -o -print"),
        ("--no-hidden", ". -name '.?*' -prune -o -print"),
        ("--no-hidden --hidden", "."),
        // A directory with file systems mounted below it.
        ("-x /dev", "/dev -xdev"),
        ("-L p a/b a/to-dir", "-L p a/b a/to-dir"),
        ("-L -t f", "-L . -type f"),
        ("-L -t l", "-L . -type l"),
        ("-L -t f -s +1023", "-L . -type f -size +1023c"),
    ] {
        assert!(!compare(&tree, list_words, find_words).is_empty(), "{list_words} lists nothing");
    }
}

#[test]
fn a_link_to_itself_is_an_error_where_links_are_followed() {
    let tree = Tree::parse("a/f 1, a/itself -> itself, a/nowhere -> missing");
    let output = run(fathom().args(["-L", "a"]).env("LC_ALL", "C").current_dir(tree.path()));
    assert_eq!(sorted(&output.stdout, b'\n'), [&b""[..], b"a", b"a/f", b"a/nowhere"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "fathom list: cannot access 'a/itself': Too many levels of symbolic links\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_missing_root_is_reported_like_find_reports_it() {
    let tree = Tree::parse("d/, f 1, nowhere -> missing, through -> f/x, loop -> loop");
    for root in
        ["nowhere", "nowhere/", "nowhere/x", "f/", "f/x", "through", "through/", "loop", "loop/", "d/x"]
    {
        for (links, order) in [("-P", "path"), ("-P", "any"), ("-L", "path"), ("-L", "any")] {
            let find =
                run(Command::new("find").args([links, root]).env("LC_ALL", "C").current_dir(tree.path()));
            let links = if links == "-L" { &["-L"][..] } else { &[] };
            let list = fathom()
                .args(links)
                .args([root, "--order", order])
                .env("LC_ALL", "C")
                .current_dir(tree.path())
                .output();
            let list = list.unwrap();
            assert_eq!(list.stdout, find.stdout, "{links:?} {root}");
            // find prints its own name here, and fathom also prints the operation.
            let stderr =
                String::from_utf8(find.stderr).unwrap().replace("find: ", "fathom list: cannot access ");
            assert_eq!(String::from_utf8(list.stderr).unwrap(), stderr, "{links:?} {root}");
            assert_eq!(list.status.code(), find.status.code(), "{links:?} {root}");
        }
    }
}

#[test]
fn relative_roots_resolve_after_a_worker_changed_its_directory() {
    let tree = Tree::parse("d/f 1, link -> d/f, nowhere -> x");
    (0..20).for_each(|file| tree.file(format!("d/s/{file}"), 1));
    let format = "-f '%p %l %Y %s\\n'";
    let expected = sorted_list(&tree, &format!("d link d/s link {format}"));
    let any = sorted_list(&tree, &format!("d link d/s link --order=any --threads=1 {format}"));
    assert_eq!(any, expected);
    let expected = sorted_list(&tree, "-L d nowhere d/s nowhere");
    assert_eq!(sorted_list(&tree, "-L d nowhere d/s nowhere --order=any --threads=1"), expected);
}

#[track_caller]
fn sorted_list(tree: &Tree, words: &str) -> Vec<Vec<u8>> {
    sorted(&list(tree, words), b'\n').into_iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn a_directory_below_itself_is_an_error_where_links_are_followed() {
    let tree = Tree::parse("a/b/c 1, a/b/up -> ../../a");
    for order in ["path", "any"] {
        let output =
            run(fathom().args(["-L", "a", "--order", order]).env("LC_ALL", "C").current_dir(tree.path()));
        assert_eq!(sorted(&output.stdout, b'\n'), [&b""[..], b"a", b"a/b", b"a/b/c", b"a/b/up"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "fathom list: cannot descend into 'a/b/up': It is a parent of itself\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn times_before_and_after() {
    let tree = Tree::new();
    for (name, time) in
        [("old", "2020-01-01 00:00:00"), ("mid", "2022-06-01 12:00:00"), ("new", "2024-01-01 00:00:00")]
    {
        tree.file(name, 1);
        let path = tree.at(name);
        assert!(
            Command::new("touch").args(["-d", time]).arg(&path).env("TZ", "UTC0").status().unwrap().success()
        );
    }
    compare(&tree, "-t f --newer mid", ". -type f -newer mid");
    compare(&tree, "-t f --older 2022-06-01", ". -type f ! -newermt 2022-06-01");
    compare(&tree, "-t f --newer 2021-01-01 --older '2023-01-01 10:00'", ". -newermt 2021-01-01 -name mid");
    compare(&tree, "-t d --newer 1h", ". -type d -mmin -60");
    assert_eq!(list(&tree, "-t f --older @1577836801"), b"./old\n");
}

#[test]
fn formats_are_those_of_find() {
    let tree = mixed().with("a/itself -> itself");
    for format in
        ["%p|%f|%h|%P|%H|%d\\n", "%s %b %k %m %M %n %i %u %g %y\\n", "%l|%Y\\t%T@ %TY-%Tm\\n", "%5d|%-8f|\\0"]
    {
        let list_words = format!("a -f '{format}'");
        let (expected, found) = (find(&tree, &format!("a -printf '{format}'")), list(&tree, &list_words));
        let text = String::from_utf8_lossy;
        assert!(expected == found, "{format}\n{}\n{}", text(&expected), text(&found));
    }
}

#[test]
fn filesystem_types_are_those_of_find() {
    let tree = mixed();
    let shown = compare(&tree, "a p -f '%F|%9F|%p\\n'", "a p -printf '%F|%9F|%p\\n'");
    assert!(!shown.starts_with(b"unknown"), "{}", String::from_utf8_lossy(&shown));
    // Directories with file systems mounted below them.
    compare(&tree, "-d 1 /dev -f '%F %p\\n'", "/dev -maxdepth 1 -printf '%F %p\\n'");
    compare(
        &tree,
        "-d 0 / /proc /sys /dev/shm -f '%F %p\\n'",
        "/ /proc /sys /dev/shm -maxdepth 0 -printf '%F %p\\n'",
    );
    compare(&tree, "-L a p -f '%F %p\\n'", "-L a p -printf '%F %p\\n'");
}

#[test]
fn contexts_are_those_of_find() {
    let tree = Tree::parse("d/f 1, d/g 1, link -> d/f, nowhere -> x");
    let flags = rustix::fs::XattrFlags::empty();
    for (name, context) in [("d", &b"u:r:dir:s0\0"[..]), ("d/f", b"u:r:t:s0")] {
        if rustix::fs::setxattr(tree.at(name), c"security.selinux", context, flags).is_err() {
            return crate::support::skip("needs the right to label files (root)");
        }
    }
    for links in ["-P", "-L"] {
        let mut find = Command::new("find");
        find.args([links, "d", "link", "nowhere", "-printf", "%p|%Z|%-5Z\n"]).current_dir(tree.path());
        // find exits with an error for files without a context.
        let expected = run(&mut find).stdout;
        assert!(expected.starts_with(b"d|u:r:dir:s0|u:r:dir:s0\n"), "{}", expected.escape_ascii());
        let links = if links == "-L" { "-L" } else { "" };
        let words = format!("{links} d link nowhere -f '%p|%Z|%-5Z\\n'");
        assert_eq!(list(&tree, &words).escape_ascii().to_string(), expected.escape_ascii().to_string());
        let any = list(&tree, &format!("{words} --order=any"));
        assert_eq!(sorted(&any, b'\n'), sorted(&expected, b'\n'));
    }
}

#[test]
fn btimes_are_those_of_stat() {
    let tree = mixed();
    // stat prints `2026-01-31 12:00:00.123456789 +0000`.
    let script = "find a p s | while read -r path; do stat -c '%n %w' \"$path\"; done";
    let output = run(Command::new("sh").args(["-c", script]).current_dir(tree.path()).env("TZ", "UTC0"));
    let expected = String::from_utf8(output.stdout).unwrap();
    if expected.lines().any(|line| line.ends_with(" -")) {
        return crate::support::skip("needs a filesystem that keeps when files were made");
    }
    let shown = list(&tree, "a p s -f '%p %BY-%Bm-%Bd %BT\\n'");
    assert_eq!(String::from_utf8(shown).unwrap(), expected.replace(" +0000\n", "0\n"));
    // Most builds of find cannot print the btime.
    if find(&tree, "a -maxdepth 0 -printf %Bs").is_empty() {
        return;
    }
    assert_eq!(list(&tree, "a -f '%p %B@\\n'"), find(&tree, "a -printf '%p %B@\\n'"));
}

#[test]
fn objects_have_the_values_of_lines() {
    let tree = mixed();
    let objects = list(&tree, "-j a");
    let objects: Vec<serde_json::Value> = objects
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let paths: Vec<&str> = objects.iter().map(|object| object["path"].as_str().unwrap()).collect();
    assert_eq!(paths.join("\n") + "\n", String::from_utf8(find(&tree, "a")).unwrap());
    let big = objects.iter().find(|object| object["path"] == "a/big").unwrap();
    assert_eq!(
        (big["type"].as_str(), big["size"].as_u64(), big["nlink"].as_u64()),
        (Some("f"), Some(20 << 20), Some(1))
    );
}

#[test]
fn counts_and_statistics() {
    let tree = mixed();
    let count = find(&tree, ". -print0").iter().filter(|byte| **byte == 0).count();
    for order in ["path", "any"] {
        assert_eq!(list(&tree, &format!("-c --order={order}")), format!("{count}\n").into_bytes());
    }
    let output = run(fathom().args(["-c", "-t", "d", "--stats"]).current_dir(tree.path()));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("fathom list: 8 listed of "), "{stderr}");
    assert_eq!((output.stdout, output.status.code()), (b"8\n".to_vec(), Some(0)));
}

#[test]
fn names_alone_need_no_stat() {
    let tree = Tree::new();
    (0..500).for_each(|file| tree.file(format!("d/{file}"), 1));
    let output = run(fathom().args(["-c", "--stats"]).current_dir(tree.path()));
    let stderr = String::from_utf8(output.stderr).unwrap();
    // stat is called once for each of the two directories, to learn its type.
    assert!(stderr.contains("2 open, 2 getdents, 2 stat\n"), "{stderr}");
}

#[test]
fn unreadable_directories_are_reported_and_the_rest_is_listed() {
    let tree = Tree::parse("a/f 1, locked/f 1, z 1");
    for order in ["path", "any"] {
        let script = "chmod 0 locked; setpriv --reuid=65534 --clear-groups \"$0\" list --order=\"$1\" . missing; status=$?; chmod 755 locked; exit $status";
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .arg(Program::AsDu.bin().join("fathom"))
            .arg(order)
            .current_dir(tree.path());
        let output = run(&mut command);
        if !rustix::process::geteuid().is_root() {
            return crate::support::skip("needs root, to run as somebody else");
        }
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(sorted(&output.stdout, b'\n'), [&b""[..], b".", b"./a", b"./a/f", b"./locked", b"./z"]);
        let mut stderr: Vec<_> = std::str::from_utf8(&output.stderr).unwrap().lines().collect();
        stderr.sort_unstable();
        assert_eq!(
            stderr,
            [
                "fathom list: cannot access 'missing': No such file or directory",
                "fathom list: cannot read directory './locked': Permission denied"
            ]
        );
    }
}

#[test]
fn a_directory_whose_entries_cannot_be_counted_is_reported_once() {
    if !rustix::process::geteuid().is_root() {
        return crate::support::skip("needs root, to run as somebody else");
    }
    let tree = Tree::parse("a/zero 0, locked/f 1");
    for (words, listed, reported) in [
        ("--empty .", "./a/zero\n", "cannot read directory './locked'"),
        ("--empty -d 1 .", "", "cannot access './locked'"),
        ("--empty -d 0 locked", "", "cannot read directory 'locked'"),
        ("-d 0 locked", "locked\n", ""),
    ] {
        for order in ["path", "any"] {
            let script = format!(
                "chmod 0 locked; setpriv --reuid=65534 --clear-groups \"$0\" list --order={order} {words}; \
                 status=$?; chmod 755 locked; exit $status"
            );
            let mut command = Command::new("sh");
            command.args(["-c", &script]).arg(Program::AsDu.bin().join("fathom"));
            let output = run(command.current_dir(tree.path()).env("LC_ALL", "C"));
            let errors = match reported {
                "" => String::new(),
                reported => format!("fathom list: {reported}: Permission denied\n"),
            };
            assert_eq!(String::from_utf8_lossy(&output.stderr), errors, "{words} {order}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), listed, "{words} {order}");
            assert_eq!(output.status.code(), Some(i32::from(!reported.is_empty())), "{words} {order}");
        }
    }
}

#[test]
fn a_mount_point_that_is_not_entered_and_cannot_be_read_is_reported() {
    if !crate::support::needs_mounts() {
        return;
    }
    let tree = Tree::parse("locked/, zero 0");
    for order in ["path", "any"] {
        let script = format!(
            "mount -t tmpfs -o mode=700 none locked && \
             exec setpriv --reuid=65534 --clear-groups \"$0\" list -x --empty --order={order} ."
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).arg(Program::AsDu.bin().join("fathom"));
        let output = run(command.current_dir(tree.path()).env("LC_ALL", "C"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, "fathom list: cannot access './locked': Permission denied\n", "{order}");
        assert_eq!((&output.stdout[..], output.status.code()), (&b"./zero\n"[..], Some(1)), "{order}");
    }
}

#[test]
fn bad_input_is_refused_with_status_2() {
    let tree = Tree::new();
    for (words, says) in [
        (&["--type=q"][..], "invalid type"),
        (&["-s", "x"], "invalid size 'x'"),
        (
            &["--newer", "neither"],
            "'neither' is not a time, and cannot be accessed as a file: No such file or directory; \
             a time is like 90s, 1h30m (ago), 2026-01-31, '2026-01-31 12:00' or @1769850000",
        ),
        (&["--older", "2023-02-30"], "2023-02-30"),
        (&["--regex", "("], "'('"),
        (&["-d", "-1"], "invalid number of levels '-1' for '-d'"),
        (&["--order=x"], "invalid argument 'x' for '--order'"),
        (&["--io=x"], "invalid argument 'x' for '--io'"),
        (&["--threads=0"], "invalid argument '0' for '--threads'"),
        (&["-f", "%"], "'%'"),
        (&["-j", "-c"], "--json and --count cannot be combined"),
        (&[""], "invalid zero-length file name"),
        (&["--nonsense"], "unrecognized option '--nonsense'"),
    ] {
        let output = run(fathom().args(words).env("LC_ALL", "C").current_dir(tree.path()));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("fathom list: ") && stderr.contains(says), "{words:?}: {stderr}");
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)), "{words:?}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let tree = mixed();
    for order in ["path", "any"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = run(fathom().args(["--order", order]).current_dir(tree.path()).stdout(full));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "fathom list: write error: No space left on device\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// Returns the memory of a running process without the pages of its program, in KiB. How many of
/// those are resident depends on the page cache.
fn anonymous_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_slow_reader_bounds_memory_and_a_closed_pipe_ends_list() {
    let tree = Tree::on_tmpfs();
    let long = "n".repeat(200);
    for dir in 0..200 {
        (0..500).for_each(|file| tree.file(format!("{dir}/{long}{file}"), 0));
    }
    for order in ["path", "any"] {
        let mut child = fathom()
            .args(["--order", order, "--threads", "8"])
            .current_dir(tree.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::with_capacity(512, child.stdout.take().unwrap());
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).unwrap();
        assert!(line.starts_with(b"."));
        wait_until_idle(child.id());
        let kib = anonymous_kib(child.id());
        // All names have 20 MiB.
        assert!(kib < 16 * 1024, "{order}: {kib} KiB for a reader that waits");
        drop(lines);
        let status = child.wait().unwrap();
        // SIGPIPE, as for any filter whose reader has ended.
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(13), "{order}: {status}");
    }
}
