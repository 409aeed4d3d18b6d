//! Compares formats with the real `find`: the output has to be the same for every entry of a tree
//! of unusual files.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use fathom_inventory::Owners;
use fathom_inventory::format::PrintFormat;
use fathom_text::time::Zone;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use support::{OwnedEntry, System, Tree};

/// Separates entries. No name contains it.
const MARK: &[u8] = b"\x1e\x1e";
const ZONE: &str = "EST5EDT,M3.2.0,M11.1.0";

/// Returns the output of find, split at the marks; `None` if find refuses the format.
fn theirs(tree: &Tree, root: &str, format: &[u8]) -> Option<Vec<Vec<u8>>> {
    let format = [format, MARK].concat();
    let mut find = Command::new("find");
    find.current_dir(tree.path()).env_clear().env("LC_ALL", "C").env("TZ", ZONE);
    find.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    find.args([root, "-printf"]).arg(std::ffi::OsStr::from_bytes(&format));
    let output = find.output().expect("find, which these tests compare with");
    if output.stderr.starts_with(b"find: error: ")
        || output.stderr.windows(13).any(|part| part == b"\nfind: error:")
    {
        return None;
    }
    Some(sorted(&output.stdout))
}

fn sorted(output: &[u8]) -> Vec<Vec<u8>> {
    let text = output.escape_ascii().to_string();
    let mut lines: Vec<Vec<u8>> = text.split("\\x1e\\x1e").map(|line| line.as_bytes().to_vec()).collect();
    lines.sort();
    lines
}

fn ours(entries: &[OwnedEntry], format: &[u8], system: &mut System) -> Option<Vec<Vec<u8>>> {
    let zone = Zone::from_env(|name| (name == "TZ").then(|| ZONE.as_bytes().to_vec()));
    let format = PrintFormat::parse(&[format, MARK].concat(), &zone).ok()?;
    let owners = Owners::read();
    let mut out = Vec::new();
    entries.iter().for_each(|found| format.write(&found.entry(), &owners, system, &mut out));
    Some(sorted(&out))
}

fn as_text(lines: Option<Vec<Vec<u8>>>) -> String {
    let lines = lines.map(|lines| lines.into_iter().map(|line| String::from_utf8(line).unwrap_or_default()));
    lines.map_or("refused".to_owned(), |lines| lines.collect::<Vec<_>>().join("\n"))
}

/// Asserts that `format` prints the same for all entries below each root.
#[track_caller]
fn same(tree: &Tree, roots: &[&str], format: &[u8]) {
    for root in roots {
        let entries = tree.entries(root);
        let ours = as_text(ours(&entries, format, &mut System::new(tree)));
        assert_eq!(ours, as_text(theirs(tree, root, format)), "{root}: {}", format.escape_ascii());
    }
}

const LETTERS: &[u8] = b"pfhPHdsbkmMniDugGUlyYtcaFSZ";

#[test]
fn every_directive_alone_and_in_columns() {
    let tree = Tree::new();
    for letter in LETTERS {
        for flags in ["", "40", "-40", "040", ".3", "40.3", "-40.0", "+", "#", " ", "+09", "#9", "#.6", "0"] {
            let format = [b"%p|%", flags.as_bytes(), &[*letter], b"|"].concat();
            same(&tree, &["tree"], &format);
        }
    }
}

#[test]
fn every_part_of_every_time() {
    let tree = Tree::new();
    for kind in 1..=255u8 {
        // A find that does not know creation times prints seconds for `%B@` that are none: compare
        // the modification time there.
        let btimes = if tree.has_btimes || kind != b'@' { b'B' } else { b'T' };
        let times = [b'A', btimes, b'C', b'T'].map(|which| [b'%', which, kind, b'|'].to_vec());
        same(
            &tree,
            &["tree"],
            &[
                b"%p|".to_vec(),
                times.concat(),
                [b"%-40T", &[kind][..], b"|%040C", &[kind], b"|%.3T", &[kind]].concat(),
            ]
            .concat(),
        );
    }
}

#[test]
fn paths_below_every_way_to_write_a_starting_point() {
    let tree = Tree::new();
    let absolute = tree.path().join("tree").to_string_lossy().into_owned();
    let roots = [
        "tree",
        "tree/",
        "tree//",
        "./tree",
        "tree/.",
        "tree/sub/..",
        ".",
        "./",
        &absolute,
        "tree/file",
        "tree/dangling",
    ];
    same(&tree, &roots, b"%p|%f|%h|%P|%H|%d|%y|%20f|%-20h|%.1P|%.2H");
    same(&tree, &["/dev/null"], b"%p|%f|%h|%P|%H|%d|%y|%Y|%M|%m|%D|%s|%S");
}

#[test]
fn escapes_and_unknown_ones() {
    let tree = Tree::new();
    for byte in 1..=255u8 {
        same(&tree, &["tree/file"], &[b"a\\", &[byte][..], b"|"].concat());
        same(&tree, &["tree/file"], &[b"a%", &[byte][..], b"|"].concat());
        same(&tree, &["tree/file"], &[b"a%-7", &[byte][..], b"|%5A", &[byte], b"|"].concat());
    }
    let formats = [
        "\\0|\\101|\\1012|\\8|\\08|\\400|\\777|\\18",
        "%%|%5%|%-5%%x|%.5%|%5%x",
        "%5-d|%-5+d|%.-5d|%5.5.d|%hd",
        "%++d|%--5d|%00005d|%- 5d|% +d|%+05d|%-05d",
        "a\\cb%",
        "%A\\n|%T%|%5\\n",
        "",
        "\\\\%p",
    ];
    formats.iter().for_each(|format| same(&tree, &["tree"], format.as_bytes()));
}

#[test]
fn ends_of_formats() {
    let tree = Tree::new();
    let entries = tree.entries("tree/file");
    for format in ["%", "a%5", "%A", "%5T", "\\", "a\\", "%p\\c%q", "%-", "%.", "%{", "%5(", "%p%[x"] {
        let output =
            Command::new("find").current_dir(tree.path()).args(["tree/file", "-printf", format]).output();
        let output = output.expect("find, which these tests compare with");
        let theirs = output.status.success().then_some(output.stdout);
        let ours = PrintFormat::parse(format.as_bytes(), &Zone::UTC).ok().map(|format| {
            let mut out = Vec::new();
            format.write(&entries[0].entry(), &Owners::default(), &mut (), &mut out);
            out
        });
        assert_eq!(ours, theirs, "{format}");
    }
}

#[test]
fn formats_at_random() {
    let tree = Tree::new();
    let entries = tree.entries("tree");
    let flags = "[-+ #0]{0,3}([0-9]{1,2})?([.][0-9]{0,2})?";
    let piece = prop_oneof![
        (flags, proptest::sample::select(LETTERS.to_vec())).prop_map(|(flags, letter)| [
            b"%",
            flags.as_bytes(),
            &[letter]
        ]
        .concat()),
        (flags, if tree.has_btimes { "[ABCT][a-zA-Z@+]" } else { "[ABCT][a-zA-Z+]" })
            .prop_map(|(flags, time)| ["%", &flags, &time].concat().into_bytes()),
        "[%\\\\a-zA-Z0-9.{ -]{1,3}".prop_map(String::into_bytes),
        "\\\\[0-7]{1,4}".prop_map(String::into_bytes),
    ];
    let formats = proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat());
    // find passes an escaped `%` to the printf of the C library, together with the text after it.
    let formats = formats.prop_filter("an escaped %", |format| !format.windows(2).any(|pair| pair == b"\\%"));
    let run = TestRunner::new(fathom_cases::property(400)).run(&formats, |format| {
        let ours = as_text(ours(&entries, &format, &mut System::new(&tree)));
        prop_assert_eq!(ours, as_text(theirs(&tree, "tree", &format)), "{}", format.escape_ascii());
        Ok(())
    });
    run.unwrap();
}
