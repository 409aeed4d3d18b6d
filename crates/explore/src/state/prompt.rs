//! A line of text that the user types: a filter, a name to find, or the name of a file.

use std::sync::Arc;

use super::{Overlay, State, View};
use crate::filter::Filter;
use crate::input::Key;
use crate::source::{Place, Row};

/// The maximum number of characters in a line.
const CHARS_MAX: usize = 1000;

/// The purpose of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// The filter of the rows.
    Filter,
    /// The beginning of a name, or a path.
    Find {
        /// The position of the cursor at the start.
        from: usize,
    },
    /// The name of a script.
    Script {
        /// The entries that it removes.
        targets: Vec<(Place, Row)>,
    },
    /// The name of a file for the rows that are shown.
    Rows,
}

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The purpose.
    pub kind: PromptKind,
    /// The text so far.
    pub text: String,
}

impl State {
    pub(super) fn press_in_prompt(&mut self, mut prompt: Prompt, key: Key) {
        match key {
            Key::Escape => return,
            Key::Enter => return self.finish_prompt(prompt),
            Key::Backspace => drop(prompt.text.pop()),
            Key::Ctrl('u') => prompt.text.clear(),
            Key::Char(letter) if prompt.text.chars().count() < CHARS_MAX => prompt.text.push(letter),
            _ => {}
        }
        if let PromptKind::Find { from } = prompt.kind {
            let found = self.rows().and_then(|listing| listing.find(prompt.text.as_bytes(), from));
            self.cursor = found.unwrap_or(self.cursor);
        }
        self.overlay = Some(Overlay::Prompt(prompt));
    }

    /// Does what was asked for. A text that is refused stays in its prompt: with that closed, the
    /// next keys would act on rows that the filter or path does not select.
    fn finish_prompt(&mut self, prompt: Prompt) {
        let result = match &prompt.kind {
            PromptKind::Filter => self.set_filter(&prompt.text),
            PromptKind::Find { .. } if prompt.text.contains('/') => self.go_to(prompt.text.as_bytes()),
            PromptKind::Find { .. } => Ok(()),
            PromptKind::Script { targets } => {
                self.write_script(&prompt.text, targets);
                Ok(())
            }
            PromptKind::Rows => {
                self.write_rows(&prompt.text);
                Ok(())
            }
        };
        if let Err(message) = result {
            self.message = Some(message);
            self.overlay = Some(Overlay::Prompt(prompt));
        }
    }

    /// Sets the filter. An empty text removes it.
    ///
    /// # Errors
    /// A message about the word that has no meaning. The filter is then the one before.
    fn set_filter(&mut self, text: &str) -> Result<(), Vec<u8>> {
        let filter = match text.trim() {
            "" => None,
            text => Some(Arc::new(Filter::parse(text.as_bytes(), &self.settings.context)?)),
        };
        self.apply_filter(filter, text.to_owned());
        Ok(())
    }

    pub(super) fn apply_filter(&mut self, filter: Option<Arc<Filter>>, text: String) {
        self.arrange(|state| {
            state.arrangement.filter = filter;
            state.filter = text;
        });
    }

    /// Shows a path: one that begins with the path of a root, or one below the current directory.
    /// The cursor goes to its last name; with a slash behind it, the directory is entered.
    ///
    /// # Errors
    /// A message if the path is outside of all roots.
    fn go_to(&mut self, path: &[u8]) -> Result<(), Vec<u8>> {
        let mut place = self.find_root(path).ok_or(b"no such path in this tree")?;
        let is_directory = path.ends_with(b"/");
        place.below = normal(&place.below);
        match place.parent() {
            Some((above, name)) if !is_directory => {
                let name = name.to_vec();
                self.request(View::Tree, Some(above), Some(name), false);
            }
            _ => self.request(View::Tree, Some(place), None, false),
        }
        Ok(())
    }

    fn find_root(&self, path: &[u8]) -> Option<Place> {
        let below_root = |root: usize| {
            let names = [self.local.get(root)?.as_deref(), self.roots.get(root).map(|row| &*row.name)];
            let rests = names.into_iter().flatten().filter_map(|name| rest_of(path, name));
            rests.min_by_key(|rest| rest.len()).map(|rest| Place { root, below: rest.to_vec() })
        };
        let found = (0..self.roots.len()).filter_map(below_root).min_by_key(|place| place.below.len());
        let place = self.place.as_ref().filter(|_| !path.starts_with(b"/"));
        found.or_else(|| Some(place?.child(path)))
    }
}

/// Returns the part of `path` behind the directory `root`.
fn rest_of<'p>(path: &'p [u8], root: &[u8]) -> Option<&'p [u8]> {
    let root = root.strip_suffix(b"/").unwrap_or(root);
    path.strip_prefix(root)?.strip_prefix(b"/")
}

/// Returns a path without empty names and dots; `..` takes the name before it away.
fn normal(path: &[u8]) -> Vec<u8> {
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_simplified() {
        for (path, expected) in [("a//b/", "a/b"), ("./a/../b", "b"), ("../../c", "c"), ("", ""), ("/", "")] {
            assert_eq!(normal(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_path_of_a_root_is_recognized_with_and_without_a_slash() {
        assert_eq!(rest_of(b"/a/b", b"/a"), Some(&b"b"[..]));
        assert_eq!(rest_of(b"/a/b", b"/"), Some(&b"a/b"[..]));
        assert_eq!(rest_of(b"/ab/c", b"/a"), None);
    }
}
