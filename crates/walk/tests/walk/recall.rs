//! A directory whose names the visitor recalls is opened, but not read: the walk continues with the
//! recalled names, even if the directory has changed.

use std::fs;
use std::sync::Arc;

use crate::support::record::{Everything, RecordedItem, Recorder};
use crate::support::tree::Tree;
use crate::support::way;
use fathom_walk::{Emit, Entry, FileType, Meta, Names, Node, OrderedVisitor, Visitor};

/// Recalls two directories in `known`, one of which no longer exists, and no names in `empty`.
#[derive(Clone, Default)]
struct RecallingVisitor(Everything);

impl Visitor for RecallingVisitor {
    type Item = RecordedItem;
    type Local = ();

    fn recall(&self, dir: &Arc<Node>, meta: &Meta, names: &mut Names) -> bool {
        assert!(names.is_empty() && meta.file_type() == FileType::Directory);
        match dir.name().to_bytes() {
            b"known" => {
                names.push(c"sub", 7, FileType::Directory).unwrap();
                names.push(c"gone", 8, FileType::Directory).unwrap();
                true
            }
            name => name == b"empty",
        }
    }

    fn select(&self, dir: &Arc<Node>, _names: &mut Names) {
        assert!(!matches!(dir.name().to_bytes(), b"known" | b"empty"), "it was read");
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, RecordedItem>,
    ) {
        self.0.entries(
            &mut (),
            dir,
            entries.inspect(|entry| assert!(dir.name() != c"known" || entry.meta.is_none())),
            emit,
        );
    }
}

impl OrderedVisitor for RecallingVisitor {
    fn weight(item: &RecordedItem) -> usize {
        Everything::weight(item)
    }
}

#[test]
fn a_recalled_directory_is_not_read() {
    let tree = Tree::new();
    for dir in ["known/sub/below", "empty", "read"] {
        fs::create_dir_all(tree.path(dir)).unwrap();
    }
    for file in ["known/unseen", "known/sub/seen", "empty/unseen", "read/seen"] {
        fs::write(tree.path(file), "").unwrap();
    }
    for way in way::all() {
        let mut recorder = Recorder::new(&[tree.root()]);
        let summary = way::walk(way.options(), RecallingVisitor::default(), &mut recorder);
        let lines = recorder.lines.join("\n");
        let count = |what: &str| lines.matches(what).count();
        println!("{way}:\n{lines}");
        assert_eq!((count("unseen"), count("seen"), count("gone")), (0, 2, 1), "{way}");
        assert!(lines.contains("below"), "{way}");
        assert_eq!(summary.calls.read, 4, "{way}: the root, sub, below and read");
    }
}
