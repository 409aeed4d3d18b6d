//! The views of a run: GNU du's lines, the same lines as JSON, or rows that are selected at the end
//! of the run.

mod by;
mod figures;
mod json;
mod rows;
mod text;
mod top;
mod tree;

use fathom_du::options::{LineFormat, Measure, Options};
use fathom_du::scan::{Line, ScanOutcome};
use fathom_text::human::BlockSize;
use fathom_text::quote::Charset;

use super::additions::{Additions, ViewKind};
use crate::shared::output::Output;
use crate::shared::screen::Screen;
use figures::FigureFormat;
use rows::{Rows, RowsView};

/// A view turns lines into output.
pub(crate) trait View {
    /// Receives an entry that gets a line, in traversal order.
    fn line(&mut self, line: &Line<'_>, out: &mut Output);

    /// Called at the end of the run. `total` tells whether a line with the total of all operands
    /// was requested.
    fn finish(&mut self, outcome: &ScanOutcome, total: bool, out: &mut Output);

    /// Called when something could not be measured.
    fn problem(&mut self) {}

    /// Returns a warning about the last line, for standard error. It does not affect the exit
    /// status.
    fn warning(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether lines of files carry metadata.
    fn wants_metas(&self) -> bool {
        false
    }
}

/// Creates the requested view, and adjusts the options to it.
pub(crate) fn choose(
    options: &mut Options,
    format: LineFormat,
    unit_chosen: bool,
    extra: &Additions,
    charset: Charset,
) -> Box<dyn View> {
    match extra.view {
        ViewKind::Lines if extra.json => {
            Box::new(json::JsonLinesView::new(options.all, FigureFormat::new(options, format, charset)))
        }
        ViewKind::Lines => Box::new(text::TextView::new(options, format, charset)),
        _ => {
            let format = if unit_chosen { format } else { human_format(options.measure, format) };
            choose_rows(options, format, extra, charset)
        }
    }
}

/// Selects human-readable sizes, unless a unit was requested. A count of inodes stays exact,
/// because it has no unit.
fn human_format(measure: Measure, format: LineFormat) -> LineFormat {
    match measure {
        Measure::Inodes => format,
        _ => LineFormat { block_size: BlockSize::HUMAN, ..format },
    }
}

fn choose_rows(
    options: &mut Options,
    format: LineFormat,
    extra: &Additions,
    charset: Charset,
) -> Box<dyn View> {
    let mut figures = FigureFormat::new(options, format, charset);
    let screen = Screen::new(extra.color, charset);
    if extra.view == ViewKind::Tree && std::mem::take(&mut options.separate_dirs) {
        figures.warn(b"warning: option --separate-dirs is ineffective with --tree".to_vec());
    }
    match extra.view {
        ViewKind::Top(count) => {
            // Every entry needs a line to be among the candidates.
            options.all = true;
            rows_view(top::TopRows::new(options.measure, count), figures, screen, extra.json)
        }
        ViewKind::By(property) => {
            options.all = true;
            options.depth_max = None;
            // The threshold applies to groups, not to entries.
            let threshold = options.threshold.take();
            rows_view(by::GroupRows::new(property, options.time, threshold), figures, screen, extra.json)
        }
        ViewKind::Tree | ViewKind::Lines => {
            // The tree needs the lines of the operands, whatever their size.
            let threshold = options.threshold.take();
            let files = options.all;
            rows_view(
                tree::TreeRows::new(options.measure, threshold, files, screen.rows),
                figures,
                screen,
                extra.json,
            )
        }
    }
}

fn rows_view<R: Rows + 'static>(rows: R, figures: FigureFormat, screen: Screen, json: bool) -> Box<dyn View> {
    Box::new(RowsView::new(rows, figures, screen, json))
}
