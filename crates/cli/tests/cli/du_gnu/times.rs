//! `--time`: the newest time of an entry and of all entries below it.

use crate::support::fuse::{ScriptedFs, TOP};
use crate::support::{Tree, compare, compare_all, du, needs_fuse};

fn tree() -> Tree {
    let tree = Tree::parse("d/old 10, d/e/new 20, d/e/f/mid 30, g/x 40, d/l -> old, p |");
    for (name, accessed, modified) in [
        ("d/old", 500_000_000, 400_000_000),
        ("d/e/new", 1_000_000_001, 1_700_000_000),
        ("d/e/f/mid", 1_650_000_000, 1_600_000_000),
        ("g/x", 0, -1),
        ("d/l", 1_234_567_890, 1_234_567_891),
        ("p", 1, 2),
        ("d/e/f", 1_100_000_000, 1_100_000_001),
        ("d/e", 1_200_000_000, 1_200_000_001),
        ("d", 1_300_000_000, 1_300_000_001),
        ("g", 100, 200),
    ] {
        tree.times(name, (accessed, 123_456_789), (modified, 987_654_321));
    }
    tree
}

#[test]
fn a_directory_has_the_newest_time_below_it() {
    let tree = tree();
    compare(&tree, "--time d").prints("\t2023-11-14 22:13\td\n");
    compare_all(
        &tree,
        &[
            "--time",
            "--time -a",
            "--time -s d g",
            "--time -d1",
            "--time -c d g",
            "--time -b -a d",
            "--time d/e d",
        ],
    );
    compare_all(
        &tree,
        &[
            "--time -L d",
            "--time -aL",
            "--time -D d/l",
            "--time -0 -a d",
            "--time --inodes",
            "--time d d",
            "--time -l g g",
        ],
    );
}

#[test]
fn every_word_for_a_time() {
    let tree = tree();
    for word in [
        "atime",
        "access",
        "use",
        "ctime",
        "status",
        "mtime",
        "modification",
        "at",
        "a",
        "ac",
        "acc",
        "u",
        "c",
        "s",
        "m",
        "",
    ] {
        // The atime of a directory changes only with the first read after a change (relatime). Read
        // each directory before it changes.
        du(&tree, "-a d/old g/x p").arg(format!("--time={word}")).compare_as_du();
        du(&tree, "-d1 d").arg(format!("--time={word}")).compare_as_du();
    }
    compare_all(
        &tree,
        &[
            "--time=x d",
            "--time=mtimes d",
            "--time=Mtime d",
            "--time atime d",
            "--tim d",
            "--time=atime --time d",
        ],
    );
}

#[test]
fn atimes_and_ctimes_propagate_to_parents() {
    let tree = tree();
    compare_all(
        &tree,
        &["--time=atime -a", "--time=ctime -a", "--time=use -s d g", "--time=status -S", "--time=atime -S d"],
    );
}

#[test]
fn every_style() {
    let tree = tree();
    for style in [
        "full-iso",
        "long-iso",
        "iso",
        "f",
        "full",
        "l",
        "long",
        "i",
        "locale",
        "posix-iso",
        "x",
        "",
        "+",
        "+x",
        "iso8601",
    ] {
        du(&tree, "--time -a d g").arg(format!("--time-style={style}")).compare_as_du();
    }
    compare_all(
        &tree,
        &[
            "--time-style=iso d",
            "--time-style=bad d",
            "--time --time-style=iso --time-style=full-iso d",
            "--time --time-style",
        ],
    );
}

#[test]
fn formats_are_those_of_date() {
    let tree = tree();
    let formats = [
        "%Y-%m-%d %H:%M:%S.%N",
        "%s",
        "%s.%N",
        "%3N",
        "%:z %::z %:::z %z %Z",
        "%a %A %b %B %c",
        "%D %F %T %R %r %p %P",
        "%x %X",
        "%j %U %V %W %u %w %G %g",
        "%e %k %l %I",
        "%n%t%%",
        "%C %y",
        "%h",
        "%_d %-d %0e %^a %#Z %#p",
        "%10Y %_5m %-m %+4Y",
        "%q",
        "%E %O %Ey %Od %Q %f %i %J %K %L %v %1 %",
        "%",
        "no directive",
        "%%%",
        "%5%",
        "%^B",
        "%12N",
        "%-N",
        "%_3N",
        "%Y\n%m",
        "\t%Y\t",
        "%EY%",
        "%:",
        "%::",
        "%:::",
        "%::::z",
        "%+",
        "%-",
        "%5",
        "%010s",
        "%_10s",
        "%^^a",
        "%#^a",
    ];
    for format in formats {
        du(&tree, "--time -a d/old d/e/new g/x").arg(format!("--time-style=+{format}")).compare_as_du();
    }
}

#[test]
fn times_before_and_far_after_now() {
    let tree = Tree::on_tmpfs().with("a 1, b 1, c 1, e 1, f 1, g 1, h 1");
    let seconds = [
        -1,
        -2_208_988_800,
        -62_135_596_801,
        2_147_483_648,
        4_294_967_296,
        253_402_300_800,
        67_767_976_233_532_799,
    ];
    for (name, second) in ["a", "b", "c", "e", "f", "g", "h"].iter().zip(seconds) {
        tree.times(name, (second, 0), (second, 1));
    }
    compare_all(
        &tree,
        &[
            "--time -a",
            "--time --time-style=full-iso -a",
            "--time --time-style=iso -a",
            "--time --time-style=+%s -a",
        ],
    );
    compare_all(&tree, &["--time --time-style=+%Y|%G|%C|%y|%F|%j|%a -a", "--time -s a b", "--time -c h g"]);
}

#[test]
fn a_time_beyond_all_years_is_printed_as_seconds() {
    let tree = Tree::on_tmpfs().with("a 1, b/c 1, b/d 1");
    tree.times("b/c", (0, 0), (i64::MAX, 0));
    tree.times("b/d", (0, 0), (i64::MIN, 0));
    tree.times("a", (0, 0), (i64::MAX, 999_999_999));
    for words in
        ["--time -a b", "--time a", "--time -a --time-style=full-iso", "--time --time-style=+%Y b/d a"]
    {
        compare(&tree, words).prints("9223372036854775").status(0);
    }
    compare_all(
        &tree,
        &["--time -c b a", "--time --time-style=+%s -a", "--time b", "--time=ctime a", "--time=atime a"],
    );
}

#[test]
fn times_that_the_file_system_invents() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    let dir = script.dir(TOP, "d");
    for (name, second) in [("a", 0), ("b", -1), ("c", 1 << 40), ("e", 1 << 60)] {
        let file = script.file(dir, name, 2);
        script.modified(file, second);
    }
    for words in ["--time -a mnt", "--time mnt", "-a --time --time-style=+%s mnt/d mnt"] {
        du(&tree, words).mounting(&script).compare().prints("mnt/d\n");
    }
}

/// GNU du cannot compute this date even in UTC, so it prints it in no time zone.
#[test]
fn a_date_beyond_the_calendar_in_universal_time_is_out_of_range_in_every_zone() {
    for second in
        [67_768_036_191_676_799, 67_768_036_191_676_800, -67_768_040_609_740_800, -67_768_040_609_740_801]
    {
        let tree = Tree::on_tmpfs().with("f").time("f", second);
        for zone in ["UTC0", "XXX+12", "XXX-14"] {
            du(&tree, "--time --time-style=full-iso f").env("TZ", zone).compare_as_du();
        }
    }
}

#[test]
fn a_width_of_gigabytes_takes_no_memory() {
    let tree = Tree::parse("f");
    for style in ["%2147483647d", "%_2147483647F", "%2147483647N", "%2147483647Z"] {
        let case =
            du(&tree, "--time").arg(format!("--time-style=+{style}")).arg("f").after("ulimit -v 200000");
        case.redirect("| head -c 70000").compare_as_du();
    }
    let case = du(&tree, "--time --time-style=+%300000000T f").after("ulimit -v 200000");
    case.redirect("| wc -c").compare_as_du().prints("30000000");
}
