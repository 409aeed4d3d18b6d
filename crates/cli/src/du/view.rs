//! What is shown of a run: GNU du's lines, the same lines as JSON, or rows that are picked when the run is over.

mod by;
pub(crate) mod figures;
pub(crate) mod json;
mod rows;
pub(crate) mod screen;
mod text;
mod top;
mod tree;

use fathom_du::options::{Format, Measure, Options};
use fathom_du::scan::{Line, Outcome};
use fathom_text::human::BlockSize;
use fathom_text::quote::Charset;

use super::extra::{self, Extra};
use crate::output::Output;
use figures::Figures;
use rows::{Picked, Rows};
use screen::Screen;

/// Makes output of lines.
pub(crate) trait View {
    /// An entry that gets a line, in traversal order.
    fn line(&mut self, line: &Line<'_>, out: &mut Output);

    /// The run is over; `total` is whether a line for all operands together was asked for.
    fn finish(&mut self, outcome: &Outcome, total: bool, out: &mut Output);

    /// Something could not be measured.
    fn problem(&mut self) {}

    /// Something to say on standard error about the line before; no failure.
    fn warning(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Whether lines of files are to carry their metadata.
    fn wants_metas(&self) -> bool {
        false
    }
}

/// The view asked for. Adjusts what is measured to what it shows.
pub(crate) fn choose(
    options: &mut Options,
    format: Format,
    unit_chosen: bool,
    extra: &Extra,
    charset: Charset,
) -> Box<dyn View> {
    match extra.view {
        extra::View::Lines if extra.json => {
            Box::new(json::Lines::new(options.all, Figures::new(options, format, charset)))
        }
        extra::View::Lines => Box::new(text::Text::new(options, format, charset)),
        _ => {
            let format = if unit_chosen { format } else { short(options.measure, format) };
            pick(options, format, extra, charset)
        }
    }
}

/// Numbers for people where nobody asked for others. A count of inodes stays exact: it has no unit to be short of.
fn short(measure: Measure, format: Format) -> Format {
    match measure {
        Measure::Inodes => format,
        _ => Format { block_size: BlockSize::HUMAN, ..format },
    }
}

fn pick(options: &mut Options, format: Format, extra: &Extra, charset: Charset) -> Box<dyn View> {
    let mut figures = Figures::new(options, format, charset);
    let screen = Screen::new(extra.color, charset);
    if extra.view == extra::View::Tree && std::mem::take(&mut options.separate_dirs) {
        figures.warn(b"warning: option --separate-dirs is ineffective with --tree".to_vec());
    }
    match extra.view {
        extra::View::Top(count) => {
            // Everything has a line, so that anything can be among the largest.
            options.all = true;
            picked(top::Top::new(options.measure, count), figures, screen, extra.json)
        }
        extra::View::By(property) => {
            options.all = true;
            options.depth_max = None;
            // A threshold is for what is shown, which are groups.
            let threshold = options.threshold.take();
            picked(by::By::new(property, options.time, threshold), figures, screen, extra.json)
        }
        extra::View::Tree | extra::View::Lines => {
            // The tree needs the operands, whatever their size.
            let threshold = options.threshold.take();
            let files = options.all;
            picked(
                tree::Tree::new(options.measure, threshold, files, screen.rows),
                figures,
                screen,
                extra.json,
            )
        }
    }
}

fn picked<R: Rows + 'static>(rows: R, figures: Figures, screen: Screen, json: bool) -> Box<dyn View> {
    Box::new(Picked::new(rows, figures, screen, json))
}
