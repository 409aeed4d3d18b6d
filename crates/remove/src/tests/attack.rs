//! A process that renames directories and puts links in their place while a tree is removed leads
//! the removal to nothing outside the tree.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// Creates `tree/{0..8}/sub/{0..8}/file`, beside `outside` with the same names.
fn create(base: &Path) {
    for top in ["tree", "outside"] {
        for dir in 0..8 {
            for sub in 0..8 {
                let path = base.join(format!("{top}/{dir}/sub/{sub}"));
                fs::create_dir_all(&path).unwrap();
                fs::write(path.join("file"), "x").unwrap();
            }
        }
    }
}

/// Exchanges directories of the tree with links to directories outside, until `stop`. Counts
/// the exchanges.
fn swap(base: &Path, stop: &AtomicBool, swaps: &AtomicU64) {
    for (level, inner) in
        ["", "/sub", "/sub/3"].iter().cycle().zip((0..8).cycle()).map(|(inner, dir)| (dir, *inner))
    {
        let (inside, outside) = (format!("tree/{level}{inner}"), format!("outside/{level}{inner}"));
        let (inside, outside, link) = (base.join(inside), base.join(outside), base.join("link"));
        symlink(&outside, &link).unwrap();
        let exchange = || renameat_with(CWD, &inside, CWD, &link, RenameFlags::EXCHANGE);
        if exchange().is_ok() {
            swaps.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
            // The directory comes back, unless the link was removed meanwhile.
            let _ = exchange();
        }
        // Either the link, or the directory of the tree.
        if fs::remove_file(&link).is_err() {
            let _ = fs::remove_dir_all(&link);
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
}

#[test]
fn an_attacker_leads_nothing_out_of_the_tree() {
    let swaps = AtomicU64::new(0);
    let rounds = fathom_cases::count(24);
    for round in 0..rounds {
        let temp = tempfile::tempdir().unwrap();
        create(temp.path());
        let before = listing(&temp.path().join("outside"));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let earlier = swaps.load(Ordering::Relaxed);
            scope.spawn(|| swap(temp.path(), &stop, &swaps));
            while swaps.load(Ordering::Relaxed) < earlier + 2 {
                thread::yield_now();
            }
            let options =
                RemovalOptions { threads: Some(1 + round % 4), measure: round % 2 == 0, ..measured() };
            let targets = (0..8).map(|dir| Target::below(temp.path().join("tree"), format!("{dir}/sub")));
            run(targets, &options);
            let listed = (0..64).map(|number| {
                let path = temp.path().join(format!("tree/{}/sub/{}/file", number % 8, number / 8));
                Target::listed(path.into_os_string().into_encoded_bytes())
            });
            run(listed, &options);
            run([Target::path(temp.path().join("tree"))], &options);
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(listing(&temp.path().join("outside")), before, "round {round}");
    }
    assert!(swaps.load(Ordering::Relaxed) > rounds as u64);
}

#[test]
fn a_directory_in_place_of_the_one_that_was_shown_is_not_removed() {
    let temp = tempfile::tempdir().unwrap();
    create(temp.path());
    let shown = temp.path().join("tree/0");
    let meta = shown.symlink_metadata().unwrap();
    let identity = {
        use std::os::unix::fs::MetadataExt;
        crate::Identity { dev: meta.dev(), ino: meta.ino() }
    };
    renameat_with(CWD, &shown, CWD, temp.path().join("outside"), RenameFlags::EXCHANGE).unwrap();
    let before = listing(temp.path());
    let (summary, _) = run([Target::path(&shown).identity(identity)], &measured());
    assert_eq!((summary.failures, summary.files, summary.directories), (1, 0, 0));
    assert_eq!(listing(temp.path()), before);
}
