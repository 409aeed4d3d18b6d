//! Generates random command lines for a tree: any options, including contradictory ones, and any
//! operands, including repeated, missing and nested ones.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::du_property::forest::RandomTree;
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

/// Invalid values, and valid values close to them.
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

/// A part of a command line or of its environment that can be left out by itself.
#[derive(Clone)]
enum CommandPart {
    Words(Vec<OsString>),
    Env(&'static str, OsString),
    Stdin(Vec<u8>),
    File(&'static str, Vec<u8>),
    Unprivileged,
}

/// A command line with its environment and files.
#[derive(Clone)]
pub(crate) struct CommandLine {
    parts: Vec<CommandPart>,
}

impl CommandLine {
    /// Generates a command line for `forest`.
    pub(crate) fn draw(random: &mut Random, forest: &RandomTree) -> CommandLine {
        let mut parts = Vec::new();
        for _ in 0..random.below(6) {
            parts.push(CommandPart::Words(draw_option(random, forest)));
        }
        for _ in 0..random.weighted(&[20, 35, 25, 15, 5]) {
            parts.push(CommandPart::Words(vec![draw_operand(random, forest)]));
        }
        random.shuffle(&mut parts);
        if random.chance(10) {
            parts = draw_records(random, forest, parts);
        }
        if random.chance(6) {
            parts.insert(0, CommandPart::File("patterns", draw_pattern_file(random, forest)));
            parts.insert(1, CommandPart::Words(vec!["-X".into(), "patterns".into()]));
        }
        if random.chance(25) {
            parts.insert(0, draw_variable(random));
        }
        if forest.is_guarded && random.chance(80) {
            parts.insert(0, CommandPart::Unprivileged);
        }
        CommandLine { parts }
    }

    /// Returns the number of parts.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns this command line without one part.
    pub(crate) fn without(&self, index: usize) -> CommandLine {
        let mut shorter = self.clone();
        shorter.parts.remove(index);
        shorter
    }

    /// Returns the case for this command line. Writes the files that it names.
    pub(crate) fn case<'t>(&self, tree: &'t Tree) -> Case<'t> {
        self.parts.iter().fold(du(tree, ""), |case, part| match part {
            CommandPart::Words(words) => case.args(words),
            CommandPart::Env(variable, value) => case.env(variable, value),
            CommandPart::Stdin(bytes) => case.stdin(bytes),
            CommandPart::File(file, bytes) => {
                tree.holding(file, bytes);
                case
            }
            CommandPart::Unprivileged => case.unprivileged(),
        })
    }
}

fn draw_option(random: &mut Random, forest: &RandomTree) -> Vec<OsString> {
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

/// Returns a pattern from the list, or a name of the tree with some bytes replaced by wildcards.
fn draw_pattern(random: &mut Random, forest: &RandomTree) -> OsString {
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

fn draw_operand(random: &mut Random, forest: &RandomTree) -> OsString {
    if random.chance(6) || forest.names.is_empty() {
        return ["missing", ".", "./", "", "a/missing", "..", "/dev/null", "."][random.below(8)].into();
    }
    let pool = if random.chance(60) && !forest.dirs.is_empty() { &forest.dirs } else { &forest.names };
    let mut operand = pool[random.below(pool.len())].clone();
    if random.chance(50) {
        // The first levels contain more entries than the last.
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

/// Moves the operands to a file for `--files0-from`. Sometimes adds an operand to the arguments,
/// which is an error.
fn draw_records(random: &mut Random, forest: &RandomTree, parts: Vec<CommandPart>) -> Vec<CommandPart> {
    let is_operand = |part: &CommandPart| matches!(part, CommandPart::Words(words) if !words[0].as_bytes().starts_with(b"-"));
    let mut kept: Vec<CommandPart> = parts.into_iter().filter(|part| !is_operand(part)).collect();
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
        kept.insert(at, CommandPart::Words(vec!["--files0-from=-".into()]));
        kept.push(CommandPart::Stdin(records));
    } else {
        kept.insert(at, CommandPart::Words(vec!["--files0-from=list".into()]));
        kept.insert(0, CommandPart::File("list", records));
    }
    if random.chance(3) {
        kept.push(CommandPart::Words(vec!["a".into()]));
    }
    kept
}

fn draw_pattern_file(random: &mut Random, forest: &RandomTree) -> Vec<u8> {
    let mut file = Vec::new();
    for _ in 0..random.below(4) {
        file.extend(draw_pattern(random, forest).as_bytes());
        file.extend(random.pick(&["\n", " \n", "\n\n", "\t \n", ""]).bytes());
    }
    file
}

fn draw_variable(random: &mut Random) -> CommandPart {
    match random.below(8) {
        0 => CommandPart::Env("DU_BLOCK_SIZE", random.pick(UNITS).into()),
        1 => CommandPart::Env("BLOCK_SIZE", random.pick(UNITS).into()),
        2 => CommandPart::Env("BLOCKSIZE", random.pick(UNITS).into()),
        3 => CommandPart::Env("POSIXLY_CORRECT", "1".into()),
        4 => CommandPart::Env("TIME_STYLE", random.pick(STYLES).into()),
        5 => CommandPart::Env("TZ", random.pick(ZONES).into()),
        _ => CommandPart::Env("LC_ALL", ["C", "C.UTF-8", "POSIX"][random.below(3)].into()),
    }
}
