//! The figure of ratios: each arm's time divided by the baseline's, with its interval, and the
//! noise floor.

use serde_json::Value;

use super::cells::{ArmSection, CellSection};
use super::figure::{Figure, FigureRow, MarkShape, arm_name, stroke};
use super::number::{self, Unit};
use super::scale::Scale;
use crate::Interval;

const CAPTION: &str =
    "Time in relation to the baseline; left of 1 is faster. The stroke is the 95\u{a0}% confidence interval.";

/// Formats the figure; empty if there is no ratio.
pub(super) fn figure(cell: &CellSection, json: &Value, is_polyglot: bool) -> String {
    let ends = |ratio: Interval| [ratio.low, ratio.median, ratio.high];
    let ratios: Vec<f64> = cell.counted().filter_map(|arm| arm.summary.ratio).flat_map(ends).collect();
    if ratios.is_empty() {
        return String::new();
    }
    let band = band(cell);
    let Some(scale) = Scale::over(ratios.into_iter().chain([1.0, band.0, band.1])) else {
        return String::new();
    };
    let lines: Vec<FigureRow> =
        cell.counted().map(|arm| line(cell, arm, &scale, json, is_polyglot)).collect();
    let has_band = cell.noise.is_some();
    let band_key = r#"<span class="key"><svg aria-hidden="true" width="14" height="14"><rect class="band" width="14" height="14"/></svg>less than the noise floor</span>"#;
    let keys = [
        MarkShape::Circle.key("best", "none is shown to be faster"),
        MarkShape::Circle.key("other", "another is faster"),
        MarkShape::Diamond.key("base", "baseline"),
        if has_band { band_key.to_owned() } else { String::new() },
    ];
    Figure {
        title: "Ratios",
        caption: &format!("{CAPTION}<span class=\"keys\">{}</span>", keys.concat()),
        axis: "time ÷ baseline",
        unit: Unit::Plain,
        ground: ground(&scale, band),
    }
    .html(&scale, &lines)
}

/// Returns the range of ratios that are within the noise floor.
fn band(cell: &CellSection) -> (f64, f64) {
    let floor = cell.noise.map_or(0.0, |(_, noise)| noise.floor.max(0.0));
    (1.0 - floor, 1.0 + floor)
}

fn ground(scale: &Scale, (low, high): (f64, f64)) -> String {
    let Some(one) = scale.place(1.0) else { return String::new() };
    // A noise floor of 1 or more makes the lower end negative; the band then starts at the axis.
    let low = scale.place(low).unwrap_or(0.0);
    let band = scale.place(high).map_or(String::new(), |high| {
        format!(r#"<rect class="band" x="{low:.2}%" width="{:.2}%" y="0" height="100%"/>"#, high - low)
    });
    format!(r#"{band}<line class="one" x1="{one:.2}%" x2="{one:.2}%" y1="0" y2="100%"/>"#)
}

fn line(cell: &CellSection, arm: &ArmSection, scale: &Scale, json: &Value, is_polyglot: bool) -> FigureRow {
    let at = format!("/arms/{}", arm.at);
    let (track, value) = match arm.summary.ratio {
        Some(ratio) => {
            (track(arm, scale, ratio), number::interval(json.pointer(&at).unwrap_or(&Value::Null), "ratio"))
        }
        None => {
            let one = scale.place(1.0).map(|x| MarkShape::Diamond.mark((x, 50.0), "base", "baseline"));
            (one.unwrap_or_default(), "baseline".to_owned())
        }
    };
    FigureRow { at, name: arm_name(cell, arm, is_polyglot), track, value }
}

fn track(arm: &ArmSection, scale: &Scale, ratio: Interval) -> String {
    let class = if arm.summary.among_best { "best" } else { "other" };
    let (bar, hint) = (format!("bar {class}"), Unit::Plain.show(ratio.median));
    let mark = scale.place(ratio.median).map(|x| MarkShape::Circle.mark((x, 50.0), class, &hint));
    // The end strokes are taller than the mark, so that a narrow interval stays visible.
    let end = |x: f64| format!(r#"<line class="{bar}" x1="{x:.2}%" x2="{x:.2}%" y1="28%" y2="72%"/>"#);
    let ends = [ratio.low, ratio.high].into_iter().filter_map(|value| scale.place(value)).map(end);
    let stroke = stroke(scale, (ratio.low, ratio.high), 50.0, &bar);
    ends.collect::<String>() + &stroke + &mark.unwrap_or_default()
}
