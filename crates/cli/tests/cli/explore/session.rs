//! A session of the user: keys, sizes of the terminal, programs, marks.

use crate::explore::tmux::Tmux;
use crate::support::{Tree, commands};

fn sample() -> Tree {
    let tree = Tree::parse("d/large/deep/file 400000, d/large/other 90000, d/middle.log 50000, d/empty/");
    tree.file("d/two words", 9000);
    tree
}

#[test]
fn a_tree_is_walked_shown_and_left() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    let screen = tmux.explore("fathom explore d", 4);
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[0].starts_with(" d ") && lines[2].ends_with("large/"), "{screen}");
    assert!(screen.contains("'two words'"), "{screen}");
    tmux.keys(&["Enter"]);
    tmux.wait_for(" d/large ");
    tmux.keys(&["Down", "Left"]);
    tmux.wait_for("in 4 items");
    tmux.text("n");
    let screen = tmux.wait_for("by name");
    assert!(screen.lines().nth(2).unwrap().ends_with("empty/"), "{screen}");
    tmux.text("2");
    tmux.wait_for("large/deep/file");
    tmux.text("/*.log");
    tmux.wait_for("filter: *.log_");
    tmux.keys(&["Enter"]);
    tmux.wait_for("in 1 matching files");
    tmux.text("?");
    tmux.wait_for("the list of the marked entries");
    tmux.keys(&["Escape"]);
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn names_can_be_left_out_and_sizes_be_in_powers_of_1000() {
    let tree = sample();
    tree.file("patterns", 0);
    std::fs::write(tree.at("patterns"), "two*\n").unwrap();
    let Some(tmux) = Tmux::start(tree) else { return };
    let screen = tmux.explore("fathom explore --si --exclude '*.log' -X patterns --exclude=large/other d", 2);
    assert!(!screen.contains("middle") && !screen.contains("two"), "{screen}");
    assert!(screen.lines().nth(2).unwrap().trim_start().contains("k "), "{screen}");
    tmux.keys(&["Enter"]);
    tmux.wait_for("in 1 items");
    tmux.text("Q");
    tmux.ended(0);
    tmux.wait("the directory", |screen| screen.lines().any(|line| line == "d/large"));
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    tmux.explore("fathom explore d", 4);
    for (columns, lines) in [(40, 10), (120, 30), (10, 3), (80, 24)] {
        tmux.resize(columns, lines);
        // The view is named at the right end of the first line; the facts are in the last line.
        tmux.wait("a screen of the new size", |screen| {
            let rows: Vec<&str> = screen.lines().collect();
            rows.len() == usize::from(lines)
                && rows[0].ends_with(" tree")
                && rows[0].len() == usize::from(columns) - 1
                && rows.last().is_some_and(|last| last.len() > 3)
        });
    }
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn marked_paths_are_printed_into_a_pipe() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    tmux.explore(r"fathom explore --print0-marked d | tr '\0' ';' >out", 4);
    tmux.text("  ");
    tmux.wait_for("2 marked");
    // Another order: the marks stay.
    tmux.text("nq");
    tmux.ended(0);
    let marked = std::fs::read_to_string(tmux.tree.at("out")).unwrap();
    assert_eq!(marked, "d/large;d/middle.log;");
}

#[test]
fn a_shell_runs_in_the_directory_and_the_session_goes_on() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    tmux.explore("fathom explore d", 4);
    tmux.keys(&["Enter"]);
    tmux.wait_for(" d/large ");
    tmux.text("b");
    tmux.wait("the prompt of the shell", |screen| {
        screen.trim_end().ends_with('$') && !screen.contains(" tree")
    });
    tmux.line("echo \"in ${PWD##*/}\" >../../where; exit 7");
    tmux.wait_for(" d/large ");
    assert_eq!(std::fs::read_to_string(tmux.tree.at("where")).unwrap(), "in large\n");
    // The keys are read again.
    tmux.keys(&["Left"]);
    tmux.wait_for("in 4 items");
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn a_script_is_written_and_removes_what_was_marked() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    tmux.explore("fathom explore d", 4);
    tmux.text("ftwo");
    tmux.wait_for("find: two_");
    tmux.keys(&["Enter"]);
    tmux.text(" W");
    tmux.wait_for("write the script to: remove.sh_");
    tmux.keys(&["Enter"]);
    tmux.wait_for("wrote the script to");
    tmux.text("qy");
    tmux.ended(0);
    tmux.line("./remove.sh; echo removed $?");
    tmux.wait_for("removed 0");
    assert!(!tmux.tree.at("d/two words").exists() && tmux.tree.at("d/middle.log").exists());
}

#[test]
fn marked_entries_are_deleted_and_moved_to_the_trash() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    let home = tmux.tree.path().with_file_name("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::hard_link(tmux.tree.at("d/middle.log"), tmux.tree.at("second")).unwrap();
    tmux.explore("fathom explore d", 4);
    // A file with another name outside: none of its blocks is freed.
    tmux.text("fmid");
    tmux.wait_for("find: mid_");
    tmux.keys(&["Enter"]);
    tmux.text("d");
    let screen = tmux.wait_for("Remove? (y, n)");
    assert!(screen.contains("files: 1, directories: 0") && screen.contains(" on disk, frees 0 "), "{screen}");
    tmux.text("y");
    tmux.wait_for("removed 1 file, ");
    assert!(!tmux.tree.at("d/middle.log").exists() && tmux.tree.at("second").exists());
    tmux.wait("the row to go", |screen| !screen.contains("middle.log"));
    tmux.text("flarge");
    tmux.keys(&["Enter"]);
    tmux.text("D");
    let screen = tmux.wait_for("Remove? (y, n)");
    assert!(screen.contains("files: 2, directories: 2"), "{screen}");
    tmux.text("y");
    tmux.wait_for("entries moved to the trash: 1");
    assert!(!tmux.tree.at("d/large").exists());
    let trashed = home.join(".local/share/Trash/files/large/deep/file");
    assert!(trashed.exists(), "{}", tmux.screen());
    let log = std::fs::read_to_string(home.join(".local/state/fathom/removed.jsonl")).unwrap();
    assert!(log.contains("d/middle.log"), "{log}");
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn an_open_file_frees_nothing_until_it_is_closed() {
    let Some(tmux) = Tmux::start(Tree::parse("d/app.log 500000, d/other.log 100000")) else { return };
    let open = std::fs::File::open(tmux.tree.at("d/app.log")).unwrap();
    let child = std::process::Command::new("sleep").arg("1000").stdin(open).spawn().unwrap();
    let holder = format!("sleep (pid {})", child.id());
    let _sleep = Ended(child);
    tmux.explore("fathom explore d", 2);
    tmux.text("d");
    let screen = tmux.wait_for("Remove? (y, n)");
    assert!(screen.contains("on disk, frees 0 now") && screen.contains("492K d/app.log"), "{screen}");
    assert!(screen.contains(&format!("{holder} has it open")), "{screen}");
    tmux.text("y");
    // The window, and later the last line, show what is free.
    tmux.wait("the outcome", |screen| {
        screen.contains("removed 1 file, 492K; ") && screen.contains(" free now")
    });
    tmux.wait("the row to go", |screen| !screen.contains("app.log"));
    // The file has no name any more, and still takes space.
    tmux.text("i");
    let screen = tmux.wait_for("in deleted files that are still open:");
    assert!(screen.contains("disk  ") && screen.contains(" free"), "{screen}");
    tmux.keys(&["Escape"]);
    tmux.text("q");
    tmux.ended(0);
    let screen = tmux.screen();
    assert!(screen.contains("fathom explore: removed 1 file, 492K; log: "), "{screen}");
}

/// With an age that was refused, these keys once deleted every file.
#[test]
fn the_manuals_way_to_delete_by_a_rule_deletes_what_it_says() {
    let [largest, filter, rule, mark, delete] = ["2", "/", "*.log age>1y", "+", "d"];
    let sentence = format!(
        "To delete by a rule: `{largest}`, then `{filter}` with `{rule}`, `{mark}` to mark everything shown, and `{delete}`."
    );
    assert!(include_str!("../../../src/explore/table.rs").contains(&sentence), "{sentence}");
    let Some(tmux) = Tmux::start(Tree::parse("d/new.txt 1, d/young.log 1, d/old.log 5000, d/e/old.log 9000"))
    else {
        return;
    };
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 365 * 86_400);
    for name in ["d/old.log", "d/e/old.log"] {
        let file = std::fs::File::options().write(true).open(tmux.tree.at(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    tmux.explore("fathom explore d", 4);
    tmux.text(largest);
    tmux.wait_for("largest files");
    tmux.text(&format!("{filter}{rule}"));
    tmux.wait_for(&format!("filter: {rule}_"));
    tmux.keys(&["Enter"]);
    tmux.wait("the rows to go", |screen| !screen.contains("young.log"));
    tmux.text(mark);
    tmux.wait_for("2 marked");
    tmux.text(delete);
    let screen = tmux.wait_for("Remove? (y, n)");
    assert!(screen.contains("files: 2, directories: 0"), "{screen}");
    tmux.text("y");
    tmux.wait_for("removed 2 files, ");
    let left =
        ["d/new.txt", "d/young.log", "d/old.log", "d/e/old.log"].map(|name| tmux.tree.at(name).exists());
    assert_eq!(left, [true, true, false, false]);
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn a_file_that_has_changed_since_it_was_shown_stays() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    tmux.explore("fathom explore d", 4);
    tmux.text("fmid");
    tmux.wait_for("find: mid_");
    tmux.keys(&["Enter"]);
    // The same inode number, as a new file may have it.
    std::fs::write(tmux.tree.at("d/middle.log"), "new").unwrap();
    tmux.text("d");
    tmux.wait_for("It has been replaced or changed");
    assert!(tmux.tree.at("d/middle.log").exists());
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn an_inventory_is_explored_with_its_growth() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    commands::stdout_of(&tmux.tree, &["scan", "-o", "old", "d"]);
    tmux.tree.file("d/large/new", 1 << 20);
    commands::stdout_of(&tmux.tree, &["scan", "-o", "new", "d"]);
    let screen = tmux.explore("fathom explore --since old new", 4);
    let line = screen.lines().find(|line| line.ends_with("large/")).unwrap();
    assert!(line.contains("+1.0M"), "{screen}");
    tmux.text("q");
    tmux.ended(0);
}

#[test]
fn what_cannot_be_opened_is_an_error_without_a_screen() {
    let Some(tmux) = Tmux::start(sample()) else { return };
    tmux.line("fathom explore missing; echo status $?.");
    let screen = tmux.wait_for("status 2.");
    assert!(
        screen.contains("fathom explore: cannot access 'missing': No such file or directory"),
        "{screen}"
    );
    tmux.line("clear; fathom explore d | cat; echo piped");
    let screen = tmux.wait("the message", |screen| screen.lines().any(|line| line == "piped"));
    assert!(screen.contains("standard output is not a terminal"), "{screen}");
}

#[test]
fn names_do_not_control_the_terminal() {
    let tree = Tree::parse("d/plain 9000");
    tree.file("d/title\x1b]2;HOSTILE\x07", 5000);
    tree.file("d/clear\x1b[2J", 5000);
    let Some(tmux) = Tmux::start(tree) else { return };
    let screen = tmux.explore("fathom explore d", 3);
    assert!(screen.contains(r"'title'$'\033'") && screen.contains(r"'clear'$'\033''[2J'"), "{screen}");
    tmux.text("+2");
    tmux.wait_for("largest files");
    tmux.text("6i");
    tmux.wait_for("information");
    assert!(!tmux.title().contains("HOSTILE"), "{}", tmux.title());
    tmux.text("qqy");
    tmux.ended(0);
}

/// A process that is killed at the end of the test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}
