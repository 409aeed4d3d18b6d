//! The examples in contrib/ for a nightly inventory: systemd accepts the units, and their commands
//! run.

use std::fs;
use std::path::{Path, PathBuf};
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

/// Runs the command of the service on a day of the week. Returns whether it read every directory.
fn is_full_on(tree: &Tree, day: &str) -> bool {
    let service = contrib("fathom-scan.service");
    let line = service.lines().find_map(|line| line.strip_prefix("ExecStart=/bin/sh -c '")).unwrap();
    let script = line.strip_suffix('\'').unwrap().replace("$$", "$").replace("%%", "%");
    assert!(script.ends_with(" /") && script.contains(" --keep /var/lib/fathom/root "), "{script}");
    let script = script.replace("/var/lib/fathom/root", "store").replace("/usr/bin/fathom", "\"$0\"");
    let script =
        format!("date() {{ test \"$*\" = +%u && echo {day}; }}; {}t", script.strip_suffix('/').unwrap());
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script).arg(program()).current_dir(tree.path());
    assert!(command.status().unwrap().success());
    let newest = names(tree).pop_last().unwrap();
    let manifest = fs::read(tree.at(format!("store/{newest}/manifest.json"))).unwrap();
    serde_json::from_slice::<serde_json::Value>(&manifest).unwrap()["since"].is_null()
}

#[test]
fn the_service_reads_every_directory_once_a_week() {
    let tree = Tree::parse("t/a/f 5000, t/b 3");
    assert!(is_full_on(&tree, "7"));
    assert!(!is_full_on(&tree, "6") && !is_full_on(&tree, "1"));
    assert!(is_full_on(&tree, "7"));
}

#[test]
fn the_commands_run() {
    let tree = Tree::parse("t/a/f 5000, t/b 3");
    let cron = contrib("fathom-scan.cron");
    let all = commands(&cron);
    assert_eq!(all.len(), 2);
    for words in all {
        assert!(words.contains(&"/") && words.contains(&"/var/lib/fathom/root"), "{words:?}");
        let here = words.iter().map(|word| match *word {
            "/" => "t",
            "/var/lib/fathom/root" => "store",
            word => word,
        });
        let output = fathom(&tree, here);
        assert!(output.status.success(), "{output:?}");
    }
    // One of this day is kept.
    assert!((1..=2).contains(&names(&tree).len()));
    let schedule = cron.lines().filter(|line| !line.starts_with('#'));
    for line in schedule {
        let fields: Vec<_> = line.split_ascii_whitespace().take(7).collect();
        assert_eq!(line.contains(" --full "), fields[4] == "0", "{line}");
        let is_time = |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit() || b"*-".contains(&byte));
        assert!(fields[..5].iter().all(is_time) && fields[5] == "root" && Path::new(fields[6]).is_absolute());
    }
}
