//! `fathom scan --estimate`: prints an estimate, and warnings about its gaps.

use fathom_scans::estimate::{Basis, EstimateRange, SurveyOutcome, TreeEstimate, estimate};
use fathom_text::human::BlockSize;
use fathom_text::quote::Charset;

use super::args::EstimateArgs;
use super::{NAME, ScanWatch, print_error};
use crate::shared::cmdline::exit::{DONE, FAILED, INTERRUPTED, MISUSED};
use crate::shared::interrupt::stop_on_interrupt;
use crate::shared::json::JsonObject;
use crate::shared::output::Output;
use crate::shared::progress::ProgressMeter;
use crate::shared::screen::Screen;
use crate::shared::start::AutoStart;
use crate::shared::value::ShowWhen;

/// Makes and prints the estimate. Returns the exit status.
pub(super) fn run(args: EstimateArgs, charset: Charset) -> u8 {
    let EstimateArgs { mut survey, json, stats, progress } = args;
    survey.stop = stop_on_interrupt();
    let start = AutoStart::read(NAME.as_bytes(), charset, survey.model, survey.threads.is_some());
    survey.hints = start.hints.clone();
    let meter = ProgressMeter::new(progress);
    let ended = estimate(&survey, &mut ScanWatch { meter: &meter, charset });
    meter.clear();
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(error) => {
            print_error(error.to_string().as_bytes());
            return MISUSED;
        }
    };
    if stats {
        start.notes(&outcome.devices).for_each(|note| print_error(note.as_bytes()));
        let (reads, ms) = (outcome.reads, outcome.elapsed.as_secs_f64() * 1e3);
        print_error(format!("{reads} directories read, {ms:.1} ms").as_bytes());
    }
    let interrupted = outcome.stopped && survey.stop.load(std::sync::atomic::Ordering::Relaxed);
    let mut out = Output::new();
    if json {
        write_json(&outcome, &mut out);
    } else {
        write_text(&outcome, &Screen::new(ShowWhen::Never, charset), &mut out);
    }
    let written = out.finish(NAME);
    match status(&outcome, interrupted) {
        DONE => written,
        status => status,
    }
}

/// Reports the gaps in the estimate. Returns the exit status.
fn status(outcome: &SurveyOutcome, interrupted: bool) -> u8 {
    if outcome.errors > 0 {
        let count = outcome.errors;
        let words = if count == 1 { "entry found is" } else { "entries found are" };
        print_error(format!("{count} {words} missing in the estimate").as_bytes());
    }
    if outcome.stopped {
        let why = if interrupted { "interrupted" } else { "stopped, because a directory takes too long" };
        let what = if outcome.total.entries.basis == Basis::AtLeast {
            "what was counted"
        } else {
            "the last estimate"
        };
        print_error(format!("{why}: this is {what} before that").as_bytes());
    }
    match (interrupted, outcome.stopped || outcome.errors > 0) {
        (true, _) => INTERRUPTED,
        (false, true) => FAILED,
        (false, false) => DONE,
    }
}

/// Returns the rows of the report: label, JSON name, range, and whether the unit is bytes.
fn rows(figures: &TreeEstimate) -> [(&'static str, &'static str, EstimateRange, bool); 5] {
    [
        ("entries", "entries", figures.entries, false),
        ("files", "files", figures.files, false),
        ("directories", "dirs", figures.dirs, false),
        ("apparent size", "apparent", figures.apparent, true),
        ("disk usage", "bytes", figures.allocated, true),
    ]
}

fn write_text(outcome: &SurveyOutcome, screen: &Screen, out: &mut Output) {
    let (reads, seconds) = (outcome.reads, outcome.elapsed.as_secs_f64());
    let what = match outcome.total.entries.basis {
        _ if outcome.exact && outcome.errors > 0 => {
            format!("exact except for what cannot be read; {reads} directories in {seconds:.1} s")
        }
        _ if outcome.exact => format!("exact: all of {reads} directories were read in {seconds:.1} s"),
        Basis::AtLeast => format!("counted in {reads} directories read in {seconds:.1} s; there is more"),
        _ => format!(
            "estimated from {reads} directories read in {seconds:.1} s; {}",
            confidence(&outcome.total)
        ),
    };
    out.buffer().extend_from_slice(format!("{what}\n").as_bytes());
    for (words, _, range, is_bytes) in rows(&outcome.total) {
        out.buffer().extend_from_slice(format!("{words:14}{}\n", shown(range, is_bytes)).as_bytes());
    }
    if !outcome.largest.is_empty() {
        out.buffer().extend_from_slice(b"\nlargest directories, by disk usage\n");
    }
    for (path, figures) in &outcome.largest {
        let buffer = out.buffer();
        buffer.extend_from_slice(format!("{:26}  ", shown(figures.allocated, true)).as_bytes());
        buffer.extend_from_slice(&screen.name(path));
        buffer.push(b'\n');
        out.flush_if_full();
    }
}

/// Returns the statement about the confidence of the ranges of an estimate.
fn confidence(figures: &TreeEstimate) -> &'static str {
    let (mut any, mut all) = (false, true);
    for (_, _, EstimateRange { basis, .. }, _) in rows(figures) {
        any |= basis == Basis::Confident;
        all &= matches!(basis, Basis::Confident | Basis::Count);
    }
    match (any, all) {
        (_, true) => "95 % confidence",
        (true, false) => "ranges have 95 % confidence; \"about\" has none",
        (false, false) => "too little was read for ranges",
    }
}

/// Formats an estimate, with its range if that has a confidence, or else with the number that was
/// counted.
fn shown(range: EstimateRange, is_bytes: bool) -> String {
    let number = |number: f64| match is_bytes {
        true => human(number),
        false => whole(number).to_string(),
    };
    let EstimateRange { estimate, counted, low, high, basis } = range;
    let floor = |value: f64| if is_bytes { number(value) } else { number(value.floor()) };
    match basis {
        Basis::Count => number(estimate),
        Basis::Confident if low >= high => number(estimate),
        Basis::Confident => {
            let high = if is_bytes { number(high) } else { number(high.ceil()) };
            format!("{} ({} to {high})", number(estimate), floor(low))
        }
        Basis::Spread => format!("about {}, at least {}", number(estimate), floor(counted)),
        Basis::AtLeast => format!("at least {}", floor(counted)),
    }
}

/// Rounds to the nearest integer.
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn human(bytes: f64) -> String {
    let mut text = Vec::new();
    BlockSize::HUMAN.write(whole(bytes), &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn write_json(outcome: &SurveyOutcome, out: &mut Output) {
    for (path, figures) in &outcome.largest {
        let mut object = JsonObject::new(out.buffer());
        object.text("path", path);
        write_figures(figures, &mut object);
        object.end();
        out.flush_if_full();
    }
    let mut object = JsonObject::new(out.buffer());
    object.nested("total", |total| write_figures(&outcome.total, total));
    object.flag("exact", outcome.exact);
    object.flag("complete", !outcome.stopped && outcome.errors == 0);
    object.number("directories_read", outcome.reads);
    object.number("errors", outcome.errors);
    object.number("elapsed_ms", u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX));
    object.end();
}

fn write_figures(figures: &TreeEstimate, object: &mut JsonObject<'_>) {
    for (_, name, range, _) in rows(figures) {
        object.nested(name, |object| write_range(&range, object));
    }
}

/// Writes a range. `low` and `high` hold with the `confidence`; without a confidence, `low` is the
/// number that was counted.
fn write_range(range: &EstimateRange, object: &mut JsonObject<'_>) {
    let EstimateRange { estimate, counted, low, high, basis } = *range;
    match basis {
        Basis::AtLeast => object.null("estimate"),
        _ => object.number("estimate", whole(estimate)),
    }
    let (low, high) = match basis {
        Basis::Count => (whole(estimate), Some(whole(estimate))),
        Basis::Confident => (low.floor() as u64, Some(high.ceil() as u64)),
        Basis::Spread | Basis::AtLeast => (counted.floor() as u64, None),
    };
    object.number("low", low);
    match high {
        Some(high) => object.number("high", high),
        None => object.null("high"),
    }
    match basis {
        Basis::Count => object.per_mille("confidence", 1000),
        Basis::Confident => object.per_mille("confidence", 950),
        Basis::Spread | Basis::AtLeast => object.null("confidence"),
    }
    if basis == Basis::Spread {
        object.number("spread_low", range.low.floor() as u64);
        object.number("spread_high", range.high.ceil() as u64);
    }
}
