//! The nodes of the map: their columns, and the lists and paths that refer to them.

use std::collections::HashMap;

use fathom_inventory::store::DirState;
use fathom_questions::top::outline::{Outline, OutlineNode};

use crate::json::{JsonText, text_bytes};

const DAY_MICROS: i64 = 86_400_000_000;
/// The most bytes of the kind, the age group, the owner and the state of a node, with commas.
const PROPERTIES_BYTES: usize = 3 + 3 + 3 + 2;
/// The most bytes that a node takes in the column of what is ignored, which not every page has.
pub(crate) const IGNORED_BYTES: usize = 3;

/// Returns the most bytes that a node takes in the columns. A number of a directory is only there
/// if the page `fetches`.
pub(crate) fn bytes_max(node: &OutlineNode, fetches: bool) -> usize {
    let parent = node.parent.map_or(2, |parent| digits(parent as u64));
    let day = node.mtime.map_or(4, |mtime| 1 + digits(mtime.div_euclid(DAY_MICROS).unsigned_abs()));
    let entries = if is_dir(node) { node.sum.entries } else { 0 };
    let id = if fetches && is_dir(node) { digits(node.dir_id.unsigned_abs()) } else { 1 };
    let numbers = [node.sum.allocated / 512, node.sum.apparent, entries].map(digits);
    text_bytes(&node.name) + parent + day + id + numbers.iter().sum::<usize>() + 7 + PROPERTIES_BYTES
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes the columns. `owner` maps owners to rows of the table of owners. The numbers of
/// directories are only there if the page `fetches`, and what is ignored if the inventory tells.
pub(crate) fn write(outline: &Outline, owner: &HashMap<u32, usize>, fetches: bool, json: &mut JsonText) {
    let nodes = &outline.nodes;
    let numbered = |number: Option<usize>| number.map_or(-1, |number| i64::try_from(number).unwrap_or(-1));
    json.object(|json| {
        json.key("parent").numbers(nodes.iter().map(|node| numbered(node.parent)));
        json.key("name").array(nodes, |json, node| json.text(&node.name));
        json.key("blocks").numbers(nodes.iter().map(|node| node.sum.allocated / 512));
        json.key("apparent").numbers(nodes.iter().map(|node| node.sum.apparent));
        json.key("entries").numbers(nodes.iter().map(|node| if is_dir(node) { node.sum.entries } else { 0 }));
        json.key("kind").numbers(nodes.iter().map(|node| numbered(node.mix.kind.map(usize::from))));
        json.key("age").numbers(nodes.iter().map(|node| numbered(node.mix.age)));
        let owners = nodes.iter().map(|node| node.mix.uid.and_then(|uid| owner.get(&uid)).copied());
        json.key("owner").numbers(owners.map(numbered));
        let told = nodes.iter().filter(|_| outline.ignored.is_some());
        json.key("ignored").numbers(told.map(|node| numbered(node.mix.ignored.map(usize::from))));
        json.key("day").array(nodes, |json, node| write_day(node.mtime, json));
        json.key("state").numbers(nodes.iter().map(|node| state_number(node.state)));
        let ids = nodes.iter().filter(|_| fetches).map(|node| if is_dir(node) { node.dir_id } else { 0 });
        json.key("id").numbers(ids);
    });
}

/// Writes the day of a time in microseconds since 1970.
pub(crate) fn write_day(micros: Option<i64>, json: &mut JsonText) {
    match micros {
        Some(micros) => json.number(micros.div_euclid(DAY_MICROS)),
        None => json.null(),
    }
}

fn is_dir(node: &OutlineNode) -> bool {
    node.state.is_some()
}

/// Returns the number of the state of a directory. The script has the labels.
pub(crate) fn state_number(state: Option<DirState>) -> u8 {
    match state {
        None | Some(DirState::Complete) => 0,
        Some(DirState::Failed) => 2,
        Some(DirState::Skipped) => 3,
        Some(_) => 1,
    }
}

/// The nodes by name, to find them by path.
pub(crate) struct NodesByPath<'a>(HashMap<(Option<usize>, &'a [u8]), usize>);

impl<'a> NodesByPath<'a> {
    pub(crate) fn new(outline: &'a Outline) -> Self {
        let numbered = outline.nodes.iter().enumerate().filter(|(_, node)| is_dir(node));
        Self(numbered.map(|(at, node)| ((node.parent, &node.name[..]), at)).collect())
    }

    /// Returns the node of the directory `path`.
    pub(crate) fn find(&self, path: &[u8]) -> Option<usize> {
        // An operand may be a path of several names.
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let ends = ends.flat_map(|at| [at, at + 1]).chain([path.len()]);
        let below = |end: usize| {
            let root = *self.0.get(&(None, &path[..end]))?;
            let names = path[end..].split(|byte| *byte == b'/').filter(|name| !name.is_empty());
            names.into_iter().try_fold(root, |dir, name| self.0.get(&(Some(dir), name)).copied())
        };
        ends.into_iter().find_map(below)
    }
}

#[cfg(test)]
mod tests {
    use fathom_questions::top::UsageSum;
    use fathom_questions::top::outline::{EntryMix, KINDS_MAX};

    use super::*;

    /// Returns an outline of directories, each with its parent, name and size.
    fn outline(dirs: &[(Option<usize>, &str, u64)]) -> Outline {
        let node = |(parent, name, allocated): &(Option<usize>, &str, u64)| OutlineNode {
            parent: *parent,
            name: name.as_bytes().to_vec(),
            sum: UsageSum { allocated: *allocated, apparent: u64::MAX, entries: 1 },
            dir_id: i64::MAX,
            state: Some(DirState::Partial),
            mtime: Some(i64::MIN),
            mix: EntryMix { kind: Some(15), age: Some(6), uid: Some(u32::MAX), ignored: None },
        };
        let (total, kinds) = (UsageSum::default(), [UsageSum::default(); KINDS_MAX]);
        Outline { nodes: dirs.iter().map(node).collect(), total, ignored: Some(total), kinds }
    }

    /// Returns the path of a node.
    fn path(outline: &Outline, node: usize) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at.and_then(|at| outline.nodes.get(at)) {
            names.push(&node.name[..]);
            at = node.parent;
        }
        let mut path = Vec::new();
        for name in names.into_iter().rev() {
            if path.last().is_some_and(|last| *last != b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        path
    }

    #[test]
    fn paths_lead_to_their_nodes_and_back() {
        let outline = outline(&[
            (None, "/", 9),
            (Some(0), "usr", 8),
            (None, "a//b", 7),
            (Some(2), "c", 6),
            (Some(1), "lib", 5),
        ]);
        let by_path = NodesByPath::new(&outline);
        for (node, expected) in [(0, "/"), (1, "/usr"), (4, "/usr/lib"), (2, "a//b"), (3, "a//b/c")] {
            assert_eq!(path(&outline, node), expected.as_bytes());
            assert_eq!(by_path.find(expected.as_bytes()), Some(node), "{expected}");
        }
        assert_eq!([&b"usr"[..], b"", b"/usr/none", b"c"].map(|path| by_path.find(path)), [None; 4]);
    }

    #[test]
    fn no_node_takes_more_than_its_bound() {
        let all = outline(&[(Some(19_999), "\u{1b}<\"", u64::MAX)]);
        let mut json = JsonText::default();
        write(&all, &HashMap::from([(u32::MAX, 49)]), true, &mut json);
        let mut empty = JsonText::default();
        write(&outline(&[]), &HashMap::new(), true, &mut empty);
        let taken = json.into_string().len() - empty.into_string().len();
        let bound = bytes_max(&all.nodes[0], true) + IGNORED_BYTES;
        // Each column of a single node lacks its comma.
        assert!((bound - 15..=bound).contains(&taken), "{taken} of {bound}");
    }
}
