//! The windows over the rows.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::{BOLD, Canvas, REVERSED};
use super::{disk, table, text};
use crate::listing::{Listing, is_gone};
use crate::marks::Mark;
use crate::remover::{RemovalKind, RemovalPlan};
use crate::source::{Place, Row, RowState};
use crate::state::{Confirmation, KEYS, Overlay, RemovalRun, State};

/// The cells of the keys in the help.
const KEY_CELLS: usize = 15;
/// The lines of the screen that a removal needs besides its entries.
const REMOVAL_LINES: usize = 8;

/// Draws the window that is open.
pub(super) fn render(state: &State, canvas: &mut Canvas<'_>, screen: Rect) {
    match &state.overlay {
        None | Some(Overlay::Prompt(_)) => {}
        Some(Overlay::Help { offset }) => window("keys", &help(*offset, screen.width), None, canvas, screen),
        Some(Overlay::Info) => {
            if let Some(row) = state.current() {
                window("information", &info(state, row), None, canvas, screen);
            }
        }
        Some(Overlay::Marks { cursor }) => marks(state, cursor.as_ref(), canvas, screen),
        Some(Overlay::Removal(run)) => {
            let title = match run.kind() {
                RemovalKind::Delete => "delete",
                RemovalKind::Trash => "move to the trash",
            };
            window(title, &removal(state, run, screen.height), None, canvas, screen);
        }
        Some(Overlay::Quit) => {
            let lines =
                [format!("{} entries are still marked.", state.marks.len()), "Quit? (y, n)".to_owned()];
            window("quit", &lines, None, canvas, screen);
        }
    }
}

/// Draws lines in a frame in the middle of the screen.
fn window(title: &str, lines: &[String], selected: Option<usize>, canvas: &mut Canvas<'_>, screen: Rect) {
    let longest = lines.iter().map(|line| text::cells(line)).chain([title.len() + 2]).max().unwrap_or(0);
    let width = u16::try_from(longest + 4).unwrap_or(u16::MAX).min(screen.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(screen.height);
    let area = Rect::new((screen.width - width) / 2, (screen.height - height) / 2, width, height)
        .intersection(screen);
    canvas.clear(area);
    if width < 4 || height < 3 {
        return;
    }
    let [top_left, top_right, bottom_left, bottom_right, across, down] = canvas.lines();
    let across = across.repeat(usize::from(width) - 2);
    let (bottom, right) = (area.bottom() - 1, area.right() - 1);
    canvas.put(area.x, area.y, width, &[top_left, &across, top_right].concat(), Style::new());
    canvas.put(area.x, bottom, width, &[bottom_left, &across, bottom_right].concat(), Style::new());
    canvas.put(area.x + 2, area.y, width - 4, &format!(" {title} "), BOLD);
    for (number, y) in (area.y + 1..bottom).enumerate() {
        canvas.put(area.x, y, 1, down, Style::new());
        canvas.put(right, y, 1, down, Style::new());
        let line = lines.get(number).map_or("", String::as_str);
        let style = if selected == Some(number) { REVERSED } else { Style::new() };
        canvas.put(area.x + 2, y, width - 4, line, style);
    }
}

/// Returns the keys from a line of the help on, each with what it does, in as many lines as that
/// takes.
fn help(offset: usize, width: u16) -> Vec<String> {
    let room = usize::from(width).saturating_sub(KEY_CELLS + 4).max(1);
    let mut lines = Vec::new();
    for (keys, what) in &KEYS[offset.min(KEYS.len())..] {
        let mut line = format!("{keys:KEY_CELLS$}");
        for word in what.split_inclusive(' ') {
            if line.len() > KEY_CELLS && line.len() + word.trim_end().len() > KEY_CELLS + room {
                lines.push(std::mem::replace(&mut line, " ".repeat(KEY_CELLS)));
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

fn info(state: &State, row: &Row) -> Vec<String> {
    let charset = state.settings.context.charset;
    let path = state.listing.as_ref().and_then(|listing| listing.target(state.cursor));
    let path = path.map_or_else(|| row.name.to_vec(), |path| state.path(&path));
    let amount = &row.amount;
    let unless_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let owner = row.uid.map(|uid| format!("{} ({uid}), group {}", table::owner(state, row), row.gid));
    let newest = row.newest_mtime_s.map(|_| table::newest(state, row));
    let mut lines = vec![text::name(&path, charset), format!("type      {}", row.file_type.name())];
    let sizes = [
        format!(
            "on disk   {} ({} bytes)",
            text::size(amount.allocated, state.settings.units),
            amount.allocated
        ),
        format!(
            "apparent  {} ({} bytes)",
            text::size(amount.apparent, state.settings.units),
            amount.apparent
        ),
        format!("entries   {}", amount.entries),
        format!("inode     {} on device {}, links: {}", row.identity.ino, row.identity.dev, row.links),
    ];
    // An entry that is gone has neither sizes nor an inode.
    lines.extend(sizes.into_iter().filter(|_| !is_gone(row)));
    if row.shared > 0 {
        let shared = text::size(row.shared, state.settings.units);
        lines.push(format!("shared    {shared} also have names elsewhere (hard links)"));
    }
    lines.push(format!("newest    {}", unless_unknown(newest)));
    lines.push(format!("owner     {}", unless_unknown(owner)));
    lines.push(format!("state     {}", table::state_words(row.state)));
    let has_growth = state.listing.as_ref().is_some_and(Listing::has_growth);
    if has_growth && row.growth.is_none() && row.state != RowState::Walking {
        lines.push("growth    new since the older inventory".to_owned());
    }
    if let Some(growth) = &row.growth {
        let [disk, apparent] =
            [growth.allocated, growth.apparent].map(|bytes| text::growth(bytes, state.settings.units));
        lines.push(format!("growth    {disk} on disk, {apparent} apparent, {} entries", growth.entries));
    }
    if let Some((space, _)) = state.disk() {
        lines.extend(disk::lines(space, state.settings.units));
    }
    lines
}

fn marks(state: &State, cursor: Option<&Place>, canvas: &mut Canvas<'_>, screen: Rect) {
    let height = usize::from(screen.height.saturating_sub(4)).max(1);
    let (found, selected) = cursor.map_or_else(Default::default, |cursor| state.marks.around(cursor, height));
    let line = |mark: &Mark| {
        let path = state.shown_path(&mark.place.child(&mark.row.name));
        let size = text::size(state.arrangement.size(&mark.row.amount), state.settings.units);
        format!("{size:>7} {}", text::name(&path, canvas.charset))
    };
    let mut lines: Vec<String> = found.into_iter().map(line).collect();
    if lines.is_empty() {
        lines.push("No marks. Space marks an entry and moves on.".to_owned());
    }
    let title = format!("{} marked", state.marks.len());
    window(&title, &lines, Some(selected), canvas, screen);
}

fn removal(state: &State, run: &RemovalRun, height: u16) -> Vec<String> {
    let mut lines = targets(state, run, usize::from(height).saturating_sub(REMOVAL_LINES).max(1));
    match run.confirmation() {
        Confirmation::Planning => lines.push("counting... (Esc stops)".to_owned()),
        Confirmation::Key(plan) => {
            lines.extend(extent(state, plan, run.kind()));
            lines.push("Remove? (y, n)".to_owned());
        }
        Confirmation::Count(plan, typed) => {
            lines.extend(extent(state, plan, run.kind()));
            let number = plan.possible.number_to_type().unwrap_or_default();
            lines.push(format!("Type {number}, Enter (Esc: no): {typed}_"));
        }
        Confirmation::Removing(progress) => {
            let failures = progress.failures;
            lines.push(format!("removed: {}, failures: {failures} (Esc stops)", progress.entries));
        }
    }
    lines
}

/// Returns the largest entries that are to be removed with their sizes, and the number of the
/// others, in at most `room` lines.
fn targets(state: &State, run: &RemovalRun, room: usize) -> Vec<String> {
    let all = run.targets();
    let size = |row: &Row| state.arrangement.size(&row.amount);
    let mut largest: Vec<_> = all.iter().collect();
    largest.sort_by_key(|(_, row)| std::cmp::Reverse(size(row)));
    largest.truncate(if all.len() > room { room - 1 } else { room });
    let line = |(place, row): &&(Place, Row)| {
        let path = state.shown_path(&place.child(&row.name));
        let size = text::size(size(row), state.settings.units);
        format!("{size:>7} {}", text::name(&path, state.settings.context.charset))
    };
    let mut lines: Vec<String> = largest.iter().map(line).collect();
    if all.len() > lines.len() {
        lines.push(format!("        and {} more", all.len() - lines.len()));
    }
    lines
}

/// Returns the numbers of a plan, and why something stays.
fn extent(state: &State, plan: &RemovalPlan, kind: RemovalKind) -> Vec<String> {
    let charset = state.settings.context.charset;
    let freed = match plan.freed {
        _ if kind == RemovalKind::Trash => "frees nothing yet".to_owned(),
        Some(bytes) => {
            let now = if plan.holder.is_some() { " now" } else { "" };
            format!("frees {}{now}", text::size(bytes, state.settings.units))
        }
        None => "frees an unknown part".to_owned(),
    };
    let numbers = [
        format!("files: {}, directories: {}", plan.possible.files, plan.possible.directories),
        format!("{} on disk, {freed}", text::size(plan.bytes, state.settings.units)),
    ];
    let held = plan.holder.as_ref().filter(|_| kind == RemovalKind::Delete).map(|holder| {
        let held = text::size(plan.held, state.settings.units);
        let holder = text::message(holder.as_bytes());
        match plan.possible.files + plan.possible.directories {
            1 => format!("{holder} has it open"),
            _ => format!("{held} of it are open, the largest file in {holder}"),
        }
    });
    let kept = plan.kept.as_ref().map(|kept| format!("stays: {}", text::name(kept, charset)));
    numbers.into_iter().chain(held).chain(kept).collect()
}
