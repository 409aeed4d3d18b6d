//! The examples in contrib/ for a nightly inventory: systemd accepts the units, and their commands
//! run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::history::names;
use crate::support::commands::{fathom, program};
use crate::support::{Tree, needs_tool};

fn contrib(name: &str) -> String {
    let top: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "contrib", name].iter().collect();
    fs::read_to_string(top).unwrap()
}

/// Returns the commands of a unit or a table of cron.
fn commands(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let commands = lines.filter_map(|line| line.find("/usr/bin/fathom ").map(|at| &line[at..]));
    commands.map(|command| command.split_ascii_whitespace().skip(1).collect()).collect()
}

#[test]
fn systemd_accepts_the_units() {
    if !needs_tool("systemd-analyze") {
        return;
    }
    let tree = Tree::new();
    let service = contrib("fathom-scan.service").replace("/usr/bin/fathom", program().to_str().unwrap());
    fs::write(tree.at("fathom-scan.service"), service).unwrap();
    fs::write(tree.at("fathom-scan.timer"), contrib("fathom-scan.timer")).unwrap();
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no", "./fathom-scan.service", "./fathom-scan.timer"])
        .current_dir(tree.path());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<_> = errors.lines().filter(|line| line.contains("fathom-scan")).collect();
    assert!(output.status.success() && ours.is_empty(), "{output:?}");
}

/// Returns the words of a command for a tree and a store of a test.
fn here<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let word = |word: &&'w str| match *word {
        "/" => "t",
        "/mnt/inventories/root" => "store",
        word => word,
    };
    words.iter().map(word).collect()
}

#[test]
fn the_commands_run() {
    let tree = Tree::parse("t/a/f 5000, t/b 3");
    let (service, cron) = (contrib("fathom-scan.service"), contrib("fathom-scan.cron"));
    let [scan] = &commands(&service)[..] else { panic!("{service}") };
    let [scan_by_cron, grew] = &commands(&cron)[..] else { panic!("{cron}") };
    assert_eq!(scan, scan_by_cron);
    assert!(scan.contains(&"/") && scan.contains(&"/mnt/inventories/root"), "{scan:?}");
    for _ in 0..2 {
        let output = fathom(&tree, here(scan));
        assert!(output.status.success(), "{output:?}");
    }
    // One of this day is kept.
    assert!((1..=2).contains(&names(&tree).len()));
    assert!(fathom(&tree, [&here(&scan[..4])[..], &["t"]].concat()).status.success());
    // The line is quiet unless a limit is reached, or cannot be checked.
    let line = cron.lines().last().unwrap().split_once("root ").unwrap().1;
    let line = line.replace("/usr/bin/fathom", "\"$0\"").replace("/mnt/inventories/root", "store");
    assert!(line.contains(&grew[..4].join(" ")), "{line}");
    let shell = |line: &str| {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line).arg(program()).current_dir(tree.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(shell(&line).contains("cannot check --fail-if-full-within: "), "the scans were just now");
    let growth_only = line.replace("--fail-if-full-within 14d ", "");
    assert_eq!(shell(&growth_only), "");
    for line in cron.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split_ascii_whitespace().take(6).collect();
        let is_time = |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit() || b"*-".contains(&byte));
        assert!(fields[..5].iter().all(is_time) && fields[5] == "root", "{line}");
    }
}

#[test]
fn the_rules_of_prometheus_are_about_metrics_that_are_exported() {
    let tree = Tree::parse("t/a/f 5000, t/b 3");
    for words in [&["scan", "-o", "i", "t"][..], &["export", "--to", "prometheus", "-o", "t.prom", "i"]] {
        assert!(fathom(&tree, words).status.success());
    }
    let exported = fs::read_to_string(tree.at("t.prom")).unwrap();
    let rules = contrib("fathom-alerts.yml");
    let expressions: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), rules.matches("- alert: ").count());
    for expression in &expressions {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let mut names =
            expression.split(|letter| !is_part(letter)).filter(|name| name.starts_with("fathom_"));
        let name = names.next().unwrap();
        assert!(exported.contains(&format!("\n{name}{{trees=")), "{name}");
    }
    // The labels that texts have.
    assert!(exported.contains("fathom_directory_bytes{trees=\"t\",depth=\"1\",path="), "{exported}");
}
