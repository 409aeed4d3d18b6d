//! Warm against cold: arms that ran in both states of the cache, on cells that differ in nothing else.

use super::cells::{Arm, Cell};
use super::figure::{Frame, Line, Shape, arm_name, stroke};
use super::markup::Text;
use super::number::Unit;
use super::scale::Scale;

const CAPTION: &str = "Median time of the same work with the file in the page cache, and without.";
const SECONDS: Unit = Unit::Seconds(1.0);

/// A figure for each cell that ran warm and has a cold twin.
pub(super) fn figures(cells: &[Cell], is_polyglot: bool) -> String {
    let warm = cells.iter().filter(|cell| cache(cell) == "warm");
    let twin =
        |warm| cells.iter().find(|cold| cache(cold) == "cold" && without_cache(cold) == without_cache(warm));
    warm.filter_map(|warm| Some(figure(warm, twin(warm)?, is_polyglot))).collect()
}

fn cache<'a>(cell: &Cell<'a>) -> &'a str {
    cell.arms.first().map_or("", |arm| &arm.summary.cache)
}

/// The cell's name but for the state of the cache.
fn without_cache(cell: &Cell) -> String {
    cell.name.replace(cache(cell), "").trim_end_matches([',', ' ']).to_owned()
}

fn figure(warm: &Cell, cold: &Cell, is_polyglot: bool) -> String {
    let pairs: Vec<(&Arm, &Arm)> =
        warm.counted().filter_map(|arm| Some((arm, same_arm(cold, arm)?))).collect();
    let medians = pairs.iter().flat_map(|(warm, cold)| [warm, cold].map(|arm| arm.summary.seconds.median));
    let Some(scale) = Scale::over(medians) else { return String::new() };
    let lines: Vec<Line> =
        pairs.iter().map(|(arm, other)| line(arm_name(warm, arm, is_polyglot), arm, other, &scale)).collect();
    let keys = Shape::Circle.key("warm", "warm") + &Shape::Square.key("cold", "cold");
    Frame {
        title: &Text(&without_cache(warm)).to_string(),
        caption: &format!("{CAPTION}<span class=\"keys\">{keys}</span>"),
        axis: "time",
        unit: SECONDS,
        ground: String::new(),
    }
    .html(&scale, &lines)
}

fn same_arm<'c, 'a>(cold: &'c Cell<'a>, warm: &Arm) -> Option<&'c Arm<'a>> {
    fn key<'s>(arm: &'s Arm) -> (&'s str, &'s str, u32, u32) {
        (&arm.summary.lang, &arm.summary.method, arm.summary.threads, arm.summary.depth)
    }
    cold.counted().find(|arm| key(arm) == key(warm))
}

fn line(name: String, warm: &Arm, cold: &Arm, scale: &Scale) -> Line {
    let medians = [warm, cold].map(|arm| arm.summary.seconds.median);
    let marks = [(Shape::Circle, "warm"), (Shape::Square, "cold")].into_iter().zip(medians);
    let marks: String = marks
        .filter_map(|((shape, class), value)| {
            Some(shape.mark((scale.place(value)?, 50.0), class, &format!("{class} {}", SECONDS.show(value))))
        })
        .collect();
    let track = stroke(scale, (medians[0], medians[1]), 50.0, "span") + &marks;
    let times = Unit::Plain.show(medians[1] / medians[0]);
    let value = format!("{} → {}, {times}\u{a0}×", SECONDS.show(medians[0]), SECONDS.show(medians[1]));
    Line { at: String::new(), name, track, value }
}
