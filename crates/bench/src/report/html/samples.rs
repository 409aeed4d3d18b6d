//! The figure of single samples: one mark for each block of an arm, the first block on top, so that
//! drift appears as a slant.

use serde_json::Value;

use super::cells::{ArmSection, CellSection};
use super::figure::{Figure, FigureRow, MarkShape, arm_name};
use super::markup::Escaped;
use super::number::{self, Unit};
use super::scale::Scale;
use crate::Row;

const CAPTION: &str = "One mark a sample; the first block is on top, so a slant is a drift.";
/// Percentage of a track's height above the first block and below the last one.
const MARGIN: f64 = 20.0;

/// Formats the figure; empty if there are no samples.
pub(super) fn figure(cell: &CellSection, json: &Value, is_polyglot: bool) -> String {
    let samples = || cell.arms.iter().flat_map(|arm| &arm.samples);
    let Some(scale) = Scale::over(samples().map(|row| row.seconds)) else { return String::new() };
    let blocks = samples().map(|row| row.block).max().unwrap_or(1);
    let sampled = cell.arms.iter().filter(|arm| !arm.samples.is_empty());
    let lines: Vec<FigureRow> =
        sampled.map(|arm| line(cell, arm, &scale, blocks, json, is_polyglot)).collect();
    let keys = MarkShape::Circle.key("sample", "counted") + &MarkShape::Cross.key("discarded", "discarded");
    Figure {
        title: "Single samples",
        caption: &format!("{CAPTION}<span class=\"keys\">{keys}</span>"),
        axis: "time",
        unit: Unit::Seconds(1.0),
        ground: String::new(),
    }
    .html(&scale, &lines)
}

fn line(
    cell: &CellSection,
    arm: &ArmSection,
    scale: &Scale,
    blocks: u32,
    json: &Value,
    is_polyglot: bool,
) -> FigureRow {
    let at = format!("/arms/{}", arm.at);
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    let count = |key| number::number(object, key);
    let value = match arm.summary.discarded {
        0 => format!("{} counted", count("runs")),
        _ => format!("{} counted, {} discarded", count("runs"), count("discarded")),
    };
    let track = arm.samples.iter().filter_map(|row| mark(row, scale, blocks)).collect();
    FigureRow { at, name: arm_name(cell, arm, is_polyglot), track, value }
}

fn mark(row: &Row, scale: &Scale, blocks: u32) -> Option<String> {
    let depth = f64::from(row.block.saturating_sub(1)) / f64::from(blocks.saturating_sub(1).max(1));
    let place = (scale.place(row.seconds)?, MARGIN + depth.min(1.0) * (100.0 - 2.0 * MARGIN));
    let hint = format!("block {}: {}", row.block, Unit::Seconds(1.0).show(row.seconds));
    Some(if row.discarded.is_empty() {
        MarkShape::Circle.mark(place, "sample", &hint)
    } else {
        MarkShape::Cross.mark(place, "discarded", &format!("{hint}, discarded: {}", Escaped(&row.discarded)))
    })
}
