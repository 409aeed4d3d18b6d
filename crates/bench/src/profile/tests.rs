//! Validity of entries, the file format, failed writes, and damaged input.

use proptest::prelude::*;

use super::*;

fn entry(kind: &str, source: &str) -> ProfileEntry {
    let measured: Timestamp = "2026-08-24T10:00:00Z".parse().unwrap();
    ProfileEntry {
        filesystem: Filesystem { kind: kind.to_owned(), source: source.to_owned() },
        kernel: "6.18.44 x86_64".to_owned(),
        cpus: 2,
        program: "fathom 0.1.0".to_owned(),
        measured,
        expires: measured + VALID,
        walk_in_flight: Some(32),
        serve: Some(ServeSettings { model: "pool".to_owned(), pool_threads: 8 }),
        verdict: "32 workers pay.".to_owned(),
    }
}

fn here() -> HostConditions {
    let now = "2026-09-01T00:00:00Z".parse().unwrap();
    HostConditions { kernel: "6.18.44 x86_64".to_owned(), cpus: 2, now }
}

fn of(entries: impl IntoIterator<Item = ProfileEntry>) -> Profile {
    let mut profile = Profile::default();
    entries.into_iter().for_each(|entry| profile.put(entry));
    profile
}

fn names(dir: &Path) -> Vec<String> {
    let names = dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn an_entry_holds_for_its_filesystem_kernel_cpus_and_time() {
    let known = entry("ext4", "/dev/vda1");
    let profile = of([entry("nfs4", "host:/export"), known.clone()]);
    let find = |here: &HostConditions| profile.find(&known.filesystem, here);
    assert_eq!(find(&here()), ProfileLookup::Valid(&known));
    for (kind, source) in [("ext4", "/dev/vda2"), ("xfs", "/dev/vda1")] {
        assert_eq!(profile.find(&entry(kind, source).filesystem, &here()), ProfileLookup::Missing);
    }
    for (other, word) in [
        (HostConditions { kernel: "6.18.45 x86_64".to_owned(), ..here() }, "kernel"),
        (HostConditions { cpus: 4, ..here() }, "CPUs"),
        (HostConditions { now: known.expires, ..here() }, "expired"),
    ] {
        assert!(
            matches!(find(&other), ProfileLookup::Stale(entry, why) if *entry == known && why.contains(word))
        );
    }
    let last = known.expires - SignedDuration::from_secs(1);
    assert_eq!(find(&HostConditions { now: last, ..here() }), ProfileLookup::Valid(&known));
}

#[test]
fn an_entry_takes_the_place_of_the_one_before() {
    let (first, other) = (entry("ext4", "/dev/vda1"), entry("xfs", "/dev/vdb"));
    let newer = ProfileEntry { walk_in_flight: None, verdict: "Nothing pays.".to_owned(), ..first.clone() };
    assert_eq!(of([first, other.clone(), newer.clone()]).entries, [newer, other]);
}

#[test]
fn numbers_are_bounded_wherever_they_come_from() {
    for (asked, got) in [(0, 1), (1, 1), (256, 256), (257, 256), (u32::MAX, 256)] {
        let serve = Some(ServeSettings { model: "pool".to_owned(), pool_threads: asked });
        let asking = ProfileEntry { walk_in_flight: Some(asked), serve, ..entry("ext4", "/dev/vda1") };
        let read = serde_json::to_vec(&Profile { schema: SCHEMA, entries: vec![asking.clone()] }).unwrap();
        for profile in [of([asking]), Profile::parse(&read).unwrap()] {
            let entry = &profile.entries[0];
            let threads = entry.serve.as_ref().map(|serve| serve.pool_threads);
            assert_eq!((entry.walk_in_flight, threads), (Some(got), Some(got)));
        }
    }
}

#[test]
fn the_file_has_these_fields() {
    let text = serde_json::to_string(&of([entry("ext4", "/dev/vda1")])).unwrap();
    let expected = r#"{"schema":1,"entries":[{"filesystem":{"kind":"ext4","source":"/dev/vda1"},"kernel":"6.18.44 x86_64","cpus":2,"program":"fathom 0.1.0","measured":"2026-08-24T10:00:00Z","expires":"2026-11-22T10:00:00Z","walk_in_flight":32,"serve":{"model":"pool","pool_threads":8},"verdict":"32 workers pay."}]}"#;
    assert_eq!(text, expected);
}

#[test]
fn what_is_written_is_read_and_nothing_else_is_left() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a/b/io-profile.json");
    assert_eq!(Profile::read(&path).unwrap(), None);
    for profile in [of([entry("ext4", "/dev/vda1")]), Profile::default()] {
        profile.write(&path).unwrap();
        assert_eq!(Profile::read(&path).unwrap(), Some(profile));
    }
    assert_eq!(names(path.parent().unwrap()), ["io-profile.json"]);
}

#[test]
fn temporary_files_of_killed_processes_are_removed_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let make = |name: &str, age: Duration| {
        let file = File::create(temp.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    };
    let old = LEFT_AGE_MIN * 2;
    make(".io-profile.12.345", old);
    for (name, age) in
        [(".io-profile.12.346", Duration::ZERO), (".io-profile.12.x", old), (".io-profile.12", old)]
    {
        make(name, age);
    }
    Profile::default().write(&temp.path().join("profile")).unwrap();
    let mut left = names(temp.path());
    left.sort();
    assert_eq!(left, [".io-profile.12", ".io-profile.12.346", ".io-profile.12.x", "profile"]);
}

#[test]
fn a_profile_that_cannot_be_written_leaves_what_was_there() {
    let temp = tempfile::tempdir().unwrap();
    let (file, taken) = (temp.path().join("file"), temp.path().join("taken"));
    std::fs::write(&file, "before").unwrap();
    std::fs::create_dir(&taken).unwrap();
    let refused = |path: &Path| of([entry("ext4", "/dev/vda1")]).write(path).unwrap_err().to_string();
    let below = file.join("io-profile.json");
    assert_eq!(refused(&below), format!("cannot write '{}': File exists", below.display()));
    assert_eq!(refused(&taken), format!("cannot write '{}': Is a directory", taken.display()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
    let mut left = names(temp.path());
    left.sort();
    assert_eq!(left, ["file", "taken"]);
}

#[test]
fn where_no_temporary_file_can_be_made_the_systems_words_say_why() {
    let path = Path::new("/proc/self/io-profile.json");
    let error = of([]).write(path).unwrap_err().to_string();
    assert_eq!(error, "cannot write '/proc/self/io-profile.json': No such file or directory");
}

#[test]
fn a_missing_file_is_no_profile_and_a_damaged_one_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("p.json");
    std::fs::write(&path, "{").unwrap();
    assert_eq!(Profile::read(&path.join("below")).unwrap(), None);
    let refused = |path: &Path| Profile::read(path).unwrap_err().cause();
    assert_eq!(refused(&path), "EOF while parsing an object at line 1 column 1");
    assert_eq!(refused(temp.path()), "Is a directory");
    std::fs::write(&path, r#"{"schema": 2, "filesystems": {}}"#).unwrap();
    assert_eq!(refused(&path), "its format is 2, expected 1");
    assert_eq!(refused(Path::new("/dev/zero")), "the file is too long for a profile");
}

#[test]
fn opening_a_fifo_does_not_block() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    assert!(Profile::read(&path).is_err());
}

#[test]
fn this_directory_is_on_a_filesystem_that_the_mount_table_has() {
    let found = Filesystem::of(Path::new("/proc")).unwrap();
    assert_eq!(found.kind, "proc");
    assert_eq!(Filesystem::of(Path::new("/no such")), None);
}

/// Random JSON with field names of the format.
fn json() -> impl Strategy<Value = serde_json::Value> {
    const NAMES: &[&str] = &[
        "schema",
        "entries",
        "filesystem",
        "kind",
        "source",
        "kernel",
        "cpus",
        "program",
        "measured",
        "expires",
        "walk_in_flight",
        "serve",
        "model",
        "pool_threads",
        "verdict",
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        Just(1.into()),
        Just("2026-08-24T10:00:00Z".into()),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 15, |inner| {
        let name = proptest::sample::select(NAMES).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((name, inner), 0..15)
                .prop_map(|fields| { serde_json::Value::Object(fields.into_iter().collect()) }),
        ]
    })
}

fn any_entry() -> impl Strategy<Value = ProfileEntry> {
    let time =
        || (0..4_000_000_000_i64, 0..1_000_000_000_i32).prop_map(|(s, ns)| Timestamp::new(s, ns).unwrap());
    let serve = (any::<String>(), 1..=WORKERS_MAX);
    let serve =
        prop::option::of(serve.prop_map(|(model, pool_threads)| ServeSettings { model, pool_threads }));
    let numbers = (any::<u32>(), prop::option::of(1..=WORKERS_MAX), serve);
    (any::<[String; 5]>(), time(), time(), numbers).prop_map(|(texts, measured, expires, numbers)| {
        let [kind, source, kernel, program, verdict] = texts;
        let (cpus, walk_in_flight, serve) = numbers;
        let filesystem = Filesystem { kind, source };
        ProfileEntry { filesystem, kernel, cpus, program, measured, expires, walk_in_flight, serve, verdict }
    })
}

proptest! {
    #![proptest_config(fathom_cases::property(256))]

    #[test]
    fn any_bytes_are_a_profile_or_an_error(bytes: Vec<u8>) {
        let _ = Profile::parse(&bytes);
    }

    #[test]
    fn any_json_is_a_profile_within_bounds_or_an_error(mut value in json()) {
        if let Some(fields) = value.as_object_mut() {
            fields.insert("schema".to_owned(), SCHEMA.into());
        }
        if let Ok(profile) = Profile::parse(value.to_string().as_bytes()) {
            let numbers = profile.entries.iter().filter_map(|entry| entry.walk_in_flight);
            prop_assert!(numbers.into_iter().all(|number| (1..=WORKERS_MAX).contains(&number)));
        }
    }

    #[test]
    fn a_damaged_profile_is_a_profile_or_an_error(entry in any_entry(), at: prop::sample::Index, byte: u8) {
        let mut bytes = serde_json::to_vec(&of([entry])).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Profile::parse(&bytes);
        let _ = Profile::parse(&bytes[..at]);
    }

    #[test]
    fn what_is_written_is_what_is_read(entries in prop::collection::vec(any_entry(), 0..4)) {
        let temp = tempfile::tempdir().unwrap();
        let (path, profile) = (temp.path().join("p"), of(entries));
        profile.write(&path).unwrap();
        prop_assert_eq!(Profile::read(&path).unwrap(), Some(profile));
    }
}
