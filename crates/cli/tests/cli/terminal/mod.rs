//! Output to a terminal: names are quoted as ls(1) quotes them, and no control character from a
//! tree, an operand or an inventory reaches the terminal, with any command and option. The terminal
//! is a pseudo-terminal that the test opens.

pub(crate) mod pty;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::program::Program;
use crate::support::{Tree, needs_tool};
use pty::on_terminal;

/// Names with control characters, and names that look like lines of output.
const HOSTILE: [&[u8]; 11] = [
    b"x\x1b[31m",
    b"x\x1b]0;title\x07",
    b"bell\x07",
    b"\xc2\x9b2Jc1",
    b"\x9b31mbyte",
    b"del\x7f",
    b"cr\rx",
    b"bs\x08\x08",
    b"nl\nline",
    b"tab\tx",
    b"f.\x1b[7m",
];

/// The text after it is shown from right to left. ls(1) writes it as it is.
const TURN: char = '\u{202e}';

/// Returns a tree with the names in `d`: as files, as directories with a file, and as targets of
/// links.
fn hostile() -> Tree {
    let tree = Tree::parse("plain 5, other/plain 5, d/plain 5, d/it's 5, d/\u{e9} 5");
    tree.file("d/two words", 5);
    for (number, name) in HOSTILE.into_iter().enumerate() {
        tree.file(OsStr::from_bytes(&[b"d/", name].concat()), 5);
        tree.file(OsStr::from_bytes(&[b"d/dir ", name, b"/", name].concat()), 5);
        tree.symlink(format!("d/link{number}"), OsStr::from_bytes(name));
    }
    tree
}

/// Returns `fathom` with `words`, split at spaces.
fn fathom(tree: &Tree, words: &str) -> Command {
    let mut command = Command::new(Program::AsDu.bin().join("fathom"));
    command.args(words.split_whitespace()).current_dir(tree.path());
    command
}

/// Removes the lines that the progress meter draws and erases: the texts between two sequences that
/// erase a line. Complete lines between them are output.
fn without_progress(text: &str) -> String {
    let parts: Vec<&str> = text.split("\r\x1b[K").collect();
    let is_output = |&(number, part): &(usize, &&str)| {
        number == 0 || number + 1 == parts.len() || part.contains(['\n', '\0'])
    };
    parts.iter().enumerate().filter(is_output).map(|(_, part)| *part).collect()
}

/// Returns the output of `command` on a terminal in a UTF-8 locale, without the escape sequence of
/// its progress meter. Panics if a control character is left, or one that turns the text after it.
#[track_caller]
fn shown(command: &mut Command) -> String {
    let text = on_terminal(command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC0").env("TERM", "xterm"));
    let text = String::from_utf8(text).unwrap_or_else(|error| panic!("{command:?}: {error}: not UTF-8"));
    let text = without_progress(&text);
    let is_harmful = |c: &char| *c == TURN || c.is_control() && !matches!(c, '\n' | '\t' | '\0');
    let control = text.chars().find(is_harmful);
    assert!(control.is_none(), "{command:?}: {control:?} in {text:?}");
    text
}

#[test]
fn du_and_list_write_names_as_ls_does() {
    let tree = hostile();
    let ls = shown(Command::new("ls").arg("-1A").current_dir(tree.at("d")));
    let mut expected: Vec<_> = ls.lines().collect();
    expected.sort_unstable();
    assert!(expected.contains(&r"'x'$'\033''[31m'") && expected.contains(&"'two words'"), "{expected:?}");
    for (words, prefix) in
        [("list --min-depth 1 -d 1 -f %f\\n .", ""), ("list --min-depth 1 -d 1 --order any .", "./")]
    {
        let mut command = fathom(&tree, words);
        let text = shown(command.current_dir(tree.at("d")));
        let mut found: Vec<_> = text.lines().map(|line| line.replacen(prefix, "", 1)).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{words}");
    }
    // In a path, the whole path is quoted if one of its names needs quotes.
    let paths: Vec<_> = shown(fathom(&tree, "list d").arg("plain")).lines().map(str::to_owned).collect();
    assert!(paths.iter().any(|line| line == r"'d/x'$'\033''[31m'") && paths.contains(&"plain".to_owned()));
    for name in ["du", "fathom du"] {
        let words: Vec<_> = name.split(' ').collect();
        let mut command = Command::new(Program::AsDu.bin().join(words[0]));
        command.arg0(words[0]).args(&words[1..]).args(["-a", "d"]).current_dir(tree.path());
        let text = shown(&mut command);
        let mut found: Vec<_> = text.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
        let mut paths: Vec<_> = paths.iter().map(String::as_str).filter(|path| *path != "plain").collect();
        found.sort_unstable();
        paths.sort_unstable();
        assert_eq!(found, paths, "{name}");
    }
}

/// In the C locale, every byte above 0x7f is unprintable.
#[test]
fn the_locale_decides_what_is_printable() {
    let tree = hostile();
    for words in ["list d", "du -a d"] {
        let mut command = fathom(&tree, words);
        let text = on_terminal(command.env("LC_ALL", "C"));
        assert!(text.is_ascii() && !text.contains(&0x1b), "{words}: {}", text.escape_ascii());
    }
    assert!(shown(&mut fathom(&tree, "list d/\u{e9}")).starts_with("d/\u{e9}"));
}

#[test]
fn nul_terminated_names_are_unquoted_except_for_control_characters() {
    let tree = hostile();
    for words in ["list -0 d", "du -a0 d", "list -0 d --order any"] {
        let text = shown(&mut fathom(&tree, words));
        let names: Vec<_> = text.split('\0').collect();
        for name in [r"d/x\033[31m", "d/two words", "d/nl\nline"] {
            assert!(names.iter().any(|line| line.ends_with(name)), "{words}: {name} not in {text:?}");
        }
    }
}

#[test]
fn no_view_or_format_lets_control_characters_through() {
    let tree = hostile();
    tree.file(format!("d/annexe{TURN}gpj.exe"), 9000);
    for words in [
        "du -a d",
        "du --tree -a --color=never d",
        "du --top=99 d",
        "du --by=ext d",
        "du --json -a d",
        "du --time --time-style=+%s -ac d",
        "list -f %p|%f|%h|%P|%H|%l|%F|%Z|%u|%g|%-20f|%.3f\\n d",
        "list -L d",
        "list -j d",
        "list -0 -f %p\\n d",
        "list --stats d",
    ] {
        let text = shown(fathom(&tree, words).arg(OsStr::from_bytes(b"d/missing\x1b[2J\xc2\x9b2J")));
        assert!(text.contains("missing") && text.lines().count() > 2, "{words}: {text:?}");
    }
    // Escape sequences in a user's own format are written unchanged.
    let colored = on_terminal(fathom(&tree, "list plain -f").arg("\\033[31m%p\\033[m\\n"));
    assert_eq!(colored, b"\x1b[31mplain\x1b[m\n");
}

#[test]
fn no_message_lets_control_characters_through() {
    let tree = hostile();
    let esc = OsStr::from_bytes(b"--\x1b[31m");
    for words in ["du", "list", "scan", "top", "diff", "query", "export", "serve", "bench", "io", ""] {
        let text = shown(fathom(&tree, words).arg(esc));
        assert!(text.contains("[31m"), "{words}: {text:?}");
    }
    let missing = OsStr::from_bytes(b"missing\x1b[31m");
    for words in ["scan -o out", "top", "diff", "export --to csv", "io", "du --from", "du -X", "list --newer"]
    {
        let text = shown(fathom(&tree, words).args([missing; 2]));
        assert!(
            text.contains("missing") || words == "export --to csv" || words == "top",
            "{words}: {text:?}"
        );
    }
    for base in ["du", "\x1b[31m"] {
        let mut command = Command::new(Program::AsDu.bin().join("fathom"));
        let text = shown(command.arg0(format!("\x1b[7m/{base}")).arg("nowhere").current_dir(tree.path()));
        assert!(!text.is_empty(), "{base}");
    }
}

#[test]
fn no_report_of_an_inventory_lets_control_characters_through() {
    let tree = hostile();
    let text =
        shown(fathom(&tree, "scan --progress=never --stats -o i d").arg(OsStr::from_bytes(b"gone\x1b[2J")));
    assert!(text.contains(r"gone'$'\033''[2J"), "{text:?}");
    crate::support::commands::stdout_of(&tree, &["scan", "-o", "j", "other"]);
    for words in [
        "top i",
        "top --by dir i",
        "top --by file -n 99 i",
        "top --by ext i",
        "top --json --by file -n 99 i",
        "diff j i",
        "diff --dirs j i",
        "diff -0 j i",
        "diff --json j i",
        "export --to jsonl i",
        "export --to csv i",
        "export --to nul i",
        "export --to ncdu i",
        "export --to sql i",
        "du -a --from i",
        "list --from i",
        "list --from i -f %p|%l\\n",
        "list -0 --from i",
        "scan --estimate 5s --progress=never d",
        "scan --estimate 5s --json --progress=never d",
    ] {
        let text = shown(&mut fathom(&tree, words));
        assert!(!text.is_empty(), "{words}");
    }
}

#[test]
fn benchmarks_and_small_dus_let_no_control_characters_through() {
    let tree = hostile();
    let dir = OsStr::from_bytes(b"d/dir x\x1b[31m");
    let text =
        shown(fathom(&tree, "bench write --size 64K --blocks 2 --seed 7 --models sync --path").arg(dir));
    assert!(text.contains("  sync  "), "{text:?}");
    shown(fathom(&tree, "io").arg(dir));
    for name in ["rdu-sync", "rdu-async-seq", "rdu-async-par"] {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_fathom")).with_file_name(name);
        let text = shown(
            Command::new(program).arg("d").arg(OsStr::from_bytes(b"x\x1b[1m")).current_dir(tree.path()),
        );
        assert!(text.contains(r"'d/dir x'$'\033''[31m'"), "{name}: {text:?}");
    }
}

#[test]
fn tables_have_a_header_on_a_terminal_and_none_in_a_pipe() {
    let tree = Tree::parse("d/a.x 5000, d/b.y 5");
    crate::support::commands::stdout_of(&tree, &["scan", "-o", "i", "d"]);
    tree.file("d/c.x", 9000);
    crate::support::commands::stdout_of(&tree, &["scan", "-o", "j", "d"]);
    for (words, header) in [
        ("top i", "usage\tsize\tentries\tshare\tdir\n"),
        ("top --by ext i", "usage\tsize\tentries\tshare\text\n"),
        ("diff --dirs i j", "usage\tsize\tentries\tdirectory\n"),
        ("du --by=ext d", "usage\tinodes\tshare\text\n"),
        ("du --by=type --inodes d", "inodes\tshare\ttype\n"),
        ("du --top=2 -b --time d", "size\ttime            \ttype\tpath\n"),
        ("top --json i", ""),
        ("top --below d --by file --lines 1 i", "usage\tsize\tentries\tshare\tfile\n"),
        ("du --by=ext --json d", ""),
        ("du --by=ext -0 d", ""),
        ("du -a d", ""),
        ("list d", ""),
    ] {
        let piped = fathom(&tree, words).env("LC_ALL", "C.UTF-8").env("TZ", "UTC0").output().unwrap().stdout;
        let rows = String::from_utf8(piped).unwrap();
        assert!(!rows.is_empty(), "{words}");
        assert_eq!(shown(&mut fathom(&tree, words)), [header, &rows].concat(), "{words}");
    }
}

/// A pipe gets GNU du's bytes, and from `fathom list` find's.
#[test]
fn a_pipe_gets_the_bytes_as_they_are() {
    if !needs_tool("find") {
        return;
    }
    let tree = hostile();
    let output = |command: &mut Command| command.current_dir(tree.path()).output().unwrap().stdout;
    let found = output(Command::new("find").arg("d"));
    assert_eq!(output(&mut fathom(&tree, "list d")), found);
    crate::support::compare(&tree, "-a d").prints("x\x1b[31m");
}

#[test]
fn a_benchmark_says_what_it_takes_before_it_starts() {
    let tree = Tree::parse("");
    let out = shown(&mut fathom(&tree, "bench write --size 64K --blocks 1 --models sync --json=/dev/null"));
    // Blocking calls, the same again, and with RWF_DONTCACHE.
    let estimate = "fathom bench: 3 samples, 192.0 KiB to move, 64.0 KiB on the disk, roughly 0 s";
    assert!(out.trim_start().starts_with(estimate), "{out}");
}

#[test]
fn an_inventory_is_not_written_to_a_terminal() {
    let tree = Tree::parse("d/f 1");
    let out = shown(&mut fathom(&tree, "scan -o - d"));
    assert_eq!(out, "fathom scan: cannot write an inventory to a terminal: redirect standard output\n");
}
