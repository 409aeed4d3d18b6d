//! The keys of the views.

use super::{Overlay, Prompt, PromptKind, State, View};
use crate::arrange::SortKey;
use crate::input::{Effect, Key};
use crate::listing::{can_enter, is_gone};
use crate::remover::RemovalKind;
use crate::source::Place;

/// The number of rows by which the wheel moves.
const WHEEL: usize = 3;

/// The keys and what they do, for the help.
pub const KEYS: &[(&str, &str)] = &[
    ("up down k j G", "move; also page up, page down, home, end"),
    ("right l Enter", "enter the directory"),
    ("left h", "the directory above"),
    ("1 2 3 4 5 6", "tree, largest files, by extension, by owner, by age, treemap"),
    ("n s C M w", "sort by name, size, count, mtime, growth; again: reverse"),
    ("a", "apparent size instead of disk usage"),
    ("g c m u", "graph, counts, mtime, owner: on and off"),
    ("e t", "hidden names; directories first"),
    ("/", "filter: name, *.log, size>10M, age>30d, type:f, owner:NAME"),
    ("f", "find: type the beginning of a name, or a path"),
    ("i", "information about the entry"),
    ("Space", "mark the entry, and move to the next one"),
    ("* + -", "invert the marks; mark everything shown; clear all marks"),
    ("Tab", "the list of the marked entries"),
    ("d D", "delete; move to the trash: the marked entries, or this one"),
    ("W E", "write a script that removes the marked entries; rows as CSV"),
    ("y", "copy the path to the clipboard"),
    ("o v b", "open the entry; show its text; a shell in this directory"),
    ("r p", "read the directory again; pause the walk"),
    ("? q Q", "this help; quit; quit and print this directory"),
    ("~.!><-H@e", "walking, incomplete, unreadable, skipped, patterns, gone, links, special, empty"),
];

impl State {
    /// Handles a key.
    pub(super) fn press(&mut self, key: Key) {
        match key {
            Key::Ctrl('c') => return self.effects.push(Effect::Abort),
            Key::Ctrl('z') => return self.effects.push(Effect::Suspend),
            _ => self.message = None,
        }
        match self.overlay.take() {
            Some(overlay) => self.press_in_overlay(overlay, key),
            None => self.press_in_view(key),
        }
    }

    fn press_in_view(&mut self, key: Key) {
        match key {
            Key::Char(letter) => self.press_letter(letter),
            Key::Right | Key::Enter => self.enter(),
            Key::Left | Key::Backspace => self.leave(),
            Key::Tab => {
                let cursor = self.marks.ends().map(|(first, _)| first);
                self.overlay = Some(Overlay::Marks { cursor });
            }
            Key::Escape if self.pending.as_ref().is_some_and(|pending| !pending.is_refresh) => {
                self.stop_query();
            }
            Key::Escape if !self.filter.is_empty() => self.apply_filter(None, String::new()),
            Key::Click { column, line } => self.click(column, line),
            _ => self.move_cursor(key),
        }
    }

    fn press_letter(&mut self, letter: char) {
        match letter {
            'k' => self.move_cursor(Key::Up),
            'j' => self.move_cursor(Key::Down),
            'G' => self.move_cursor(Key::End),
            'l' => self.enter(),
            'h' => self.leave(),
            '1'..='6' => self.show(View::ALL[letter as usize - '1' as usize]),
            'n' => self.sort(SortKey::Name),
            's' => self.sort(SortKey::Size),
            'C' => self.sort(SortKey::Count),
            'M' => self.sort(SortKey::Mtime),
            'w' => self.sort(SortKey::Growth),
            'a' => self.arrange(|state| state.arrangement.apparent ^= true),
            'e' => self.arrange(|state| state.arrangement.shows_hidden ^= true),
            't' => self.arrange(|state| state.arrangement.directories_first ^= true),
            'g' => self.columns.graph ^= true,
            'c' => self.columns.counts ^= true,
            'm' => self.columns.mtime ^= true,
            'u' => self.columns.owner ^= true,
            'i' => self.overlay = self.current().map(|_| Overlay::Info),
            '?' => self.overlay = Some(Overlay::Help { offset: 0 }),
            '/' => self.prompt(PromptKind::Filter, self.filter.clone()),
            'f' => self.prompt(PromptKind::Find { from: self.cursor }, String::new()),
            ' ' => self.toggle_mark(),
            '*' => self.mark_all(crate::marks::Marks::toggle),
            '+' => self.mark_all(crate::marks::Marks::insert),
            '-' => self.marks = crate::marks::Marks::default(),
            'd' => self.remove(RemovalKind::Delete),
            'D' => self.remove(RemovalKind::Trash),
            'W' => self.ask_for_script(),
            'E' => self.ask_for_rows(),
            'y' => self.copy(),
            'o' => self.open(),
            'v' => self.view_file(),
            'b' => self.shell(),
            'r' => self.rescan(),
            'p' => self.pause(),
            'q' | 'Q' => {
                self.prints_place = letter == 'Q';
                self.quit();
            }
            _ => {}
        }
    }

    /// Moves the cursor by a key that only moves.
    pub(super) fn move_cursor(&mut self, key: Key) {
        if self.view == View::Treemap && matches!(key, Key::Up | Key::Down) {
            return self.move_in_treemap(key == Key::Down);
        }
        let (page, last) = (self.page(), self.len().saturating_sub(1));
        self.cursor = match key {
            Key::Up => self.cursor.saturating_sub(1),
            Key::Down => self.cursor + 1,
            Key::PageUp => self.cursor.saturating_sub(page),
            Key::PageDown => self.cursor.saturating_add(page),
            Key::WheelUp => self.cursor.saturating_sub(WHEEL),
            Key::WheelDown => self.cursor.saturating_add(WHEEL),
            Key::Home => 0,
            Key::End => last,
            _ => self.cursor,
        }
        .min(last);
    }

    /// Moves the cursor to the next smaller or next larger area.
    fn move_in_treemap(&mut self, to_smaller: bool) {
        let Some(listing) = &self.listing else { return };
        let tiles = listing.tiles();
        let at = tiles.iter().position(|tile| tile.0 == self.cursor);
        let next = match (at, to_smaller) {
            (None, _) => 0,
            (Some(at), true) => at + 1,
            (Some(at), false) => at.saturating_sub(1),
        };
        self.cursor = tiles.get(next).map_or(self.cursor, |tile| tile.0);
    }

    fn click(&mut self, column: u16, line: u16) {
        let clicked = crate::views::row_at(self, column, line);
        match clicked {
            Some(position) if position == self.cursor => self.enter(),
            Some(position) => self.cursor = position,
            None => {}
        }
    }

    /// Enters the directory under the cursor.
    fn enter(&mut self) {
        if self.current().is_some_and(is_gone) {
            return self.say(super::actions::GONE);
        }
        let Some(listing) = self.rows() else { return };
        let (Some(row), Some(target)) = (listing.row(self.cursor), listing.target(self.cursor)) else {
            return;
        };
        if can_enter(row) {
            let view = if self.view == View::Treemap { View::Treemap } else { View::Tree };
            self.request(view, Some(target), None, false);
        } else if listing.is_mixed() {
            // Shows the file in its directory.
            let (place, name) = (listing.place(self.cursor).cloned(), row.name.to_vec());
            self.request(View::Tree, place, Some(name), false);
        }
    }

    /// Goes to the directory above, or from another view to the tree.
    fn leave(&mut self) {
        if !matches!(self.view, View::Tree | View::Treemap) {
            return self.show(View::Tree);
        }
        let Some(place) = &self.place else { return };
        match place.parent() {
            Some((above, name)) => {
                let name = name.to_vec();
                self.request(self.view, Some(above), Some(name), false);
            }
            None if self.roots.len() > 1 => {
                let name = self.roots.get(place.root).map(|root| root.name.to_vec());
                self.request(self.view, None, name, false);
            }
            None => {}
        }
    }

    /// Shows another view of the same directory.
    fn show(&mut self, view: View) {
        let are_entries = |view| matches!(view, View::Tree | View::Treemap);
        let is_refresh = |pending: &super::PendingQuery| pending.is_refresh;
        if are_entries(view) && are_entries(self.view) && self.pending.as_ref().is_none_or(is_refresh) {
            self.view = view;
            if let Some(pending) = &mut self.pending {
                pending.view = view;
            }
        } else {
            self.request(view, self.place.clone(), None, false);
        }
    }

    fn sort(&mut self, key: SortKey) {
        self.arrange(|state| {
            let arrangement = &mut state.arrangement;
            arrangement.reverse = arrangement.sort == key && !arrangement.reverse;
            arrangement.sort = key;
        });
    }

    /// Changes the arrangement.
    pub(super) fn arrange(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.arrangement.clone();
        change(self);
        self.sort_sums();
        let is_other = !self.arrangement.selects_same(&before);
        if self.view == View::Largest && is_other {
            // Other files than the ones that are known may be shown.
            return self.request(View::Largest, self.place.clone(), None, false);
        }
        self.arrange_rows();
    }

    /// Gives up the query that runs. Without the result of a search, rows of an earlier one would
    /// be shown under its filter.
    fn stop_query(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        self.effects.push(Effect::CancelQuery);
        let is_search = pending.view == View::Largest && self.view == View::Largest;
        if is_search && pending.marks.is_none() {
            self.request(View::Tree, self.place.clone(), None, false);
        }
    }

    /// Returns the directory and the name of the row under the cursor.
    pub(super) fn current_name(&self) -> Option<(Option<Place>, Vec<u8>)> {
        let listing = self.rows()?;
        let row = listing.row(self.cursor)?;
        Some((listing.place(self.cursor).cloned(), row.name.to_vec()))
    }

    /// Moves the cursor to a row, if it is shown.
    pub(super) fn select(&mut self, name: Option<(Option<Place>, Vec<u8>)>) {
        let Some((place, name)) = name else { return };
        let position = self.rows().and_then(|listing| listing.position(place.as_ref(), &name));
        self.cursor = position.unwrap_or(self.cursor).min(self.len().saturating_sub(1));
    }

    /// Sorts the sums. Classes of ages stay in the order of age.
    pub(super) fn sort_sums(&mut self) {
        let arrangement = &self.arrangement;
        if self.view == View::Ages {
            return;
        }
        match arrangement.sort {
            SortKey::Name => self.sums.sort_by(|one, two| one.key.cmp(&two.key)),
            SortKey::Count => self.sums.sort_by_key(|sum| u64::MAX - sum.amount.entries),
            _ => self.sums.sort_by_key(|sum| u64::MAX - arrangement.size(&sum.amount)),
        }
        if arrangement.reverse {
            self.sums.reverse();
        }
    }

    fn prompt(&mut self, kind: PromptKind, text: String) {
        self.overlay = Some(Overlay::Prompt(Prompt { kind, text }));
    }

    fn quit(&mut self) {
        if self.marks.is_empty() || self.settings.prints_marks {
            self.effects.push(Effect::Quit);
        } else {
            self.overlay = Some(Overlay::Quit);
        }
    }
}
