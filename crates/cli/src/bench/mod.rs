//! `fathom bench`: from the command line to the exit status.

mod advise;
mod args;
mod run;
mod sample;
pub(crate) mod table;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_bench::{Error, Run, compare, report};

use self::args::{Asked, BenchArgs, CompareArgs, Target};
use self::run::{Ended, Places};
use crate::flag::Scope;
use crate::interrupt::{INTERRUPTED, stop_and_clean_up};
use crate::output::{print, reason, say, say_misuse};
use crate::{help, locale};

const NAME: &str = "fathom bench";
/// Exit status where something failed, or nothing counts.
const FAILED: u8 = 1;
/// Exit status where the command line makes no sense, or there is no room.
const MISUSED: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let mut words = words.peekable();
    if words.next_if(|word| word == "sample").is_some() {
        return sample::main(words);
    }
    let words: Vec<OsString> = words.collect();
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    match args::parse(words.iter().cloned(), locale::charset(&env)) {
        Ok(Asked::Bench(args)) => bench(&args, command_line(&words)),
        Ok(Asked::Compare(args)) => compare_runs(&args),
        Ok(Asked::Advise(args)) => advise::main(&args, command_line(&words)),
        Ok(Asked::Help) => print(NAME, &help::render(&table::BENCH, NAME, Scope::Full)),
        Ok(Asked::Version) => print(NAME, &help::version(NAME)),
        Err(message) => {
            say_misuse(NAME, &message);
            MISUSED
        }
    }
}

/// The command as it can be typed again in a shell.
fn command_line(words: &[OsString]) -> String {
    let plain = |word: &OsStr| {
        let text = word.to_string_lossy();
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
        if !text.is_empty() && text.chars().all(safe) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    };
    let words = words.iter().map(|word| plain(word));
    [NAME.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn places() -> Result<Places, String> {
    let own = std::env::current_exe();
    let own = own
        .map_err(|error| format!("cannot find this program: {}", String::from_utf8_lossy(&reason(&error))))?;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).unwrap_or_else(std::env::temp_dir);
    Ok(Places { own, search: set("PATH").unwrap_or_default(), cache: cache.join("fathom/playground") })
}

fn bench(args: &BenchArgs, command: String) -> u8 {
    let stop: Arc<AtomicBool> = stop_and_clean_up();
    let ran = places().and_then(|places| run::run(args, command, places, &stop));
    let (run, ended) = match ran {
        Ok(ran) => ran,
        Err(message) => {
            say(NAME, message.as_bytes());
            return MISUSED;
        }
    };
    let written = write(args, &run);
    let counts = run.arms.iter().any(|arm| arm.runs > 0);
    match ended {
        Ended::Interrupted => {
            say(NAME, b"interrupted: what was measured before is all there is");
            INTERRUPTED
        }
        Ended::Failed(message) => {
            say(NAME, message.as_bytes());
            FAILED
        }
        Ended::Complete if !counts => {
            say(NAME, b"no sample counts, so there is no answer");
            FAILED
        }
        Ended::Complete => written,
    }
}

/// Writes all reports that were asked for; the exit status.
fn write(args: &BenchArgs, run: &Run) -> u8 {
    let csv = |run: &Run| report::csv(&run.rows);
    let mut status = 0;
    let mut add = |target: &Option<Target>, text: &dyn Fn(&Run) -> Result<String, Error>| {
        let Some(target) = target else { return };
        status =
            status.max(text(run).map_or_else(|error| fail(&error.to_string()), |text| put(target, &text)));
    };
    add(&args.csv, &csv);
    add(&args.json, &report::to_json);
    add(&args.html.clone().map(Target::File), &|run| Ok(report::html::html(run)));
    if args.csv != Some(Target::Output) && args.json != Some(Target::Output) {
        status = status.max(print(NAME, &report::table(run)));
    }
    status
}

fn fail(message: &str) -> u8 {
    say(NAME, message.as_bytes());
    FAILED
}

fn put(target: &Target, text: &str) -> u8 {
    match target {
        Target::Output => print(NAME, text),
        Target::File(path) => match save(path, text) {
            Ok(()) => 0,
            Err(error) => {
                let words = String::from_utf8_lossy(&reason(&error)).into_owned();
                fail(&format!("cannot write '{}': {words}", path.display()))
            }
        },
    }
}

/// Under a temporary name first, so that no part of a report ever has its name. What is no regular file is written to.
fn save(path: &Path, text: &str) -> io::Result<()> {
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        return std::fs::write(path, text);
    }
    let mut aside = path.as_os_str().as_bytes().to_vec();
    aside.extend_from_slice(format!(".{}.tmp", std::process::id()).as_bytes());
    let aside = PathBuf::from(OsString::from_vec(aside));
    std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path)).inspect_err(|_| {
        // The error that is told is that of the report.
        let _ = std::fs::remove_file(&aside);
    })
}

fn compare_runs(args: &CompareArgs) -> u8 {
    let read = |path: &Path| report::read(path);
    match read(&args.old).and_then(|old| Ok((old, read(&args.new)?))) {
        Err(error) => fail(&error.to_string()),
        Ok((old, new)) => {
            let comparison = compare(&old, &new);
            match &args.json {
                None => print(NAME, &comparison.text()),
                Some(target) => match serde_json::to_string_pretty(&comparison) {
                    Ok(text) => put(target, &(text + "\n")),
                    Err(error) => fail(&format!("cannot write the comparison: {error}")),
                },
            }
        }
    }
}
