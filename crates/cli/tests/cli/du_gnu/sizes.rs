//! The size column: the measure, its unit, and rounding.

use crate::support::fuse::{ScriptedFs, TOP};
use crate::support::{Tree, compare, compare_all, du, needs_fuse, needs_gnu};

/// Sizes on both sides of each boundary of rounding and of the number of digits.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    511,
    512,
    513,
    999,
    1000,
    1001,
    1023,
    1024,
    1025,
    1126,
    1127,
    1500,
    1536,
    9949,
    9950,
    9951,
    9999,
    10_000,
    10_001,
    10_137,
    10_138,
    10_188,
    10_189,
    10_239,
    10_240,
    10_241,
    99_999,
    100_000,
    101_376,
    101_377,
    102_399,
    102_400,
    102_401,
    999_000,
    999_001,
    999_999,
    1_000_000,
    1_000_001,
    1_022_976,
    1_022_977,
    1_047_552,
    1_047_553,
    1_048_575,
    1_048_576,
    1_048_577,
    1_153_434,
    1_153_435,
    9_950_000,
    9_950_001,
    10_433_332,
    10_485_760,
    10_485_761,
    1 << 30,
    (1 << 30) - 1,
    (1 << 30) + 1,
    8 << 30,
    (1 << 40) - 1,
    1 << 40,
    1_099_511_627_777,
    999_999_999_999,
    10_995_116_277_760,
];

const BLOCK_SIZES: &[&str] = &[
    "1",
    "2",
    "3",
    "7",
    "10",
    "512",
    "1000",
    "1023",
    "1024",
    "1025",
    "4096",
    "1000000",
    "1048576",
    "999999999999",
    "k",
    "K",
    "KiB",
    "kB",
    "KB",
    "kiB",
    "1k",
    "1K",
    "1KiB",
    "1kB",
    "1KB",
    "2K",
    "3kB",
    "m",
    "M",
    "MiB",
    "MB",
    "1M",
    "g",
    "G",
    "GiB",
    "GB",
    "t",
    "T",
    "TB",
    "p",
    "P",
    "PiB",
    "PB",
    "e",
    "E",
    "EB",
    "EiB",
    "1E",
    "7E",
    "y",
    "Y",
    "1Y",
    "Z",
    "z",
    "1Z",
    "R",
    "Q",
    "1R",
    "1Q",
    "0",
    "00",
    "0K",
    "-1",
    "+1",
    "1x",
    "x",
    "K1",
    "1 K",
    "1Ki",
    "Ki",
    "KiBB",
    "b",
    "B",
    "1b",
    "1B",
    "c",
    "w",
    "1c",
    "1w",
    "0x10",
    "010",
    "18446744073709551615",
    "18446744073709551616",
    "18014398509481984K",
    "16E",
    "15E",
    "1K1",
    "human-readable",
    "human",
    "h",
    "si",
    "s",
    "human-readables",
    "'1",
    "'K",
    "'1K",
    "'human-readable",
    "'",
    "''1",
    "",
    "1'",
    " 1",
    "1.5",
    "1.5K",
    "KK",
    "MB1",
    "1e3",
    "D",
    "1D",
    "KD",
    "99999999999999999999K",
];

fn edges() -> Tree {
    let tree = Tree::on_tmpfs();
    for &size in EDGES {
        tree.hole(format!("h/{size:015}"), size);
    }
    tree
}

#[test]
fn usage_is_allocated_blocks() {
    let tree = Tree::parse("full 100000, hole ~8G, part ~1M, empty, dir/, one 1, l -> full, p |, s %");
    compare(&tree, "-a hole").prints("0\thole");
    compare_all(&tree, &["-a", "-ak", "-a -B1", "-a -B512", "hole full", "-ah", "-a --si", "-s", "-am"]);
}

#[test]
fn apparent_size_is_that_of_files_and_links() {
    if !needs_gnu(9, 2) {
        return;
    }
    let tree =
        Tree::parse("full 100000, hole ~8G, empty, dir/sub/, one 1, dir/l -> full, p |, s %, dir/f 10");
    compare(&tree, "-ab hole").prints("8589934592\thole");
    compare(&tree, "-ab dir").prints("0\tdir/sub\n").prints("14\tdir\n");
    compare_all(
        &tree,
        &[
            "-ab",
            "-a --apparent-size",
            "-b -s",
            "-b dir",
            "-abS",
            "-b /dev/null dir",
            "-bl",
            "-abL",
            "-bD dir/l",
        ],
    );
    compare_all(
        &tree,
        &[
            "-b --block-size=1K",
            "-bk",
            "-kb",
            "-bm",
            "-bh",
            "-hb",
            "-ab -h",
            "-b --si -a",
            "--app -a",
            "-bB7",
        ],
    );
}

#[test]
fn the_short_form_of_apparent_size() {
    if needs_gnu(9, 10) {
        let tree = Tree::parse("full 100000, hole ~8G, empty, dir/sub/, one 1, dir/l -> full");
        compare_all(
            &tree,
            &["-A", "-Aa", "-aA -B1", "-Ah", "-Asc dir one", "-A --inodes", "-AbS", "-kA", "-AA"],
        );
    }
}

#[test]
fn the_size_of_a_directory_is_not_apparent() {
    if needs_gnu(9, 2) {
        let tree = Tree::parse("d/e/f/g/");
        compare(&tree, "-b d").prints("0\td\n");
        compare_all(&tree, &["-b", "-ab d", "-b --time d/e", "-bt1 d", "-bt-1 d", "-bc d d/e"]);
    }
}

#[test]
fn sums_stop_at_the_largest_number() {
    let tree = Tree::on_tmpfs();
    let largest = i64::MAX as u64;
    for name in ["a/x", "a/y", "b/x", "b/y", "b/z"] {
        tree.hole(name, largest);
    }
    if !needs_gnu(9, 2) {
        return;
    }
    compare(&tree, "-b a").prints("18446744073709551614\ta");
    compare(&tree, "-b b").prints("Infinity\tb");
    compare_all(
        &tree,
        &["-ab", "-abh", "-ab --si", "-abk", "-abm", "-ab -BG", "-ab -BGB", "-ab -BE", "-ab -B7", "-cb a b"],
    );
    compare_all(
        &tree,
        &[
            "-bc a/x a/y",
            "-bc a/x a/y b/x",
            "-bS",
            "-b -t1 b",
            "-b -t-1 b",
            "-bt 15E",
            "-bsc a b",
            "-bch a b",
        ],
    );
}

#[test]
fn allocated_blocks_stop_at_the_largest_number() {
    if !needs_fuse() {
        return;
    }
    let tree = Tree::parse("mnt/");
    let mut script = ScriptedFs::new();
    let dir = script.dir(TOP, "d");
    for (name, blocks) in [("a", 1 << 54), ("b", (1 << 55) - 1), ("c", 1 << 53)] {
        script.file(dir, name, blocks);
    }
    script.file(TOP, "small", 8);
    for words in ["-a mnt", "-ah mnt", "-a -B1 mnt", "-s mnt", "-ac mnt/d mnt/small", "-a -t1 mnt"] {
        du(&tree, words).mounting(&script).compare().prints("mnt");
    }
}

#[test]
fn block_sizes_round_up_and_carry_their_suffix() {
    let tree = edges();
    compare(&tree, "-a --app -BK h/000000000001025").prints("2K\th/000000000001025\n");
    for size in BLOCK_SIZES {
        du(&tree, "-a --apparent-size h").arg(format!("-B{size}")).compare_as_du();
        du(&tree, "-s h").arg(format!("--block-size={size}")).compare_as_du();
    }
}

#[test]
fn short_forms_round_up() {
    let tree = edges();
    compare(&tree, "-bh h/000000000010241").prints("11K\th");
    compare(&tree, "-b --si h/000000000009951").prints("10k\th");
    compare_all(
        &tree,
        &["-a --app -h h", "-a --app --si h", "-a --app -k h", "-a --app -m h", "-ab h", "-a --app h"],
    );
    compare_all(
        &tree,
        &["-ah h", "-a --si h", "-ak h", "-am h", "-ab -BM h", "-ab -BMB h", "-ab -B1M h", "-ahb h"],
    );
}

#[test]
fn the_last_unit_wins_and_apparent_stays() {
    let tree = Tree::parse("d/x 12345, d/y 1000000, d/z ~5M");
    let units = ["-h", "--si", "-k", "-m", "-b", "-B1", "-BK", "-BkB", "-B1K", "--block-size=human-readable"];
    for first in units {
        for last in units {
            if (first != "-b" && last != "-b") || crate::support::program::gnu_version() >= (9, 2) {
                du(&tree, &format!("-a {first} {last} d")).compare_as_du();
            }
        }
    }
}

#[test]
fn inodes_are_counted_for_every_entry() {
    let tree = Tree::parse("a/x 10, a/y = a/x, a/d/z = a/x, a/d/e/, b/w = a/x, p |, l -> a");
    compare(&tree, "--inodes -a a/d/e").prints("1\ta/d/e\n");
    compare_all(
        &tree,
        &[
            "--inodes",
            "--inodes -a",
            "--inodes -s a b",
            "--inodes -l",
            "--inodes -la",
            "--inodes -S",
            "--inodes -c a b",
        ],
    );
    compare_all(
        &tree,
        &[
            "--inodes -t 3",
            "--inodes -t -3",
            "--inodes -aL",
            "--inodes -D l a",
            "--inodes -d1",
            "--inodes a/d a",
        ],
    );
}

#[test]
fn counts_of_inodes_have_no_unit() {
    let tree = Tree::new().wide("a", 1100).wide("b", 100);
    compare(&tree, "--inodes -h a").prints("1.1K\ta\n");
    compare_all(
        &tree,
        &["--inodes --si a b", "--inodes -h", "--inodes -k", "--inodes -m", "--inodes -B7", "--inodes -BK a"],
    );
    let exact = Tree::new().wide("a", 1023);
    compare(&exact, "--inodes -h a").prints("1.0K\ta\n");
    compare(&exact, "--inodes --si a").prints("1.1k\ta\n");
    du(&exact, "--inodes a").env("BLOCK_SIZE", "10").compare();
    du(&exact, "--inodes a").env("DU_BLOCK_SIZE", "human-readable").compare();
}

#[test]
fn inodes_and_apparent_sizes_warn() {
    let tree = Tree::parse("a/x 10");
    if needs_gnu(9, 10) {
        compare(&tree, "--inodes -b a").says("warning").status(0);
        compare_all(
            &tree,
            &["-b --inodes", "--inodes --apparent-size -s", "--inodes -bh a", "-A --inodes a"],
        );
    }
}
