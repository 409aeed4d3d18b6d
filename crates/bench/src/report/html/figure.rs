//! The frame of a figure: lines with a name, a track of marks on a common axis, and the numbers. Every track is an SVG
//! as wide as there is room, placed in percent, so that marks keep their shape on any screen.

use super::cells::{Arm, Cell};
use super::markup::{Text, name};
use super::number::{Unit, label};
use super::scale::Scale;

/// One line of a figure. All three are HTML.
pub(super) struct Line {
    /// The pointer into the JSON that the numbers of `value` begin from.
    pub(super) at: String,
    pub(super) name: String,
    /// What the track's SVG holds.
    pub(super) track: String,
    pub(super) value: String,
}

/// What a figure says around its lines.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    /// HTML.
    pub(super) caption: &'a str,
    pub(super) axis: &'a str,
    pub(super) unit: Unit,
    /// SVG below the marks of each track.
    pub(super) ground: String,
}

impl Frame<'_> {
    /// The figure as HTML; empty if it has no lines.
    pub(super) fn html(&self, scale: &Scale, lines: &[Line]) -> String {
        if lines.is_empty() {
            return String::new();
        }
        let grid = grid(scale) + &self.ground;
        let lines: String = lines.iter().map(|line| self.line(&grid, line)).collect();
        let log = if scale.is_log() { " (logarithmic)" } else { "" };
        format!(
            "<figure>\n<h3>{}</h3>\n<figcaption>{}</figcaption>\n<div class=\"lines\">\n{lines}<div class=\"line axis\">\
             <span class=\"name\">{}{log}</span><div class=\"track\">{}</div><span class=\"value\"></span></div>\n</div>\n</figure>\n",
            self.title,
            self.caption,
            self.axis,
            tick_labels(scale, self.unit)
        )
    }

    fn line(&self, grid: &str, line: &Line) -> String {
        let Line { at, name, track, value } = line;
        format!(
            "<div class=\"line\" data-at=\"{at}\"><span class=\"name\">{name}</span><div class=\"track\"><svg \
             aria-hidden=\"true\">{grid}{track}</svg></div><span class=\"value\">{value}</span></div>\n"
        )
    }
}

fn grid(scale: &Scale) -> String {
    let places = scale.ticks().into_iter().filter_map(|tick| scale.place(tick));
    places.map(|x| format!(r#"<line class="grid" x1="{x:.2}%" x2="{x:.2}%" y1="0" y2="100%"/>"#)).collect()
}

/// An SVG with the labels of a horizontal axis.
pub(super) fn tick_labels(scale: &Scale, unit: Unit) -> String {
    let ticks = scale.ticks().into_iter().filter_map(|tick| Some((scale.place(tick)?, label(unit, tick))));
    let labels: String =
        ticks.map(|(x, label)| format!(r#"<text x="{x:.2}%" y="1em">{label}</text>"#)).collect();
    format!(r#"<svg class="labels" aria-hidden="true">{labels}</svg>"#)
}

/// What a mark looks like. Shapes tell it as well as colours do.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Circle,
    Diamond,
    Square,
    Triangle,
    Cross,
    Plus,
}

impl Shape {
    fn path(self) -> &'static str {
        match self {
            Shape::Circle => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
            Shape::Diamond => "M-5 0L0-5L5 0L0 5Z",
            Shape::Square => "M-4-4H4V4H-4Z",
            Shape::Triangle => "M-5 4L0-5L5 4Z",
            Shape::Cross => "M-4-4L4 4M-4 4L4-4",
            Shape::Plus => "M-5 0H5M0-5V5",
        }
    }

    /// A mark at a place in percent, with a hint that appears when it is pointed at. `hint` is HTML.
    pub(super) fn mark(self, (x, y): (f64, f64), class: &str, hint: &str) -> String {
        let path = self.path();
        format!(
            r#"<svg x="{x:.2}%" y="{y:.2}%" overflow="visible"><path class="mark {class}" d="{path}"><title>{hint}</title></path></svg>"#
        )
    }

    /// The mark by itself, for a legend.
    pub(super) fn key(self, class: &str, meaning: &str) -> String {
        let path = self.path();
        format!(
            r#"<span class="key"><svg aria-hidden="true" width="14" height="14" viewBox="-7 -7 14 14"><path class="mark {class}" d="{path}"/></svg>{meaning}</span> "#
        )
    }
}

/// A horizontal stroke between two values, at `y` percent.
pub(super) fn stroke(scale: &Scale, (low, high): (f64, f64), y: f64, class: &str) -> String {
    match (scale.place(low), scale.place(high)) {
        (Some(low), Some(high)) => {
            format!(r#"<line class="{class}" x1="{low:.2}%" x2="{high:.2}%" y1="{y}%" y2="{y}%"/>"#)
        }
        _ => String::new(),
    }
}

/// An arm's name as HTML, with what tells it from others of the same name.
pub(super) fn arm_name(cell: &Cell, arm: &Arm, is_polyglot: bool) -> String {
    let summary = arm.summary;
    let lang = is_polyglot.then(|| Text(&summary.lang).to_string());
    let flight = cell.is_ambiguous(arm).then(|| format!("{}\u{a0}×\u{a0}{}", summary.threads, summary.depth));
    let more: Vec<String> = [lang, flight].into_iter().flatten().collect();
    let more = if more.is_empty() { String::new() } else { format!(" <small>{}</small>", more.join(", ")) };
    format!("<code>{}</code>{more}", name(&summary.method))
}
