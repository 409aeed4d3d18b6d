//! The layout of a figure: rows with a name, a track of marks on a common axis, and numbers. Every
//! track is an SVG as wide as the page permits. Positions are percentages, so that marks keep their
//! shape at any width.

use super::cells::ArmSection;
use super::number::{Unit, label};
use super::scale::Scale;

/// One row of a figure.
pub(super) struct FigureRow<'a> {
    /// The JSON pointer that the `data-key` attributes in `value` are relative to.
    pub(super) at: &'a str,
    /// The name as HTML.
    pub(super) name: &'a str,
    /// The content of the track's SVG.
    pub(super) track: String,
    /// The numbers as HTML.
    pub(super) value: String,
}

impl<'a> FigureRow<'a> {
    /// Builds the row of an arm.
    pub(super) fn of(arm: &'a ArmSection, (track, value): (String, String)) -> Self {
        Self { at: &arm.at, name: &arm.name, track, value }
    }
}

/// A figure without its rows. `title`, `caption` and `keys` are HTML.
pub(super) struct Figure<'a> {
    pub(super) title: &'a str,
    pub(super) caption: &'a str,
    /// The legend.
    pub(super) keys: String,
    pub(super) axis: &'a str,
    pub(super) unit: Unit,
    /// SVG that is drawn below the marks of each track.
    pub(super) ground: String,
}

impl Figure<'_> {
    /// Formats the figure as HTML; empty if it has no rows.
    pub(super) fn html<'r>(&self, scale: &Scale, rows: impl Iterator<Item = FigureRow<'r>>) -> String {
        let Self { title, caption, keys, axis, unit, ground } = self;
        let grid: String = scale.marks().map(|(x, _)| upright("grid", x)).collect();
        let row = |FigureRow { at, name, track, value }| {
            format!(
                "<div class=\"line\" data-at=\"{at}\"><span class=\"name\">{name}</span><div class=\"track\"><svg \
                 aria-hidden=\"true\">{grid}{ground}{track}</svg></div><span class=\"value\">{value}</span></div>\n"
            )
        };
        let rows: String = rows.map(row).collect();
        if rows.is_empty() {
            return rows;
        }
        let log = if scale.is_log() { " (logarithmic)" } else { "" };
        let labels = tick_labels(scale, *unit);
        format!(
            "<figure>\n<h3>{title}</h3>\n<figcaption>{caption}<span class=\"keys\">{keys}</span></figcaption>\n<div class=\"lines\">\n{rows}\
             <div class=\"line axis\"><span class=\"name\">{axis}{log}</span><div class=\"track\">{labels}</div>\
             <span class=\"value\"></span></div>\n</div>\n</figure>\n"
        )
    }
}

/// Formats a line between two positions in percent.
pub(super) fn segment(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!(r#"<line class="{class}" x1="{x1:.2}%" y1="{y1:.2}%" x2="{x2:.2}%" y2="{y2:.2}%"/>"#)
}

/// Formats a line over the whole height at `x`.
pub(super) fn upright(class: &str, x: f64) -> String {
    segment(class, (x, 0.0), (x, 100.0))
}

/// Formats a line between two values, in the middle of the height.
pub(super) fn stroke(scale: &Scale, ends: (f64, f64), class: &str) -> String {
    let ends = scale.place(ends.0).zip(scale.place(ends.1));
    ends.map_or(String::new(), |(low, high)| segment(class, (low, 50.0), (high, 50.0)))
}

/// Formats the labels of a horizontal axis as SVG.
pub(super) fn tick_labels(scale: &Scale, unit: Unit) -> String {
    let text = |(x, tick)| format!(r#"<text x="{x:.2}%" y="1em">{}</text>"#, label(unit, tick));
    let labels: String = scale.marks().map(text).collect();
    format!(r#"<svg class="labels" aria-hidden="true">{labels}</svg>"#)
}

/// The shape of a mark. Shapes distinguish series without colour vision.
#[derive(Clone, Copy)]
pub(super) enum MarkShape {
    Circle,
    Diamond,
    Square,
    Triangle,
    Cross,
    Plus,
}

impl MarkShape {
    fn path(self) -> &'static str {
        match self {
            MarkShape::Circle => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
            MarkShape::Diamond => "M-5 0L0-5L5 0L0 5Z",
            MarkShape::Square => "M-4-4H4V4H-4Z",
            MarkShape::Triangle => "M-5 4L0-5L5 4Z",
            MarkShape::Cross => "M-4-4L4 4M-4 4L4-4",
            MarkShape::Plus => "M-5 0H5M0-5V5",
        }
    }

    /// Formats a mark at a position in percent, with the tooltip `hint`, which is HTML.
    pub(super) fn mark(self, (x, y): (f64, f64), class: &str, hint: &str) -> String {
        let path = self.path();
        format!(
            r#"<svg x="{x:.2}%" y="{y:.2}%" overflow="visible"><path class="mark {class}" d="{path}"><title>{hint}</title></path></svg>"#
        )
    }

    /// Formats the mark with its meaning for a legend.
    pub(super) fn key(self, class: &str, meaning: &str) -> String {
        let path = self.path();
        format!(
            r#"<span class="key"><svg aria-hidden="true" width="14" height="14" viewBox="-7 -7 14 14"><path class="mark {class}" d="{path}"/></svg>{meaning}</span> "#
        )
    }
}
