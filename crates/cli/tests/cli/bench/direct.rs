//! `fathom bench --direct`: the arms that bypass the page cache, and those that cannot.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{SMALL, methods, run, temp};
use crate::support;

/// Returns the run of random reads with `O_DIRECT` and these options; `None`, with a message, if
/// the filesystem does not have it.
fn read_directly(options: &str) -> Option<Value> {
    let dir = temp();
    let (status, out, err) = run(dir.path(), &format!("random-read {SMALL} --direct --json {options}"));
    if status == Some(1) && err.contains("no sample was valid") {
        support::skip("needs a filesystem with O_DIRECT");
        return None;
    }
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    Some(serde_json::from_str(&out).unwrap())
}

#[test]
fn an_arm_that_cannot_bypass_the_page_cache_is_left_out_and_the_others_are_measured() {
    let Some(json) = read_directly("--models sync,tokio,mmap,uring") else { return };
    let reasons: BTreeMap<&str, &str> = json["unavailable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arm| (arm["method"].as_str().unwrap(), arm["reason"].as_str().unwrap()))
        .collect();
    assert!(reasons["mmap"].contains("page cache") && reasons["tokio=1"].contains("aligned"), "{reasons:?}");
    assert!(methods(&json).contains(&"sync"), "{json}");
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return support::skip("needs a filesystem in memory at /dev/shm");
    };
    let (_, out, _) = run(memory.path(), &format!("random-read {SMALL} --direct --models sync"));
    assert!(out.contains("note: O_DIRECT has no effect here") || out.contains("with O_DIRECT"), "{out}");
}

#[test]
fn direct_reads_have_arms_of_asynchronous_and_of_polled_calls() {
    let Some(json) = read_directly("") else { return };
    let reason = |method: &str| {
        let left_out = json["unavailable"].as_array().unwrap().iter().find(|arm| arm["method"] == method);
        left_out.map(|arm| arm["reason"].as_str().unwrap().to_owned())
    };
    for (method, cause) in [
        ("aio=1", "asynchronous I/O"),
        ("aio=32:batch=8", "asynchronous I/O"),
        ("sync:hipri", "queue for polling"),
    ] {
        let is_explained = reason(method).is_some_and(|reason| reason.contains(cause));
        assert!(methods(&json).contains(&method) != is_explained, "{method}: {json}");
    }
    assert!(!methods(&json).contains(&"sync:dontcache"), "{json}");
}
