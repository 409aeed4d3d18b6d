//! The strip of single samples: a dot a block for each arm, the first block on top, so that drift shows as a slant.

use serde_json::Value;

use super::cells::{Arm, Cell};
use super::figure::{Frame, Line, Shape, arm_name};
use super::markup::Text;
use super::number::{self, Unit};
use super::scale::Scale;
use crate::Row;

const CAPTION: &str = "One mark a sample; the first block is on top, so a slant is a drift.";
/// Percent of a track's height above the first block, and below the last one.
const MARGIN: f64 = 20.0;

/// The figure; empty where there are no samples.
pub(super) fn figure(cell: &Cell, json: &Value, is_polyglot: bool) -> String {
    let samples = || cell.arms.iter().flat_map(|arm| &arm.samples);
    let Some(scale) = Scale::over(samples().map(|row| row.seconds)) else { return String::new() };
    let blocks = samples().map(|row| row.block).max().unwrap_or(1);
    let sampled = cell.arms.iter().filter(|arm| !arm.samples.is_empty());
    let lines: Vec<Line> = sampled.map(|arm| line(cell, arm, &scale, blocks, json, is_polyglot)).collect();
    let keys = Shape::Circle.key("sample", "counted") + &Shape::Cross.key("discarded", "discarded");
    Frame {
        title: "Single samples",
        caption: &format!("{CAPTION}<span class=\"keys\">{keys}</span>"),
        axis: "time",
        unit: Unit::Seconds(1.0),
        ground: String::new(),
    }
    .html(&scale, &lines)
}

fn line(cell: &Cell, arm: &Arm, scale: &Scale, blocks: u32, json: &Value, is_polyglot: bool) -> Line {
    let at = format!("/arms/{}", arm.at);
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    let count = |key| number::number(object, key);
    let value = match arm.summary.discarded {
        0 => format!("{} counted", count("runs")),
        _ => format!("{} counted, {} discarded", count("runs"), count("discarded")),
    };
    let track = arm.samples.iter().filter_map(|row| mark(row, scale, blocks)).collect();
    Line { at, name: arm_name(cell, arm, is_polyglot), track, value }
}

fn mark(row: &Row, scale: &Scale, blocks: u32) -> Option<String> {
    let depth = f64::from(row.block.saturating_sub(1)) / f64::from(blocks.saturating_sub(1).max(1));
    let place = (scale.place(row.seconds)?, MARGIN + depth.min(1.0) * (100.0 - 2.0 * MARGIN));
    let hint = format!("block {}: {}", row.block, Unit::Seconds(1.0).show(row.seconds));
    Some(if row.discarded.is_empty() {
        Shape::Circle.mark(place, "sample", &hint)
    } else {
        Shape::Cross.mark(place, "discarded", &format!("{hint}, discarded: {}", Text(&row.discarded)))
    })
}
