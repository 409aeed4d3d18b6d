//! Which paths were asked for before. What is asked for once is not worth being kept: it would only make others go.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Marks of the paths that were asked for last. Two paths share a mark once in billions of times: then one is kept too early.
#[derive(Debug)]
pub(super) struct Door {
    /// By the lower part of a path's hash, its upper part; 0 for none.
    marks: Box<[Cell<u32>]>,
    hasher: RandomState,
}

/// Marks for each path that is kept: few of those that are asked for in turn share a place then.
const PER_FILE: usize = 8;
/// Fewest and most marks.
const MARKS: [usize; 2] = [256, 1 << 16];

impl Door {
    /// For a cache of `files` paths.
    pub(super) fn new(files: usize) -> Self {
        let [least, most] = MARKS;
        let marks = files.saturating_mul(PER_FILE).clamp(least, most).next_power_of_two();
        Self { marks: vec![Cell::new(0); marks].into(), hasher: RandomState::new() }
    }

    /// Whether `path` below the root number `root` was asked for before, and not too many others since. From now on it was.
    pub(super) fn knows(&self, root: usize, path: &[u8]) -> bool {
        let hash = self.hasher.hash_one((root, path));
        let at = hash as usize & (self.marks.len() - 1);
        let mark = (hash >> 32) as u32 | 1;
        self.marks.get(at).is_some_and(|known| known.replace(mark) == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_again_is_known() {
        let door = Door::new(0);
        assert!(!door.knows(0, b"a"));
        assert!(door.knows(0, b"a"));
        assert!(!door.knows(1, b"a"), "another root");
    }

    #[test]
    fn who_came_before_many_others_is_not() {
        let door = Door::new(32);
        let known = |name: u32| door.knows(0, &name.to_be_bytes());
        assert!((0..100_000).all(|name| !known(name)));
        let again = (0..100_000).filter(|name| known(*name)).count();
        assert!(again < 256, "{again}");
    }
}
