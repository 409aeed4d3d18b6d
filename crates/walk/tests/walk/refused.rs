//! The result of a walk is the same if workers cannot have working directories of their own, as in
//! many containers.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;

use crate::support::record::assert_same;
use crate::support::skip;
use crate::support::tree::{Tree, bushy, fill, mixed};
use crate::support::way::{self, SYNC, Way};
use fathom_io::sys;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Makes unshare(2) fail with EPERM, for this thread and all threads that it starts.
fn refuse_unshare() {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let calls = BTreeMap::from([(libc::SYS_unshare, Vec::new())]);
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, machine).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

#[test]
fn workers_that_share_a_working_directory_report_the_same() {
    let tree = Tree::new();
    bushy(&tree.root(), 8, 2);
    mixed(&tree);
    fill(&tree.dir("d1/wide"), 5_000);
    let first = way::lines(SYNC.options(), &[tree.root()]);
    let enter = || sys::enter(File::open(tree.root()).unwrap().as_fd());
    let (allowed, refused) = std::thread::scope(|scope| {
        let allowed = scope.spawn(enter).join().unwrap();
        let walk = || {
            refuse_unshare();
            assert!(!enter());
            [Way::workers(1), Way::workers(4)].map(|way| way::lines(way.options(), &[tree.root()]))
        };
        (allowed, scope.spawn(walk).join().unwrap())
    });
    for lines in refused {
        assert_same(&first, &lines, "refused");
    }
    if !allowed {
        skip("threads cannot have working directories of their own here: both walks were the same");
    }
}
