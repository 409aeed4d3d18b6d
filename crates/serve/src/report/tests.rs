//! The report on a real directory, and on call results that no filesystem of the test machine
//! gives.

use fathom_io::Use;
use fathom_io::filesystem::Filesystem;

use super::*;

fn site(root: &Path) -> SiteConfig {
    SiteConfig { root: root.to_owned(), ..SiteConfig::default() }
}

fn reported(root: &Path) -> Report {
    Report::new(&site(root), &Config::default()).unwrap()
}

/// Returns the report for `calls` on a filesystem called `name` with the magic number `magic`.
fn found(calls: CallStatuses, magic: i64, name: &'static str) -> Report {
    let filesystem = Filesystem { magic: Some(magic), name: Some(name), device: (8, 1), rotational: None };
    let availability = Availability {
        kernel: "Linux 6.1".to_owned(),
        cpus: 2,
        fd_limit: Some(1024),
        memlock_bytes: None,
        filesystem,
        models: Vec::new(),
    };
    Report::of(Path::new("/srv"), availability, calls, Some("a".into()), &Config::default())
}

fn all_work() -> CallStatuses {
    let works = || CallStatus::Works;
    CallStatuses {
        openat2: works(),
        resolve_cached: works(),
        nowait: works(),
        cachestat: works(),
        sendfile: works(),
        uring: works(),
    }
}

fn no(why: &str) -> CallStatus {
    CallStatus::Fails(why.to_owned())
}

/// Returns what `auto` does in the case whose name begins with `case`.
fn plan<'r>(report: &'r Report, case: &str) -> &'r str {
    &report.plan.iter().find(|(name, _)| name.starts_with(case)).unwrap().1
}

#[test]
fn the_first_file_below_is_what_calls_are_tried_on() {
    let dir = tempfile::tempdir().unwrap();
    let empty = reported(dir.path());
    assert_eq!((&empty.sample, &empty.calls.nowait), (&None, &CallStatus::Untested));
    assert_eq!((&empty.calls.openat2, &empty.calls.resolve_cached), (&CallStatus::Works, &CallStatus::Works));
    assert!(empty.notes.iter().any(|note| note.contains("no regular file")), "{:?}", empty.notes);

    std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
    std::fs::write(dir.path().join("empty"), "").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    std::fs::write(dir.path().join("a/b/file"), "1").unwrap();
    let report = reported(dir.path());
    assert_eq!(report.sample.as_deref(), Some(Path::new("a/b/file")));
    let untested: Vec<_> =
        report.calls.all().into_iter().filter(|(_, found)| **found == CallStatus::Untested).collect();
    assert!(untested.is_empty(), "{untested:?}");
    assert_eq!(report.calls.sendfile, CallStatus::Works);
    assert!(!report.notes.iter().any(|note| note.contains("no regular file")));
}

#[test]
fn a_report_has_every_model_and_every_case() {
    let report = reported(tempfile::tempdir().unwrap().path());
    assert!(report.models.iter().map(|(model, _)| *model).eq(Model::with(Use::Serve)));
    let blocking = [Model::Auto, Model::Sync, Model::Nowait, Model::Pool, Model::Tokio];
    for (model, outlook) in report.models {
        assert!(outlook.is_ok() || !blocking.contains(&model), "{model}: {outlook:?}");
    }
    let cases: Vec<_> = report.plan.iter().map(|(case, _)| *case).collect();
    let expected =
        ["cached lookup", "cold lookup", "small body", "large body, in memory", "large body, not in memory"];
    assert_eq!(cases, expected);
}

#[test]
fn an_unopenable_root_is_an_error_with_its_path() {
    for (path, cause) in [("/nonexistent/x", "No such file or directory"), ("/dev/null", "Not a directory")] {
        let error = Report::new(&site(Path::new(path)), &Config::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot open '{path}': {cause}"));
    }
}

#[test]
fn the_plan_follows_the_calls() {
    const EXT4: i64 = 0xEF53;
    const OVERLAY: i64 = 0x794C_7630;
    const TMPFS: i64 = 0x0102_1994;
    let best = found(all_work(), EXT4, "ext4");
    assert!(plan(&best, "cached").starts_with("openat2 by the worker; a file that is kept"));
    assert!(plan(&best, "small").contains("RWF_NOWAIT"));
    assert_eq!(
        plan(&best, "large body, in"),
        "reads of 64 KiB by the worker, or to other machines sendfile in parts of 1 MiB, whichever costs less"
    );
    assert_eq!(
        plan(&best, "large body, not"),
        "reads of 16 KiB by the pool, at most 72 at once for the device"
    );

    let asked = found(CallStatuses { nowait: no("x"), ..all_work() }, EXT4, "ext4");
    assert!(plan(&asked, "small").contains("cachestat"));

    let calls = CallStatuses { nowait: no("x"), cachestat: no("x"), ..all_work() };
    let blind = found(calls, OVERLAY, "overlay");
    assert!(plan(&blind, "cached").starts_with("openat2 by the pool"));
    assert!(plan(&blind, "small").starts_with("read by the pool"));
    assert_eq!(plan(&blind, "large body, in"), "reads of 256 KiB by the pool");
    assert!(blind.notes[0].starts_with("overlayfs"));

    let memory = found(CallStatuses { nowait: no("x"), cachestat: no("x"), ..all_work() }, TMPFS, "tmpfs");
    assert_eq!(plan(&memory, "small"), "read by the worker; up to 1 MiB it is kept");
    assert!(plan(&memory, "large body, in").contains("sendfile in parts of 1 MiB"));
    assert_eq!(plan(&memory, "large body, not"), "there is none");

    let mute = found(CallStatuses { nowait: no("x"), cachestat: no("x"), ..all_work() }, EXT4, "ext4");
    assert_eq!(plan(&mute, "large body, in"), "reads of 64 KiB by the pool");
    assert!(plan(&mute, "large body, not").starts_with("reads of 64 KiB by the pool"));

    let old = found(CallStatuses { cachestat: no("x"), ..all_work() }, EXT4, "ext4");
    assert_eq!(plan(&old, "large body, in"), "reads of 64 KiB by the worker");
}

#[test]
fn a_model_says_why_it_cannot_run() {
    let outlook = |report: &Report, wanted| {
        report.models.iter().find(|(model, _)| *model == wanted).unwrap().1.clone().unwrap_err()
    };
    let calls = CallStatuses { sendfile: no("refused"), uring: no("cannot set up io_uring"), ..all_work() };
    let report = found(calls, 0x6969, "nfs");
    assert_eq!(outlook(&report, Model::Sendfile), "sendfile: refused");
    assert_eq!(outlook(&report, Model::Uring(None)), "cannot set up io_uring");
    assert!(report.notes[0].contains("may ask a server"));

    let report = found(CallStatuses::none(Errno::NOSYS), 0xEF53, "ext4");
    assert!(report.plan.is_empty());
    for model in Model::with(Use::Serve) {
        assert_eq!(outlook(&report, model), "openat2: Function not implemented");
    }
}

#[test]
fn descriptors_are_those_of_connections_and_kept_files() {
    let report = found(all_work(), 0xEF53, "ext4");
    assert_eq!((report.limits.descriptors, report.lacks_descriptors()), (16_384 + 4096, true));
    let few =
        Config { limits: config::Limits { connections: 10, ..Default::default() }, ..Config::default() };
    assert_eq!(ResourceLimits::of(&few).descriptors, 10 + 4096);
}
