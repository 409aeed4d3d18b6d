//! `fathom bench advise` on small workloads.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{bench, interruptible, names, refuse_rings, run, temp};

/// Returns the line that an advice run prints before it drops the caches of the whole machine,
/// which only root can.
fn notice() -> &'static str {
    let line =
        "fathom bench: dropping the caches of the whole machine before each cold sample of many files\n";
    if rustix::process::geteuid().is_root() { line } else { "" }
}

fn cells<'a>(advice: &'a Value, list: &str) -> Vec<&'a str> {
    advice[list].as_array().unwrap().iter().map(|one| one["cell"].as_str().unwrap()).collect()
}

#[test]
fn advice_has_a_sentence_and_a_verdict_for_every_workload() {
    let dir = temp();
    // Names that the workloads use for their own files.
    for name in ["probe", "data"] {
        fs::write(dir.path().join(name), "mine").unwrap();
    }
    let (status, out, err) =
        run(dir.path(), "advise --quick --time 1h --seed 7 --json=a.json --csv=a.csv --html=a.html");
    assert_eq!((status, err.as_str()), (Some(0), notice()));
    let advice: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("a.json")).unwrap()).unwrap();
    let sentence = advice["sentence"].as_str().unwrap();
    let commands: Vec<&str> =
        advice["commands"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(commands.iter().all(|line| line.contains(": ")), "{commands:?}");
    // On a machine in use that comes first, and a command may lack a part of its answers.
    let is_in_use = advice["load"].as_f64().unwrap() > advice["constants"]["cpus"].as_f64().unwrap();
    let (first, rest) = out.split_once('\n').unwrap();
    assert_eq!(first.starts_with("The machine is in use (load "), is_in_use, "{out}");
    let shown = if is_in_use { rest } else { &out };
    let all = commands.iter().map(|line| format!("{line}\n")).collect::<String>();
    let page = fs::read_to_string(dir.path().join("a.html")).unwrap();
    assert!(page.contains("\"title\":\"Advice\""), "the page is without the advice");
    assert!(shown.starts_with(&all) && !commands.is_empty() || shown.starts_with(sentence), "{out}");
    assert!(sentence.starts_with("Use ") || sentence.starts_with("Tie: "), "{sentence}");
    let (answered, left_out) = (cells(&advice, "verdicts"), cells(&advice, "left_out"));
    // O_DIRECT is not a question of its own: its cells show the gain of queue depth.
    let questions = left_out.iter().filter(|cell| !cell.contains("O_DIRECT")).count();
    assert_eq!(answered.len() + questions, QUESTIONS, "{answered:?} {left_out:?}");
    for verdict in advice["verdicts"].as_array().unwrap() {
        let method = verdict["method"].as_str().unwrap();
        let candidates = verdict["candidates"].as_array().unwrap();
        let chosen = candidates.iter().find(|one| one["method"] == method).unwrap();
        assert!(chosen["measured_us"].as_f64().unwrap() > 0.0, "{verdict}");
        let is_baseline = verdict["ratio"].is_null();
        let is_among_best = verdict["among_best"].as_array().unwrap().iter().any(|one| one == method);
        assert!(is_baseline || is_among_best, "{verdict}");
    }
    let rows = fs::read_to_string(dir.path().join("a.csv")).unwrap().lines().count() - 1;
    assert_eq!(rows, advice["run"]["rows"].as_array().unwrap().len());
    assert_eq!(names(dir.path()), ["a.csv", "a.html", "a.json", "data", "probe"], "files are left");
    for name in ["probe", "data"] {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "mine");
    }
}

#[test]
fn io_auto_starts_from_saved_advice() {
    let dir = temp();
    fs::write(dir.path().join("profile"), "damaged").unwrap();
    let mut command = bench(dir.path(), "advise --quick --time 1h --save --json=/dev/null");
    let out = command
        .env("HOME", dir.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("FATHOM_PROFILE")
        .output()
        .unwrap();
    let stderr = String::from_utf8(out.stderr).unwrap();
    let path = dir.path().join(".config/fathom/io-profile.json");
    assert_eq!(
        (out.status.code(), stderr),
        (Some(0), format!("{}fathom bench: saved the advice in '{}'\n", notice(), path.display()))
    );
    let mut profile: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(profile["entries"][0]["verdict"].as_str().unwrap().len() > 10);
    // The value is absent where metadata is cached or no depth pays off. Set it, to test that the
    // walk uses it.
    profile["entries"][0]["walk_in_flight"] = 77.into();
    fs::write(&path, profile.to_string()).unwrap();
    let mut du = Command::new(env!("CARGO_BIN_EXE_fathom"));
    du.args(["du", "-s", "--verbose", "."]).current_dir(dir.path());
    let out = du
        .env("HOME", dir.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("FATHOM_PROFILE")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(stderr.contains("start: 77 workers when calls wait, from the profile of "), "{stderr}");

    let (status, _, err) = run(dir.path(), "advise --quick --save=profile --json=/dev/null");
    assert_eq!(status, Some(1), "before anything is measured: {err}");
    assert!(err.starts_with("fathom bench: cannot read 'profile': "), "{err}");
    assert_eq!(fs::read(dir.path().join("profile")).unwrap(), b"damaged", "it is left as it is");
}

#[test]
fn advise_completes_without_io_uring_and_reports_the_cause() {
    let (status, out, err) = std::thread::spawn(|| {
        refuse_rings();
        run(temp().path(), "advise --quick --time 1h --json")
    })
    .join()
    .unwrap();
    assert_eq!((status, err.as_str()), (Some(0), notice()));
    let advice: Value = serde_json::from_str(&out).unwrap();
    assert!(advice["constants"]["nops"].is_null());
    let left_out = advice["run"]["unavailable"].as_array().unwrap();
    assert!(left_out.iter().any(|arm| arm["method"] == "uring=32"), "{left_out:?}");
    for arm in left_out {
        assert!(arm["reason"].as_str().unwrap().contains("seccomp"), "{arm}");
    }
    let advised = advice["verdicts"].as_array().unwrap();
    assert!(advised.iter().all(|verdict| verdict["model"] != "uring"), "{advised:?}");
}

#[test]
fn advice_is_saved_before_it_is_validated() {
    let dir = temp();
    let profile = dir.path().join("profile");
    let mut command = interruptible(&bench(
        dir.path(),
        "advise --quick --time 1h --validate --blocks 500 --save=profile --json=/dev/null",
    ));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !profile.exists() && start.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let saved: Value = serde_json::from_str(&fs::read_to_string(profile).unwrap()).unwrap();
    assert!(saved["entries"][0]["verdict"].as_str().unwrap().len() > 10);
    assert_eq!(names(dir.path()), ["profile"], "files are left");
}

#[test]
fn an_interrupted_advice_leaves_no_files() {
    let dir = temp();
    let mut command = interruptible(&bench(dir.path(), "advise --quick --time 1h"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while names(dir.path()).is_empty() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(dir.path()), [] as [&str; 0], "files are left");
}

#[test]
fn invalid_arguments_of_advise_are_refused() {
    let dir = temp();
    for (words, expected, message) in [
        ("advise no/such/place", 1, "cannot access 'no/such/place': No such file or directory"),
        ("advise --time 0", 2, "invalid time '0'"),
        ("advise --time soon", 2, "invalid time 'soon'"),
        ("write --time never", 2, "invalid time 'never'"),
        ("advise . more", 2, "extra operand 'more'"),
        ("advise --models uring", 2, "unrecognized option '--models'"),
    ] {
        let (status, out, err) = run(dir.path(), words);
        assert_eq!((status, out.as_str()), (Some(expected), ""), "{words}: {err}");
        assert!(err.contains(message), "{words}: {err}");
    }
    let (status, _, err) = run(dir.path(), "advise --quick /proc/self");
    assert!(status == Some(1), "{err}");
    assert!(err.starts_with("fathom bench: "), "{err}");
}

/// The number of questions: workloads times cache states.
const QUESTIONS: usize = 15;
