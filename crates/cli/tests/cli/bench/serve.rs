//! `fathom bench serve`: every model of `fathom serve`, and the check of its responses.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_bench::pattern::{PAGE_BYTES, Pattern};
use fathom_io::{Model, Use};
use serde_json::Value;

use super::{methods, names, refuse_rings, run, temp};

#[test]
fn a_server_is_measured_under_every_model() {
    let dir = temp();
    let words = "serve --size 1M --blocks 2 --cache warm --seed 7 --json=o.json";
    let (status, out, err) = run(dir.path(), words);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("serve 1 MiB of 4 KiB each, warm\n") && out.contains("ops/s"), "{out}");
    assert_eq!(names(dir.path()), ["o.json"], "files are left");
    let run: Value = serde_json::from_slice(&fs::read(dir.path().join("o.json")).unwrap()).unwrap();
    let ran = run["arms"].as_array().unwrap().iter().map(|arm| arm["model"].as_str().unwrap());
    let unavailable = run["unavailable"].as_array().unwrap();
    let has_rings = unavailable.is_empty();
    assert!(has_rings || unavailable[0]["method"] == "uring=64", "{unavailable:?}");
    let mut models: Vec<&str> =
        Model::with(Use::Serve).map(Model::name).filter(|name| has_rings || *name != "uring").collect();
    let mut ran: Vec<&str> = ran.collect();
    models.sort_unstable();
    ran.sort_unstable();
    assert_eq!(ran, models);
    for row in run["rows"].as_array().unwrap() {
        assert!(row["cpu_s"].as_f64().unwrap() > 0.0 && row["memory_bytes"].as_u64().unwrap() > 0, "{row}");
        assert!((1..=64).contains(&row["in_flight_max"].as_u64().unwrap()) && row["ops"] == 256, "{row}");
    }
}

#[test]
fn requests_at_a_rate_are_compared_by_their_latency() {
    let dir = temp();
    let words =
        "serve --size 400K --blocks 2 --cache warm --models sync,sendfile --rate 2000 --seed 7 --json=o.json";
    let (status, out, err) = run(dir.path(), words);
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("serve 400 KiB of 4 KiB each at 2000 requests/s, warm\n"), "{out}");
    for words in [" mean us ", "ratio: mean latency divided by", "from the time at which a request was due"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let run: Value = serde_json::from_slice(&fs::read(dir.path().join("o.json")).unwrap()).unwrap();
    for row in run["rows"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        // The last of 100 requests is due 99 intervals after the start.
        assert!(number("ops") == 100.0 && number("seconds") >= 99.0 / 2000.0, "{row}");
        assert!(number("mean_us") > 0.0 && number("mean_us") <= number("max_us"), "{row}");
    }
    for arm in run["arms"].as_array().unwrap() {
        let (compared, mean) = (arm["seconds"]["median"].as_f64().unwrap(), arm["mean_us"].as_f64().unwrap());
        assert!((compared * 1e6 - mean).abs() < 1e-3 * mean, "{arm}");
    }
}

#[test]
fn without_io_uring_the_other_models_are_measured() {
    let (status, out, err) = std::thread::spawn(|| {
        refuse_rings();
        run(temp().path(), "serve --size 64K --blocks 2 --seed 7 --cache warm --json")
    })
    .join()
    .unwrap();
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&out).unwrap();
    let left_out = json["unavailable"].as_array().unwrap();
    assert_eq!((left_out.len(), &left_out[0]["method"]), (1, &Value::from("uring=64")), "{left_out:?}");
    let reason = left_out[0]["reason"].as_str().unwrap();
    assert!(reason.contains("Operation not permitted") && reason.contains("seccomp"), "{reason}");
    assert_eq!(methods(&json).len(), Model::with(Use::Serve).count() - 1);
}

/// Writes files of `block` bytes, `size` bytes together, as a benchmark does.
fn make(dir: &Path, size: usize, block: usize) {
    let pattern = Pattern::new(3, 5);
    for number in 0..size.div_ceil(block) {
        let mut bytes = vec![0; block.min(size - number * block)];
        pattern.fill((number * block.next_multiple_of(PAGE_BYTES)) as u64, &mut bytes);
        let path = file(dir, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn file(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{:04}/file-{number}", number / 100))
}

fn sample(dir: &Path, model: &str, size: usize, block: usize) -> (Option<i32>, String, String) {
    let options = format!("--path . --size {size} --block {block} --depth 4 --seed 3 --generation 5");
    run(dir, &format!("sample --op serve --method {model} {options}"))
}

/// Returns the models that can run here.
fn models() -> impl Iterator<Item = &'static str> {
    let has_rings = fathom_io::uring::nops(1, 1, false).is_ok();
    Model::with(Use::Serve).map(Model::name).filter(move |name| has_rings || *name != "uring")
}

#[test]
fn every_model_serves_files_of_any_size() {
    for (size, block, ops, pages) in
        [(250 << 10, 4096, 63, 63), (20_000, 100, 200, 200), (1_000_000, 300_000, 4, 247)]
    {
        let dir = temp();
        make(dir.path(), size, block);
        for model in models() {
            let (status, out, err) = sample(dir.path(), model, size, block);
            assert_eq!((status, err.as_str()), (Some(0), ""), "{model} {block}");
            let expected = format!("\tops={ops}\tbytes={size}\tpages_ok={pages}\t");
            assert!(out.contains(&expected) && out.contains("\tmemory_bytes="), "{model}: {out}");
        }
    }
}

#[test]
fn a_file_that_is_not_what_was_written_is_caught() {
    let dir = temp();
    make(dir.path(), 1 << 20, 4096);
    let path = file(dir.path(), 123);
    let right = fs::read(&path).unwrap();
    let mut damaged = right.clone();
    damaged[3] ^= 1;
    for model in models() {
        let refused = |said: &str| {
            let (status, out, err) = sample(dir.path(), model, 1 << 20, 4096);
            assert_eq!((status, out.as_str()), (Some(1), ""), "{model}");
            assert_eq!(err, format!("fathom bench sample: cannot {said}\n"), "{model}");
        };
        fs::write(&path, &damaged).unwrap();
        refused(&format!("verify './0001/file-123': page at {} is not what was written", 123 * PAGE_BYTES));
        for len in [0, 4095] {
            fs::write(&path, &right[..len]).unwrap();
            refused(&format!("receive './0001/file-123': it has {len} bytes instead of 4096"));
        }
        fs::remove_file(&path).unwrap();
        refused("receive './0001/file-123': the response is 'HTTP/1.1 404 Not Found'");
    }
}
