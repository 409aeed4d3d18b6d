//! Environment variables: units, times, the order of options.

use crate::support::{Tree, du};

fn tree() -> Tree {
    Tree::parse("d/x 12345, d/y 100000, d/z ~5M, e/w 1").time("d/x", 1_700_000_000).time("d/z", 1_600_000_000)
}

const UNITS: &[&str] = &["DU_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"];

#[test]
fn block_size_variables_take_what_the_option_takes() {
    let tree = tree();
    for variable in UNITS {
        for value in ["1", "K", "KiB", "kB", "1K", "512", "human-readable", "si", "M", "'1", "E", "2048"] {
            du(&tree, "-a d").env(variable, value).compare_as_du().says("");
        }
    }
}

#[test]
fn an_invalid_block_size_variable_is_ignored() {
    let tree = tree();
    for variable in UNITS {
        for value in
            ["0", "x", "1x", "", "-1", "R", "99999999999999999999", " ", "1 ", "human", "s", "b", "'"]
        {
            du(&tree, "-a d").env(variable, value).compare_as_du();
        }
    }
}

#[test]
fn the_first_block_size_variable_wins_even_if_bad() {
    let tree = tree();
    let values = ["1", "K", "x", ""];
    for first in values {
        for second in values {
            let case = du(&tree, "-a d").env("BLOCK_SIZE", second);
            case.clone().env("DU_BLOCK_SIZE", first).compare_as_du();
            case.clone().env("BLOCKSIZE", first).compare_as_du();
            case.env("POSIXLY_CORRECT", "").env("DU_BLOCK_SIZE", first).compare_as_du();
            du(&tree, "-a d").env("BLOCKSIZE", second).env("POSIXLY_CORRECT", "1").compare_as_du();
        }
    }
}

#[test]
fn options_beat_variables() {
    let tree = tree();
    for option in ["-h", "--si", "-k", "-m", "-B1K", "-BK", "--block-size=si"] {
        du(&tree, "-a d").arg(option).env("DU_BLOCK_SIZE", "M").env("POSIXLY_CORRECT", "1").compare_as_du();
    }
}

#[test]
fn posix_means_blocks_of_512_and_options_first() {
    let tree = tree();
    du(&tree, "-a d").env("POSIXLY_CORRECT", "1").compare_as_du();
    du(&tree, "-s d -a e").env("POSIXLY_CORRECT", "").compare_as_du().says("cannot access '-a'").status(1);
    du(&tree, "d -h").env("POSIXLY_CORRECT", "1").env("BLOCK_SIZE", "x").compare_as_du().status(1);
    du(&tree, "-s -- d -a").env("POSIXLY_CORRECT", "1").compare_as_du();
    du(&tree, "-k -d 1").env("POSIXLY_CORRECT", "1").compare_as_du();
    du(&tree, "d -s e --si").compare_as_du().status(0);
}

#[test]
fn the_time_style_variable() {
    let tree = tree();
    let styles = [
        "full-iso",
        "long-iso",
        "iso",
        "locale",
        "+%Y",
        "+",
        "posix-long-iso",
        "posix-posix-iso",
        "posix-full-iso",
        "posix-locale",
        "+%Y\n%m",
        "+%Y\nposix-iso",
        "x",
        "",
        "posix-",
        "posix-x",
        "posix-+%Y",
        "full",
        "i",
        "l",
        "long",
    ];
    for style in styles {
        du(&tree, "-a --time d").env("TIME_STYLE", style).compare_as_du();
        du(&tree, "-a --time --time-style=iso d").env("TIME_STYLE", style).compare_as_du();
        du(&tree, "-a d").env("TIME_STYLE", style).compare_as_du();
    }
}

#[test]
fn the_time_zone_variable() {
    let tree = tree();
    for zone in [
        "UTC",
        "UTC0",
        "",
        "America/New_York",
        "Asia/Kolkata",
        "EST5EDT",
        "XYZ-3:30",
        "nonsense",
        ":Europe/Paris",
    ] {
        du(&tree, "-a --time --time-style=full-iso d").env("TZ", zone).compare_as_du();
        du(&tree, "-a --time").arg("--time-style=+%F %T %Z %z %:z %s").env("TZ", zone).compare_as_du();
    }
}

#[test]
fn the_locale_changes_only_how_messages_quote() {
    let tree = tree();
    for locale in ["C", "POSIX", "C.UTF-8"] {
        let case = du(&tree, "-a d").env("LC_ALL", locale);
        case.clone().compare_as_du();
        case.clone().arg("no\u{eb}\n").compare_as_du().status(1);
        case.clone().arg("--time=bad").compare_as_du().status(1);
        case.clone().arg("-B0").compare_as_du().status(1);
        case.arg("--threshold=-0").compare_as_du().status(1);
    }
    du(&tree, "d \u{eb}")
        .env("LC_ALL", "")
        .env("LC_CTYPE", "C")
        .env("LANG", "C.UTF-8")
        .compare_as_du()
        .status(1);
    du(&tree, "d \u{eb}").env("LC_ALL", "").env("LANG", "C.UTF-8").compare_as_du().status(1);
    du(&tree, "d --time=\u{eb}")
        .env("LC_ALL", "")
        .env("LC_CTYPE", "C.UTF-8")
        .env("LANG", "C")
        .compare_as_du()
        .status(1);
}

#[test]
fn quoting_style_changes_nothing_in_a_pipe() {
    let tree = tree();
    tree.file("d/a b\n'c", 10);
    for style in ["literal", "shell", "c", "escape", "locale", "bad"] {
        du(&tree, "-a d").env("QUOTING_STYLE", style).compare_as_du();
    }
}
