//! The figure of warm and cold times: arms that ran in cells that differ only in the cache state.

use super::cells::{ArmSection, CellSection};
use super::figure::{Figure, FigureRow, MarkShape, arm_name, stroke};
use super::markup::Escaped;
use super::number::Unit;
use super::scale::Scale;

const CAPTION: &str = "Median time of the same work with the file in the page cache, and without.";
const SECONDS: Unit = Unit::Seconds(1.0);

/// Formats a figure for each pair of a warm and a cold cell.
pub(super) fn figures(cells: &[CellSection], is_polyglot: bool) -> String {
    let warm = cells.iter().filter(|cell| cache(cell) == "warm");
    let twin =
        |warm| cells.iter().find(|cold| cache(cold) == "cold" && without_cache(cold) == without_cache(warm));
    warm.filter_map(|warm| Some(figure(warm, twin(warm)?, is_polyglot))).collect()
}

fn cache<'a>(cell: &CellSection<'a>) -> &'a str {
    cell.arms.first().map_or("", |arm| &arm.summary.cache)
}

/// Returns the cell's name without its cache state.
fn without_cache(cell: &CellSection) -> String {
    cell.name.replace(cache(cell), "").trim_end_matches([',', ' ']).to_owned()
}

fn figure(warm: &CellSection, cold: &CellSection, is_polyglot: bool) -> String {
    let pairs: Vec<(&ArmSection, &ArmSection)> =
        warm.counted().filter_map(|arm| Some((arm, same_arm(cold, arm)?))).collect();
    let medians = pairs.iter().flat_map(|(warm, cold)| [warm, cold].map(|arm| arm.summary.seconds.median));
    let Some(scale) = Scale::over(medians) else { return String::new() };
    let lines: Vec<FigureRow> =
        pairs.iter().map(|(arm, other)| line(arm_name(warm, arm, is_polyglot), arm, other, &scale)).collect();
    let keys = MarkShape::Circle.key("warm", "warm") + &MarkShape::Square.key("cold", "cold");
    Figure {
        title: &Escaped(&without_cache(warm)).to_string(),
        caption: &format!("{CAPTION}<span class=\"keys\">{keys}</span>"),
        axis: "time",
        unit: SECONDS,
        ground: String::new(),
    }
    .html(&scale, &lines)
}

fn same_arm<'c, 'a>(cold: &'c CellSection<'a>, warm: &ArmSection) -> Option<&'c ArmSection<'a>> {
    fn key<'s>(arm: &'s ArmSection) -> (&'s str, &'s str, u32, u32) {
        (&arm.summary.lang, &arm.summary.method, arm.summary.threads, arm.summary.depth)
    }
    cold.counted().find(|arm| key(arm) == key(warm))
}

fn line(name: String, warm: &ArmSection, cold: &ArmSection, scale: &Scale) -> FigureRow {
    let medians = [warm, cold].map(|arm| arm.summary.seconds.median);
    let marks = [(MarkShape::Circle, "warm"), (MarkShape::Square, "cold")].into_iter().zip(medians);
    let marks: String = marks
        .filter_map(|((shape, class), value)| {
            Some(shape.mark((scale.place(value)?, 50.0), class, &format!("{class} {}", SECONDS.show(value))))
        })
        .collect();
    let track = stroke(scale, (medians[0], medians[1]), 50.0, "span") + &marks;
    let times = Unit::Plain.show(medians[1] / medians[0]);
    let value = format!("{} → {}, {times}\u{a0}×", SECONDS.show(medians[0]), SECONDS.show(medians[1]));
    FigureRow { at: String::new(), name, track, value }
}
