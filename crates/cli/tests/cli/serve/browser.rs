//! Headless Chromium, which `tools/setup-test.sh` installs: how it displays a listing and hostile
//! names, the file that a deep link loads, and the range that seeking in a recording requests.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::serve::server::{ServeDirectory, bytes, finish, script, until};
use crate::support::selenium_python;

const NAMES: [&str; 8] = [
    "<script>alert(1)<",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "data:text",
    "a&lt;b&amp;c",
    "new\nline",
];
/// Bytes per second of the recording: two channels of 16 bits at 44,100 Hz.
const BYTES_PER_SECOND: u32 = 44_100 * 4;
const SECONDS: u32 = 600;

/// Writes a recording of silence, as a sparse file.
fn record(path: &Path) {
    let length = BYTES_PER_SECOND * SECONDS;
    let mut head = Vec::new();
    for part in [
        &b"RIFF"[..],
        &(length + 36).to_le_bytes(),
        b"WAVEfmt ",
        &16_u32.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &2_u16.to_le_bytes(),
        &44_100_u32.to_le_bytes(),
        &BYTES_PER_SECOND.to_le_bytes(),
        &4_u16.to_le_bytes(),
        &16_u16.to_le_bytes(),
        b"data",
        &length.to_le_bytes(),
    ] {
        head.extend_from_slice(part);
    }
    let mut file = File::create(path).unwrap();
    file.write_all(&head).unwrap();
    file.set_len(u64::from(length) + head.len() as u64).unwrap();
}

fn listing() -> ServeDirectory {
    let home = ServeDirectory::new();
    NAMES.iter().for_each(|name| home.file(&format!("hostile/{name}"), b"harmless"));
    for (name, size, day) in
        [("b.bin", 300_000, "2021-01-01"), ("a.bin", 20, "2022-01-01"), ("c.bin", 5_000, "2020-01-01")]
    {
        home.file(&format!("sorted/{name}"), &bytes(size));
        let (status, ..) =
            finish(Command::new("touch").args(["-d", day]).arg(home.at("www/sorted").join(name)));
        assert_eq!(status, Some(0));
    }
    home.file(&format!("sorted/{}", "long".repeat(50)), b"long");
    (0..30).for_each(|number| home.file(&format!("many/File-{number:02}"), b"x"));
    home.file("many/README.md", b"# Many <b>files</b>");
    home
}

fn program() -> ServeDirectory {
    let page = b"<!DOCTYPE html><title>app</title><link rel=icon href=data:,><script src=/app.js></script><p id=shown></p>";
    let code = b"addEventListener('load', () => { document.getElementById('shown').textContent = 'at ' + location.pathname; });";
    let home = ServeDirectory::with(&[("index.html", page), ("app.js", code)]);
    home.file("player.html", b"<!DOCTYPE html><title>player</title><link rel=icon href=data:,><video preload=metadata src=/long.wav></video>");
    record(&home.at("www/long.wav"));
    home
}

/// Returns the browser's report, or `None` without a browser. The browser is started once for all
/// tests.
fn report() -> Option<&'static Value> {
    static REPORT: OnceLock<Option<Value>> = OnceLock::new();
    let report = REPORT.get_or_init(|| {
        let python = selenium_python()?;
        let (listing, program) = (listing(), program());
        let (listed, routed) =
            (listing.serve("--listing"), program.serve("--spa --security-headers --access-log=log"));
        let directory = listing.at("browser");
        fs::create_dir(&directory).unwrap();
        let mut command = Command::new(python);
        command.arg("-B").arg(script("browser.py")).args([&listed.url, &routed.url]).arg(&directory);
        let (status, out, err) = finish(&mut command);
        assert_eq!(status, Some(0), "{err}");
        let mut report: Value = serde_json::from_str(&out).unwrap();
        // Log lines are written with a short delay.
        let log = until("the log has what was sought", || {
            let log = fs::read_to_string(program.at("log")).ok()?;
            (partial(&log) >= 2).then_some(log)
        });
        report["log"] = log.into();
        report["downloaded"] =
            (fs::read(directory.join("b.bin")).unwrap_or_default() == bytes(300_000)).into();
        Some(report)
    });
    if report.is_none() {
        selenium_python();
    }
    report.as_ref()
}

#[test]
fn a_listing_is_shown_and_sorted_without_complaints() {
    let Some(report) = report() else { return };
    assert_eq!(report["listing_console"], json!([]));
    let long = "long".repeat(50);
    for (order, names) in [
        ("Name", ["c.bin", "b.bin", "a.bin"]),
        ("Size", ["b.bin", "c.bin", "a.bin"]),
        ("Modified", ["a.bin", "b.bin", "c.bin"]),
    ] {
        let shown: Vec<&str> = report["sorted"][order]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .filter(|name| *name != long)
            .collect();
        assert_eq!(shown, names, "{order}: {}", report["sorted"]);
    }
}

#[test]
fn a_listing_is_no_wider_than_a_telephone() {
    let Some(report) = report() else { return };
    for path in ["/sorted/", "/hostile/"] {
        assert_eq!(report["widths"][path], json!(360), "{}", report["widths"]);
    }
}

#[test]
fn a_laptop_shows_24_rows_and_filters_them_without_script() {
    let Some(report) = report() else { return };
    let laptop = &report["laptop"];
    assert!(laptop["rows"].as_u64().unwrap() >= 24, "{laptop}");
    let filtered: Vec<String> = (10..20).map(|number| format!("File-{number}")).collect();
    assert_eq!((&laptop["filtered"], &laptop["readme"]), (&json!(filtered), &json!(false)), "{laptop}");
}

#[test]
fn a_click_downloads_the_file() {
    let Some(report) = report() else { return };
    assert_eq!(report["downloaded"], json!(true));
}

#[test]
fn hostile_names_are_displayed_as_text() {
    let Some(report) = report() else { return };
    let hostile = &report["hostile"];
    let mut names: Vec<String> =
        hostile["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    names.sort();
    let mut expected = NAMES.map(|name| name.replace('\n', "\u{240a}")).to_vec();
    expected.sort();
    assert_eq!(names, expected);
    assert_eq!(hostile["elements"], json!(0), "{hostile}");
    assert_eq!(hostile["dialogs"], json!(0), "{hostile}");
    assert_eq!(hostile["protocols"], json!(["http:"]), "{hostile}");
}

#[test]
fn a_deep_link_loads_the_program() {
    let Some(report) = report() else { return };
    assert_eq!(report["routed"], json!("at /some/place/7"));
    assert_eq!(report["routed_console"], json!([]));
    assert_eq!(report["missing"], json!(404), "a script that is not there is no page");
}

#[test]
fn seeking_in_a_recording_requests_a_range() {
    let Some(report) = report() else { return };
    let seek = &report["seek"];
    assert_eq!(seek["duration"], json!(SECONDS), "{seek}");
    assert_eq!(seek["time"], json!(500), "{seek}");
    // Playback continues about 500 seconds from the beginning, which had not been loaded before.
    let far = u64::from(BYTES_PER_SECOND * 490);
    let starts: Vec<u64> = seek["ranges"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|range| range.as_str()?.strip_prefix("bytes ")?.split('-').next()?.parse().ok())
        .collect();
    assert!(starts.iter().any(|start| *start >= far), "{seek}");
    assert!(partial(report["log"].as_str().unwrap()) >= 2, "{}", report["log"]);
}

/// Returns the number of partial responses for the recording.
fn partial(log: &str) -> usize {
    log.lines().filter(|line| line.contains("GET /long.wav HTTP/1.1\" 206 ")).count()
}
