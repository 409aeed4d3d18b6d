//! Draws command lines for a tree: any options, also those that contradict each other, and any operands, also those
//! that repeat each other, are missing or lie in one another.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::forest::Forest;
use crate::support::case::{Case, du};
use crate::support::random::Random;
use crate::support::tree::Tree;

const FLAGS: &[&str] = &[
    "-a",
    "-a",
    "-a",
    "-S",
    "-S",
    "-c",
    "-c",
    "-l",
    "-l",
    "-s",
    "-x",
    "-L",
    "-L",
    "-D",
    "-H",
    "-P",
    "-0",
    "-b",
    "-b",
    "-A",
    "-h",
    "--si",
    "-k",
    "-m",
    "--inodes",
    "--inodes",
    "--apparent-size",
    "--time",
    "--time",
    "-ac",
    "-sc",
    "-al",
    "-aL",
    "-lL",
    "-Sc",
    "-ab",
    "--all",
    "--total",
    "--null",
    "--count-links",
    "--dereference",
    "--one-file-system",
    "--separate-dirs",
    "--summarize",
];
const DEPTHS: &[&str] = &["0", "1", "2", "3", "5", "99", "0x2"];
const UNITS: &[&str] = &[
    "1",
    "7",
    "512",
    "K",
    "KiB",
    "kB",
    "1K",
    "1000",
    "4096",
    "M",
    "MB",
    "G",
    "1G",
    "E",
    "human-readable",
    "si",
    "1E",
    "Y",
    "'1",
    "'M",
];
const THRESHOLDS: &[&str] = &[
    "0", "1", "-1", "2", "3", "4096", "4097", "-4096", "-4095", "8K", "-8K", "12K", "-12K", "100kB", "-1M",
    "1G", "1E",
];
const TIMES: &[&str] = &["atime", "access", "use", "ctime", "status", "at", "c"];
const STYLES: &[&str] =
    &["full-iso", "long-iso", "iso", "+%s", "+%Y-%j", "+%F %T.%N %z", "posix-iso", "posix-posix-long-iso"];
const PATTERNS: &[&str] = &[
    "*", "?", "a", "*.o", "*/*", "[ab]", "[!a]*", "a*", ".*", "*a*/?", "d/*", "\\*", "?*[!c]", "*\u{e9}*",
    "[^/]*", "n*",
];
const ZONES: &[&str] = &["UTC", "America/New_York", "Asia/Kolkata", "XYZ-3:30", ""];

/// What is refused, or nearly.
const MISTAKES: &[&str] = &[
    "-dx",
    "-d-1",
    "-d",
    "-B0",
    "-Bx",
    "-B1Q",
    "-t-0",
    "-tx",
    "-t1Q",
    "--time=x",
    "--time=mtime",
    "--time-style=bad",
    "--time-style=locale",
    "-Z",
    "--unknown",
    "--s",
    "--exclude",
    "-Xmissing",
    "--files0-from=missing",
    "--all=1",
    "--max-depth=",
    "--",
    "-s -d1",
    "-",
];

/// One thing on or around a command line that can be left out by itself.
#[derive(Clone)]
enum Part {
    Words(Vec<OsString>),
    Env(&'static str, OsString),
    Stdin(Vec<u8>),
    File(&'static str, Vec<u8>),
    Unprivileged,
}

/// A command line and its circumstances.
#[derive(Clone)]
pub(crate) struct Line {
    parts: Vec<Part>,
}

impl Line {
    /// Draws one for `forest`.
    pub(crate) fn draw(random: &mut Random, forest: &Forest) -> Line {
        let mut parts = Vec::new();
        for _ in 0..random.below(6) {
            parts.push(Part::Words(draw_option(random, forest)));
        }
        for _ in 0..random.weighted(&[20, 35, 25, 15, 5]) {
            parts.push(Part::Words(vec![draw_operand(random, forest)]));
        }
        random.shuffle(&mut parts);
        if random.chance(10) {
            parts = draw_records(random, forest, parts);
        }
        if random.chance(6) {
            parts.insert(0, Part::File("patterns", draw_pattern_file(random, forest)));
            parts.insert(1, Part::Words(vec!["-X".into(), "patterns".into()]));
        }
        if random.chance(25) {
            parts.insert(0, draw_variable(random));
        }
        if forest.is_guarded && random.chance(80) {
            parts.insert(0, Part::Unprivileged);
        }
        Line { parts }
    }

    /// How many parts can be left out.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The same without one part.
    pub(crate) fn without(&self, index: usize) -> Line {
        let mut shorter = self.clone();
        shorter.parts.remove(index);
        shorter
    }

    /// The case that it makes; writes the files that it names.
    pub(crate) fn case<'t>(&self, tree: &'t Tree) -> Case<'t> {
        self.parts.iter().fold(du(tree, ""), |case, part| match part {
            Part::Words(words) => case.args(words),
            Part::Env(variable, value) => case.env(variable, value),
            Part::Stdin(bytes) => case.stdin(bytes),
            Part::File(file, bytes) => {
                tree.holding(file, bytes);
                case
            }
            Part::Unprivileged => case.unprivileged(),
        })
    }
}

fn draw_option(random: &mut Random, forest: &Forest) -> Vec<OsString> {
    if random.chance(2) {
        return vec![random.pick(MISTAKES).into()];
    }
    let (short, long, value): (&str, &str, OsString) = match random.weighted(&[60, 8, 10, 8, 5, 5, 6]) {
        0 => return vec![random.pick(FLAGS).into()],
        1 => ("-d", "--max-depth", random.pick(DEPTHS).into()),
        2 => ("-B", "--block-size", random.pick(UNITS).into()),
        3 => ("-t", "--threshold", random.pick(THRESHOLDS).into()),
        4 => return vec![format!("--time={}", random.pick(TIMES)).into()],
        5 => ("--time-style", "--time-style", random.pick(STYLES).into()),
        _ => ("--exclude", "--exclude", draw_pattern(random, forest)),
    };
    match random.below(3) {
        0 if !short.starts_with("--") => vec![joined(short, &value)],
        1 => vec![joined(&format!("{long}="), &value)],
        _ => vec![short.into(), value],
    }
}

fn joined(option: &str, value: &OsString) -> OsString {
    let mut word = OsString::from(option);
    word.push(value);
    word
}

/// A pattern from the list, or a name of the tree with some bytes made wild.
fn draw_pattern(random: &mut Random, forest: &Forest) -> OsString {
    if random.chance(60) || forest.names.is_empty() {
        return random.pick(PATTERNS).into();
    }
    let whole = &forest.names[random.below(forest.names.len())];
    let from = if random.chance(30) {
        0
    } else {
        whole.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)
    };
    let mut pattern = Vec::new();
    for &byte in &whole[from..] {
        match random.below(12) {
            0 => pattern.push(b'?'),
            1 => pattern.push(b'*'),
            2 => pattern.extend([b'\\', byte]),
            3 => pattern.extend([b'[', byte, b'z', b']']),
            4 => pattern.extend([b'[', b'!', byte, b']']),
            _ => pattern.push(byte),
        }
    }
    OsString::from_vec(pattern)
}

fn draw_operand(random: &mut Random, forest: &Forest) -> OsString {
    if random.chance(6) || forest.names.is_empty() {
        return ["missing", ".", "./", "", "a/missing", "..", "/dev/null", "."][random.below(8)].into();
    }
    let pool = if random.chance(60) && !forest.dirs.is_empty() { &forest.dirs } else { &forest.names };
    let mut operand = pool[random.below(pool.len())].clone();
    if random.chance(50) {
        // The first levels hold more than the last.
        let cut = operand.iter().position(|&byte| byte == b'/').unwrap_or(operand.len());
        operand.truncate(cut);
    }
    let is_dir = forest.dirs.contains(&operand);
    match random.below(20) {
        0..4 => operand.push(b'/'),
        4 | 5 => operand.splice(0..0, *b"./").for_each(drop),
        6 => operand.extend(b"//"),
        7 => operand.extend(b"/."),
        8 if is_dir => operand.extend(b"/.."),
        9 => operand = [forest.tree.path().as_os_str().as_bytes(), b"/", &operand].concat(),
        10 => operand.splice(0..0, *b".//").for_each(drop),
        _ => {}
    }
    OsString::from_vec(operand)
}

/// Moves the operands to a list of records, or adds one to them, which is an error.
fn draw_records(random: &mut Random, forest: &Forest, parts: Vec<Part>) -> Vec<Part> {
    let is_operand =
        |part: &Part| matches!(part, Part::Words(words) if !words[0].as_bytes().starts_with(b"-"));
    let mut kept: Vec<Part> = parts.into_iter().filter(|part| !is_operand(part)).collect();
    let mut records = Vec::new();
    for _ in 0..random.below(6) {
        let record = if random.chance(5) { OsString::new() } else { draw_operand(random, forest) };
        records.extend(record.as_bytes());
        records.push(0);
    }
    if random.chance(20) {
        records.pop();
    }
    let at = random.below(kept.len() + 1);
    if random.chance(50) {
        kept.insert(at, Part::Words(vec!["--files0-from=-".into()]));
        kept.push(Part::Stdin(records));
    } else {
        kept.insert(at, Part::Words(vec!["--files0-from=list".into()]));
        kept.insert(0, Part::File("list", records));
    }
    if random.chance(3) {
        kept.push(Part::Words(vec!["a".into()]));
    }
    kept
}

fn draw_pattern_file(random: &mut Random, forest: &Forest) -> Vec<u8> {
    let mut file = Vec::new();
    for _ in 0..random.below(4) {
        file.extend(draw_pattern(random, forest).as_bytes());
        file.extend(random.pick(&["\n", " \n", "\n\n", "\t \n", ""]).bytes());
    }
    file
}

fn draw_variable(random: &mut Random) -> Part {
    match random.below(8) {
        0 => Part::Env("DU_BLOCK_SIZE", random.pick(UNITS).into()),
        1 => Part::Env("BLOCK_SIZE", random.pick(UNITS).into()),
        2 => Part::Env("BLOCKSIZE", random.pick(UNITS).into()),
        3 => Part::Env("POSIXLY_CORRECT", "1".into()),
        4 => Part::Env("TIME_STYLE", random.pick(STYLES).into()),
        5 => Part::Env("TZ", random.pick(ZONES).into()),
        _ => Part::Env("LC_ALL", ["C", "C.UTF-8", "POSIX"][random.below(3)].into()),
    }
}
