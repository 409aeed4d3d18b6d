//! Paths of consecutive directories. A path is changed into the next one from the nearest common
//! ancestor on: in a chain of n directories each step appends one name, whereas building each path
//! anew would visit all ancestors, n² in all.

use std::sync::Arc;

use crate::node::Node;

/// The path of the most recent directory, for visitors and consumers that print paths: one per
/// worker or consumer.
#[derive(Debug, Default)]
pub struct DirPath {
    node: Option<Arc<Node>>,
    /// With a slash at the end, unless it is empty.
    text: Vec<u8>,
}

impl DirPath {
    /// Returns the path of `dir` as [`Node::path_into`] writes it, with one slash at the end.
    #[inline]
    pub fn of(&mut self, dir: &Arc<Node>) -> &[u8] {
        if !self.node.as_ref().is_some_and(|node| Arc::ptr_eq(node, dir)) {
            self.change(dir);
            self.node = Some(dir.clone());
        }
        &self.text
    }

    /// Writes the names that the old path lacks, from the last one up to the common ancestor.
    fn change(&mut self, dir: &Node) {
        let (mut old, mut new) = (self.node.as_deref(), Some(dir));
        self.text.resize(dir.path_len_with_slash(), b'/');
        loop {
            match (old, new) {
                (Some(a), Some(b)) if std::ptr::eq(a, b) => break,
                (Some(a), b) if b.is_none_or(|b| a.depth() > b.depth()) => old = above(a),
                (a, Some(b)) => {
                    put(b, &mut self.text);
                    new = above(b);
                    old = a.filter(|a| a.depth() < b.depth()).or_else(|| a.and_then(above));
                }
                (_, None) => break,
            }
        }
    }
}

/// Writes the name of `node` and one slash at their position in the path.
fn put(node: &Node, text: &mut [u8]) {
    let end = node.path_len_with_slash();
    let name = node.name().to_bytes();
    let start = node.parent().map_or(0, |parent| parent.path_len_with_slash());
    text[start..start + name.len()].copy_from_slice(name);
    text[end - 1] = b'/';
}

fn above(node: &Node) -> Option<&Node> {
    node.parent().map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_io::Follow;
    use std::ffi::CString;

    fn child(parent: &Arc<Node>, name: &str) -> Arc<Node> {
        Arc::new(Node::child(parent, &CString::new(name).unwrap(), Follow::No))
    }

    fn built(node: &Node) -> Vec<u8> {
        let mut path = Vec::new();
        node.path_into(&mut path);
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path
    }

    /// Every directory after every other one, with three roots.
    #[test]
    fn a_path_does_not_depend_on_the_previous_one() {
        let mut nodes = Vec::new();
        for (index, root) in [c"r", c"r/", c"/"].into_iter().enumerate() {
            let root = Arc::new(Node::root(root.to_owned(), index, Follow::No, std::sync::Weak::new()));
            let (a, b) = (child(&root, "a"), child(&root, "bb"));
            let (c, d) = (child(&a, "ccc"), child(&a, "d"));
            let e = child(&c, "e");
            nodes.extend([root, a, b, c, d, e]);
        }
        for first in &nodes {
            for second in &nodes {
                let mut path = DirPath::default();
                assert_eq!(path.of(first), built(first));
                assert_eq!(path.of(second), built(second));
                assert_eq!(path.of(second), built(second));
            }
        }
    }

    /// Building each path anew would visit 5,000 million nodes.
    #[test]
    fn a_long_chain_takes_one_step_for_each_level() {
        let mut path = DirPath::default();
        let mut node = Arc::new(Node::root(c"r".to_owned(), 0, Follow::No, std::sync::Weak::new()));
        for _ in 0..100_000 {
            node = child(&node, "d");
            path.of(&node);
        }
        assert_eq!(path.of(&node), built(&node));
    }
}
