//! Output files are complete or absent, whatever happens during the export.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_inventory::store::create_part;

use crate::export::{FORMATS, scanned, varied};
use crate::support::Tree;
use crate::support::commands::{fathom, program, stdout_of};
use crate::support::random::Random;

#[test]
fn a_damaged_inventory_makes_no_file() {
    let tree = scanned(Tree::parse("s/a/f 5, s/a/g = s/a/f, s/b/c/h 7, s/l -> a"));
    for file in fs::read_dir(tree.at("i")).unwrap().map(|file| file.unwrap().path()) {
        let table = file.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 0x80;
        for (damaged, format) in [&flipped[..], &bytes[..bytes.len() / 2]]
            .into_iter()
            .flat_map(|damaged| FORMATS.map(|format| (damaged, format)))
        {
            fs::write(&file, damaged).unwrap();
            let output = fathom(&tree, ["export", "--to", format, "-o", "out", "i"]);
            let is_read =
                format == "sql" || ["dirs", "entries", "manifest"].iter().any(|name| table.starts_with(name));
            if is_read || damaged.len() < bytes.len() {
                assert_eq!(output.status.code(), Some(1), "{table} as {format}: {output:?}");
                assert!(output.stderr.starts_with(b"fathom export: cannot read 'i"), "{output:?}");
                assert!(!tree.at("out").exists() && !tree.at("out.part").exists(), "{table} as {format}");
                let to_stdout = fathom(&tree, ["export", "--to", format, "i"]);
                assert_eq!((to_stdout.status.code(), to_stdout.stderr), (Some(1), output.stderr));
                assert!(!to_stdout.stdout.ends_with(b"]\n") && !to_stdout.stdout.ends_with(b"COMMIT;\n"));
            } else {
                assert!(output.status.success(), "{table} as {format}: {output:?}");
                fs::remove_file(tree.at("out")).unwrap();
            }
        }
        fs::write(&file, &bytes).unwrap();
    }
}

#[test]
fn an_output_file_is_complete_and_replaces_a_regular_file_only() {
    let tree = scanned(varied());
    for format in FORMATS {
        tree.holding(format, "of yesterday");
        stdout_of(&tree, &["export", "--to", format, "-o", format, "i"]);
        assert!(
            fs::read(tree.at(format)).unwrap() == stdout_of(&tree, &["export", "--to", format, "i"]),
            "{format}"
        );
        assert!(!tree.at(format!("{format}.part")).exists());
        assert!(
            stdout_of(&tree, &["export", "--to", format, "-o", "-", "i"])
                == fs::read(tree.at(format)).unwrap()
        );
        assert!(!tree.at("-").exists());
    }
    // The manifest of a web application is no inventory's.
    tree.holding("web/manifest.json", "{\"name\": \"app\"}");
    stdout_of(&tree, &["export", "--to", "csv", "-o", "web/rows.csv", "i"]);
    tree.symlink("dangling", "nowhere");
    tree.holding("begun.part", "somebody's");
    fs::set_permissions(tree.at("begun.part"), fs::Permissions::from_mode(0o644)).unwrap();
    for (name, message) in [
        ("i", "cannot create 'i': it exists and is not a regular file"),
        ("dangling", "cannot create 'dangling': it exists and is not a regular file"),
        ("begun", "cannot create 'begun.part': it is there, and no run has left it"),
        ("i/manifest.json", "cannot create 'i/manifest.json': this directory is an inventory"),
        ("i/page.html", "cannot create 'i/page.html': this directory is an inventory"),
        ("no/where", "cannot create 'no/where.part': No such file or directory"),
    ] {
        let output = fathom(&tree, ["export", "--to", "nul", "-o", name, "i"]);
        let message = format!("fathom export: {message}\n");
        assert_eq!((output.status.code(), String::from_utf8(output.stderr)), (Some(1), Ok(message)));
    }
    assert_eq!(fs::read(tree.at("begun.part")).unwrap(), b"somebody's");
}

/// Once, a killed run made all later ones of that name fail.
#[test]
fn a_temporary_file_of_a_killed_run_is_taken_over_and_one_in_use_is_not() {
    let tree = scanned(varied());
    let table: [(&[&str], &str, i32); 4] = [
        (&["export", "--to", "jsonl", "-o", "out", "i"], "out", 1),
        (&["export", "--to", "prometheus", "-o", "out.prom", "i"], "out.prom", 1),
        (&["report", "-o", "page.html", "i"], "page.html", 1),
        (&["diff", "--parquet", "changes", "i", "i"], "changes", 2),
    ];
    for (words, name, failure) in table {
        let part = tree.at(format!("{name}.part"));
        fs::write(&part, "half of").unwrap();
        fs::set_permissions(&part, fs::Permissions::from_mode(0o600)).unwrap();
        let holder = create_part(&part).unwrap();
        let refused = fathom(&tree, words);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(failure), "{words:?}: {message}");
        assert!(message.contains("another process is writing to it") && part.exists(), "{message}");
        drop(holder);
        fs::write(&part, "half of").unwrap();
        assert!(fathom(&tree, words).status.success(), "{words:?}");
        let whole = fs::read(tree.at(name)).unwrap();
        assert!(!part.exists() && !whole.is_empty() && !whole.starts_with(b"half"), "{words:?}");
    }
}

#[test]
fn a_full_disk_leaves_no_file() {
    let tree = scanned(varied());
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" export --to jsonl -o out i";
    let mut command = Command::new("bash");
    let output = command
        .args(["-c", script])
        .arg(program())
        .current_dir(tree.path())
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let message = "fathom export: cannot write 'out.part': File too large\n";
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
        (Some(1), message)
    );
    assert!(!tree.at("out").exists() && !tree.at("out.part").exists());
}

#[test]
fn an_interrupted_export_leaves_no_file() {
    let tree = scanned(varied());
    for seed in fathom_cases::seeds(20) {
        let mut random = Random::new(seed);
        let mut command = Command::new(program());
        command.args(["export", "--to", "jsonl", "-o", "out", "i"]).current_dir(tree.path());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(40_000) as u64));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().is_ok());
        let status = child.wait().unwrap();
        // A signal that arrives before fathom has installed its handler terminates it.
        assert!(matches!(status.code(), None | Some(0 | 130)), "{status}");
        assert_eq!(tree.at("out").exists(), status.success());
        assert!(!tree.at("out.part").exists(), "{status}");
        let _ = fs::remove_file(tree.at("out"));
    }
}

#[test]
fn a_full_or_closed_output_ends_the_export() {
    let tree = scanned(varied());
    for format in FORMATS {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(program());
        command.args(["export", "--to", format, "i"]).current_dir(tree.path()).env("LC_ALL", "C");
        let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let message = "fathom export: write error: No space left on device\n";
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()),
            (Some(1), message)
        );
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert!(output.stderr.is_empty(), "{format}: {output:?}");
    }
}
