//! The windows over the rows: help, information, the list of the marks, prompts, and the steps of a
//! removal.

use super::{Prompt, State};
use crate::input::{Effect, Key};
use crate::marks::Marks;
use crate::remover::{Removal, RemovalKind, RemovalLimit, RemovalPlan, RemovalProgress};
use crate::source::{Place, Row};

/// A window over the rows.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// The keys, from this line on.
    Help {
        /// The first line.
        offset: usize,
    },
    /// Information about the row under the cursor.
    Info,
    /// The marked entries.
    Marks {
        /// The path of the entry under the cursor; `None` if nothing is marked.
        cursor: Option<Place>,
    },
    /// A line of text is being typed.
    Prompt(Prompt),
    /// A removal.
    Removal(RemovalRun),
    /// The question whether the marks are to be lost.
    Quit,
}

/// A removal with its steps.
#[derive(Clone, Debug)]
pub struct RemovalRun {
    pub(super) sequence: u64,
    pub(super) kind: RemovalKind,
    pub(super) targets: Vec<(Place, Row)>,
    pub(super) removals: Vec<Removal>,
    pub(super) step: RunStep,
}

/// The step of a removal.
#[derive(Clone, Debug)]
pub(super) enum RunStep {
    /// The remover counts.
    Planning,
    /// The user is asked.
    Confirming(RemovalPlan, String),
    /// The remover removes.
    Removing(RemovalProgress),
}

/// The question that a removal asks, or its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation<'a> {
    /// The remover still counts.
    Planning,
    /// The user is to press `y`.
    Key(&'a RemovalPlan),
    /// The user is to type the [number of files](RemovalLimit::number_to_type), and has typed this
    /// text.
    Count(&'a RemovalPlan, &'a str),
    /// The remover removes.
    Removing(RemovalProgress),
}

impl RemovalRun {
    /// Returns the place to which the entries go.
    #[must_use]
    pub fn kind(&self) -> RemovalKind {
        self.kind
    }

    /// Returns the entries.
    #[must_use]
    pub fn targets(&self) -> &[(Place, Row)] {
        &self.targets
    }

    /// Returns what is to be shown.
    #[must_use]
    pub fn confirmation(&self) -> Confirmation<'_> {
        match &self.step {
            RunStep::Planning => Confirmation::Planning,
            RunStep::Confirming(plan, typed) if plan.possible.number_to_type().is_some() => {
                Confirmation::Count(plan, typed)
            }
            RunStep::Confirming(plan, _) => Confirmation::Key(plan),
            RunStep::Removing(progress) => Confirmation::Removing(*progress),
        }
    }

    pub(super) fn confirm(&mut self, plan: RemovalPlan) {
        self.step = RunStep::Confirming(plan, String::new());
    }

    /// Handles a key. Returns whether the removal goes on, and its effect.
    fn press(&mut self, key: Key) -> (bool, Option<Effect>) {
        let is_end = matches!(key, Key::Escape | Key::Char('n' | 'q'));
        match &mut self.step {
            RunStep::Planning => (!is_end, is_end.then_some(Effect::StopRemoval)),
            // The outcome of a removal that was stopped is still to come.
            RunStep::Removing(_) => (true, is_end.then_some(Effect::StopRemoval)),
            RunStep::Confirming(..) if is_end => (false, None),
            RunStep::Confirming(plan, typed) => {
                let number = plan.possible.number_to_type();
                let is_confirmed = match key {
                    Key::Char('y') => number.is_none(),
                    Key::Enter => number.is_some() && typed.parse().ok() == number,
                    _ => false,
                };
                match key {
                    Key::Char(digit @ '0'..='9') if typed.len() < 20 => typed.push(digit),
                    Key::Backspace => drop(typed.pop()),
                    _ => {}
                }
                let limit = plan.possible;
                (true, is_confirmed.then(|| self.begin(limit)))
            }
        }
    }

    fn begin(&mut self, limit: RemovalLimit) -> Effect {
        self.step = RunStep::Removing(RemovalProgress::default());
        let removals = std::mem::take(&mut self.removals);
        Effect::Remove { sequence: self.sequence, kind: self.kind, limit, removals }
    }
}

impl State {
    /// Handles a key while a window is open. The window is closed unless it is put back.
    pub(super) fn press_in_overlay(&mut self, overlay: Overlay, key: Key) {
        let is_end = matches!(key, Key::Escape | Key::Char('q') | Key::Click { .. });
        match overlay {
            Overlay::Help { offset } => {
                if !is_end && key != Key::Char('?') {
                    let last = super::KEYS.len().saturating_sub(1);
                    let offset = moved(offset, key, last);
                    self.overlay = Some(Overlay::Help { offset });
                }
            }
            Overlay::Info => {
                if !is_end && !matches!(key, Key::Char('i') | Key::Enter) {
                    self.press_in_info(key);
                }
            }
            Overlay::Marks { cursor } => {
                if !is_end && key != Key::Tab {
                    self.press_in_marks(cursor, key);
                }
            }
            Overlay::Prompt(prompt) => self.press_in_prompt(prompt, key),
            Overlay::Removal(mut run) => {
                let is_wrong = key == Key::Enter && matches!(run.confirmation(), Confirmation::Count(..));
                let (goes_on, effect) = run.press(key);
                if is_wrong && effect.is_none() {
                    self.say(b"the number does not match; nothing was removed");
                }
                self.effects.extend(effect);
                self.overlay = goes_on.then_some(Overlay::Removal(run));
            }
            Overlay::Quit => {
                if matches!(key, Key::Char('y' | 'q') | Key::Enter) {
                    self.effects.push(Effect::Quit);
                }
            }
        }
    }

    /// Moves the cursor while the information about its row is shown.
    fn press_in_info(&mut self, key: Key) {
        match key {
            Key::Char('j') => self.move_cursor(Key::Down),
            Key::Char('k') => self.move_cursor(Key::Up),
            _ => self.move_cursor(key),
        }
        self.overlay = Some(Overlay::Info);
    }

    fn press_in_marks(&mut self, cursor: Option<Place>, key: Key) {
        if key == Key::Enter {
            let mark = cursor.and_then(|cursor| self.marks.get(&cursor));
            if let Some((place, name)) = mark.map(|mark| (mark.place.clone(), mark.row.name.to_vec())) {
                self.request(super::View::Tree, Some(place), Some(name), false);
            }
            return;
        }
        match (key, &cursor) {
            (Key::Char(' '), Some(cursor)) => self.marks.remove_at(cursor),
            (Key::Char('-'), _) => self.marks = Marks::default(),
            _ => {}
        }
        let cursor = match key {
            Key::Home => self.marks.ends().map(|(first, _)| first),
            Key::End => self.marks.ends().map(|(_, last)| last),
            _ => cursor.and_then(|cursor| self.marks.near(&cursor, steps(key))),
        };
        self.overlay = Some(Overlay::Marks { cursor });
    }
}

/// Returns the line to which a key moves.
fn moved(line: usize, key: Key, last: usize) -> usize {
    let line = match key {
        Key::Home => 0,
        Key::End => last,
        key => line.saturating_add_signed(steps(key)),
    };
    line.min(last)
}

/// Returns the number of lines by which a key moves.
fn steps(key: Key) -> isize {
    match key {
        Key::Up | Key::Char('k') | Key::WheelUp => -1,
        Key::Down | Key::Char('j') | Key::WheelDown => 1,
        Key::PageUp => -10,
        Key::PageDown => 10,
        _ => 0,
    }
}
