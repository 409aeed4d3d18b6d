//! The figure of throughput against operations in flight, for arms of one model that differ only in
//! threads or depth.

use std::collections::BTreeSet;

use super::cells::{ArmSection, CellSection};
use super::figure::{MarkShape, segment, tick_labels, upright};
use super::markup::Escaped;
use super::number::{Unit, label};
use super::scale::Scale;
use crate::Run;

const SHAPES: [MarkShape; 5] =
    [MarkShape::Circle, MarkShape::Square, MarkShape::Diamond, MarkShape::Triangle, MarkShape::Plus];
/// Number of colours in `style.css`. Five shapes times seven colours distinguish 35 series.
const COLOURS: usize = 7;

/// The language and the model of an arm.
pub(super) type ModelKey<'a> = (&'a str, &'a str);

/// Returns the languages and models of `run`. The place of one is its colour, on the whole page.
pub(super) fn palette(run: &Run) -> Vec<ModelKey<'_>> {
    let models: BTreeSet<ModelKey<'_>> =
        run.arms.iter().map(|arm| (arm.lang.as_str(), arm.model.as_str())).collect();
    models.into_iter().collect()
}

/// The arms that are joined by one curve.
struct Series {
    /// The place of the model in the palette.
    colour: usize,
    /// The name as HTML.
    name: String,
    /// Operations in flight, and bytes or operations a second; ascending.
    points: Vec<(f64, f64)>,
}

/// Formats the figure; empty if no arms differ in threads or depth.
pub(super) fn figure(cell: &CellSection, palette: &[ModelKey<'_>]) -> String {
    let series = series(cell, palette);
    let points = || series.iter().flat_map(|series| &series.points);
    if !series.iter().any(|series| series.points.len() > 1) {
        return String::new();
    }
    let (x, y) = (Scale::log_over(points().map(|point| point.0)), Scale::over(points().map(|point| point.1)));
    let (Some(x), Some(y)) = (x, y) else { return String::new() };
    let curves: String = series.iter().enumerate().map(|(at, series)| curve(at, series, &x, &y)).collect();
    let keys = series.iter().enumerate().map(|(at, series)| {
        let (shape, class) = style(at, series.colour);
        shape.key(&class, &series.name)
    });
    let log = if y.is_log() { "; both axes are logarithmic" } else { "; the horizontal axis is logarithmic" };
    format!(
        "<figure>\n<h3>Throughput against operations in flight</h3>\n<figcaption>Threads times depth{log}. Methods of one model are joined.\
         <span class=\"keys\">{}</span></figcaption>\n<div class=\"chart\">{}<div class=\"plot\"><svg role=\"img\" \
         aria-label=\"Throughput against operations in flight; the table below has the numbers\">{}{curves}</svg></div>{}\
         <p class=\"label\">operations in flight</p></div>\n</figure>\n",
        keys.collect::<String>(),
        y_labels(&y, unit(cell)),
        grid(&x, &y),
        tick_labels(&x, Unit::Plain)
    )
}

/// Returns bytes a second, or operations a second if the cell moves no bytes.
fn throughput(cell: &CellSection, arm: &ArmSection) -> f64 {
    if has_bytes(cell) { arm.summary.bytes_per_s } else { arm.summary.ops_per_s }
}

fn has_bytes(cell: &CellSection) -> bool {
    cell.counted().any(|arm| arm.summary.bytes_per_s > 0.0)
}

fn unit(cell: &CellSection) -> Unit {
    Unit::of(if has_bytes(cell) { "bytes_per_s" } else { "ops_per_s" })
}

fn series(cell: &CellSection, palette: &[ModelKey<'_>]) -> Vec<Series> {
    let mut models: Vec<(&str, &str)> = Vec::new();
    for arm in cell.counted() {
        let model = (arm.summary.lang.as_str(), arm.summary.model.as_str());
        if !models.contains(&model) {
            models.push(model);
        }
    }
    let is_polyglot = models.iter().any(|model| model.0 != models[0].0);
    let colour = |model: &ModelKey<'_>| palette.iter().position(|known| known == model).unwrap_or(0);
    models.into_iter().flat_map(|model| of_model(cell, model, colour(&model), is_polyglot)).collect()
}

/// Returns one series, or one for each depth if both threads and depth differ.
fn of_model(
    cell: &CellSection,
    (lang, model): ModelKey<'_>,
    colour: usize,
    is_polyglot: bool,
) -> Vec<Series> {
    let arms = || {
        cell.counted().filter(|arm| (arm.summary.lang.as_str(), arm.summary.model.as_str()) == (lang, model))
    };
    let threads: BTreeSet<u32> = arms().map(|arm| arm.summary.threads).collect();
    let depths: BTreeSet<u32> = arms().map(|arm| arm.summary.depth).collect();
    let name = if is_polyglot {
        format!("{} {}", Escaped(lang), Escaped(model))
    } else {
        Escaped(model).to_string()
    };
    if threads.len() < 2 || depths.len() < 2 {
        return vec![Series { colour, name, points: points(cell, arms()) }];
    }
    let of_depth = |depth: u32| Series {
        colour,
        name: format!("{name}, depth {depth}"),
        points: points(cell, arms().filter(|arm| arm.summary.depth == depth)),
    };
    depths.into_iter().map(of_depth).collect()
}

fn points<'c, 'a: 'c>(cell: &CellSection, arms: impl Iterator<Item = &'c ArmSection<'a>>) -> Vec<(f64, f64)> {
    let point = |arm: &ArmSection| {
        (f64::from(arm.summary.threads) * f64::from(arm.summary.depth), throughput(cell, arm))
    };
    let mut points: Vec<(f64, f64)> = arms.map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn style(at: usize, colour: usize) -> (MarkShape, String) {
    (SHAPES[at % SHAPES.len()], format!("s{}", colour % COLOURS))
}

fn curve(at: usize, series: &Series, x: &Scale, y: &Scale) -> String {
    let (shape, class) = style(at, series.colour);
    let place = |point: &(f64, f64)| Some((x.place(point.0)?, 100.0 - y.place(point.1)?));
    let places: Vec<(f64, f64)> = series.points.iter().filter_map(place).collect();
    let joint = |pair: &[(f64, f64)]| segment(&format!("curve {class}"), pair[0], pair[1]);
    let joints: String = places.windows(2).map(joint).collect();
    joints + &places.iter().map(|place| shape.mark(*place, &class, &series.name)).collect::<String>()
}

fn grid(x: &Scale, y: &Scale) -> String {
    let level = |(at, _)| segment("grid", (0.0, 100.0 - at), (100.0, 100.0 - at));
    x.marks().map(|(at, _)| upright("grid", at)).chain(y.marks().map(level)).collect()
}

fn y_labels(scale: &Scale, unit: Unit) -> String {
    let text = |(y, tick)| {
        format!(r#"<text x="100%" y="{:.2}%" dy="0.35em">{}</text>"#, 100.0 - y, label(unit, tick))
    };
    let labels: String = scale.marks().map(text).collect();
    format!(r#"<div class="side"><svg aria-hidden="true">{labels}</svg></div>"#)
}
