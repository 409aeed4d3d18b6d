//! Marks, and the actions on the marked entries or on the entry under the cursor.

use fathom_io::FileType;

use super::overlay::{RemovalRun, RunStep};
use super::{MarkChange, Overlay, Prompt, PromptKind, State, View};
use crate::export;
use crate::input::{Effect, Key, QueryKind};
use crate::listing::is_gone;
use crate::remover::{Removal, RemovalKind};
use crate::source::{FoundFiles, Place, Row};

const REMOTE: &[u8] = b"this tree is not on this machine";
const READ_ONLY: &[u8] = b"disabled by --read-only";
const NO_NAME: &[u8] = b"an entry has no valid name";
const NO_ENTRY: &[u8] = b"no entry here";
const NO_FILE: &[u8] = b"not a regular file";
pub(super) const GONE: &[u8] = b"only the older inventory has this entry";
const BEHIND: &[u8] = b"still reading the rows";

impl State {
    /// Returns whether other rows are shown than those that were asked for, and says so. The user
    /// does not mean to mark or remove them.
    fn is_behind(&mut self) -> bool {
        let is_arranged = self.rows().is_none_or(|listing| listing.is_arranged(&self.arrangement));
        let is_behind = self.awaited().is_some() || !is_arranged;
        if is_behind {
            self.say(BEHIND);
        }
        is_behind
    }

    pub(super) fn toggle_mark(&mut self) {
        if self.is_behind() {
            return;
        }
        let Some(listing) = self.listing.as_ref().filter(|_| self.view.sums().is_none()) else { return };
        match (listing.place(self.cursor), listing.row(self.cursor)) {
            (Some(_), Some(row)) if is_gone(row) => self.say(GONE),
            (Some(place), Some(row)) => {
                self.marks.toggle(place, row);
                self.move_cursor(Key::Down);
            }
            (None, Some(_)) => self.say(b"a root cannot be marked"),
            _ => {}
        }
    }

    /// Applies a change to the mark of each row that is shown, or of all files that a search has
    /// found, if only the largest of them are shown.
    pub(super) fn mark_all(&mut self, change: MarkChange) {
        if self.is_behind() {
            return;
        }
        let Some(listing) = self.listing.as_ref().filter(|_| self.view.sums().is_none()) else { return };
        if listing.found().is_some_and(|found| found.entries > listing.len() as u64) {
            return self.mark_found(change);
        }
        for position in 0..listing.len() {
            let row = listing.row(position).filter(|row| !is_gone(row));
            if let (Some(place), Some(row)) = (listing.place(position), row) {
                change(&mut self.marks, place, row);
            }
        }
    }

    /// Searches the files that are shown again, all of them, to change their marks.
    fn mark_found(&mut self, change: MarkChange) {
        let (view, place) = (View::Largest, self.place.clone());
        let kind = QueryKind::Matching(place.clone());
        self.ask(kind, super::PendingQuery { view, place, marks: Some(change), ..Default::default() });
    }

    /// Changes the marks of all files that a search has found. If there are too many, none.
    pub(super) fn take_matching(&mut self, found: &FoundFiles, change: MarkChange) {
        if found.total.entries > found.files.len() as u64 {
            let most = found.files.len();
            return self.say(format!("nothing marked: more than {most} files match").as_bytes());
        }
        for file in &found.files {
            change(&mut self.marks, &file.place, &file.row);
        }
    }

    /// Returns the entries on which an action works: the marked ones, or else the one under the
    /// cursor. Entries of other marked entries are left out.
    fn targets(&self) -> Vec<(Place, Row)> {
        if !self.marks.is_empty() {
            return self.marks.outermost().map(|mark| (mark.place.clone(), mark.row.clone())).collect();
        }
        let listing = self.rows();
        let place = listing.and_then(|listing| listing.place(self.cursor));
        place.cloned().zip(self.current().cloned()).into_iter().collect()
    }

    /// Returns the [targets](Self::targets) of an action that removes; says why if there are none.
    fn valid_targets(&mut self) -> Option<Vec<(Place, Row)>> {
        if self.marks.is_empty() && self.is_behind() {
            return None;
        }
        let targets = self.targets();
        // An inventory may name anything. No directory has such an entry.
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/');
        if targets.is_empty() {
            self.say(NO_ENTRY);
            return None;
        }
        if targets.iter().any(|(_, row)| is_gone(row)) {
            self.say(GONE);
            return None;
        }
        if !targets.iter().all(|(_, row)| is_name(&row.name)) {
            self.say(NO_NAME);
            return None;
        }
        Some(targets)
    }

    /// Begins a removal: asks how much it would remove.
    pub(super) fn remove(&mut self, kind: RemovalKind) {
        if self.settings.is_read_only {
            return self.say(READ_ONLY);
        }
        let Some(targets) = self.valid_targets() else { return };
        let removal = |(place, row): &(Place, Row)| {
            Some(Removal {
                root: self.local.get(place.root)?.clone()?,
                below: place.child(&row.name).below,
                identity: row.identity,
                ctime: row.ctime,
            })
        };
        let Some(removals) = targets.iter().map(removal).collect::<Option<Vec<_>>>() else {
            return self.say(REMOTE);
        };
        self.sequence += 1;
        let sequence = self.sequence;
        self.effects.push(Effect::Plan { sequence, removals: removals.clone() });
        let run = RemovalRun { sequence, kind, targets, removals, step: RunStep::Planning };
        self.overlay = Some(Overlay::Removal(run));
    }

    pub(super) fn ask_for_script(&mut self) {
        if self.settings.is_read_only {
            self.say(READ_ONLY);
        } else {
            let Some(targets) = self.valid_targets() else { return };
            let text = "remove.sh".to_owned();
            self.overlay = Some(Overlay::Prompt(Prompt { kind: PromptKind::Script { targets }, text }));
        }
    }

    pub(super) fn write_script(&mut self, path: &str, targets: &[(Place, Row)]) {
        // The script may run in any directory.
        let absolute = |place: &Place| match self.local_path(place) {
            Some(path) if path.starts_with(b"/") || self.settings.directory.is_empty() => path,
            Some(path) => super::join(&self.settings.directory, &path),
            None => self.path(place),
        };
        let path_of = |(place, row): &(Place, Row)| (row.identity, absolute(&place.child(&row.name)));
        let paths: Vec<_> = targets.iter().map(path_of).collect();
        let text = crate::script::removal(paths.iter().map(|(identity, path)| (*identity, &path[..])));
        self.effects.push(Effect::WriteScript { path: path.as_bytes().to_vec(), text });
    }

    pub(super) fn ask_for_rows(&mut self) {
        if self.settings.is_read_only {
            self.say(READ_ONLY);
        } else if !self.is_behind() {
            let text = "rows.csv".to_owned();
            self.overlay = Some(Overlay::Prompt(Prompt { kind: PromptKind::Rows, text }));
        }
    }

    /// Writes all rows of the view, also those that do not fit on the screen.
    pub(super) fn write_rows(&mut self, path: &str) {
        let context = &self.settings.context;
        let text = match (self.view.sums(), &self.listing) {
            (Some(_), _) => export::sums(&self.sums),
            (None, Some(rows)) => export::rows(rows, &self.arrangement, context, &|place| self.path(place)),
            (None, None) => return self.say(NO_ENTRY),
        };
        self.effects.push(Effect::WriteRows { path: path.as_bytes().to_vec(), text });
    }

    /// Returns the place under the cursor.
    fn current_target(&self) -> Option<Place> {
        self.rows()?.target(self.cursor)
    }

    pub(super) fn copy(&mut self) {
        match self.current_target() {
            Some(target) => {
                self.effects.push(Effect::Copy(self.path(&target)));
                self.say(b"copied the path to the terminal's clipboard");
            }
            None => self.say(NO_ENTRY),
        }
    }

    /// Runs an effect with a path of this machine.
    fn run(&mut self, target: Option<Place>, effect: fn(Vec<u8>) -> Effect) {
        if self.settings.is_read_only {
            return self.say(READ_ONLY);
        }
        let Some(target) = target else { return self.say(NO_ENTRY) };
        if self.current().is_some_and(is_gone) && Some(&target) == self.current_target().as_ref() {
            return self.say(GONE);
        }
        match self.local_path(&target) {
            Some(path) => self.effects.push(effect(path)),
            None => self.say(REMOTE),
        }
    }

    pub(super) fn open(&mut self) {
        self.run(self.current_target(), Effect::Open);
    }

    pub(super) fn view_file(&mut self) {
        let is_file = self.current().is_some_and(|row| row.file_type == FileType::Regular || is_gone(row));
        if is_file { self.run(self.current_target(), Effect::View) } else { self.say(NO_FILE) }
    }

    pub(super) fn shell(&mut self) {
        let place = self.place.clone().or_else(|| self.current_target());
        self.run(place, Effect::Shell);
    }

    pub(super) fn rescan(&mut self) {
        let place = self.place.clone().or_else(|| self.current_target());
        match place {
            Some(place) => {
                self.effects.push(Effect::Rescan(place));
                if self.view == View::Largest && self.arrangement.is_selective() {
                    self.request(View::Largest, self.place.clone(), None, false);
                }
            }
            None => self.say(NO_ENTRY),
        }
    }

    pub(super) fn pause(&mut self) {
        if self.progress.finished {
            return self.say(b"nothing is being walked");
        }
        self.is_paused = !self.is_paused;
        self.effects.push(Effect::Pause(self.is_paused));
    }
}
