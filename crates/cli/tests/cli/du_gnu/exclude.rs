//! `--exclude` and `-X`: patterns match the whole name or the part after any of its slashes.

use crate::support::{Tree, compare, compare_all, compare_all_as_du, du};

fn tree() -> Tree {
    Tree::parse(
        "a/u/x.o 5000, a/u/y.c 100, a/.hidden/z.o 300, a/u.o/w 4000, b/a/u/v 9000, b/[x] 10, b/x 20, b/* 30, b/q\\r 40, c.o 7, \
         a/uu/x 1, B/Up 2",
    )
}

const PATTERNS: &[&str] = &[
    "*",
    "?",
    "a",
    "a/",
    "a/u",
    "/a",
    "./a",
    "u",
    "*.o",
    "*u*",
    "a*",
    "a*o",
    "a/*/x.o",
    "*/x.o",
    "[ab]",
    "[!a]*",
    "[^a]*",
    "[a-c]",
    "[^/]*",
    ".*",
    "*/.*",
    "\\a",
    "\\*",
    "[*]",
    "[[]x]",
    "\\[x\\]",
    "[x]",
    "q\\\\r",
    "q\\r",
    "x.?",
    "b/a/u",
    "a/u/x.o",
    "u/v",
    "[",
    "[a",
    "a[",
    "",
    "/",
    "//",
    ".",
    "./",
    "./*",
    "*.",
    "[[:alpha:]]",
    "[[:upper:]]*",
    "[[:nonsense:]]",
    "[[.a.]]",
    "[[=a=]]",
    "a\\",
    "\\",
    "**",
    "***.o",
    "?*",
    "[]]",
    "[]-a]",
    "[a-]",
    "[--0]",
    "[z-a]",
    "*\\",
    "u.[oc]",
    "{a,b}",
    "@(a|b)",
    "+(u)",
    "x*.o*",
    "[!]a]*",
    "[\\a]",
    "[\\]a]",
    "A",
    "b/A",
    "[A-Z]",
    "[[:lower:]-]",
    "*/",
    "u/",
    "a//u",
    "t",
    "*[!o]",
];

#[test]
fn patterns_on_an_operand_and_what_is_below() {
    let tree = tree();
    compare(&tree, "-a --exclude=u a b").prints("a/uu\n").says("").status(0);
    for pattern in PATTERNS {
        du(&tree, "-a").arg(format!("--exclude={pattern}")).args(["a", "b", "c.o"]).compare_as_du();
        du(&tree, "-a").arg(format!("--exclude={pattern}")).compare_as_du();
    }
}

#[test]
fn patterns_on_operands_with_slashes() {
    let tree = tree();
    for pattern in
        ["a", "a/", "./a", "a/.", "*/", "/*", "b/a", "*a", "u", "a/u", "u/*", "t/a", "a//u", "?", "*/u", "*"]
    {
        for operands in ["./a", "a/", "a//", "b/a/u/", "./a/u ./b", "a/.", "../t/a", "a//u"] {
            du(&tree, "-a").arg("--exclude").arg(pattern).args(operands.split(' ')).compare_as_du();
        }
    }
}

#[test]
fn an_excluded_operand_leaves_nothing() {
    let tree = tree();
    assert_eq!(compare(&tree, "--exclude=a a").out(), "");
    compare_all(
        &tree,
        &[
            "--exclude=a a b",
            "--exclude=* -c a",
            "--exclude=a -s a a",
            "--exclude=missing missing",
            "--exclude=. .",
        ],
    );
}

#[test]
fn an_excluded_directory_is_dropped_whole() {
    let tree = tree();
    compare_all(
        &tree,
        &[
            "--exclude=u -s",
            "--exclude=u -S",
            "--exclude=u --inodes",
            "-b --exclude=*.o -d1",
            "--exclude=u a/u a",
            "-L --exclude=u",
        ],
    );
}

#[test]
fn unreadable_directories_may_be_excluded() {
    let tree = Tree::parse("d/secret/x 10, d/open/y 10").mode("d/secret", 0);
    du(&tree, "-a d").unprivileged().compare().says("Permission denied").status(1);
    du(&tree, "-a --exclude=secret d").unprivileged().compare().says("").status(0);
    du(&tree, "-a --exclude=secret d/secret").unprivileged().compare().says("").status(0);
    du(&tree, "-a --exclude=x d/secret").unprivileged().compare().status(1);
}

#[test]
fn everything_but_the_root_may_be_excluded() {
    let out = du(&tree(), "-x / --exclude=[^/]*").compare();
    assert_eq!(out.out().lines().count(), 1, "{out:?}");
}

#[test]
fn several_patterns() {
    let tree = tree();
    compare_all(
        &tree,
        &[
            "-a --exclude=u --exclude=*.o",
            "-a --exclude u --exclude=[ab] .",
            "--exclude=x --exclude=x -a",
            "-a --exclude=x --exclude=?",
        ],
    );
    let literals: Vec<String> = (0..300).map(|number| format!("--exclude=name{number}")).collect();
    du(&tree, "-a --exclude=y.c").args(&literals).compare();
}

#[test]
fn patterns_from_a_file() {
    let tree = tree();
    let contents = [
        "u\n",
        "u",
        "",
        "\n\n",
        "u  \n",
        "u\t\n",
        "  u\n",
        "# u\n",
        "#\nx\n",
        "*.o\n\nb\n",
        "u\r\n",
        "\\*\n",
        "a/u\n*.c\n",
        "u \\ \n",
        " \n",
        "x\0y\n",
        "u\nu\nu",
        "[\n",
        "nothing\n",
        "u\\ \n",
        "\\u\n",
    ];
    for text in contents {
        tree.holding("patterns", text);
        compare_all_as_du(
            &tree,
            &["-a -X patterns a b", "-a --exclude-from=patterns", "-aX patterns --exclude=v ."],
        );
        du(&tree, "-a -X - a b").stdin(text).compare_as_du();
    }
    compare_all(&tree, &["-X missing a", "-X a b", "-X patterns -X missing a", "-a -X /dev/null", "-X"]);
    du(&tree, "-aX - -X - a").stdin("u\n").compare();
}

#[test]
fn patterns_and_names_of_any_bytes() {
    use crate::support::tree::name;
    let tree = Tree::new();
    let names: [&[u8]; 8] = [
        b"\xff",
        b"a\xffb",
        "\u{e9}".as_bytes(),
        b"e\xcc\x81",
        b"\xc3",
        b"new\nline",
        b" ",
        "\u{1f600}".as_bytes(),
    ];
    for bytes in names {
        tree.file(name(&[b"d/", bytes].concat()), 100);
    }
    let patterns: [&[u8]; 15] = [
        b"?",
        b"??",
        b"*\xff*",
        b"\xff",
        b"[\xff]",
        "\u{e9}".as_bytes(),
        b"[\xc3\xa9]",
        b"[!a]",
        b"*\n*",
        b"\\ ",
        b"a?b",
        b"\xc3",
        b"*",
        b"[[:alpha:]]",
        b"[[:space:]]",
    ];
    for pattern in patterns {
        for locale in ["C", "C.UTF-8"] {
            let option = [b"--exclude=", pattern].concat();
            du(&tree, "-a d").arg(name(&option)).env("LC_ALL", locale).compare_as_du();
        }
    }
}

#[test]
fn hostile_patterns_end_soon() {
    let tree = Tree::new();
    tree.file("a".repeat(200), 10);
    let stars = format!("--exclude={}b", "a*".repeat(12));
    du(&tree, "-a").arg(stars).compare();
}
