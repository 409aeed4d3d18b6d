//! `fathom query`: its options, output formats and exit statuses. The contents of answers are
//! tested elsewhere.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::query::engine::{DuckDb, engines, fathom, inventory_name, python_bin};
use crate::query::home::ScannedTree;
use crate::support::Tree;
use crate::terminal::pty::on_terminal;

const WARNING: &str = "fathom query: warning: the inventory is incomplete: ";
/// A query with an endless result.
const ENDLESS: &str =
    "SELECT i, 'a row of a result that does not end' AS text FROM range(1000000000000) t(i)";

/// Returns a tree of two files and its inventory `a.inv`.
fn small() -> Tree {
    let tree = Tree::parse("t/b\"c 2, t/a 1");
    let output =
        fathom(tree.path(), &["scan", "-o", "a.inv", "t"].map(std::ffi::OsStr::new)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    tree
}

/// Returns the standard output of a query. Panics unless it succeeds with an empty standard error.
#[track_caller]
fn printed(output: Output) -> String {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_format_has_every_row() {
    let tree = small();
    let sql = "SELECT path, size, sum(size) OVER () AS total, ext, size > 1 AS more FROM files ORDER BY path -- all";
    let rows = [
        json!({"path": "t/a", "size": 1, "total": 3, "ext": null, "more": false}),
        json!({"path": "t/b\"c", "size": 2, "total": 3, "ext": null, "more": true}),
    ];
    let lines = format!("{}\n{}\n", rows[0], rows[1]);
    for engine in engines() {
        let ask = |words: &[&str]| printed(engine.ask(tree.path(), "a.inv", &[words, &[sql]].concat()));
        assert_eq!(
            ask(&["--format=csv"]),
            "path,size,total,ext,more\nt/a,1,3,,false\n\"t/b\"\"c\",2,3,,true\n"
        );
        assert_eq!(ask(&["--format=jsonl"]), lines);
        for words in [&["--json"][..], &["--format", "json"]] {
            let found: serde_json::Value = serde_json::from_str(&ask(words)).unwrap();
            assert_eq!(found, json!(rows));
        }
        let table = ask(&[]);
        assert!(table.contains("│  path   │ size  │") && table.contains("│ t/b\"c   │     2 │"), "{table}");
        assert_eq!(table, ask(&["--format=table"]));
    }
}

#[test]
fn an_answer_without_rows_is_an_answer() {
    let tree = small();
    for engine in engines() {
        let ask = |format| {
            printed(engine.ask(
                tree.path(),
                "a.inv",
                &["--format", format, "SELECT dirs.name FROM errors, dirs"],
            ))
        };
        assert_eq!(ask("csv"), "name\n");
        assert_eq!(ask("jsonl"), "");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ask("json")).unwrap(), json!([]));
    }
}

#[test]
fn a_table_of_many_rows_says_that_it_is_cut_and_no_cell_is() {
    let tree = small();
    for engine in engines() {
        let sql = "SELECT i, repeat('x', 500) AS wide FROM range(2000) t(i)";
        let table = printed(engine.ask(tree.path(), "a.inv", &[sql]));
        assert!(table.contains(&"x".repeat(500)) && table.contains("shown"), "{table}");
        let all = printed(engine.ask(tree.path(), "a.inv", &["--format=csv", sql]));
        assert_eq!(all.lines().count(), 2001);
    }
}

#[test]
fn the_query_comes_from_a_file_or_standard_input() {
    let tree = small();
    tree.holding("query.sql", "-- What there is\nSELECT count(*) AS count\nFROM files;\n");
    for engine in engines() {
        let read = |words: &[&str]| {
            let mut command = engine.command(tree.path(), "a.inv", words);
            let stdin = fs::File::open(tree.at("query.sql")).unwrap();
            printed(command.arg("--format=csv").stdin(stdin).output().unwrap())
        };
        for words in [&["-f", "query.sql"][..], &["-f", "-"], &["-"]] {
            assert_eq!(read(words), "count\n2\n", "{words:?}");
        }
    }
}

#[test]
fn errors_of_duckdb_are_shown_and_end_with_1() {
    let home = ScannedTree::new();
    for engine in engines() {
        for (sql, expected) in [
            ("SELEKT 1", "Parser Error: syntax error at or near \"SELEKT\""),
            ("SELECT nothing FROM files", "Binder Error: Referenced column \"nothing\" not found"),
            ("FROM elsewhere", "Catalog Error: Table with name elsewhere does not exist"),
            ("SELECT error('it''s over')", "it's over"),
        ] {
            let output = engine.ask(home.path(), inventory_name(), &["--json", sql]);
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{sql}: {output:?}");
            assert!(message.contains(expected) && !message.contains("Traceback"), "{sql}: {message}");
            assert!(output.stdout.is_empty(), "{sql}: {output:?}");
        }
    }
}

#[test]
fn an_incomplete_inventory_is_queried_with_a_warning() {
    let home = ScannedTree::new();
    for engine in engines() {
        let output = engine.ask(home.path(), inventory_name(), &["--format=csv", "SELECT 1 AS one"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == b"one\n1\n", "{output:?}");
        assert!(message.starts_with(WARNING) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn invalid_queries_end_with_2() {
    let tree = small();
    tree.holding("not-text", b"SELECT '\xff'");
    tree.holding("empty", " \n");
    for (words, expected) in [
        (&["a.inv"][..], "missing operand: SQL\nTry 'fathom query --help'"),
        (&["none.inv", "SELECT 1"], "cannot read 'none.inv/manifest.json': No such file"),
        (&["t", "SELECT 1"], "cannot read 't/manifest.json': No such file"),
        (&["a.inv", "-f", "not-text"], "'not-text' is not text in UTF-8"),
        (&["a.inv", "-f", "empty"], "'empty' is empty"),
        (&["a.inv", "-f", "absent"], "cannot read 'absent': No such file"),
        (&["a.inv", "--format=xml", "SELECT 1"], "--format"),
    ] {
        let mut command = fathom(tree.path(), &["query".as_ref()]);
        let output = command.args(words).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(message.starts_with("fathom query: ") && message.contains(expected), "{words:?}: {message}");
    }
}

#[test]
fn without_duckdb_the_error_explains_the_installation() {
    let tree = small();
    let ask = |change: &dyn Fn(&mut Command)| {
        let mut command = fathom(tree.path(), &["query", "a.inv", "SELECT 1"].map(std::ffi::OsStr::new));
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            message.contains("pip install duckdb") && message.contains("https://duckdb.org"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    };
    let nowhere = ask(&|command| {
        command.env("PATH", "").env_remove("FATHOM_DUCKDB");
    });
    assert!(nowhere.contains("found neither 'duckdb' nor 'python3'"), "{nowhere}");
    let absent = ask(&|command| {
        command.env("FATHOM_DUCKDB", "/no/such/duckdb");
    });
    assert!(absent.contains("cannot find /no/such/duckdb"), "{absent}");
    let Some(bin) = python_bin() else { return };
    let python = tree.at("python-bare");
    fs::write(&python, format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", bin.join("python3").display())).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let bare = ask(&|command| {
        command.env("FATHOM_DUCKDB", &python);
    });
    assert!(bare.contains("python-bare' does not have it"), "{bare}");
}

/// Starts a query with an endless result. Returns the process and the rest of its output after the
/// first line.
fn begun(engine: &DuckDb, tree: &Tree) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = engine.command(tree.path(), "a.inv", &["--format=csv", ENDLESS]);
    command.env("TMPDIR", tree.at("tmp"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "i,text\n");
    (child, out)
}

#[test]
fn rows_are_streamed_and_a_closed_pipe_is_quiet() {
    let tree = small();
    for engine in engines() {
        let (child, out) = begun(&engine, &tree);
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

/// Once, the program went on at full speed where `duckdb` was a script that starts it.
#[test]
fn a_signal_ends_a_query_and_all_its_processes() {
    let tree = small();
    fs::create_dir(tree.at("tmp")).unwrap();
    for engine in engines() {
        let script = tree.at(engine.name());
        fs::write(&script, format!("#!/bin/sh\n'{}' \"$@\"\nexit $?\n", engine.program().display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        for (engine, signal) in [
            (engine.clone(), Signal::INT),
            (engine.clone(), Signal::HUP),
            (engine, Signal::KILL),
            (DuckDb::at(script.clone()), Signal::INT),
            (DuckDb::at(script), Signal::TERM),
        ] {
            let (child, mut out) = begun(&engine, &tree);
            kill_process(Pid::from_child(&child), signal).unwrap();
            // The end comes when no process is left that could write.
            let mut block = [0; 1 << 16];
            while let Ok(1..) = out.read(&mut block) {}
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
            assert!(output.stderr.is_empty(), "{output:?}");
            let is_cleared = signal != Signal::KILL;
            assert!(
                !is_cleared || fs::read_dir(tree.at("tmp")).unwrap().next().is_none(),
                "{engine:?} {signal:?}"
            );
        }
    }
}

#[test]
fn a_duckdb_that_is_killed_is_reported() {
    let tree = small();
    let script = tree.at("duckdb");
    fs::write(&script, "#!/bin/sh\nkill -KILL $$\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let output = DuckDb::at(script).ask(tree.path(), "a.inv", &["SELECT 1"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*message), (Some(1), "fathom query: DuckDB was killed by signal 9\n"));
}

/// Names can hold escape sequences, in which a terminal would see commands.
#[test]
fn no_format_sends_control_characters_to_a_terminal() {
    let tree = Tree::parse("t/a 1");
    fs::write(tree.at("t/x\x1b[31m\u{9b}2Jy"), "").unwrap();
    let words = ["scan", "-o", "a.inv", "t"].map(std::ffi::OsStr::new);
    assert!(fathom(tree.path(), &words).status().unwrap().success());
    for engine in engines() {
        for format in ["table", "csv", "json", "jsonl"] {
            let words = ["--format", format, "SELECT name FROM files ORDER BY name DESC"];
            let shown = on_terminal(&mut engine.command(tree.path(), "a.inv", &words));
            let shown = String::from_utf8(shown).unwrap();
            assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{format}: {shown:?}");
            assert!(shown.contains("[31m") && shown.contains("2Jy"), "{format}: {shown:?}");
            let written = engine.ask(tree.path(), "a.inv", &words).stdout;
            let written = String::from_utf8(written).unwrap();
            assert!(format != "csv" || written.contains("x\x1b[31m\u{9b}2Jy"), "{written:?}");
        }
    }
    for format in ["csv", "jsonl", "sql", "ncdu"] {
        let words = ["export", "--to", format, "a.inv"].map(std::ffi::OsStr::new);
        let shown = String::from_utf8(on_terminal(&mut fathom(tree.path(), &words))).unwrap();
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{format}: {shown:?}");
    }
}
