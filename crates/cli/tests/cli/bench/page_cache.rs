//! `fathom bench` with cold files: reads of the device, and files that cannot be cold.

use serde_json::Value;

use super::{SMALL, run, temp};
use crate::support;

/// Read-ahead served half of the blocks of a cold random read.
#[test]
fn a_cold_random_read_has_a_read_of_the_device_for_each_block() {
    let dir = temp();
    let (status, out, err) = run(dir.path(), "random-read --size 8M --blocks 2 --cache cold --json");
    if status == Some(1) && err.contains("in memory") {
        return support::skip("needs files on a disk");
    }
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let reads = |method: &str| {
        let arm = json["arms"].as_array().unwrap().iter().find(|arm| arm["method"] == method);
        arm.unwrap_or_else(|| panic!("no {method}"))["device_reads_per_op"].as_f64()
    };
    let Some(blocking) = reads("sync") else {
        return support::skip("needs a filesystem on a block device");
    };
    assert!(blocking >= 0.99, "{blocking} reads of the device for each block");
    assert!(reads("sync:readahead").is_some(), "{out}");
}

#[test]
fn files_in_memory_are_measured_warm_alone() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return support::skip("needs a filesystem in memory at /dev/shm");
    };
    let reason = "its files exist only in memory";
    let (status, out, err) = run(dir.path(), &format!("random-read {SMALL} --models sync"));
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.contains(&format!("cold: {reason}\n")), "{out}");
    assert!(!out.contains("more than 1 % was cached in a cold sample"), "a warm sample is discarded: {out}");
    let (status, _, err) = run(dir.path(), &format!("random-read {SMALL} --models sync --cache cold"));
    assert!(status == Some(1) && err.contains(reason), "{err}");
}
