//! Tables: all numbers of the arms, all columns of the samples, what was discarded and what was not available.

use serde_json::Value;

use super::cells::Cell;
use super::markup::Text;
use super::number::{NONE, interval, number};
use crate::{Run, Unavailable};

/// Columns of the table of arms: head, key in the JSON, and whether it is an interval.
const COLUMNS: [(&str, &str, bool); 17] = [
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
    ("punted", "punted", false),
];

/// All numbers of the cell's arms.
pub(super) fn arms(cell: &Cell, json: &Value) -> String {
    let heads = ["arm", "language", "model"].into_iter().chain(COLUMNS.map(|(head, ..)| head));
    let rows = cell.arms.iter().map(|arm| {
        let summary = arm.summary;
        let names = [&summary.lang, &summary.model].map(|name| format!("<td>{}</td>", Text(name))).concat();
        let best = if summary.among_best { " class=\"best\"" } else { "" };
        let numbers = numbers_of_arm(json.pointer(&format!("/arms/{}", arm.at)).unwrap_or(&Value::Null));
        format!(
            "<tr data-at=\"/arms/{}\"{best}><th scope=\"row\"><code>{}</code></th>{names}{numbers}</tr>\n",
            arm.at,
            Text(&summary.method)
        )
    });
    scrolled(&format!("All numbers of {}", cell.name), heads, rows.collect())
}

fn numbers_of_arm(object: &Value) -> String {
    let shown = COLUMNS
        .map(|(_, key, is_interval)| if is_interval { interval(object, key) } else { number(object, key) });
    shown.map(|shown| format!("<td>{shown}</td>")).concat()
}

/// Samples by their places in the run, with all columns of the JSON.
pub(super) fn samples(title: &str, rows: &[usize], json: &Value) -> String {
    let object = |at: &usize| json.pointer(&format!("/rows/{at}")).and_then(Value::as_object);
    let heads =
        rows.first().and_then(object).into_iter().flat_map(|object| object.keys().map(String::as_str));
    let lines = rows.iter().filter_map(|at| Some((at, object(at)?)));
    let lines = lines.map(|(at, object)| {
        let whole = Value::Object(object.clone());
        let cells: String = object.iter().map(|(key, value)| sample_cell(&whole, key, value)).collect();
        format!("<tr data-at=\"/rows/{at}\">{cells}</tr>\n")
    });
    scrolled(title, heads, lines.collect())
}

fn sample_cell(row: &Value, key: &str, value: &Value) -> String {
    match value {
        Value::Number(_) => format!("<td>{}</td>", number(row, key)),
        Value::String(text) => format!("<td class=\"text\">{}</td>", Text(text)),
        Value::Bool(yes) => format!("<td>{}</td>", if *yes { "yes" } else { "no" }),
        _ => format!("<td>{NONE}</td>"),
    }
}

/// Samples that do not count, and why.
pub(super) fn discards(run: &Run) -> String {
    let discarded = run.rows.iter().filter(|row| !row.discarded.is_empty());
    let lines = discarded.map(|row| {
        let texts = [&row.workload, &row.cache, &row.lang, &row.method, &row.discarded];
        let texts = texts.map(|text| format!("<td class=\"text\">{}</td>", Text(text))).concat();
        format!("<tr><td>{}</td>{texts}</tr>\n", row.block)
    });
    scrolled(
        "Discarded samples",
        ["block", "workload", "cache", "language", "arm", "reason"],
        lines.collect(),
    )
}

/// Arms that could not run, and why.
pub(super) fn unavailable(arms: &[Unavailable]) -> String {
    let lines = arms.iter().map(|arm| {
        let texts = [&arm.lang, &arm.method, &arm.reason]
            .map(|text| format!("<td class=\"text\">{}</td>", Text(text)));
        format!("<tr>{}</tr>\n", texts.concat())
    });
    scrolled("Arms that could not run", ["language", "arm", "reason"], lines.collect())
}

/// A table in a box of its own that scrolls, also from the keyboard. `title` and `heads` are text, `body` is HTML.
fn scrolled<'h>(title: &str, heads: impl IntoIterator<Item = &'h str>, body: String) -> String {
    let heads: String =
        heads.into_iter().map(|head| format!("<th scope=\"col\">{}</th>", Text(head))).collect();
    let title = Text(title);
    format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\"><table>\n<caption>{title}</caption>\n\
         <thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}
