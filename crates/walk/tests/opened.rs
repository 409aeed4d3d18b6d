//! A directory is looked at once, before its names are selected and after those above it; what was
//! noted of it is there as long as anything below it is walked.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::sync::{Arc, Mutex};

use fathom_walk::{Emit, Entry, Names, Node, Opened, Visitor};
use support::record::{Everything, Recorder, Seen};
use support::tree::{Tree, bushy, fill};
use support::way::{self, SYNC};

/// Notes of each directory its own name and those noted above it.
#[derive(Clone, Default)]
struct Noter {
    rest: Everything,
    /// Directories, and whether all of their names were known.
    looked_at: Arc<Mutex<Vec<(String, bool)>>>,
}

fn names_above(dir: &Node) -> Vec<&String> {
    dir.chain().map(|node| node.note().expect("looked at before")).collect()
}

impl Visitor for Noter {
    type Item = Seen;
    type Local = ();

    fn opened(&self, dir: Opened<'_>) -> usize {
        assert!(dir.node.note::<String>().is_none(), "{:?} is looked at twice", dir.node.name());
        assert!(dir.node.parent().is_none_or(|parent| !names_above(parent).is_empty()));
        let name = dir.node.name().to_str().unwrap().to_owned();
        self.looked_at.lock().unwrap().push((name.clone(), dir.all));
        dir.node.set_note(name);
        dir.names.heap_bytes()
    }

    fn select(&self, dir: &Arc<Node>, _names: &mut Names) {
        assert_eq!(names_above(dir).len(), dir.depth() + 1);
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Seen>,
    ) {
        assert_eq!(names_above(dir)[0].as_bytes(), dir.name().to_bytes());
        self.rest.entries(&mut (), dir, entries, emit);
    }

    fn weight(item: &Seen) -> usize {
        Everything::weight(item)
    }
}

#[test]
fn each_directory_is_looked_at_once() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    tree.dir("wide");
    fill(&tree.path("wide"), 20_000);
    for way in way::all() {
        let visit = Noter::default();
        let looked_at = visit.looked_at.clone();
        way::walk(way.options().inspect_directories(true), visit, &mut Recorder::new(&[tree.root()]));
        let looked_at = looked_at.lock().unwrap();
        assert_eq!(looked_at.len(), 1 + 4 + 16 + 64 + 1, "{way}");
        assert!(looked_at.iter().all(|(name, all)| *all || name == "wide"), "{way}: {looked_at:?}");
    }
}

#[test]
fn nobody_looks_unless_the_walk_is_to_be_whole() {
    let tree = Tree::new();
    let visit = Everything::default();
    way::walk(SYNC.options(), Strict(visit), &mut Recorder::new(&[tree.root()]));
}

/// Must not be asked to look.
struct Strict(Everything);

impl Visitor for Strict {
    type Item = Seen;
    type Local = ();

    fn opened(&self, dir: Opened<'_>) -> usize {
        panic!("{:?}", dir.node.name());
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Seen>,
    ) {
        self.0.entries(&mut (), dir, entries, emit);
    }

    fn weight(item: &Seen) -> usize {
        Everything::weight(item)
    }
}
