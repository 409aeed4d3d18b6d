//! The page of a run in headless Chromium (installed by `tools/setup-test.sh`): layout, contrast in
//! light and dark mode and on a phone, no errors, no requests, and the same numbers as the JSON. A
//! spoiled page must fail each of these checks.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod run;
mod structure;

use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_bench::Run;
use fathom_bench::report::html::html;
use serde_json::{Value, json};

/// Returns the Python with Selenium, if it and a browser are installed.
fn python() -> Option<PathBuf> {
    let env = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env");
    let python = env.join("bin/python3");
    let needed = [&python, Path::new("/usr/bin/chromium"), Path::new("/usr/bin/chromedriver")];
    let missing = needed.into_iter().find(|path| !path.exists());
    if let Some(missing) = missing {
        println!("skipped: needs {}: tools/setup-test.sh", missing.display());
    }
    missing.is_none().then_some(python)
}

/// Returns the report of browser.py on the page. Screenshots remain in the directory `name` for
/// manual inspection.
fn look(python: &Path, name: &str, page: &str, run: &Run) -> Value {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("html").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let [page_file, json_file] = ["page.html", "run.json"].map(|file| directory.join(file));
    std::fs::write(&page_file, page).unwrap();
    std::fs::write(&json_file, serde_json::to_string(run).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/html/browser.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).args([&page_file, &json_file, &directory]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Lists the failed checks of a report.
fn faults(report: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |is_good: bool, what: &str, value: &Value| {
        if !is_good {
            faults.push(format!("{what}: {value}"));
        }
    };
    for (what, wanted) in [
        ("wrong", json!([])),
        ("console", json!([])),
        ("requests", json!([])),
        ("embedded", json!(true)),
        ("scripts", json!(1)),
    ] {
        check(report[what] == wanted, what, &report[what]);
    }
    for view in report["views"].as_array().unwrap() {
        check(view["empty"] == 0, "empty", view);
        check(view["overlaps"] == json!([]), "overlaps", view);
        check(view["sideways"] == 0, "sideways", view);
        check(view["contrast"].as_f64().unwrap() >= 4.5, "contrast", view);
        check(view["disorder"] == 0, "disorder", view);
    }
    faults
}

#[test]
fn the_page_is_drawn_and_says_what_the_json_says() {
    let Some(python) = python() else { return };
    let run = run::realistic();
    let report = look(&python, "realistic", &html(&run), &run);
    assert_eq!(faults(&report), [""; 0]);
    let views = report["views"].as_array().unwrap();
    let [light, dark] = [0, 2].map(|at| views[at]["ground"].as_str().unwrap());
    assert_ne!(light, dark);
    for view in views {
        assert!(view["drawings"].as_u64() >= Some(run.arms.len() as u64 * 3), "{view}");
        // Every arm except the three baselines has a ratio.
        assert_eq!(view["marks"].as_u64(), Some(run.arms.len() as u64 - 3), "{view}");
    }
}

#[test]
fn a_page_without_arms_passes_all_checks() {
    let Some(python) = python() else { return };
    let run = Run::default();
    assert_eq!(faults(&look(&python, "empty", &html(&run), &run)), [""; 0]);
}

/// Each fault of the page is reported by the check for it.
#[test]
fn a_spoiled_page_is_found_out() {
    let Some(python) = python() else { return };
    let run = run::realistic();
    let spoiled = html(&run)
        .replacen("<meta http-equiv", "<meta name", 1)
        .replacen("data-key=\"blocks\" data-value=\"12\"", "data-key=\"blocks\" data-value=\"13\"", 1)
        .replacen(
            "</main>",
            "<svg width=\"0\"></svg><p style=\"width:2000px;max-width:none\">wide</p>\
            <p style=\"color:#777;background:#888\">faint</p><svg><text>one</text><text>two</text></svg>\
            <script>console.error('spoiled')</script><img src=\"http://127.0.0.1:9/x.png\">\
            <script type=\"application/json\">{}</script></main>",
            1,
        )
        .replacen("id=\"run\">{\"schema\":1", "id=\"run\">{\"schema\":2", 1);
    let faults = faults(&look(&python, "spoiled", &spoiled, &run)).join("\n");
    for fault in [
        "wrong: ",
        "console: ",
        "requests: ",
        "embedded: ",
        "scripts: ",
        "empty: ",
        "overlaps: ",
        "sideways: ",
        "contrast: ",
    ] {
        assert!(faults.contains(fault), "{fault}{faults}");
    }
}
