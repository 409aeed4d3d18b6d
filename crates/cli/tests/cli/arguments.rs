//! Command lines, valid and invalid, parsed as GNU du parses them: the same standard output,
//! standard error and exit status, in a UTF-8 locale and in the C locale. The sizes hardly matter
//! here, so the tree is tiny.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use crate::support::program::Program;
use crate::support::{Tree, du, needs_gnu};

/// The forms compared: called as `du`, and as `fathom du`, whose additional options must not change
/// the parsing of GNU du's.
const FORMS: [Program; 2] = [Program::AsDu, Program::Engine(&["--threads=2"])];

/// Short options: bundles, values, and letters that are not options.
const LETTERS: &[&str] = &[
    "-s",
    "-sh",
    "-hs d",
    "-ac",
    "-acS d",
    "-ak0",
    "-d1",
    "-d 1",
    "-ad1",
    "-ad0 d",
    "-sb",
    "-d=1",
    "-y",
    "-yz",
    "-ayc",
    "-a-",
    "-a-s",
    "-1",
    r"-\xff",
    r"-a\xc3\xa9c",
    "-ad",
    "-t",
    "-B",
    "-X",
    "-Bd -a",
    "-W",
    "-W all",
    "-i",
    "-n",
    "-v",
    "-C",
    "-?",
    "-:",
    "-aqbr --foo -z",
    "-d1a",
    "-sH l",
    "-sD l",
    "-sL",
    "-LP l",
    "-PD l",
    "-bm",
    "-mb",
    "-kh f",
    "-hk f",
    "-BM -k f",
    "-k -BM f",
    "-hb f",
    "-Ah f",
    "-xl d d",
    "-lc d d",
    "-c d d/g d",
    "-- -s",
    "- -s",
    "-s -",
    "d -s f",
    "d -- -s f",
    "-s -- d -- f",
];

/// Long options: exact, abbreviated, ambiguous, unknown; values after `=` or in the next argument.
const NAMES: &[&str] = &[
    "--all",
    "--al",
    "--a",
    "--ap",
    "--app d",
    "--b",
    "--bl=1K",
    "--by d",
    "--bytes d",
    "--c d",
    "--d d",
    "--dereference-a l",
    "--dereference l",
    "--derefe l",
    "--e=x",
    "--ex=x",
    "--exclude=f",
    "--exclude f d",
    "--exclude-=p",
    "--f",
    "--files=list",
    "--files0-from list",
    "--h",
    "--hum d",
    "--i d",
    "--inodes d",
    "--m=1",
    "--max=1 d",
    "--n d",
    "--no d",
    "--nu d",
    "--o d",
    "--s",
    "--si d",
    "--se d",
    "--sep d",
    "--su d",
    "--t",
    "--to d",
    "--th=1 d",
    "--thr=4K d",
    "--ti",
    "--time d",
    "--time-=iso d",
    "--time-s=iso d",
    "--x",
    "--foo",
    "--foo=1",
    r"--f\xff\n",
    "--=x",
    "--= d",
    "--all=",
    "--all=1",
    "--al=3",
    "--ap=",
    "--si=1000",
    "--max-depth",
    "--max-depth= d",
    "--max-depth=1=2",
    "--exclude",
    "--exclude-from",
    "--files0-from",
    "--block-size",
    "--threshold",
    "--time-style",
    "--to=",
    "--apparent-size=no",
    "--ALL",
    "--all-",
    "--max_depth=1",
    "---all",
    "--total --sum d f",
];

/// Options of fathom that GNU du does not have.
const ADDED: &[&str] = &[
    "--tree",
    "--top=3",
    "--by=ext",
    "--json",
    "--progress",
    "--color=always",
    "--io=sync",
    "--threads=2",
    "--verbose",
    "--tr",
    "--verb",
    "--js",
    "--col=auto",
    "--io sync d",
];

/// Values of `--max-depth`, and its conflicts with `--summarize`.
const DEPTHS: &[&str] = &[
    "-d0",
    "-d 2 d",
    "-d +1 d",
    "-d -1 d",
    "-d -0 d",
    "-d 0x1 d",
    "-d 0X1 -s",
    "-d 010 -s",
    "-d 0b11 -s",
    "-d 0b",
    "-d 0x",
    "-d 08",
    "-d 1x",
    "-d 1k",
    r"-d ''",
    r"-d \s1 d",
    r"-d 1\s",
    r"-d \t1 -s",
    "-d - d",
    "-d x",
    "-d é",
    "-d it's",
    r"-d a\nb\xff",
    "-d 9223372036854775807 -s",
    "-d 9223372036854775808",
    "-d -9223372036854775808 -s",
    "-d -9223372036854775809",
    "-d 99999999999999999999",
    "-d x -d y -d 1",
    "-d x -as",
    "-s -d0 d",
    "-s -d3",
    "-sd -1",
    "-d 1 -s",
    "-a -s",
    "-as -d1",
    "-as -d0",
    "-s -d0 -d5",
    "-a -d0 d",
    "-d x --time=bad",
    "-d x -B0",
];

/// Units and thresholds.
const SIZES: &[&str] = &[
    "-B0",
    "-B1",
    "-B1x",
    "-BKx",
    "-B -1",
    "-B K f",
    "-BKiB f",
    "-BkB f",
    "-B1K f",
    "-Bsi f",
    "-Bh f",
    "-B 'K f",
    "-B99Y",
    r"-B ''",
    "-B it's",
    r"-B a\n\xff",
    "-Bé",
    "--block-size=0",
    "--block=0",
    "--block-size=1x",
    "--block-size 99Y",
    "--block-size= f",
    "-B0 --help",
    "-B0 -y",
    "-y -B0",
    "-t0 d",
    "-t -0",
    "-t-0 d",
    "-t 1K d",
    "-t -1K d",
    "-t x",
    r"-t ''",
    "-t 1x",
    "-t -1x",
    "-t 99999999999999999999",
    "--thresh=1x",
    "--threshold=-0",
    "--threshold= d",
    "-t 1QQ",
    "-t 0x d",
    "-t é",
    "-y -t x",
    "-t x -y",
];

/// Times and their styles. A style has no effect without times.
const TIMES: &[&str] = &[
    "--time=bad",
    "--time=",
    "--time=a",
    "--time=at d",
    "--time=u d",
    "--time=c d",
    "--time=s d",
    "--time=mtime",
    "--time=é",
    "--time=atime --time d",
    "--time-style=bad d",
    "--time --time-style=bad",
    "--time --time-style= d",
    "--time --time-style=l d",
    "--time --time-style=f d",
    "--time --time-style=i d",
    "--time --time-style=+ d",
    r"--time --time-style=+%Y\n%m d",
    "--time --time-style=locale d",
    "--time --time-style=posix-iso d",
    r"--time --time-style=\xe9",
    "TIME_STYLE=bad --time d",
    "TIME_STYLE=bad d",
    "TIME_STYLE= --time d",
    "TIME_STYLE=iso --time d",
    "TIME_STYLE=posix-posix-iso --time d",
    "TIME_STYLE=posix- --time d",
    "TIME_STYLE=posix-locale --time d",
    "TIME_STYLE=locale --time d",
    r"TIME_STYLE=+%Y\n%m --time d",
    r"TIME_STYLE=posix-+%Y\n%m --time d",
    "TIME_STYLE=bad --time --time-style=iso d",
];

/// Files of patterns and of operands, measures, and the order in which errors are found.
const REST: &[&str] = &[
    "-X missing",
    "-X missing -X other -q",
    "-X d",
    r"-X a\sb:",
    "-X a:b",
    "-X it's",
    r"-X \xff\n",
    "-X patterns d",
    r"-X ''",
    "-X - d",
    "--exclude-from=missing d -s -a",
    "--files0-from=missing",
    "--files0-from=",
    "--files0-from=d",
    "--files0-from=list f",
    "--files0-from=list it's",
    r"--files0-from=list \xff\n",
    "--files0-from=list",
    "--files0-from=missing -s -d0",
    "--files0-from=x --files0-from=list",
    "--files0-from=a:b",
    "-as --files0-from=x y",
    "--files0-from=x --time --time-style=x y",
    "--inodes -A d",
    "--inodes -b d",
    "--inodes -BK d",
    "--inodes -h d",
    "-s -d1 --inodes -A",
    "-s -d0 --inodes -A --time --time-style=x",
    "-s -d0 --inodes -b d",
    "--inodes -b --files0-from=x y",
    "missing",
    r"a\sb it's \xff\n",
    "POSIXLY_CORRECT= d -q",
    "POSIXLY_CORRECT=1 -c -- d -q",
    "POSIXLY_CORRECT=1 -s d -h",
    "POSIXLY_CORRECT=1 -q d -y",
    "DU_BLOCK_SIZE=K f",
    "BLOCK_SIZE=bad f",
    "BLOCKSIZE=1 f",
    "DU_BLOCK_SIZE=bad BLOCK_SIZE=1 f",
    "DU_BLOCK_SIZE= f",
    "POSIXLY_CORRECT=1 f",
    "DU_BLOCK_SIZE=1 -k f",
    "DU_BLOCK_SIZE=si f",
];

/// A UTF-8 locale and the C locale.
const LOCALES: [&str; 2] = ["C.UTF-8", "C"];

#[test]
fn letters() {
    compare(LETTERS);
}

#[test]
fn names() {
    compare(NAMES);
}

#[test]
fn called_as_du_fathom_has_no_additional_options() {
    compare_forms(ADDED, &FORMS[..1]);
}

/// The text of help and version differs from GNU du's. The messages before it and the exit status
/// must not.
#[test]
fn help_and_version() {
    if !needs_gnu(9, 10) {
        return;
    }
    let tree = tree();
    for (line, own) in [
        ("--version", "du (fathom) "),
        ("--v missing", "du (fathom) "),
        ("-as --vers --foo", "du (fathom) "),
        ("-qx --version", "du (fathom) "),
        ("--help", "Usage: du "),
        ("-d x --foo --help -q", "Usage: du "),
        ("-X missing --hel", "Usage: du "),
        ("--files0-from=x y --help", "Usage: du "),
    ] {
        let case = du(&tree, line);
        let (expected, actual) = (case.run(Program::Gnu), case.run(Program::AsDu));
        assert_eq!((actual.err(), actual.end), (expected.err(), expected.end), "{line}");
        assert!(actual.out().starts_with(own), "{line}: {actual:?}");
    }
}

#[test]
fn depths() {
    compare(DEPTHS);
}

#[test]
fn sizes() {
    compare(SIZES);
}

#[test]
fn times() {
    compare(TIMES);
}

#[test]
fn other_options() {
    compare(REST);
}

/// Returns the exit status, standard output and standard error of `fathom` with `words`.
fn fathom(words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fathom")).args(words).output().expect("fathom runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn without_a_command_the_short_help_lists_the_commands() {
    for words in [&[][..], &["--"]] {
        let (status, out, err) = fathom(words);
        assert_eq!((status, &*out), (Some(2), ""));
        assert!(
            err.starts_with("Usage: fathom COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n  du  "),
            "{err}"
        );
        assert!(err.ends_with("\nTry 'fathom --help' for more information.\n"), "{err}");
    }
}

#[test]
fn the_nearest_command_or_option_is_suggested() {
    for (words, status, message) in [
        (&["dy"][..], 2, "fathom: unknown command 'dy', did you mean 'du'?"),
        (&["lsit"], 2, "fathom: unknown command 'lsit', did you mean 'list'?"),
        (&["frobnicate"], 2, "fathom: unknown command 'frobnicate'"),
        (&["--versoin"], 2, "fathom: unrecognized option '--versoin', did you mean '--version'?"),
        (&["list", "--nmae=x"], 2, "fathom list: unrecognized option '--nmae=x', did you mean '--name'?"),
        (&["list", "--xyz"], 2, "fathom list: unrecognized option '--xyz'"),
        (&["serve", "--prot=1"], 2, "fathom serve: unrecognized option '--prot=1', did you mean '--port'?"),
        (&["du", "--tere"], 1, "fathom du: unrecognized option '--tere', did you mean '--tree'?"),
        (&["man", "--hepl"], 2, "fathom man: unrecognized option '--hepl', did you mean '--help'?"),
    ] {
        let (ended, out, err) = fathom(words);
        assert_eq!((ended, &*out), (Some(status), ""), "{words:?}");
        assert_eq!(err.lines().next(), Some(message));
    }
}

fn compare(lines: &[&str]) {
    compare_forms(lines, &FORMS);
}

fn compare_forms(lines: &[&str], forms: &[Program]) {
    if !needs_gnu(9, 10) {
        return;
    }
    let tree = tree();
    // Reading a directory for the first time may change its atime, which some of the lines print.
    du(&tree, "-a").run(Program::Gnu);
    for line in lines {
        for locale in LOCALES {
            let mut case = du(&tree, "").env("LC_ALL", locale);
            for (name, value) in variables(line) {
                case = case.env(name, value);
            }
            case = case.args(words(line));
            let mut expected = case.run(Program::Gnu);
            for &form in forms {
                expected = case.agree(form, expected);
            }
        }
    }
}

fn tree() -> Tree {
    let tree = Tree::parse("d/g 5000, f 3000, l -> d, d/e/");
    tree.holding("patterns", "g \n\n*.o\n");
    tree.holding("list", "d\0f\0");
    tree
}

/// Returns the leading `NAME=value` arguments.
fn variables(line: &str) -> Vec<(&str, OsString)> {
    let pairs = line.split(' ').map_while(|word| word.split_once('='));
    let named = |name: &&str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    pairs.take_while(|(name, _)| named(name)).map(|(name, value)| (name, unescape(value))).collect()
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').skip(variables(line).len()).map(unescape).collect()
}

/// Replaces `\s`, `\t`, `\n` and `\xff` by bytes, and `''` by an empty argument.
fn unescape(word: &str) -> OsString {
    if word == "''" {
        return OsString::new();
    }
    let mut parts = word.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = match part.as_bytes()[0] {
            b's' => (b' ', 1),
            b't' => (b'\t', 1),
            b'n' => (b'\n', 1),
            _ => (u8::from_str_radix(&part[1..3], 16).expect("two hexadecimal digits follow x"), 3),
        };
        bytes.push(byte);
        bytes.extend_from_slice(&part.as_bytes()[rest..]);
    }
    OsString::from_vec(bytes)
}

#[test]
fn lines_are_read_as_they_are_meant() {
    assert_eq!(words(r"A=1 B= -x \s1 '' a\nb\xff").len(), 4);
    assert_eq!(variables("A=1 B= -x C=1").len(), 2);
    assert_eq!(variables("--x=1").len(), 0);
    assert_eq!(unescape(r"a\nb\xff").into_vec(), b"a\nb\xff");
}
