//! The page of a run in headless Chromium (installed by `tools/setup-test.sh`): layout, contrast in
//! light and dark mode and on a phone, no errors, no requests, nothing that markup in a name could
//! add, and the same numbers and sentences as the JSON. A spoiled page must fail each of these
//! checks.

mod generated;
mod realistic;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_bench::report::to_json_line;
use fathom_bench::{ArmSummary, Interval, LatencyBucket, RequirementVerdict, Run};
use fathom_report::run_page;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::selenium_python;
use generated::{any_run, small};
use realistic::{HOSTILE, realistic};

/// Pages for one browser.
struct Pages {
    directory: PathBuf,
}

impl Pages {
    /// Makes an empty directory `name`, in which screenshots remain for manual inspection.
    fn new(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-page").join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    /// Adds the page of a run.
    fn add(&self, name: &str, run: &Run) -> String {
        let json = to_json_line(run).unwrap();
        let page = run_page(&json, None);
        self.write(name, &page, &json);
        page
    }

    fn write(&self, name: &str, page: &str, json: &str) {
        fs::write(self.directory.join(format!("{name}.html")), page).unwrap();
        fs::write(self.directory.join(format!("{name}.json")), json).unwrap();
    }

    /// Returns what the browser finds on each page. Those named in `viewed`, separated by commas,
    /// are looked at in all views.
    fn look(&self, python: &Path, viewed: &str) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/bench/page/browser.py");
        let output =
            Command::new(python).arg("-B").arg(script).arg(&self.directory).arg(viewed).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Lists the failed checks of a page.
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
        ("foreign", json!([])),
        ("wild", json!([])),
        ("embedded", json!(true)),
        // The script, the run, and what stands before it.
        ("scripts", json!(3)),
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

fn texts(report: &Value, kind: &str) -> Vec<String> {
    serde_json::from_value(report["texts"][kind].clone()).unwrap()
}

fn sentences(run: &Run) -> Vec<String> {
    fathom_bench::report::sentences(run).into_iter().map(|finding| finding.sentence).collect()
}

#[test]
fn the_page_is_drawn_and_says_what_the_json_says() {
    let Some(python) = selenium_python() else { return };
    let (pages, run) = (Pages::new("drawn"), realistic());
    pages.add("realistic", &run);
    pages.add("empty", &Run::default());
    pages.add("small", &small());
    pages.add("commands", &of_commands());
    let report = pages.look(&python, "realistic,empty");
    for page in ["realistic", "empty", "small", "commands"] {
        assert_eq!(faults(&report[page]), [""; 0], "{page}");
    }
    let views = report["realistic"]["views"].as_array().unwrap();
    let [light, dark] = [0, 2].map(|at| views[at]["ground"].as_str().unwrap());
    assert_ne!(light, dark);
    for view in views {
        assert!(view["drawings"].as_u64() >= Some(run.arms.len() as u64 * 3), "{view}");
        // Every arm except the three baselines has a ratio.
        assert_eq!(view["marks"].as_u64(), Some(run.arms.len() as u64 - 3), "{view}");
    }
    assert_eq!(texts(&report["realistic"], ".verdict"), sentences(&run));
    assert!(texts(&report["realistic"], "code").contains(&HOSTILE.to_owned()), "it is a text");
    has_all_parts(&report["small"]);
    assert_eq!(texts(&report["empty"], "h1"), ["nothing measured"]);
    assert_eq!(texts(&report["empty"], "h3"), [""; 0], "nothing is drawn");
    let commands = &report["commands"];
    assert_eq!(texts(commands, "head title"), ["Commands: a tree, as a list"]);
    assert!(!texts(commands, "h3").contains(&"Throughput against operations in flight".to_owned()));
    assert!(texts(commands, "td").contains(&"a takes at most 1 s".to_owned()), "{commands}");
    functions_are_exact(&report["functions"]);
}

/// Returns a run of two commands, with a requirement.
fn of_commands() -> Run {
    let mut run = small();
    run.arms.truncate(2);
    run.noise.truncate(1);
    run.rows.retain(|row| row.cache == "warm");
    run.arms.iter_mut().for_each(|arm| arm.cell = "a tree, as a list".into());
    run.arms.iter_mut().for_each(|arm| (arm.threads, arm.model) = (1, "command".into()));
    run.noise[0].cell = run.arms[0].cell.clone();
    for row in &mut run.rows {
        (row.workload, row.cell, row.threads, row.model) =
            ("run".into(), run.arms[0].cell.clone(), 1, "command".into());
    }
    let requirement = "a takes at most 1 s".into();
    run.verdicts = vec![RequirementVerdict {
        cell: run.arms[0].cell.clone(),
        requirement,
        ..RequirementVerdict::default()
    }];
    run
}

fn has_all_parts(small: &Value) {
    assert_eq!(texts(small, "head title"), ["I/O models: read"]);
    assert_eq!(texts(small, "h1"), ["read"]);
    let sections = [
        "In short",
        "read, warm",
        "read, cold",
        "Warm against cold",
        "Notes",
        "Not available",
        "Discarded",
        "Machine",
        "Run it again",
        "All samples",
    ];
    assert_eq!(texts(small, "h2"), sections);
    let of_cell =
        ["Ratios", "Latency of an operation", "Throughput against operations in flight", "Single samples"];
    assert_eq!(texts(small, "h3"), [&of_cell[..], &of_cell[..], &["read"]].concat());
    assert_eq!(texts(small, "summary"), ["read, warm 3", "read, cold 3"]);
    let sentence =
        "Use pread: at least 1.96 times as fast as blocking, with 0.500 [0.490, 0.510] of its time.";
    assert_eq!(texts(small, ".verdict"), [sentence; 2]);
    assert_eq!(small["crosses"], json!(["block 3: 2.00\u{a0}s, discarded: steal"]));
}

fn functions_are_exact(found: &Value) {
    let none = Value::Null;
    assert_eq!(found["isLog"], json!([false, true]), "a quotient over 4 makes it logarithmic");
    assert_eq!(found["places"], json!([4, 50, 96, none]));
    assert_eq!(found["nothing"], json!([none, none]));
    let ticks = json!([
        [0.8, 1, 1.2],
        [0.98, 0.99, 1, 1.01, 1.02],
        [0.5, 1, 2, 5, 10, 20],
        [3, 4, 6, 8],
        [0.01, 1, 100, 10000],
        [1.6, 1.8]
    ]);
    assert_eq!(found["ticks"].to_string(), ticks.to_string());
    let significant = [
        "0", "1.00", "1.23", "10.0", "12.3", "123", "1000", "123000", "0.00123", "-0.500", "1.00e-9",
        "1.00e300",
    ];
    assert_eq!(found["significant"], json!(significant));
    let units = ["1.00 ms", "2.50 µs", "1.30 GB/s", "0 B/s", "0.00100 ns", "12.5 %"].map(unbroken);
    assert_eq!(found["units"], json!(units));
    assert_eq!(found["labels"], json!(["0.8", "10", "100", "1000", unbroken("10 ms")]));
}

fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Each fault of a page is reported by the check for it.
#[test]
fn a_spoiled_page_is_found_out() {
    let Some(python) = selenium_python() else { return };
    let (pages, run) = (Pages::new("spoiled"), realistic());
    let page = pages.add("page", &run);
    let spoiled = page
        .replacen("<meta http-equiv", "<meta name", 1)
        .replacen("text: pointer === \"/seed\" ? SEED", "text: pointer === \"/seed\" ? \"13\"", 1)
        .replacen(
            "<main id=\"main\">",
            "<main id=\"main\"><svg width=\"0\"></svg><p style=\"width:2000px;max-width:none\">wide</p>\
            <p style=\"color:#777;background:#888\">faint</p><svg><text x=\"NaN%\">one</text><text>two</text></svg>\
            <script>console.error('spoiled')</script><img src=\"http://127.0.0.1:9/x.png\">\
            <script type=\"application/json\">{}</script>",
            1,
        )
        .replacen("id=\"run\">{\"schema\":1", "id=\"run\">{\"schema\":2", 1);
    pages.write("page", &spoiled, &to_json_line(&run).unwrap());
    let faults = faults(&pages.look(&python, "page")["page"]).join("\n");
    for fault in [
        "wrong: ",
        "console: ",
        "requests: ",
        "foreign: ",
        "wild: ",
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

/// Models had the colours of their places within a cell.
#[test]
fn models_have_one_colour_histograms_a_bar_for_each_bucket_and_no_run_breaks_a_page() {
    let Some(python) = selenium_python() else { return };
    let pages = Pages::new("generated");
    pages.add("colours", &rings_beside_threads());
    let mut timed = small();
    let bucket = |below_us, count| LatencyBucket { below_us, count };
    timed.arms[0].histogram = vec![bucket(1.024, 3), bucket(2.048, 1), bucket(f64::MAX, 2)];
    pages.add("histogram", &timed);
    let config = fathom_cases::property(100);
    let names: Vec<String> = (0..config.cases).map(|at| format!("any-{at}")).collect();
    let mut runner = TestRunner::new(config);
    let mut runs = Vec::new();
    for name in &names {
        let run = any_run().new_tree(&mut runner).unwrap().current();
        pages.add(name, &run);
        runs.push(run);
    }
    let report = pages.look(&python, "");
    let colours: Vec<(String, Option<String>)> =
        serde_json::from_value(report["colours"]["colours"].clone()).unwrap();
    let of_rings = colours.iter().filter(|(name, _)| name == "uring").map(|(_, class)| class.as_deref());
    assert_eq!(of_rings.collect::<Vec<_>>(), [Some("mark s1"); 2], "threads come first in the palette");
    let bars = json!([["100.00%", "3 below 1.02\u{a0}µs"], ["33.33%", "1 below 2.05\u{a0}µs"]]);
    assert_eq!(report["histogram"]["bars"], bars, "no axis shows the third");
    for (name, run) in names.iter().zip(&runs) {
        let found = &report[name];
        for what in ["console", "requests", "foreign", "wild"] {
            assert_eq!(found[what], json!([]), "{what} of {name}: {run:?}");
        }
        assert_eq!((&found["scripts"], &found["embedded"]), (&json!(3), &json!(true)), "{name}: {run:?}");
        assert_eq!(texts(found, ".verdict"), sentences(run), "{name}: {run:?}");
    }
}

/// Returns a run in which rings are the fastest in one cell and the slowest in the other.
fn rings_beside_threads() -> Run {
    let mut run = small();
    run.arms.retain(|arm| arm.method != "blocking");
    for (at, cell, threads) in
        [(0, "read, warm", 1), (1, "read, warm", 8), (2, "read, cold", 1), (3, "read, cold", 8)]
    {
        let (model, method) = ("uring".to_owned(), format!("ring {at}"));
        let arm = ArmSummary { cell: cell.into(), model, method, threads, ..run.arms[0].clone() };
        if cell == "read, warm" { run.arms.insert(0, arm) } else { run.arms.push(arm) }
    }
    run
}

type RunChange = fn(&mut Run);

/// The page stated a tie of a cell for which the terminal advised a gain.
#[test]
fn table_json_and_page_have_the_same_words_for_runs_of_every_kind() {
    let changes: [(&str, RunChange); 12] = [
        ("with 0.500 [0.490, 0.510] of its time", |_| {}),
        // A noise floor of 1 is a factor of 2, not a reason to say that all are equal.
        ("with 0.500 [0.490, 0.510] of its time", |run| run.noise[0].floor = 0.9),
        ("Not decided: two runs of one method differed by 2.1 times", |run| run.noise[0].floor = 1.1),
        ("Not decided: two runs of one method differed by 2.5 times", |run| run.noise[0].floor = 1.5),
        ("Tie: use ", |run| run.arms[0].ratio = Some(Interval { median: 0.9, low: 0.8, high: 1.1 })),
        ("Tie: use ", |run| {
            run.arms[0].ratio = Some(Interval { median: 0.97, low: 0.96, high: 0.98 });
            run.arms[1].among_best = true;
        }),
        // Two copies of the baseline differ more than most arms, and less than this one.
        ("with 0.300 [", |run| {
            run.noise[0].floor = 1.2;
            run.arms[0].ratio = Some(Interval { median: 0.3, low: 0.25, high: 0.5 });
            run.arms[1].among_best = true;
        }),
        ("no sample was valid", |run| run.arms.iter_mut().for_each(|arm| arm.runs = 0)),
        ("only ", |run| run.arms[1].runs = 0),
        ("5 blocks are too few", |run| run.arms.iter_mut().for_each(|arm| arm.runs = 5)),
        ("no baseline was measured", |run| {
            run.arms[1].ratio = Some(Interval { median: 1.0, low: 0.9, high: 1.1 });
        }),
        ("Use blocking", |run| {
            run.arms[0].among_best = false;
            run.arms[0].ratio = Some(Interval { median: 2.0, low: 1.9, high: 2.1 });
            run.arms.swap(0, 1);
        }),
    ];
    for (at, (words, change)) in changes.into_iter().enumerate() {
        for languages in [false, true] {
            let mut run = small();
            change(&mut run);
            if languages {
                run.arms[3].lang = "go".into();
            }
            let sentence = &sentences(&run)[0];
            assert!(sentence.contains(words), "{at}: {sentence}");
            let table = fathom_bench::report::table(&run);
            assert!(table.contains(&format!("\n{sentence}\n")), "{at}: {table}");
            // A page shows the findings of the JSON.
            let json: Value = serde_json::from_str(&to_json_line(&run).unwrap()).unwrap();
            assert_eq!(json["findings"][0]["sentence"], *sentence, "{at}");
        }
    }
}
