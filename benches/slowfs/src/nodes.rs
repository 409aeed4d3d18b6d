//! The inodes that the kernel references: from node number to the path of the latest lookup. Makes
//! no system calls.
//!
//! An entry lives while the kernel holds a lookup of it or one of its children lives: the path of a
//! child is built through its parent.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

/// FUSE's fixed node number of the root of a mount.
pub(crate) const ROOT: u64 = 1;

/// All inodes that the kernel references, by FUSE node number. The node number is the inode number
/// in the source, except for [`ROOT`].
#[derive(Default)]
pub(crate) struct Nodes {
    by_number: HashMap<u64, Node>,
}

struct Node {
    parent: u64,
    name: OsString,
    lookups: u64,
    children: u64,
}

impl Nodes {
    /// Records that a lookup of `name` in `parent` returned `number`. A file with several links
    /// keeps the latest name, because that name certainly exists.
    pub(crate) fn add_lookup(&mut self, number: u64, parent: u64, name: &OsStr) {
        self.add_child(parent);
        let node = Node { parent, name: name.to_owned(), lookups: 1, children: 0 };
        let Some(old) = self.by_number.insert(number, node) else { return };
        let node = self.by_number.get_mut(&number).expect("inserted above");
        node.lookups += old.lookups;
        node.children = old.children;
        self.remove_child(old.parent);
    }

    /// Drops `lookups` of the kernel's references.
    pub(crate) fn forget(&mut self, number: u64, lookups: u64) {
        if let Some(node) = self.by_number.get_mut(&number) {
            node.lookups = node.lookups.saturating_sub(lookups);
            self.drop_if_unused(number);
        }
    }

    /// Returns the names from the root to `number`: empty for the root, `None` for a number that
    /// the kernel has forgotten.
    pub(crate) fn names(&self, number: u64) -> Option<Vec<&OsStr>> {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT {
            // A rename in the source between two lookups can produce a cycle of parents.
            if names.len() == self.by_number.len() {
                return None;
            }
            let node = self.by_number.get(&at)?;
            names.push(node.name.as_os_str());
            at = node.parent;
        }
        names.reverse();
        Some(names)
    }

    fn add_child(&mut self, parent: u64) {
        if let Some(parent) = self.by_number.get_mut(&parent) {
            parent.children += 1;
        }
    }

    fn remove_child(&mut self, parent: u64) {
        if let Some(node) = self.by_number.get_mut(&parent) {
            node.children -= 1;
            self.drop_if_unused(parent);
        }
    }

    /// Removes `number`, then every ancestor without further references. A loop instead of
    /// recursion, because trees may be deeper than the stack.
    fn drop_if_unused(&mut self, mut number: u64) {
        while self.by_number.get(&number).is_some_and(|node| node.lookups == 0 && node.children == 0) {
            let removed = self.by_number.remove(&number).expect("just seen");
            number = removed.parent;
            if let Some(parent) = self.by_number.get_mut(&number) {
                parent.children -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(nodes: &Nodes, number: u64) -> Option<String> {
        let names = nodes.names(number)?;
        Some(names.join(OsStr::new("/")).into_string().expect("ASCII names"))
    }

    #[test]
    fn a_path_leads_from_the_root() {
        let mut nodes = Nodes::default();
        nodes.add_lookup(10, ROOT, OsStr::new("a"));
        nodes.add_lookup(11, 10, OsStr::new("b"));
        assert_eq!(names(&nodes, 11).as_deref(), Some("a/b"));
        assert_eq!(names(&nodes, ROOT).as_deref(), Some(""));
        assert_eq!(names(&nodes, 12), None);
    }

    #[test]
    fn a_forgotten_directory_stays_while_a_child_needs_it() {
        let mut nodes = Nodes::default();
        nodes.add_lookup(10, ROOT, OsStr::new("a"));
        nodes.add_lookup(11, 10, OsStr::new("b"));
        nodes.forget(10, 1);
        assert_eq!(names(&nodes, 11).as_deref(), Some("a/b"));
        nodes.forget(11, 1);
        assert!(nodes.by_number.is_empty());
    }

    #[test]
    fn the_latest_link_stands_and_lookups_add_up() {
        let mut nodes = Nodes::default();
        nodes.add_lookup(10, ROOT, OsStr::new("a"));
        nodes.add_lookup(11, 10, OsStr::new("first"));
        nodes.add_lookup(11, ROOT, OsStr::new("second"));
        assert_eq!(names(&nodes, 11).as_deref(), Some("second"));
        nodes.forget(10, 1);
        assert_eq!(names(&nodes, 10), None, "the link in it no longer keeps it");
        nodes.forget(11, 1);
        assert!(names(&nodes, 11).is_some());
        nodes.forget(11, 1);
        assert!(nodes.by_number.is_empty());
    }

    #[test]
    fn a_cycle_of_parents_has_no_path() {
        let mut nodes = Nodes::default();
        nodes.add_lookup(10, 11, OsStr::new("a"));
        nodes.add_lookup(11, 10, OsStr::new("b"));
        assert_eq!(names(&nodes, 10), None);
    }

    #[test]
    fn looking_up_again_under_the_same_name_counts_one_child() {
        let mut nodes = Nodes::default();
        nodes.add_lookup(10, ROOT, OsStr::new("a"));
        nodes.add_lookup(11, 10, OsStr::new("b"));
        nodes.add_lookup(11, 10, OsStr::new("b"));
        nodes.forget(11, 2);
        nodes.forget(10, 1);
        assert!(nodes.by_number.is_empty());
    }
}
