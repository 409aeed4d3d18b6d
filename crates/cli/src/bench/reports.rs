//! The reports of a measurement: the options that say where they go, and the files.

use std::path::{Path, PathBuf};

use fathom_bench::report::BarStyle;
use fathom_bench::{Error, Run, report};
use fathom_questions::export::replace_public;
use fathom_text::quote::Charset;

use super::measuring::BenchEnd;
use super::values;
use crate::shared::cmdline::OptionValue;
use crate::shared::cmdline::exit::{FAILED, INTERRUPTED, PANICKED};
use crate::shared::flag::{Flag, ValueKind, long};
use crate::shared::locale;
use crate::shared::output::{self, print, print_error, reason, stdout_is_terminal};
use crate::shared::screen::Screen;
use crate::shared::value::ShowWhen;

/// The heading of these options.
pub(super) const SHOWN: &str = "Reports";
/// The value of `--csv` for the columns of io-playground.
const PLAIN: &[u8] = b"plain";
/// The message where there are no such columns: without it, a file of that name would be written.
const PLAIN_REFUSED: &[u8] = b"--csv=plain requires a workload; for a file of that name, use './plain'";

/// The destination of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportTarget {
    Output,
    File(PathBuf),
}

/// The options about reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetOption {
    Csv,
    Json,
    Html,
    Markdown,
}

pub(super) const fn csv<K: Copy>(key: K) -> Flag<K> {
    long(key, "csv", SHOWN, "write every sample as a line of CSV to FILE, or print it instead of the table")
        .optional("FILE", ValueKind::File)
}

pub(super) const fn json<K: Copy>(key: K) -> Flag<K> {
    long(key, "json", SHOWN, "write everything as JSON to FILE, or print it instead of the table")
        .optional("FILE", ValueKind::File)
}

pub(super) const fn html<K: Copy>(key: K) -> Flag<K> {
    long(key, "html", SHOWN, "write a page with plots to FILE").required("FILE", ValueKind::File)
}

pub(super) const fn markdown<K: Copy>(key: K) -> Flag<K> {
    long(key, "markdown", SHOWN, "print tables as Markdown")
}

/// The destinations of the reports of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportTargets {
    pub(crate) csv: Option<ReportTarget>,
    /// Whether the CSV has the three columns of io-playground.
    pub(crate) csv_is_plain: bool,
    pub(crate) json: Option<ReportTarget>,
    pub(crate) html: Option<PathBuf>,
    /// Whether tables are Markdown.
    pub(crate) markdown: bool,
}

impl ReportTargets {
    pub(super) fn apply(&mut self, key: TargetOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        match key {
            TargetOption::Csv if is_plain(option.bytes()) => return Err(PLAIN_REFUSED.to_vec()),
            TargetOption::Csv => self.csv = Some(target(option)?),
            TargetOption::Json => self.json = Some(target(option)?),
            TargetOption::Html => self.html = Some(values::path(option.bytes())?),
            TargetOption::Markdown => self.markdown = true,
        }
        Ok(())
    }

    /// Sets the destination of the CSV, which may be plain.
    pub(super) fn apply_csv(&mut self, option: &OptionValue) -> Result<(), Vec<u8>> {
        self.csv_is_plain = is_plain(option.bytes());
        self.csv = Some(match option.bytes().strip_prefix(b"plain:") {
            Some(file) => ReportTarget::File(values::path(file)?),
            None if self.csv_is_plain => ReportTarget::Output,
            None => target(option)?,
        });
        Ok(())
    }

    /// Refuses two reports on standard output.
    pub(super) fn check(&self) -> Result<(), Vec<u8>> {
        if self.csv == Some(ReportTarget::Output) && self.json == Some(ReportTarget::Output) {
            return Err(b"--csv and --json cannot both go to standard output".to_vec());
        }
        Ok(())
    }
}

/// Returns whether the value of `--csv` asks for the columns of io-playground.
fn is_plain(value: &[u8]) -> bool {
    matches!(value.strip_prefix(PLAIN), Some(b"" | [b':', ..]))
}

/// Returns the file that is the value of `option`, or standard output without a value.
pub(super) fn target(option: &OptionValue) -> Result<ReportTarget, Vec<u8>> {
    match &option.given {
        Some(file) => values::path(file).map(ReportTarget::File),
        None => Ok(ReportTarget::Output),
    }
}

/// Returns the table of a run, on a terminal with bars.
pub(super) fn table(run: &Run) -> String {
    let screen = Screen::new(ShowWhen::Never, locale::current());
    if !stdout_is_terminal() {
        return report::table(run);
    }
    let is_ascii = screen.charset != Charset::Utf8;
    report::table_with_bars(run, BarStyle { columns: screen.columns, is_ascii })
}

/// Writes the reports of `run`, which ended in the way `ended`. Returns the exit status.
pub(super) fn answer(targets: &ReportTargets, run: &Run, ended: BenchEnd) -> u8 {
    let counts = run.arms.iter().any(|arm| arm.runs > 0);
    // A report of nothing would take the place of an earlier one.
    let written = if counts || matches!(ended, BenchEnd::Complete) { write(targets, run) } else { 0 };
    match ended {
        BenchEnd::Interrupted => {
            print_error(super::NAME, b"interrupted: only what was measured until then is shown");
            INTERRUPTED
        }
        BenchEnd::Failed(message) => fail(&message),
        BenchEnd::Complete if !counts => {
            print_error(super::NAME, b"no result: no sample was valid");
            FAILED
        }
        BenchEnd::Complete => written,
    }
}

/// Writes all requested reports. Returns the exit status.
fn write(targets: &ReportTargets, run: &Run) -> u8 {
    let csv = |run: &Run| {
        if targets.csv_is_plain { Ok(report::plain_csv(&run.rows)) } else { report::csv(&run.rows) }
    };
    let mut status = 0;
    let mut add = |target: &Option<ReportTarget>, text: &dyn Fn(&Run) -> Result<String, Error>| {
        let Some(target) = target else { return };
        status = status
            .max(text(run).map_or_else(|error| fail(&error.to_string()), |text| write_report(target, &text)));
    };
    add(&targets.csv, &csv);
    add(&targets.json, &report::to_json);
    add(&targets.html.clone().map(ReportTarget::File), &|run| page(run, None));
    if targets.csv != Some(ReportTarget::Output) && targets.json != Some(ReportTarget::Output) {
        let text = if targets.markdown { report::markdown_table(run) } else { table(run) };
        status = status.max(print(super::NAME, &text));
    }
    status
}

/// Formats the page of `run`, behind what the JSON `lead` says.
pub(super) fn page(run: &Run, lead: Option<&str>) -> Result<String, Error> {
    report::to_json_line(run).map(|json| fathom_report::run_page(&json, lead))
}

/// Prints why there is no answer. Returns the exit status; a panic of a sample has the status of a
/// bug.
pub(super) fn fail(message: &str) -> u8 {
    print_error(super::NAME, message.as_bytes());
    if message.contains(output::BUG) { PANICKED } else { FAILED }
}

pub(super) fn write_report(target: &ReportTarget, text: &str) -> u8 {
    match target {
        ReportTarget::Output => print(super::NAME, text),
        ReportTarget::File(path) => match save(path, text) {
            Ok(()) => 0,
            Err(message) => fail(&message),
        },
    }
}

/// Writes a report, which everybody may read. A regular file is replaced once the report is on the
/// disk; a device or a pipe is written to.
fn save(path: &Path, text: &str) -> Result<(), String> {
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        let failed = |error| {
            let words = String::from_utf8_lossy(&reason(&error)).into_owned();
            format!("cannot write '{}': {words}", path.display())
        };
        return std::fs::write(path, text).map_err(failed);
    }
    replace_public(path, text).map_err(|error| error.to_string())
}
