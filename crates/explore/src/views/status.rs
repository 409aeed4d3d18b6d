//! The first and the last line of the screen.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::{Canvas, Cut, REVERSED};
use super::{disk, text};
use crate::arrange::SortKey;
use crate::listing::Listing;
use crate::source::{Amount, Place};
use crate::state::{Overlay, Prompt, PromptKind, State};

/// Draws the path of the directory, and the view.
pub(super) fn header(state: &State, canvas: &mut Canvas<'_>, screen: Rect) {
    let charset = canvas.charset;
    let roots = || Place { root: 0, below: Vec::new() };
    let place = match (state.view.sums(), state.roots.len()) {
        (None, _) => state.place.clone(),
        // Sums cover all roots.
        (Some(_), count) => (count == 1).then(roots),
    };
    let path = match &place {
        Some(place) => text::name(&state.shown_path(place), charset),
        None if state.roots.is_empty() => "fathom explore".to_owned(),
        None => format!("{} trees", state.roots.len()),
    };
    canvas.paint(Rect { height: 1, ..screen }, REVERSED);
    let title = state.view.title();
    let room = screen.width.saturating_sub(title.len() as u16 + 3);
    canvas.put_cut(1, 0, room, &path, REVERSED, Cut::Beginning);
    canvas.put_right(0, 0, screen.width.saturating_sub(1), title, REVERSED);
}

/// Draws a prompt, a message, or the sums of the rows and the progress.
pub(super) fn footer(state: &State, canvas: &mut Canvas<'_>, screen: Rect) {
    if screen.height < 2 {
        return;
    }
    let y = screen.height - 1;
    canvas.paint(Rect { y, height: 1, ..screen }, REVERSED);
    let room = screen.width.saturating_sub(2);
    match (&state.overlay, &state.message) {
        (Some(Overlay::Prompt(prompt)), message) => {
            if let Some(message) = message.as_ref().filter(|_| y > 0) {
                canvas.paint(Rect { y: y - 1, height: 1, ..screen }, REVERSED);
                canvas.put(1, y - 1, room, &text::message(message), REVERSED);
            }
            let line = format!("{}{}_", prompt_title(prompt), text::message(prompt.text.as_bytes()));
            canvas.put_cut(1, y, room, &line, REVERSED, Cut::Beginning);
        }
        (_, Some(message)) => drop(canvas.put(1, y, room, &text::message(message), REVERSED)),
        _ => drop(canvas.put(1, y, room, &facts(state), REVERSED)),
    }
}

fn prompt_title(prompt: &Prompt) -> &'static str {
    match prompt.kind {
        PromptKind::Filter => "filter: ",
        PromptKind::Find { .. } => "find: ",
        PromptKind::Script { .. } => "write the script to: ",
        PromptKind::Rows => "write the rows to: ",
    }
}

/// Returns the facts of the last line, the most important first, because the end may be cut.
fn facts(state: &State) -> String {
    let mut facts = Vec::new();
    if !state.marks.is_empty() {
        facts.push(format!("{} marked", state.marks.len()));
    }
    if let Some(place) = state.awaited() {
        let path = place.as_ref().map(|place| state.shown_path(place)).unwrap_or_default();
        facts.push(match state.searched() {
            Some(entries) => format!("searching: {} entries (Esc stops)", text::count(entries)),
            None => format!("reading {}", text::name(&path, state.settings.context.charset)),
        });
    }
    if state.is_paused {
        facts.push("paused".to_owned());
    } else if !state.progress.finished {
        let progress = &state.progress;
        let (count, size) =
            (text::count(progress.entries), text::size(progress.allocated, state.settings.units));
        facts.push(format!("walking: {count} entries, {size}"));
    }
    if let Some(listing) = state.rows() {
        let sum = |amount: &Amount<u64>| text::size(state.arrangement.size(amount), state.settings.units);
        match listing.found() {
            Some(found) => {
                facts.push(format!("{} in {} matching files", sum(&found), text::count(found.entries)));
                if found.entries > listing.len() as u64 {
                    facts.push(format!("the largest {} shown", listing.len()));
                }
            }
            None => {
                let sum = text::size(listing.size(), state.settings.units);
                facts.push(format!("{sum} in {} items", listing.len() - listing.gone()));
            }
        }
        if let Some(growth) = listing.growth() {
            let grown = state.arrangement.size(&growth);
            facts.push(format!("growth {}", text::growth(grown, state.settings.units)));
        }
        if listing.gone() > 0 {
            facts.push(format!("{} gone", listing.gone()));
        }
        if listing.hidden() > 0 {
            facts.push(format!("{} not shown", listing.hidden()));
        }
    }
    if !state.filter.is_empty() {
        facts.push(format!("filter: {}", text::message(state.filter.as_bytes())));
    }
    facts.push(order(state));
    if let Some((space, total)) = state.disk() {
        facts.extend(disk::facts(space, total, state.settings.units));
    }
    if state.progress.failures > 0 {
        facts.push(format!("{} unreadable", state.progress.failures));
    }
    facts.push("? help".to_owned());
    if let Some(total) = state.rows().and_then(Listing::total) {
        // The size beside the one of the rows.
        let (size, what) = match state.arrangement.apparent {
            true => (total.allocated, "on disk"),
            false => (total.apparent, "apparent"),
        };
        facts.push(format!(
            "{} entries below, {} {what}",
            text::count(total.entries),
            text::size(size, state.settings.units)
        ));
    }
    facts.join(", ")
}

fn order(state: &State) -> String {
    let arrangement = &state.arrangement;
    let key = match arrangement.sort {
        SortKey::Name => "name",
        SortKey::Size if arrangement.apparent => "apparent size",
        SortKey::Size => "disk usage",
        SortKey::Count => "count",
        SortKey::Mtime => "mtime",
        SortKey::Growth => "growth",
    };
    format!("by {key}{}", if arrangement.reverse { ", reversed" } else { "" })
}

/// Draws a text in the middle of the rows, for a view without any.
pub(super) fn nothing(text: &str, canvas: &mut Canvas<'_>, area: Rect) {
    let cells = u16::try_from(text::cells(text)).unwrap_or(area.width).min(area.width);
    canvas.put(area.x + (area.width - cells) / 2, area.y + area.height / 2, cells, text, Style::new());
}
