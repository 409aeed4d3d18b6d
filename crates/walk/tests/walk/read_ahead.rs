//! With a visitor that does not read ahead, only the directories that the consumer enters are read.

use std::fs;

use crate::support::record::{Everything, Recorder, assert_same};
use crate::support::tree::Tree;
use crate::support::way;
use fathom_walk::Descend;

fn recorder(tree: &Tree) -> Recorder<'_> {
    let mut recorder = Recorder::new(&[tree.root()]);
    let is_wanted = |depth: usize, name: &[u8]| depth == 0 || matches!(name, b"d3" | b"in");
    recorder.descend = Box::new(move |enter| {
        let name = enter.node.name().to_bytes();
        if is_wanted(enter.node.depth(), name) { Descend::Yes } else { Descend::No }
    });
    recorder
}

#[test]
fn directories_that_are_not_entered_are_not_read() {
    let tree = Tree::new();
    for dir in 0..20 {
        let below = tree.path(format!("d{dir}/in/out"));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("file"), "").unwrap();
        fs::write(tree.path(format!("d{dir}/in/file")), "").unwrap();
    }
    for way in way::all() {
        let mut expected = recorder(&tree);
        way::walk(way.options(), Everything::default(), &mut expected);
        let mut found = recorder(&tree);
        let summary =
            way::walk(way.options(), Everything { is_lazy: true, ..Everything::default() }, &mut found);
        assert_same(&expected.lines, &found.lines, way);
        assert_eq!(summary.calls.read, 3, "{way}: the root, d3 and d3/in");
    }
}
