//! `Visitor::opened` is called once for each directory, before its names are selected and after the
//! call for its parent. The note of a directory exists as long as anything below it is walked.

use std::sync::{Arc, Mutex};

use crate::support::record::{Everything, RecordedItem, Recorder};
use crate::support::tree::{Tree, bushy, fill};
use crate::support::way::{self, SYNC};
use fathom_walk::{Emit, Entry, Names, Node, Opened, OrderedVisitor, Visitor};

/// Sets a note of each directory: its own name and the notes of its ancestors.
#[derive(Clone, Default)]
struct NoteVisitor {
    rest: Everything,
    /// The directories, and whether the call had all of their names.
    inspected: Arc<Mutex<Vec<(String, bool)>>>,
}

fn names_above(dir: &Node) -> Vec<&String> {
    dir.chain().map(|node| node.note().expect("inspected before")).collect()
}

impl Visitor for NoteVisitor {
    type Item = RecordedItem;
    type Local = ();

    fn opened(&self, dir: Opened<'_>) -> usize {
        assert!(dir.node.note::<String>().is_none(), "{:?} is inspected twice", dir.node.name());
        assert!(dir.node.parent().is_none_or(|parent| !names_above(parent).is_empty()));
        let name = dir.node.name().to_str().unwrap().to_owned();
        self.inspected.lock().unwrap().push((name.clone(), dir.all));
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
        emit: &mut Emit<'_, RecordedItem>,
    ) {
        assert_eq!(names_above(dir)[0].as_bytes(), dir.name().to_bytes());
        self.rest.entries(&mut (), dir, entries, emit);
    }
}

impl OrderedVisitor for NoteVisitor {
    fn weight(item: &RecordedItem) -> usize {
        Everything::weight(item)
    }
}

#[test]
fn each_directory_is_inspected_once() {
    let tree = Tree::new();
    bushy(&tree.root(), 4, 3);
    tree.dir("wide");
    fill(&tree.path("wide"), 20_000);
    for way in way::all() {
        let visit = NoteVisitor::default();
        let inspected = visit.inspected.clone();
        way::walk(way.options().inspect_directories(true), visit, &mut Recorder::new(&[tree.root()]));
        let inspected = inspected.lock().unwrap();
        assert_eq!(inspected.len(), 1 + 4 + 16 + 64 + 1, "{way}");
        assert!(inspected.iter().all(|(name, all)| *all || name == "wide"), "{way}: {inspected:?}");
    }
}

#[test]
fn directories_are_inspected_only_on_request() {
    let tree = Tree::new();
    let visit = Everything::default();
    way::walk(SYNC.options(), UninspectedVisitor(visit), &mut Recorder::new(&[tree.root()]));
}

/// Panics if a directory is inspected.
struct UninspectedVisitor(Everything);

impl Visitor for UninspectedVisitor {
    type Item = RecordedItem;
    type Local = ();

    fn opened(&self, dir: Opened<'_>) -> usize {
        panic!("{:?}", dir.node.name());
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, RecordedItem>,
    ) {
        self.0.entries(&mut (), dir, entries, emit);
    }
}

impl OrderedVisitor for UninspectedVisitor {
    fn weight(item: &RecordedItem) -> usize {
        Everything::weight(item)
    }
}
