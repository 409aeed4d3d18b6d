//! Profiles for `--io auto`: the messages about them, and that a profile changes nothing else.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fathom_bench::profile::{Filesystem, HostConditions, Profile, ProfileEntry, ServeSettings, VALID};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A tree to walk, beside a home directory that may hold a profile.
struct ProfileHome {
    temp: TempDir,
}

impl ProfileHome {
    fn new() -> Self {
        let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["tree/a/b", "tree/c", "home"] {
            fs::create_dir_all(temp.path().join(name)).unwrap();
        }
        for name in ["a/1", "a/b/2", "c/3"] {
            fs::write(temp.path().join("tree").join(name), name).unwrap();
        }
        Self { temp }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// The default path of the profile.
    fn usual(&self) -> PathBuf {
        self.path("home/.config/fathom/io-profile.json")
    }

    /// Returns an entry that applies to the tree and this machine.
    fn entry(&self) -> ProfileEntry {
        let here = HostConditions::now();
        ProfileEntry {
            filesystem: Filesystem::of(&self.path("tree")).expect("a test's directory is on a known device"),
            kernel: here.kernel,
            cpus: here.cpus,
            program: "fathom 0.1.0".to_owned(),
            measured: here.now,
            expires: here.now + VALID,
            walk_in_flight: Some(here.cpus + 30),
            serve: None,
            verdict: "It waits.".to_owned(),
        }
    }

    fn put(&self, entry: ProfileEntry) {
        let mut profile = Profile::default();
        profile.put(entry);
        profile.write(&self.usual()).unwrap();
    }

    fn fathom(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command.args(words.split_whitespace()).current_dir(self.temp.path()).env("LC_ALL", "C");
        command.env("HOME", self.path("home")).env_remove("XDG_CONFIG_HOME").env_remove("FATHOM_PROFILE");
        command
    }

    fn run(&self, words: &str) -> Output {
        self.fathom(words).output().unwrap()
    }

    /// Returns the messages about the profile.
    fn profile_messages(&self, words: &str) -> Vec<String> {
        profile_messages(&self.run(words))
    }
}

/// Returns the lines of standard error that mention a profile.
fn profile_messages(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines().filter(|line| line.contains("profile")).map(str::to_owned).collect()
}

/// Returns the commands that report the number of concurrent operations they started with, and
/// their names.
fn walks(inventory: &Path) -> [(&'static str, String); 4] {
    let scan = format!("scan --stats -o {} tree", inventory.display());
    [
        ("fathom du", "du --verbose tree".to_owned()),
        ("fathom list", "list --stats tree".to_owned()),
        ("fathom scan", scan),
        ("fathom scan", "scan --estimate 5s --stats tree".to_owned()),
    ]
}

fn origin(entry: &ProfileEntry) -> String {
    let Filesystem { kind, source } = &entry.filesystem;
    format!("the profile of {} ({kind} on {source})", entry.measured.strftime("%Y-%m-%d"))
}

#[test]
fn every_walk_says_that_it_starts_from_the_profile() {
    let place = ProfileHome::new();
    let entry = place.entry();
    place.put(entry.clone());
    let workers = entry.walk_in_flight.unwrap();
    for (name, words) in walks(&place.path("i")) {
        let expected = format!("{name}: start: {workers} workers when calls wait, from {}", origin(&entry));
        assert_eq!(place.profile_messages(&words), [expected], "{words}");
    }
}

#[test]
fn a_profile_of_another_system_is_not_used_and_only_verbose_reports_it() {
    let place = ProfileHome::new();
    let entry = place.entry();
    let cpus = entry.cpus + 1;
    for (stale, why) in [
        (
            ProfileEntry { kernel: "2.4.20 i686".to_owned(), ..entry.clone() },
            "it was measured under another kernel",
        ),
        (ProfileEntry { cpus, ..entry.clone() }, "it was measured with another number of CPUs"),
        (ProfileEntry { expires: entry.measured, ..entry.clone() }, "it has expired"),
    ] {
        let expected = format!("fathom du: start: not from {}: {why}", origin(&stale));
        place.put(stale);
        assert_eq!(place.profile_messages("du --verbose tree"), [expected]);
        assert_eq!(place.run("du tree").stderr, b"");
    }
    place.put(ProfileEntry {
        filesystem: Filesystem { kind: "nfs4".to_owned(), source: "x:/".to_owned() },
        ..entry
    });
    assert!(place.profile_messages("du --verbose tree").is_empty());
}

#[test]
fn a_damaged_profile_is_ignored_with_one_warning() {
    let place = ProfileHome::new();
    let before = place.run("du tree");
    fs::create_dir_all(place.usual().parent().unwrap()).unwrap();
    for (text, cause) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("\u{1b}[2J", "expected value at line 1 column 1"),
        (r#"{"schema":9}"#, "its format is 9, expected 1"),
        (
            "{\"schema\":\"\\u001b[2J\"}",
            "invalid type: string \"\\u{1b}[2J\", expected u32 at line 1 column 21",
        ),
        (r#"{"schema":1,"entries":[{}]}"#, "missing field `filesystem` at line 1 column 25"),
    ] {
        fs::write(place.usual(), text).unwrap();
        let after = place.run("du tree");
        let expected = format!("fathom du: ignoring profile '{}': {cause}\n", place.usual().display());
        assert_eq!(String::from_utf8_lossy(&after.stderr), expected);
        assert_eq!((after.status, &after.stdout), (before.status, &before.stdout));
    }
    for (name, words) in walks(&place.path("i")) {
        let lines = place.profile_messages(&words);
        assert!(
            lines.len() == 1 && lines[0].starts_with(&format!("{name}: ignoring profile '")),
            "{lines:?}"
        );
    }
}

#[test]
fn the_environment_names_another_profile_or_none() {
    let place = ProfileHome::new();
    place.put(place.entry());
    fs::write(place.path("damaged"), "").unwrap();
    let with = |value: &str| {
        profile_messages(&place.fathom("du --verbose tree").env("FATHOM_PROFILE", value).output().unwrap())
    };
    assert!(with("").is_empty() && with("missing").is_empty() && with("damaged/below").is_empty());
    assert!(with("damaged")[0].contains("ignoring profile 'damaged'"));
    assert!(with("home/.config/fathom/io-profile.json")[0].contains("workers when calls wait"));
    fs::rename(place.path("home/.config"), place.path("settings")).unwrap();
    assert!(place.profile_messages("du --verbose tree").is_empty());
    let mut moved = place.fathom("du --verbose tree");
    assert_eq!(
        profile_messages(&moved.env("XDG_CONFIG_HOME", place.path("settings")).output().unwrap()).len(),
        1
    );
}

#[test]
fn other_models_do_not_look_for_a_profile() {
    let place = ProfileHome::new();
    fs::create_dir_all(place.usual().parent().unwrap()).unwrap();
    fs::write(place.usual(), "damaged").unwrap();
    for words in ["--io=sync", "--io=threads", "--io=async-par", "--threads=3", "--io=auto --threads=2"] {
        assert!(place.profile_messages(&format!("du --verbose {words} tree")).is_empty(), "{words}");
        assert!(place.profile_messages(&format!("list --stats {words} tree")).is_empty(), "{words}");
    }
    assert!(place.run("scan --threads=2 -o i tree").stderr.is_empty());
    assert!(place.profile_messages("du --verbose --from i tree").is_empty(), "nothing is walked");
}

#[test]
fn the_output_is_the_same_with_a_profile_and_without() {
    let place = ProfileHome::new();
    let lines =
        ["du -a tree", "du -sh tree tree/a", "list tree", "list --order=path --json tree", "du --json tree"];
    let outputs = || lines.map(|words| place.run(words));
    let without = outputs();
    for workers in [1, 7, 256] {
        place.put(ProfileEntry { walk_in_flight: Some(workers), ..place.entry() });
        assert_eq!(outputs(), without, "{workers}");
    }
}

/// Returns an entry that also configures the server's pool.
fn for_servers(place: &ProfileHome) -> ProfileEntry {
    ProfileEntry {
        serve: Some(ServeSettings { model: "pool".to_owned(), pool_threads: 24 }),
        ..place.entry()
    }
}

/// Returns the pool that a server would use.
fn pool(place: &ProfileHome, words: &str) -> Value {
    let output = place.run(&format!("serve --io-report --json {words} tree"));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["pool"].clone()
}

fn described(threads: u32, per_device: u32, note: Option<String>) -> Value {
    json!({ "threads": threads, "per_device": per_device, "queue": 16384, "note": note })
}

#[test]
fn a_server_starts_with_the_threads_of_the_profile() {
    let place = ProfileHome::new();
    assert_eq!(pool(&place, ""), described(96, 72, None));
    let entry = for_servers(&place);
    place.put(entry.clone());
    let from = format!("from {}", origin(&entry));
    assert_eq!(pool(&place, ""), described(32, 24, Some(from.clone())));
    assert_eq!(pool(&place, "--io=auto"), described(32, 24, Some(from)));
    place.put(ProfileEntry { expires: entry.measured, ..entry.clone() });
    let stale = format!("not from {}: it has expired", origin(&entry));
    assert_eq!(pool(&place, ""), described(96, 72, Some(stale)));
    let without_pool = Some(ServeSettings { model: "sync".to_owned(), pool_threads: 1 });
    place.put(ProfileEntry { serve: without_pool, ..entry });
    assert_eq!(pool(&place, ""), described(96, 72, None));
    place.put(place.entry());
    assert_eq!(pool(&place, ""), described(96, 72, None));
}

#[test]
fn a_pool_that_was_asked_for_and_other_models_need_no_profile() {
    let place = ProfileHome::new();
    fs::create_dir_all(place.usual().parent().unwrap()).unwrap();
    fs::write(place.usual(), "damaged").unwrap();
    assert_eq!(pool(&place, "--pool-threads=7"), described(7, 5, None));
    assert_eq!(pool(&place, "--io=pool"), described(96, 72, None));
    fs::write(place.path("a.toml"), "[pool]\nqueue = 5\n").unwrap();
    assert_eq!(pool(&place, "-c a.toml")["queue"], 5);
    let ignored = place.run("serve --io-report tree");
    let expected = format!("fathom serve: ignoring profile '{}': ", place.usual().display());
    assert!(ignored.status.success() && ignored.stderr.starts_with(expected.as_bytes()), "{ignored:?}");
}

#[test]
fn a_server_that_runs_keeps_its_pool_over_a_reload() {
    let place = ProfileHome::new();
    place.put(for_servers(&place));
    let mut command = place.fathom("serve -l 127.0.0.1:0 tree");
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = BufReader::new(server.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(first.starts_with("Serving '/") && first.contains("/tree' on http://127.0.0.1:"), "{first}");
    let pid = Pid::from_child(&server);
    place.put(place.entry());
    kill_process(pid, Signal::HUP).unwrap();
    assert_eq!(lines.next().as_deref(), Some("fathom serve: reloaded"));
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert_eq!(lines.next(), None);
}
