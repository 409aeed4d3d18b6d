//! Large and deep trees under small limits of descriptors, path length and memory.

use crate::support::outcome::ProgramEnd;
use crate::support::program::Program;
use crate::support::{Tree, compare, compare_all, du};

#[test]
fn a_path_longer_than_the_kernel_takes() {
    let tree = Tree::new().deep("d", 30, 200);
    let deepest = compare(&tree, "-a d").out().lines().map(str::len).max().unwrap_or(0);
    assert!(deepest > 6000, "{deepest}");
    compare_all(
        &tree,
        &["", "-s d", "-b d", "-S d", "--inodes d", "-d 40 d", "-d 3 d", "-a --time d", "-x d", "-al d d"],
    );
}

#[test]
fn a_path_of_ten_thousand_bytes_from_a_current_directory_that_forbids_everything() {
    let tree = Tree::new().deep("d", 52, 200).with("in/");
    let case = du(&tree, "-a").arg(tree.at("d")).unprivileged();
    case.after("chmod 700 in; cd in; chmod 0 .").compare().says("").status(0);
    compare_all(&tree, &["-a d", "-sb d", "d d"]);
}

#[test]
fn thousands_of_levels_with_few_descriptors() {
    let tree = Tree::new().deep("d", fathom_cases::count(2_000), 3).with("e/x 10");
    for words in ["d", "-a d e", "-s d", "-d1", "-c d e"] {
        du(&tree, words).after("ulimit -n 32").compare().says("").status(0);
    }
    compare(&tree, "-s d").says("");
}

#[test]
fn ten_thousand_levels() {
    let levels = fathom_cases::count(10_000);
    let tree = Tree::new().deep("d", levels, 1);
    compare_all(&tree, &["-s d", "-d 1", "--inodes -s"]);
    // The names take a hundred megabytes, so run this case only once.
    assert_eq!(du(&tree, "-a d").compare_as_du().out().lines().count(), levels + 2);
}

#[test]
fn ten_thousand_directories_with_few_descriptors() {
    let mut tree = Tree::new();
    for number in 0..fathom_cases::count(10_000) {
        tree.dir(format!("d/{}/{number}", number % 100));
    }
    tree = tree.with("d/5/905/x 10, d/7/907/y = d/5/905/x");
    for words in ["d", "-s", "-a d/5 d", "--inodes"] {
        du(&tree, words).after("ulimit -n 32").compare().says("").status(0);
    }
}

#[test]
fn a_wide_directory_needs_little_memory() {
    let tree = Tree::on_tmpfs().wide("wide", 200_000).with("empty/");
    let fits = |program: Program, name: &str, limit_kib: u64| {
        let limited = du(&tree, "-s").arg(name).after(&format!("ulimit -v {limit_kib}")).run(program);
        limited.end == ProgramEnd::Status(0) && limited.out().ends_with(&format!("\t{name}\n"))
    };
    for program in [Program::Gnu, Program::AsDu] {
        let (mut low, mut high) = (0, 1 << 22);
        while high - low > 256 {
            let middle = (low + high) / 2;
            let (smaller, larger) =
                if fits(program, "empty", middle) { (low, middle) } else { (middle, high) };
            (low, high) = (smaller, larger);
        }
        // Repeat: the memory that threads reserve depends on their scheduling.
        let always = (0..5).all(|_| fits(program, "wide", high + 35_000));
        assert!(always, "{program:?} needs more than 35 MB above its {high} KiB");
    }
}

#[test]
fn a_small_stack_is_enough() {
    let tree = Tree::new().deep("d", 2000, 2);
    du(&tree, "-s d").after("ulimit -s 256").compare().says("").status(0);
}

/// The kernel accepts no path of `PATH_MAX` (4096) bytes or more. Counters of 16 bits end at
/// 65,535.
#[test]
fn operands_longer_than_any_path_are_errors_and_the_others_are_measured() {
    let tree = Tree::parse("ok/f 5, x 1");
    for len in [4095, 4096, 65_533, 65_534, 65_535, 65_536, 70_000] {
        for name in [vec![b'x'; len], b"ok/".repeat(len / 3), [&b"./".repeat(len / 2)[..], b"ok"].concat()] {
            let operands = [&name[..], b"\0ok\0"].concat();
            du(&tree, "--files0-from=-").stdin(&operands).compare().prints("\tok\n");
        }
    }
    let long = std::ffi::OsString::from("x".repeat(65_535));
    for words in ["-L", "-D", "-s", "-c", "-x"] {
        du(&tree, words).arg(&long).arg("ok").compare().says(": File name too long\n").status(1);
    }
}
