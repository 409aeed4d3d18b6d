//! The layout of a figure: rows with a name, a track of marks on a common axis, and numbers. Every
//! track is an SVG as wide as the page permits. Positions are percentages, so that marks keep their
//! shape at any width.

use super::cells::{ArmSection, CellSection};
use super::markup::{Escaped, name};
use super::number::{Unit, label};
use super::scale::Scale;

/// One row of a figure. `name` and `value` are HTML, `track` is SVG.
pub(super) struct FigureRow {
    /// The JSON pointer that the `data-key` attributes in `value` are relative to.
    pub(super) at: String,
    pub(super) name: String,
    /// The content of the track's SVG.
    pub(super) track: String,
    pub(super) value: String,
}

/// A figure without its rows.
pub(super) struct Figure<'a> {
    pub(super) title: &'a str,
    /// The caption as HTML.
    pub(super) caption: &'a str,
    pub(super) axis: &'a str,
    pub(super) unit: Unit,
    /// SVG that is drawn below the marks of each track.
    pub(super) ground: String,
}

impl Figure<'_> {
    /// Formats the figure as HTML; empty if it has no rows.
    pub(super) fn html(&self, scale: &Scale, lines: &[FigureRow]) -> String {
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

    fn line(&self, grid: &str, line: &FigureRow) -> String {
        let FigureRow { at, name, track, value } = line;
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

/// Formats the labels of a horizontal axis as SVG.
pub(super) fn tick_labels(scale: &Scale, unit: Unit) -> String {
    let ticks = scale.ticks().into_iter().filter_map(|tick| Some((scale.place(tick)?, label(unit, tick))));
    let labels: String =
        ticks.map(|(x, label)| format!(r#"<text x="{x:.2}%" y="1em">{label}</text>"#)).collect();
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

/// Formats a horizontal line between two values, at `y` percent of the height.
pub(super) fn stroke(scale: &Scale, (low, high): (f64, f64), y: f64, class: &str) -> String {
    match (scale.place(low), scale.place(high)) {
        (Some(low), Some(high)) => {
            format!(r#"<line class="{class}" x1="{low:.2}%" x2="{high:.2}%" y1="{y}%" y2="{y}%"/>"#)
        }
        _ => String::new(),
    }
}

/// Formats an arm's name as HTML, with language or concurrency if the name alone is ambiguous.
pub(super) fn arm_name(cell: &CellSection, arm: &ArmSection, is_polyglot: bool) -> String {
    let summary = arm.summary;
    let lang = is_polyglot.then(|| Escaped(&summary.lang).to_string());
    let flight = cell.is_ambiguous(arm).then(|| format!("{}\u{a0}×\u{a0}{}", summary.threads, summary.depth));
    let more: Vec<String> = [lang, flight].into_iter().flatten().collect();
    let more = if more.is_empty() { String::new() } else { format!(" <small>{}</small>", more.join(", ")) };
    format!("<code>{}</code>{more}", name(&summary.method))
}
