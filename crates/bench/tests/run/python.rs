//! Comparison with other implementations: scipy for the statistics, DuckDB for the CSV. Both are
//! installed by `tools/test-python.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_bench::report::csv;
use fathom_bench::stats::{Bootstrap, median, percentile, sign_interval};
use fathom_bench::{Interval, Row};
use serde_json::{Value, json};

use crate::simulated::{noisy, row};

/// Returns the directory of the programs if they are installed, or reports that the test is
/// skipped.
fn python_bin() -> Option<PathBuf> {
    let bin = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env").join("bin");
    let found = Some(bin).filter(|bin| bin.join("python3").exists());
    if found.is_none() {
        println!("skipped: needs DuckDB and scipy: tools/test-python.sh TARGET/python-env");
    }
    found
}

fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the results of reference.py for `samples`.
fn scipy(bin: &Path, samples: &[Vec<f64>]) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.json");
    fs::write(&file, json!(samples).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/reference.py");
    let answer = output(Command::new(bin.join("python3")).arg("-B").arg(script).arg(file));
    serde_json::from_slice(&answer.stdout).unwrap()
}

#[track_caller]
fn near(found: f64, expected: &Value, tolerance: f64) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= tolerance, "{found}, expected {expected} +- {tolerance}");
}

fn samples() -> Vec<Vec<f64>> {
    let counts = [1, 2, 5, 6, 7, 9, 10, 11, 13, 17, 20, 23, 25, 30, 31];
    let sample = |count: u32| {
        noisy(&[("x", 1.0)], count, 0.2, count.into()).iter().map(|row| row.seconds.ln()).collect()
    };
    counts.map(sample).to_vec()
}

#[test]
fn scipy_finds_the_same_medians_percentiles_and_sign_tests() {
    let Some(bin) = python_bin() else { return };
    let samples = samples();
    for (sample, said) in samples.iter().zip(scipy(&bin, &samples)) {
        near(median(sample).unwrap(), &said["median"], 1e-12);
        for (share, expected) in [0.5, 0.95, 0.99].into_iter().zip(said["percentiles"].as_array().unwrap()) {
            near(percentile(sample, share).unwrap(), expected, 1e-12);
        }
        let (low, high) = sign_interval(sample).unwrap();
        near(low, &said["sign"][0], 1e-12);
        near(high, &said["sign"][1], 1e-12);
    }
}

/// For an odd number of values the limit of infinitely many draws is known: the binomial
/// distribution of scipy tells which of the values it is. Samples for which 10,000
/// draws may find another one are skipped.
#[test]
fn intervals_are_those_of_the_exact_distribution() {
    let Some(bin) = python_bin() else { return };
    let samples = samples();
    let mut compared = 0;
    for (sample, said) in samples.iter().zip(scipy(&bin, &samples)) {
        let Some([low, high]) = said["exact"].as_array().map(Vec::as_slice) else { continue };
        let found = interval(sample);
        near(found.low, low, 1e-12);
        near(found.high, high, 1e-12);
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}

#[test]
fn intervals_are_those_of_scipys_bootstrap() {
    let Some(bin) = python_bin() else { return };
    let samples = samples();
    for (sample, said) in samples.iter().zip(scipy(&bin, &samples)).filter(|(sample, _)| sample.len() > 1) {
        let found = interval(sample);
        let ends: Vec<f64> =
            said["bootstrap"].as_array().unwrap().iter().map(|end| end.as_f64().unwrap()).collect();
        let between = |end: f64, from: f64, to: f64| (from - 1e-12..=to + 1e-12).contains(&end);
        assert!(between(found.low, ends[0], ends[1]), "{found:?}, expected {ends:?}");
        assert!(between(found.high, ends[2], ends[3]), "{found:?}, expected {ends:?}");
    }
}

fn interval(sample: &[f64]) -> Interval {
    let values: Vec<Option<f64>> = sample.iter().copied().map(Some).collect();
    Bootstrap::new(sample.len(), 11).interval(&values).unwrap()
}

#[test]
fn duckdb_answers_the_query_as_it_is_documented() {
    let Some(bin) = python_bin() else { return };
    let dir = tempfile::tempdir().unwrap();
    let slow = [row("say \"a\", b", 1, 2.0), row("say \"a\", b", 2, 6.0)];
    let fast = [row("blocking", 1, 0.5), row("blocking", 2, 0.25)];
    let discarded =
        Row { discarded: "steal above 2 %".into(), p99_us: Some(1.5), ..row("10_threads", 1, 1.0) };
    let rows = [&slow[..], &fast[..], &[discarded]].concat();
    fs::write(dir.path().join("out.csv"), csv(&rows).unwrap()).unwrap();
    let query = "SELECT method, avg(seconds), format_bytes(avg(bytes_per_s)::BIGINT) || '/s' FROM 'out.csv' GROUP BY 1 ORDER BY 2";
    let answer = output(Command::new(bin.join("duckdb")).args(["-csv", "-c", query]).current_dir(dir.path()));
    let text = String::from_utf8(answer.stdout).unwrap().replace('\r', "");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    // Means of 2 and 4, of 1, and of 1/2 and 1/6 times 10^9 bytes a second, in units of 1024.
    let expected =
        ["blocking,0.375,2.7 GiB/s", "10_threads,1.0,953.6 MiB/s", "\"say \"\"a\"\", b\",4.0,317.8 MiB/s"];
    assert_eq!(lines, expected);
}

/// DuckDB detects the column types even if a column is empty in all of the first lines.
#[test]
fn duckdb_finds_the_types_of_the_columns() {
    let Some(bin) = python_bin() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("out.csv"), csv(&noisy(&[("a", 1.0)], 50, 0.1, 1)).unwrap()).unwrap();
    let query = "SELECT typeof(threads), typeof(direct), typeof(seconds), typeof(verified), count(*) FROM 'out.csv' GROUP BY ALL";
    let answer = output(Command::new(bin.join("duckdb")).args(["-csv", "-c", query]).current_dir(dir.path()));
    let text = String::from_utf8(answer.stdout).unwrap();
    assert_eq!(text.lines().nth(1).unwrap().trim_end(), "BIGINT,BOOLEAN,DOUBLE,BOOLEAN,50");
}
