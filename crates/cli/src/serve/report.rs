//! `fathom serve --io-report`: the output format of the report. The server's library finds the
//! facts.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_serve::config::Config;
use fathom_serve::report::{CallStatus, Report};
use fathom_serve::{Error, Model, rules};
use fathom_text::quote::{Charset, shell_escape};
use serde_json::{Value, json};

use super::NAME;
use super::profile::PoolProfile;
use crate::availability::{columns, facts, object};
use crate::shared::output::print;

/// Prints the findings for the directory of each site and mount, as a paragraph or a JSON object
/// each. Returns the exit status.
pub(super) fn show(
    config: &Config,
    profile: &PoolProfile,
    json: bool,
    charset: Charset,
) -> Result<u8, Error> {
    let mut reports = Vec::new();
    for (key, site) in rules::sites(config) {
        if site.has_root() {
            reports.push(Report::new(site, config)?);
        }
        for (_, mount) in site.mounted(&key) {
            reports.push(Report::new(&mount, config)?);
        }
    }
    let note = profile.note();
    let show = |report| match json {
        true => format!("{}\n", value(report, note)),
        false => text(report, note, charset),
    };
    let texts: Vec<_> = reports.iter().map(show).collect();
    Ok(print(NAME, &texts.join(if json { "" } else { "\n" })))
}

fn text(report: &Report, note: Option<&str>, charset: Charset) -> String {
    let shown = |path: &Path| {
        String::from_utf8_lossy(&shell_escape(path.as_os_str().as_bytes(), charset)).into_owned()
    };
    let facts = facts(report.root.as_os_str().as_bytes(), &report.availability, charset);
    let mut lines: Vec<_> = facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut add = |key: &str, value: String| lines.push((key.to_owned(), value));
    add("tried on", report.sample.as_deref().map_or("nothing: no such file".to_owned(), shown));
    report.calls.all().into_iter().for_each(|(call, finding)| add(call, finding_text(finding).to_owned()));
    sizes(report, note).into_iter().for_each(|(key, value)| add(key, value));
    for (model, outlook) in &report.models {
        add(&format!("--io {model}"), outlook_text(outlook));
    }
    report.plan.iter().for_each(|(case, what)| add(case, what.clone()));
    report.notes.iter().for_each(|note| add("note", (*note).to_owned()));
    columns(&lines)
}

fn finding_text(finding: &CallStatus) -> &str {
    match finding {
        CallStatus::Works => "works",
        CallStatus::Fails(why) => why,
        CallStatus::Untested => "not tried",
    }
}

fn outlook_text(outlook: &Result<&str, String>) -> String {
    match outlook {
        Ok(what) => format!("available: {what}"),
        Err(why) => format!("unavailable: {why}"),
    }
}

fn sizes(report: &Report, note: Option<&str>) -> Vec<(&'static str, String)> {
    let sizes = &report.limits;
    let (pool, cache) = (&sizes.pool, &sizes.cache);
    let origin = note.map(|note| format!("; {note}")).unwrap_or_default();
    let descriptors = format!(
        "{} for {} connections and {} kept files, besides those of files being sent",
        sizes.descriptors, sizes.connections, cache.files
    );
    let lack =
        "; more than this process may open: files will be kept for less time, and connections will wait";
    vec![
        ("workers", sizes.workers.to_string()),
        (
            "pool",
            format!(
                "up to {} threads, {} of them on one device; {} calls may wait{origin}",
                pool.threads,
                pool.per_device(),
                pool.queue
            ),
        ),
        (
            "cache",
            format!(
                "{} files; bodies of up to {} bytes, {} bytes together; looked at again after {} ms",
                cache.files, cache.body_bytes, cache.bytes, cache.age_ms
            ),
        ),
        ("descriptors", descriptors + if report.lacks_descriptors() { lack } else { "" }),
    ]
}

fn value(report: &Report, note: Option<&str>) -> Value {
    let mut value = object(report.root.as_os_str().as_bytes(), &report.availability);
    let (sizes, text) = (&report.limits, |path: &Path| path.to_string_lossy().into_owned());
    let calls = report.calls.all().into_iter().map(|(call, finding)| {
        let works = match finding {
            CallStatus::Works => json!(true),
            CallStatus::Fails(_) => json!(false),
            CallStatus::Untested => Value::Null,
        };
        (call.to_owned(), json!({ "works": works, "note": finding_text(finding) }))
    });
    let model = |(model, outlook): &(Model, Result<&str, String>)| {
        let note = match outlook {
            Ok(what) => what,
            Err(why) => why.as_str(),
        };
        json!({ "model": model.name(), "available": outlook.is_ok(), "note": note })
    };
    let case = |(case, what): &(&str, String)| json!({ "case": case, "what": what });
    value["tried_on"] = json!(report.sample.as_deref().map(text));
    value["calls"] = Value::Object(calls.collect());
    value["workers"] = json!(sizes.workers);
    value["pool"] = json!({
        "threads": sizes.pool.threads,
        "per_device": sizes.pool.per_device(),
        "queue": sizes.pool.queue,
        "note": note,
    });
    value["cache"] = json!({
        "files": sizes.cache.files,
        "bytes": sizes.cache.bytes,
        "body_bytes": sizes.cache.body_bytes,
        "age_ms": sizes.cache.age_ms,
    });
    value["connections"] = json!(sizes.connections);
    value["descriptors"] = json!(sizes.descriptors);
    value["models"] = report.models.iter().map(model).collect();
    value["plan"] = report.plan.iter().map(case).collect();
    value["notes"] = json!(report.notes);
    value
}

#[cfg(test)]
mod tests {
    use fathom_io::availability::Availability;
    use fathom_io::filesystem::Filesystem;
    use fathom_serve::config::{CacheConfig, PoolConfig};
    use fathom_serve::report::{CallStatuses, ResourceLimits};

    use super::*;

    fn report() -> Report {
        let filesystem =
            Filesystem { magic: Some(0xEF53), name: Some("ext4"), device: (8, 1), rotational: None };
        let works = || CallStatus::Works;
        Report {
            root: "s\n".into(),
            availability: Availability {
                kernel: "Linux 6.1".to_owned(),
                cpus: 2,
                fd_limit: Some(1024),
                memlock_bytes: None,
                filesystem,
                models: Vec::new(),
            },
            calls: CallStatuses {
                openat2: works(),
                resolve_cached: works(),
                nowait: CallStatus::Untested,
                cachestat: CallStatus::Fails("needs Linux 6.5".to_owned()),
                sendfile: works(),
                uring: works(),
            },
            sample: None,
            limits: ResourceLimits {
                workers: 2,
                connections: 1000,
                pool: PoolConfig { threads: 4, per_device: Some(3), queue: 9 },
                cache: CacheConfig { files: 100, bytes: 10, body_bytes: 5, age_ms: 7 },
                descriptors: 1100,
            },
            models: vec![(Model::Auto, Ok("adapts")), (Model::Uring(None), Err("cannot".to_owned()))],
            plan: vec![("cold lookup", "by the pool".to_owned())],
            notes: vec!["all is well"],
        }
    }

    #[test]
    fn values_are_aligned() {
        let expected = "\
kernel:         Linux 6.1
path:           's'$'\\n'
file system:    ext4
device:         8:1, unknown disk
CPUs:           2
open files:     1024
locked memory:  unlimited
tried on:       nothing: no such file
openat2:        works
RESOLVE_CACHED: works
RWF_NOWAIT:     not tried
cachestat:      needs Linux 6.5
sendfile:       works
io_uring:       works
workers:        2
pool:           up to 4 threads, 3 of them on one device; 9 calls may wait; from somewhere
cache:          100 files; bodies of up to 5 bytes, 10 bytes together; looked at again after 7 ms
descriptors:    1100 for 1000 connections and 100 kept files, besides those of files being sent; more than this process may open: files will be kept for less time, and connections will wait
--io auto:      available: adapts
--io uring:     unavailable: cannot
cold lookup:    by the pool
note:           all is well
";
        assert_eq!(text(&report(), Some("from somewhere"), Charset::Ascii), expected);
    }

    #[test]
    fn the_json_object_has_the_same_facts() {
        let expected = json!({
            "kernel": "Linux 6.1",
            "path": "s\n",
            "filesystem": "ext4",
            "filesystem_magic": 0xEF53,
            "device": "8:1",
            "rotational": null,
            "cpus": 2,
            "open_files_max": 1024,
            "locked_memory_max_bytes": null,
            "tried_on": null,
            "calls": {
                "openat2": { "works": true, "note": "works" },
                "RESOLVE_CACHED": { "works": true, "note": "works" },
                "RWF_NOWAIT": { "works": null, "note": "not tried" },
                "cachestat": { "works": false, "note": "needs Linux 6.5" },
                "sendfile": { "works": true, "note": "works" },
                "io_uring": { "works": true, "note": "works" },
            },
            "workers": 2,
            "pool": { "threads": 4, "per_device": 3, "queue": 9, "note": null },
            "cache": { "files": 100, "bytes": 10, "body_bytes": 5, "age_ms": 7 },
            "connections": 1000,
            "descriptors": 1100,
            "models": [
                { "model": "auto", "available": true, "note": "adapts" },
                { "model": "uring", "available": false, "note": "cannot" },
            ],
            "plan": [{ "case": "cold lookup", "what": "by the pool" }],
            "notes": ["all is well"],
        });
        assert_eq!(value(&report(), None), expected);
    }
}
