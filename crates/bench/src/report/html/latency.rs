//! The figure of latencies: three percentiles of single operations for each arm.

use serde_json::Value;

use super::cells::{ArmSection, CellSection};
use super::figure::{Figure, FigureRow, MarkShape, arm_name, stroke};
use super::number::{self, Unit};
use super::scale::Scale;
use crate::ArmSummary;

const CAPTION: &str = "How long one operation takes: medians, over the samples, of three percentiles.";
/// JSON key, name, shape and CSS class of each percentile.
const PERCENTILES: [(&str, &str, MarkShape, &str); 3] = [
    ("p50_us", "p50", MarkShape::Circle, "p50"),
    ("p95_us", "p95", MarkShape::Diamond, "p95"),
    ("p99_us", "p99", MarkShape::Triangle, "p99"),
];
const MICROS: Unit = Unit::Seconds(1e-6);

/// Formats the figure; empty if no operation was timed.
pub(super) fn figure(cell: &CellSection, json: &Value, is_polyglot: bool) -> String {
    let all = cell.counted().flat_map(|arm| percentiles(arm.summary)).flatten();
    let Some(scale) = Scale::over(all) else { return String::new() };
    let has_any = |arm: &&ArmSection| percentiles(arm.summary).iter().any(Option::is_some);
    let line = |arm| line(cell, arm, &scale, json, is_polyglot);
    let lines: Vec<FigureRow> = cell.counted().filter(has_any).map(line).collect();
    let keys: String = PERCENTILES.map(|(_, name, shape, class)| shape.key(class, name)).concat();
    Figure {
        title: "Latency of an operation",
        caption: &format!("{CAPTION}<span class=\"keys\">{keys}</span>"),
        axis: "latency",
        unit: MICROS,
        ground: String::new(),
    }
    .html(&scale, &lines)
}

fn percentiles(summary: &ArmSummary) -> [Option<f64>; 3] {
    [summary.p50_us, summary.p95_us, summary.p99_us]
}

fn line(cell: &CellSection, arm: &ArmSection, scale: &Scale, json: &Value, is_polyglot: bool) -> FigureRow {
    let at = format!("/arms/{}", arm.at);
    let values = percentiles(arm.summary);
    let known = values.into_iter().flatten();
    let ends = known.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (value.min(low), value.max(high)));
    let marks = PERCENTILES.iter().zip(values).filter_map(|((_, name, shape, class), value)| {
        let hint = format!("{name} {}", MICROS.show(value?));
        Some(shape.mark((scale.place(value?)?, 50.0), class, &hint))
    });
    let track = stroke(scale, ends, 50.0, "span") + &marks.collect::<String>();
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    let value = PERCENTILES.map(|(key, ..)| number::number(object, key)).join(" · ");
    FigureRow { at, name: arm_name(cell, arm, is_polyglot), track, value }
}
