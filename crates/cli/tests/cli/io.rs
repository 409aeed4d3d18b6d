//! `fathom io` and `fathom serve --io-report`: the properties that they print of a path, and their
//! errors.

use std::process::{Command, Output};

use fathom_io::{Model, Use};
use serde_json::Value;

fn io(words: &[&str]) -> Output {
    fathom("io", words)
}

fn fathom(name: &str, words: &[&str]) -> Output {
    let program = std::env::var_os("FATHOM_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_fathom").into());
    let mut command = Command::new(program);
    command.arg(name).args(words).env("LC_ALL", "C").current_dir("/proc");
    command.output().expect("the program runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("nothing here is anything but text")
}

#[test]
fn keys_stand_before_values_that_are_below_each_other() {
    let output = io(&[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let lines: Vec<(&str, &str)> = text(&output.stdout).lines().map(|line| line.split_at(18)).collect();
    let keys: Vec<&str> = lines.iter().map(|(key, _)| key.trim_end().trim_end_matches(':')).collect();
    let facts = ["kernel", "path", "file system", "device", "CPUs", "open files", "locked memory"];
    assert_eq!(keys, [&facts[..], &Model::ALL.map(Model::name)].concat());
    assert_eq!(lines[1].1, ".");
    for (model, (_, value)) in Model::ALL.into_iter().zip(&lines[facts.len()..]) {
        assert!(model.uses().iter().all(|found| value.contains(found.name())), "{model}: {value}");
    }
    for (_, value) in &lines[7..] {
        assert!(value.starts_with("available: ") || value.starts_with("unavailable: cannot "), "{value}");
    }
}

#[test]
fn the_object_has_the_values_of_the_text() {
    let object: Value = serde_json::from_slice(&io(&["--json", "/"]).stdout).expect("it is JSON");
    let shown = io(&["/"]);
    let shown = text(&shown.stdout);
    assert_eq!(object["path"], "/");
    for key in ["kernel", "filesystem"] {
        assert!(object[key].as_str().is_none_or(|value| shown.contains(value)), "{key}: {object} {shown}");
    }
    let models = object["models"].as_array().expect("it is a list");
    let names: Vec<&str> = models.iter().filter_map(|model| model["model"].as_str()).collect();
    assert_eq!(names, Model::ALL.map(Model::name));
    for model in models {
        let word = if model["available"] == true { "available" } else { "unavailable" };
        let says = format!("{word}: {}; for ", model["note"].as_str().expect("each has one"));
        assert!(shown.contains(&says), "{says} {shown}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_file_system_is_that_of_the_path() {
    let object = |path| serde_json::from_slice::<Value>(&io(&["--json", path]).stdout).expect("it is JSON");
    assert_eq!(object("/proc/self")["filesystem"], "proc");
    assert_eq!(object("/sys")["filesystem"], "sysfs");
}

#[test]
fn a_missing_path_is_status_1() {
    let output = io(&["/no such"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert_eq!(text(&output.stderr), "fathom io: cannot access '/no such': No such file or directory\n");
}

#[test]
fn an_invalid_command_line_is_status_2() {
    for (words, message) in [
        (&["-x"][..], "invalid option -- 'x'"),
        (&["--jsn"], "unrecognized option '--jsn', did you mean '--json'?"),
        (&["a", "b"], "extra operand 'b'"),
    ] {
        let output = io(words);
        let expected = format!("fathom io: {message}\nTry 'fathom io --help' for more information.\n");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), &*expected));
    }
}

#[test]
fn help_and_version_are_answers() {
    let help = io(&["--help"]);
    assert!(help.status.success() && text(&help.stdout).starts_with("Usage: fathom io "), "{help:?}");
    assert_eq!(text(&io(&["--version"]).stdout), format!("fathom io {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_server_reports_what_it_would_do_with_a_directory() {
    let dir = tempfile::tempdir().expect("there is room");
    std::fs::write(dir.path().join("file"), "1").expect("it can be written");
    let path = dir.path().to_str().expect("the path of a test is text");
    let shown = fathom("serve", &["--io-report", path]);
    assert!(shown.status.success() && shown.stderr.is_empty(), "{shown:?}");
    let keys: Vec<&str> =
        text(&shown.stdout).lines().filter_map(|line| line.split_once(": ")).map(|(key, _)| key).collect();
    let models: Vec<String> = Model::with(Use::Serve).map(|model| format!("--io {model}")).collect();
    let facts = [
        "kernel",
        "path",
        "file system",
        "device",
        "CPUs",
        "open files",
        "locked memory",
        "tried on",
        "openat2",
        "RESOLVE_CACHED",
        "RWF_NOWAIT",
        "cachestat",
        "sendfile",
        "io_uring",
        "workers",
        "pool",
        "cache",
        "descriptors",
    ];
    let plan =
        ["cached lookup", "cold lookup", "small body", "large body, in memory", "large body, not in memory"];
    let expected: Vec<&str> =
        facts.into_iter().chain(models.iter().map(String::as_str)).chain(plan).collect();
    assert_eq!(keys.iter().filter(|key| **key != "note").copied().collect::<Vec<_>>(), expected);
    let object = fathom("serve", &["--io-report", "--json", "--cache-files=9", path]);
    let object: Value = serde_json::from_slice(&object.stdout).expect("it is JSON");
    assert_eq!((&object["tried_on"], &object["cache"]["files"]), (&Value::from("file"), &Value::from(9)));
    for case in object["plan"].as_array().expect("it is a list") {
        let stderr = case["what"].as_str().expect("each has one");
        let differs = stderr.contains("kept");
        assert!(differs || text(&shown.stdout).contains(stderr), "{stderr}");
    }
}

#[test]
fn each_command_accepts_the_models_with_its_use_and_lists_them() {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().to_str().expect("the path of a test is text");
    for (command, words, wanted) in [
        ("du", &[path][..], Use::Metadata),
        ("list", &[path], Use::Metadata),
        ("scan", &["--help"], Use::Metadata),
        ("serve", &["--check", path], Use::Serve),
    ] {
        for model in Model::ALL {
            let output = fathom(command, &[&["--io", model.name()], words].concat());
            let is_refused = text(&output.stderr).contains("invalid argument");
            assert_eq!(is_refused, !model.has(wanted), "{command} --io {model}: {output:?}");
        }
        let output = fathom(command, &[&["--io", "zfs"], words].concat());
        let listed: Vec<&str> = text(&output.stderr).split([' ', ',', '\'', '\n']).collect();
        for model in Model::ALL {
            let name = if wanted == Use::Metadata { model.syntax() } else { model.name().to_owned() };
            assert_eq!(listed.contains(&name.as_str()), model.has(wanted), "{command}: {model}: {output:?}");
        }
    }
}

#[test]
fn a_report_has_each_site_and_needs_each_directory() {
    let dir = tempfile::tempdir().expect("there is room");
    let name = |name: &str| dir.path().join(name).to_str().expect("the path of a test is text").to_owned();
    let (file, root, other) = (name("a.toml"), name("root"), name("other"));
    std::fs::create_dir(&root).and_then(|()| std::fs::create_dir(&other)).expect("there is room");
    let of = |other: &str| {
        let sites = format!("[site]\nroot = '{root}'\n[[host]]\nnames = ['a.example']\nroot = '{other}'\n");
        std::fs::write(&file, sites).expect("it can be written");
        fathom("serve", &["--io-report", "--json", "-c", &file])
    };
    let shown = of(&other);
    let lines = text(&shown.stdout).lines();
    let paths: Vec<Value> =
        lines.map(|line| serde_json::from_str::<Value>(line).expect("it is JSON")["path"].clone()).collect();
    assert_eq!(paths, [root.as_str(), other.as_str()]);
    let missing = of("/no such");
    assert_eq!((missing.status.code(), text(&missing.stdout)), (Some(1), ""));
    assert_eq!(text(&missing.stderr), "fathom serve: cannot open '/no such': No such file or directory\n");
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_tmpfs_a_server_finds_nothing_cold() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: needs /dev/shm") };
    std::fs::write(dir.path().join("file"), "1").expect("it can be written");
    let path = dir.path().to_str().expect("the path of a test is text");
    let shown = fathom("serve", &["--io-report", "--json", path]);
    let object: Value = serde_json::from_slice(&shown.stdout).expect("it is JSON");
    if object["filesystem"] != "tmpfs" {
        return println!("skipped: needs a tmpfs at /dev/shm");
    }
    let what = |case: &str| {
        let plan = object["plan"].as_array().expect("it is a list");
        plan.iter().find(|one| one["case"] == case).expect("each case is there")["what"].clone()
    };
    assert_eq!(what("large body, not in memory"), "there is none");
    assert_eq!(what("small body"), "read by the worker; up to 1 MiB it is kept");
}
