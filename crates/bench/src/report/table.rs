//! A run as a table for a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::bars::{BarRow, bars};
use super::{
    Align, BarStyle, CellSentence, aligned, baseline_of, escape_line, interval, markdown, markdown_text,
    sentences, significant,
};
use crate::summary::MARGIN;
use crate::{ArmSummary, CommandUse, Noise, RequirementVerdict, Run, Workload};

/// Formats `run`: the arms and the noise of each cell, then requirements, discarded samples,
/// unavailable arms and notes.
#[must_use]
pub fn table(run: &Run) -> String {
    table_in(run, None)
}

/// Formats `run` as [`table`] does, with the ratios of each cell as bars.
#[must_use]
pub fn table_with_bars(run: &Run, style: BarStyle) -> String {
    table_in(run, Some(style))
}

fn table_in(run: &Run, style: Option<BarStyle>) -> String {
    let sentences = sentences(run);
    let sentence = |cell: &str| {
        let found = sentences.iter().find(|found| found.cell == cell);
        found.map_or("", |found| found.sentence.as_str())
    };
    let cells = run.arms.chunk_by(|one, next| one.cell == next.cell);
    let parts = cells.map(|arms| cell_part(run, arms, sentence(&arms[0].cell), style));
    parts
        .chain([requirements(run), remarks(run)])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Formats `run` as a table of each cell in Markdown, with its sentence, then what [`table`] ends
/// with.
#[must_use]
pub fn markdown_table(run: &Run) -> String {
    let mut text = String::new();
    for CellSentence { cell, sentence, .. } in sentences(run) {
        let arms: Vec<&ArmSummary> = run.arms.iter().filter(|arm| arm.cell == cell).collect();
        let (align, rows) = align_and_rows(&arms);
        let (cell, sentence) = (markdown_text(&cell), markdown_text(&sentence));
        let _ = writeln!(text, "### {cell}\n\n{sentence}\n\n{}", markdown(&align, &rows));
    }
    if !run.verdicts.is_empty() {
        let _ = writeln!(text, "### Requirements\n\n{}", markdown(&[Align::Left; 4], &verdict_rows(run)));
    }
    let remarks = remarks(run);
    text + &remarks
        .lines()
        .map(|line| format!("- {}\n", markdown_text(line.trim_start())))
        .collect::<String>()
}

fn cell_part(run: &Run, arms: &[ArmSummary], sentence: &str, style: Option<BarStyle>) -> String {
    let cell = &arms[0].cell;
    let (align, rows) = align_and_rows(&arms.iter().collect::<Vec<_>>());
    let noise = run.noise.iter().find(|noise| noise.cell == *cell);
    let (cell, rows) = (escape_line(cell), aligned(&align, &rows));
    let legend = legend(arms, noise);
    let gap = if legend.is_empty() { "" } else { "\n" };
    let bars = style.map_or_else(String::new, |style| bars(&bar_rows(arms), margin(noise), style));
    let after_bars = if bars.is_empty() { "" } else { "\n" };
    format!("{cell}\n{sentence}\n\n{bars}{after_bars}{rows}{gap}{legend}")
}

/// Returns the alignment of the columns of a cell with `arms`, and its lines, of which the first is
/// the header.
fn align_and_rows(arms: &[&ArmSummary]) -> (Vec<Align>, Vec<Vec<String>>) {
    let align = |columns: usize, left: usize| {
        (0..columns).map(|at| if at < left { Align::Left } else { Align::Right }).collect()
    };
    if let Some(commands) =
        arms.iter().map(|arm| Some((*arm, arm.command.as_ref()?))).collect::<Option<Vec<_>>>()
    {
        let rows = commands.into_iter().map(|(arm, used)| command_row(arm, used));
        let head = COMMAND_COLUMNS.map(str::to_owned).to_vec();
        return (align(head.len(), 2), [head].into_iter().chain(rows).collect());
    }
    let cell = &arms[0].cell;
    let languages: BTreeSet<&str> = arms.iter().map(|arm| arm.lang.as_str()).collect();
    // The throughput of a server is measured in requests.
    let asks = cell.split(' ').next() == Some(Workload::Serve.name());
    let shape = TableColumns {
        languages: languages.len() > 1,
        latencies: arms.iter().any(|arm| arm.mean_us.is_some()),
        bytes: !asks && arms.iter().any(|arm| arm.cpu_s_per_gb.is_some()),
    };
    let rows: Vec<Vec<String>> =
        std::iter::once(shape.head()).chain(arms.iter().map(|arm| shape.row(arm))).collect();
    (align(rows[0].len(), 3), rows)
}

const COMMAND_COLUMNS: [&str; 14] = [
    "",
    "command",
    "runs",
    "seconds",
    "ratio",
    "user s",
    "system s",
    "memory MB",
    "faults",
    "major faults",
    "switches",
    "migrations",
    "read MB",
    "written MB",
];

fn command_row(arm: &ArmSummary, used: &CommandUse) -> Vec<String> {
    let counted = |value: Option<f64>| value.filter(|_| arm.runs > 0);
    let number = |value: Option<f64>| counted(value).map_or("-".to_owned(), |value| significant(value, 3));
    let megabytes = |bytes: Option<f64>| number(bytes.map(|bytes| bytes / 1e6));
    let whole = |value: Option<f64>| counted(value).map_or("-".to_owned(), |value| format!("{value:.0}"));
    vec![
        if arm.among_best { "*" } else { " " }.to_owned(),
        escape_line(&arm.method),
        arm.runs.to_string(),
        counted(Some(arm.seconds.median)).map_or("-".to_owned(), |seconds| significant(seconds, 4)),
        arm.ratio.as_ref().map_or("-".to_owned(), interval),
        number(Some(used.cpu_user_s)),
        number(Some(used.cpu_sys_s)),
        megabytes(arm.memory_bytes),
        whole(used.faults),
        whole(used.faults_major),
        whole(used.switches),
        whole(used.migrations),
        megabytes(used.read_bytes),
        megabytes(used.written_bytes),
    ]
}

/// The set of columns of a cell.
struct TableColumns {
    /// Whether the cell has arms in several languages.
    languages: bool,
    /// Whether the arms are compared by the latency of requests at a given rate.
    latencies: bool,
    /// Whether the throughput is measured in bytes, not in operations.
    bytes: bool,
}

impl TableColumns {
    fn head(&self) -> Vec<String> {
        let (rate, cpu) = if self.bytes { ("GB/s", "CPU-s/GB") } else { ("ops/s", "CPU-s/Mop") };
        let time = if self.latencies { "mean us" } else { "seconds" };
        let columns = [
            "",
            "lang",
            "arm",
            "runs",
            time,
            "ratio",
            "to own",
            rate,
            cpu,
            "p99 us",
            "p99.9 us",
            "read p99",
            "write p50",
            "write p99",
            "fdatasync p50",
            "fdatasync p99",
            "switches/op",
            "memory MB",
            "punted %",
            "device reads/op",
        ];
        columns.map(String::from).to_vec()
    }

    /// Returns the median of the compared times, in the unit of its column.
    fn time(&self, arm: &ArmSummary) -> f64 {
        if self.latencies { arm.seconds.median * 1e6 } else { arm.seconds.median }
    }

    fn row(&self, arm: &ArmSummary) -> Vec<String> {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| significant(value, 3));
        let counted = |value: f64| (arm.runs > 0).then_some(value);
        let (rate, cpu) = if self.bytes {
            (counted(arm.bytes_per_s / 1e9), arm.cpu_s_per_gb)
        } else {
            (counted(arm.ops_per_s), counted(arm.cpu_s_per_million_ops))
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            if arm.among_best { "*" } else { " " }.to_owned(),
            or_dash(self.languages.then(|| escape_line(&arm.lang))),
            escape_line(&arm.method),
            arm.runs.to_string(),
            or_dash(counted(self.time(arm)).map(|time| significant(time, 4))),
            or_dash(arm.ratio.as_ref().map(interval)),
            or_dash(arm.ratio_to_own.filter(|_| self.languages).as_ref().map(interval)),
            number(rate),
            number(cpu),
            number(arm.p99_us),
            number(arm.p999_us),
            number(arm.read_p99_us),
            number(arm.write_p50_us),
            number(arm.write_p99_us),
            number(arm.fdatasync_p50_us),
            number(arm.fdatasync_p99_us),
            number(arm.switches_per_op),
            number(arm.memory_bytes.map(|bytes| bytes / 1e6)),
            number(arm.punted.map(|share| share * 100.0)),
            number(arm.device_reads_per_op),
        ]
    }
}

/// Returns the bars of the arms of a cell.
fn bar_rows(arms: &[ArmSummary]) -> Vec<BarRow> {
    let languages = arms.iter().any(|arm| arm.lang != arms[0].lang);
    let row = |arm: &ArmSummary| {
        let method = escape_line(&arm.method);
        let name = if languages { format!("{method} {}", escape_line(&arm.lang)) } else { method };
        let ratio = arm.ratio.filter(|ratio| !ratio.low.is_nan());
        BarRow { name, ratio: ratio.map(|ratio| [ratio.low, ratio.median, ratio.high]) }
    };
    arms.iter().filter(|arm| arm.runs > 0).map(row).collect()
}

/// Returns the share of time up to which a difference is not material, or noise.
fn margin(noise: Option<&Noise>) -> f64 {
    noise.map_or(MARGIN, |noise| noise.floor.max(MARGIN))
}

fn legend(arms: &[ArmSummary], noise: Option<&Noise>) -> String {
    let mut text = String::new();
    if arms.iter().any(|arm| arm.among_best) {
        let noise = percent(margin(noise));
        let _ = writeln!(text, "* may be as fast as the fastest (noise: {noise} %)");
    }
    let counted: Vec<&ArmSummary> = arms.iter().filter(|arm| arm.runs > 0).collect();
    if let Some(base) = baseline_of(&counted) {
        let is_known = arms.iter().any(|arm| arm.ratio.is_some_and(|ratio| !ratio.low.is_nan()));
        let bounds = if is_known { " [95 % interval]" } else { "" };
        let time = if base.mean_us.is_some() { "mean latency" } else { "time" };
        let name = format!("{} {}", escape_line(&base.lang), escape_line(&base.method));
        let _ = writeln!(text, "ratio: {time} divided by that of {name}, median over blocks{bounds}");
    }
    if counted.iter().any(|arm| arm.mean_us.is_some()) {
        text += "latencies count from the time at which a request was due\n";
    }
    if let Some(noise) = noise {
        let (floor, ratio) = (percent(noise.floor), interval(&noise.ratio));
        let _ = writeln!(
            text,
            "noise floor: {floor} %: {} divided by itself is {ratio}",
            escape_line(&noise.method)
        );
    }
    text
}

/// Formats what was required, and whether it was met; empty if nothing was.
fn requirements(run: &Run) -> String {
    if run.verdicts.is_empty() {
        return String::new();
    }
    format!("requirements\n\n{}", aligned(&[Align::Left; 4], &verdict_rows(run)))
}

fn verdict_rows(run: &Run) -> Vec<Vec<String>> {
    let head = ["outcome", "case", "required", "measured"].map(str::to_owned).to_vec();
    let row = |verdict: &RequirementVerdict| {
        let RequirementVerdict { cell, requirement, measured, outcome } = verdict;
        let texts = [outcome.word(), cell, requirement, measured].map(escape_line);
        Vec::from(texts)
    };
    [head].into_iter().chain(run.verdicts.iter().map(row)).collect()
}

fn percent(share: f64) -> String {
    significant(share * 100.0, 2)
}

fn remarks(run: &Run) -> String {
    let mut text = String::new();
    let mut discards: BTreeMap<(&str, &str, &str), u32> = BTreeMap::new();
    for row in run.rows.iter().filter(|row| !row.discarded.is_empty()) {
        *discards.entry((&row.discarded, &row.lang, &row.method)).or_default() += 1;
    }
    let _ = writeln!(text, "discarded: {} of {} samples", discards.values().sum::<u32>(), run.rows.len());
    for ((reason, lang, method), count) in discards {
        let _ = writeln!(
            text,
            "  {count} of {} {}: {}",
            escape_line(lang),
            escape_line(method),
            escape_line(reason)
        );
    }
    for arm in &run.unavailable {
        let _ = writeln!(
            text,
            "unavailable: {} {}: {}",
            escape_line(&arm.lang),
            escape_line(&arm.method),
            escape_line(&arm.reason)
        );
    }
    run.notes.iter().for_each(|note| text += &format!("note: {}\n", escape_line(note)));
    text
}
