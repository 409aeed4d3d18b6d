//! The answers of the source and of the remover.

use fathom_text::human::BlockSize;

use super::overlay::RunStep;
use super::{Overlay, State, View};
use crate::input::{Answer, Effect, Found};
use crate::listing::{Listing, can_enter};
use crate::remover::{RemovalKind, RemovalOutcome};
use crate::source::{Place, Row, SourceError};

/// Most directories that are walked again after a removal that failed in part.
const WALKS_MAX: usize = 8;

impl State {
    /// Handles an answer.
    pub(super) fn take_answer(&mut self, answer: Answer) {
        match answer {
            Answer::Found { sequence, result } => self.take_found(sequence, result),
            Answer::Progress(progress) => {
                let has_ended = progress.finished && !self.progress.finished;
                self.progress = progress;
                if has_ended {
                    self.read_space();
                }
                // The next walk is not to begin with a pause of which the screen shows nothing.
                if progress.finished && std::mem::take(&mut self.is_paused) {
                    self.effects.push(Effect::Pause(false));
                }
                if progress.version != self.version {
                    self.refresh();
                }
            }
            Answer::Searching { sequence, entries } => {
                if let Some(pending) = self.pending.as_mut().filter(|pending| pending.sequence == sequence) {
                    pending.searched = entries;
                }
            }
            Answer::Space(disks) => self.disks = disks,
            Answer::Rescanned { result: Ok(()), .. } => self.refresh(),
            // The message about a removal, which asks for walks as well, stays.
            Answer::Rescanned { .. } if self.message.is_some() => {}
            Answer::Rescanned { place, result: Err(error) } => self.fail(&error, Some(&place)),
            Answer::Planned { sequence, result } => self.take_plan(sequence, result),
            Answer::Removing(progress) => {
                if let Some(Overlay::Removal(run)) = &mut self.overlay
                    && let RunStep::Removing(shown) = &mut run.step
                {
                    *shown = progress;
                }
            }
            Answer::RemovalEnded { sequence, outcome } => self.take_outcome(sequence, &outcome),
            Answer::Message(message) => self.message = Some(message),
            Answer::Died => self.effects.push(Effect::Abort),
        }
    }

    fn take_found(&mut self, sequence: u64, result: Result<Found, SourceError>) {
        let Some(pending) = self.pending.take_if(|pending| pending.sequence == sequence) else { return };
        let found = match result {
            Ok(found) => found,
            Err(error) => {
                self.fail(&error, pending.place.as_ref());
                return self.show_roots(&pending);
            }
        };
        let place = match found {
            Found::Roots { rows, local, sums } => {
                let is_first = self.local.is_empty();
                (self.roots, self.local, self.root_sums) = (rows, local, sums);
                if is_first {
                    self.read_space();
                }
                if self.roots.len() == 1 && !pending.is_refresh {
                    let root = Place { root: 0, below: Vec::new() };
                    return self.request(pending.view, Some(root), pending.select, false);
                }
                self.install(self.listed_roots(), &pending);
                None
            }
            Found::Listing(listing) => {
                self.install(listing, &pending);
                pending.place
            }
            Found::Files(found) => {
                if let Some(change) = pending.marks {
                    self.take_matching(&found, change);
                }
                return;
            }
            Found::Sums(sums) => {
                self.sums = sums;
                pending.place
            }
        };
        let is_other = self.view != pending.view || self.place != place;
        (self.view, self.place, self.version) = (pending.view, place, pending.version);
        self.sort_sums();
        if is_other && pending.select.is_none() {
            self.cursor = 0;
        }
        self.cursor = self.cursor.min(self.len().saturating_sub(1));
        if self.progress.version != self.version {
            self.refresh();
        }
    }

    /// Shows other rows, and moves the cursor to the row that the query names. When the same rows
    /// are read again, the cursor stays on its row, but at the top it stays at the top.
    fn install(&mut self, listing: Listing, pending: &super::PendingQuery) {
        let current = self.current_name().filter(|_| pending.is_refresh && self.cursor > 0);
        let wanted = pending.select.clone().map(|name| (pending.place.clone(), name)).or(current);
        let position = wanted.and_then(|(place, name)| listing.position(place.as_ref(), &name));
        self.cursor = match position {
            Some(position) => position,
            None if pending.is_refresh => self.cursor,
            None => 0,
        };
        self.listing = Some(listing);
    }

    fn listed_roots(&self) -> Listing {
        Listing::of_roots(self.roots.clone(), self.root_sums, &self.arrangement)
    }

    /// Shows the roots if there is nothing else to show: the only root is a file or unreadable.
    fn show_roots(&mut self, pending: &super::PendingQuery) {
        if self.listing.is_none() && !self.roots.is_empty() {
            self.install(self.listed_roots(), pending);
            (self.view, self.place, self.version) = (View::Tree, None, pending.version);
        }
    }

    fn fail(&mut self, error: &SourceError, place: Option<&Place>) {
        let path = place.map_or_else(Vec::new, |place| self.shown_path(place));
        let path = fathom_text::quote::quoteaf(&path, self.settings.context.charset);
        match error {
            SourceError::Cancelled => {}
            SourceError::Os(operation, errno) => {
                let cause = fathom_text::strerror(*errno);
                self.say(&[b"cannot ", operation.as_bytes(), b" ", &path, b": ", &cause].concat());
            }
            SourceError::Other(cause) => {
                self.say(&[b"cannot read ", &path[..], b": ", cause.as_bytes()].concat())
            }
        }
    }

    fn take_plan(&mut self, sequence: u64, result: Result<crate::remover::RemovalPlan, Vec<u8>>) {
        let Some(Overlay::Removal(run)) = &mut self.overlay else { return };
        if run.sequence != sequence || !matches!(run.step, RunStep::Planning) {
            return;
        }
        match result {
            Ok(plan) => run.confirm(plan),
            Err(message) => {
                self.overlay = None;
                self.message = Some(message);
            }
        }
    }

    /// Asks for new walks of directories of which something may be gone; if there are many, of
    /// their roots.
    fn walk_again(&mut self, left: &[(Place, Row)]) {
        let directories = left.iter().filter(|(_, row)| can_enter(row));
        let mut places: Vec<Place> = directories.map(|(place, row)| place.child(&row.name)).collect();
        if places.len() > WALKS_MAX {
            places.iter_mut().for_each(|place| place.below.clear());
            places.sort_unstable();
            places.dedup();
        }
        self.effects.extend(places.into_iter().map(Effect::Rescan));
    }

    /// Asks for new walks of directories that have got entries.
    fn walk_trashes(&mut self, trashes: &[(Vec<u8>, Vec<u8>)]) {
        for (root, below) in trashes {
            let is_it = |local: &Option<Vec<u8>>| local.as_ref() == Some(root);
            let place = self.local.iter().position(is_it).map(|root| Place { root, below: below.clone() });
            self.effects.extend(place.map(Effect::Rescan));
        }
    }

    /// Takes what is gone out of the marks and the rows.
    fn take_outcome(&mut self, sequence: u64, outcome: &RemovalOutcome) {
        let is_it =
            |overlay: &mut Overlay| matches!(overlay, Overlay::Removal(run) if run.sequence == sequence);
        let Some(Overlay::Removal(run)) = self.overlay.take_if(is_it) else { return };
        let is_removed = |index: usize| outcome.removed.get(index) == Some(&true);
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for (index, target) in run.targets.into_iter().enumerate() {
            if is_removed(index) { gone.push(target) } else { left.push(target) }
        }
        self.marks.remove_below(&gone);
        let progress = outcome.progress;
        match run.kind {
            RemovalKind::Delete => self.removed.deleted.add(&outcome.amount),
            RemovalKind::Trash => self.removed.trashed += progress.entries,
        }
        let mut message = outcome_words(outcome, run.kind, self.settings.units).into_bytes();
        if progress.failures > 0 {
            message.extend_from_slice(format!("; failures: {}", progress.failures).as_bytes());
        }
        if let Some(first) = &outcome.first_failure {
            message.extend_from_slice(&[b": ", &first[..]].concat());
        }
        self.message = Some(message);
        if !gone.is_empty() {
            self.effects.push(Effect::Removed(gone));
        }
        if progress.entries > 0 {
            self.walk_again(&left);
            self.walk_trashes(&outcome.trashes);
            self.read_space();
        }
        self.pending = None;
        if self.listing.as_ref().is_some_and(|listing| listing.found().is_some())
            && self.view == View::Largest
        {
            return self.request(View::Largest, self.place.clone(), None, false);
        }
        self.refresh();
    }
}

/// Returns what a removal has removed, and what is free after it.
fn outcome_words(outcome: &RemovalOutcome, kind: RemovalKind, units: BlockSize) -> String {
    let free = outcome.free_bytes.map(|bytes| format!("; {} free now", units.text(bytes)));
    match kind {
        RemovalKind::Delete => format!("removed {}{}", outcome.amount.words(units), free.unwrap_or_default()),
        RemovalKind::Trash => format!("entries moved to the trash: {}", outcome.progress.entries),
    }
}
