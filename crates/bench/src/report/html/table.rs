//! Tables of the numbers of the arms, of all sample columns, of discarded samples and of
//! unavailable arms.

use serde_json::Value;

use super::cells::CellSection;
use super::markup::{Escaped, name};
use super::number::{NONE, number};
use crate::{Run, UnavailableArm};

/// Columns of the table of arms: header, JSON key, and whether the value is an interval.
const COLUMNS: [(&str, &str, bool); 19] = [
    ("threads", "threads", false),
    ("depth", "depth", false),
    ("counted", "runs", false),
    ("discarded", "discarded", false),
    ("time", "seconds", true),
    ("÷ baseline", "ratio", true),
    ("÷ fastest", "ratio_to_best", true),
    ("÷ blocking, same language", "ratio_to_own", true),
    ("throughput", "bytes_per_s", false),
    ("operations", "ops_per_s", false),
    ("CPU s a GB", "cpu_s_per_gb", false),
    ("CPU s a million operations", "cpu_s_per_million_ops", false),
    ("p50", "p50_us", false),
    ("p95", "p95_us", false),
    ("p99", "p99_us", false),
    ("switches an operation", "switches_per_op", false),
    ("peak memory", "memory_bytes", false),
    ("punted", "punted", false),
    ("device reads an operation", "device_reads_per_op", false),
];

/// Formats all numbers of the cell's arms.
pub(super) fn arms(cell: &CellSection) -> String {
    let texts = ["arm", "language", "model"].map(|head| (head, true));
    let heads = texts.into_iter().chain(COLUMNS.map(|(head, ..)| (head, false)));
    let rows = cell.arms.iter().map(|arm| {
        let summary = arm.summary;
        let names = [&summary.lang, &summary.model]
            .map(|text| format!("<td class=\"text\">{}</td>", Escaped(text)))
            .concat();
        let best = if summary.among_best { " class=\"best\"" } else { "" };
        let number = |(_, key, is_interval)| if is_interval { arm.interval(key) } else { arm.number(key) };
        let numbers = COLUMNS.map(|column| format!("<td>{}</td>", number(column))).concat();
        format!(
            "<tr data-at=\"{}\"{best}><th scope=\"row\"><code>{}</code></th>{names}{numbers}</tr>\n",
            arm.at,
            name(&summary.method)
        )
    });
    scrolled(&format!("All numbers of {}", cell.name), heads, rows.collect())
}

/// Formats the samples at the indexes `rows` of the run, with all columns of the JSON.
pub(super) fn samples(title: &str, rows: &[usize], json: &Value) -> String {
    let object = |at: &usize| json.pointer(&format!("/rows/{at}")).and_then(Value::as_object);
    let heads = rows.first().and_then(object).into_iter().flatten();
    let heads = heads.map(|(key, value)| (key.as_str(), value.is_string()));
    let lines = rows.iter().filter_map(|at| Some((at, object(at)?)));
    let lines = lines.map(|(at, object)| {
        let whole = Value::Object(object.clone());
        let cells: String = object.iter().map(|(key, value)| sample_cell(&whole, key, value)).collect();
        format!("<tr data-at=\"/rows/{at}\">{cells}</tr>\n")
    });
    scrolled(&format!("{title}: every column"), heads, lines.collect())
}

fn sample_cell(row: &Value, key: &str, value: &Value) -> String {
    match value {
        Value::Number(_) => format!("<td>{}</td>", number(row, key)),
        Value::String(text) => format!("<td class=\"text\">{}</td>", Escaped(text)),
        Value::Bool(yes) => format!("<td>{}</td>", if *yes { "yes" } else { "no" }),
        _ => format!("<td>{NONE}</td>"),
    }
}

/// Formats the discarded samples with their reasons.
pub(super) fn discards(run: &Run) -> String {
    let discarded = run.rows.iter().filter(|row| !row.discarded.is_empty());
    let lines = discarded.map(|row| {
        let flight = format!("{} × {}", row.threads, row.depth);
        let (workload, arm) =
            (format!("{}, {}", row.workload, row.cache), format!("{} {}", row.lang, row.method));
        text_row(&[&workload, &arm, &flight, &row.block.to_string(), &row.discarded])
    });
    let heads = ["workload", "arm", "threads × depth", "block", "reason"].map(|head| (head, true));
    scrolled("They are drawn as crosses and not counted anywhere", heads, lines.collect())
}

/// Formats the unavailable arms with their reasons.
pub(super) fn unavailable(arms: &[UnavailableArm]) -> String {
    let lines = arms.iter().map(|arm| text_row(&[&arm.lang, &arm.method, &arm.reason]));
    let heads = ["language", "arm", "reason"].map(|head| (head, true));
    scrolled("Arms that could not run here", heads, lines.collect())
}

fn text_row(texts: &[&str]) -> String {
    let cells: String =
        texts.iter().map(|text| format!("<td class=\"text\">{}</td>", Escaped(text))).collect();
    format!("<tr>{cells}</tr>\n")
}

/// Formats a table in a region that scrolls, also with the keyboard; empty if it has no rows.
/// `title` is text, `body` is HTML. Each header comes with the information whether its column
/// contains text.
fn scrolled<'h>(title: &str, heads: impl IntoIterator<Item = (&'h str, bool)>, body: String) -> String {
    let head = |(head, is_text)| {
        let class = if is_text { " class=\"text\"" } else { "" };
        format!("<th scope=\"col\"{class}>{}</th>", Escaped(head))
    };
    if body.is_empty() {
        return body;
    }
    let heads: String = heads.into_iter().map(head).collect();
    let title = Escaped(title);
    format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\"><table>\n<caption>{title}</caption>\n\
         <thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}
