//! Deleting and moving to the trash: what is asked, and what is removed.

use fathom_explore::disk::DiskSpace;
use fathom_explore::input::{Answer, Effect, Event, Key};
use fathom_explore::memory::file;
use fathom_explore::remover::{RemovalKind, RemovalPlan};
use fathom_explore::state::{Confirmation, Overlay, Settings};
use fathom_io::filesystem::Space;
use fathom_remove::{DeletedFile, FileHolder};

use crate::driver::{Driver, FakeRemover, explorer, sample};

fn confirmation(it: &Driver) -> Confirmation<'_> {
    match it.state.overlay() {
        Some(Overlay::Removal(run)) => run.confirmation(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_deleted_after_one_key() {
    let mut it = explorer();
    it.keys("fnotes\nd");
    let plan = FakeRemover::plan_of(1, 0);
    assert_eq!(confirmation(&it), Confirmation::Key(&plan));
    // Other keys do nothing, and no other answer than `y` removes.
    it.keys("d x\n5");
    assert!(it.remover.removed.is_empty());
    let shown = it.state.current().unwrap().clone();
    it.keys("y");
    let (kind, removals) = &it.remover.removed[0];
    assert_eq!((*kind, removals.len()), (RemovalKind::Delete, 1));
    let removal = &removals[0];
    assert_eq!(
        (&removal.root[..], &removal.below[..], removal.identity),
        (&b"/data"[..], &b"notes.txt"[..], shown.identity)
    );
    assert!(removal.ctime.is_some() && removal.ctime == shown.ctime);
    assert_eq!(it.message(), "removed 1 file, 4.0K; 5.0G free now");
    assert!(!it.names().contains(&"notes.txt".to_owned()));
}

#[test]
fn more_than_a_hundred_files_are_removed_only_after_their_number_was_typed() {
    let mut it = explorer();
    it.keys("D");
    assert!(matches!(confirmation(&it), Confirmation::Count(plan, "") if plan.possible.files == 110));
    it.keys("y\n111\n");
    assert_eq!(it.remover.removed.len(), 0);
    assert!(matches!(confirmation(&it), Confirmation::Count(_, "111")));
    assert_eq!(it.message(), "the number does not match; nothing was removed");
    it.press(Key::Backspace);
    it.keys("0\n");
    assert_eq!(it.remover.removed[0].0, RemovalKind::Trash);
    assert!(!it.names().contains(&"photos".to_owned()));
}

#[test]
fn the_marked_entries_are_removed_whatever_is_under_the_cursor() {
    let mut it = explorer();
    it.keys("2/*.log\n*");
    assert_eq!(it.marked().len(), 3);
    // The order changes, and other rows are under the cursor: the marks decide.
    it.keys("\x1b1nnfphotos\nd");
    assert!(matches!(confirmation(&it), Confirmation::Key(plan) if plan.possible.files == 3));
    it.keys("y");
    let mut below: Vec<_> = it.remover.removed[0].1.iter().map(|removal| removal.below.clone()).collect();
    below.sort();
    assert_eq!(below, [&b"log/x.log"[..], b"log/y.log", b"projects/old/keep.log"]);
    // The entry that could not be removed stays marked.
    assert_eq!(it.marked(), ["/data/projects/old/keep.log"]);
    assert_eq!(it.message(), "removed 2 files, 8.0K; 5.0G free now; failures: 1: 'keep': Permission denied");
}

#[test]
fn entries_of_a_marked_directory_are_removed_with_it() {
    let mut it = explorer();
    it.keys("l h ");
    assert_eq!(it.marked(), ["/data/photos", "/data/photos/2025"]);
    it.keys("d110\n");
    assert_eq!(it.remover.removed[0].1.len(), 1);
    assert!(it.marked().is_empty());
}

#[test]
fn a_removal_can_be_given_up_at_each_step() {
    let mut it = explorer();
    let effects = it.state.handle(Event::Key(Key::Char('d')));
    assert!(matches!(&effects[..], [Effect::Plan { .. }]));
    assert_eq!(confirmation(&it), Confirmation::Planning);
    let stopped = it.state.handle(Event::Key(Key::Escape));
    assert!(matches!(&stopped[..], [Effect::StopRemoval]) && it.state.overlay().is_none());
    // The late answer to it is not taken for the answer to the next one.
    let [Effect::Plan { sequence, .. }] = effects[..] else { panic!() };
    let again = it.state.handle(Event::Key(Key::Char('d')));
    it.send(Event::Answer(Answer::Planned { sequence, result: Ok(RemovalPlan::default()) }));
    assert_eq!(confirmation(&it), Confirmation::Planning);
    let [Effect::Plan { sequence, .. }] = again[..] else { panic!() };
    it.send(Event::Answer(Answer::Planned { sequence, result: Err(b"no".to_vec()) }));
    assert_eq!((it.state.overlay().is_none(), it.message()), (true, "no".to_owned()));
    it.keys("dn");
    assert!(it.state.overlay().is_none() && it.remover.removed.is_empty());
    // While entries are removed, Escape stops, and the outcome is still shown.
    it.keys("fnotes\n");
    it.keys("d");
    let effects = it.state.handle(Event::Key(Key::Char('y')));
    assert!(matches!(&effects[..], [Effect::Remove { .. }]));
    let stopped = it.state.handle(Event::Key(Key::Escape));
    assert!(matches!(&stopped[..], [Effect::StopRemoval]));
    assert!(matches!(confirmation(&it), Confirmation::Removing(_)));
}

#[test]
fn what_is_left_after_a_failure_is_walked_again() {
    let mut source = sample();
    source.add(0, b"keep dir", file("x", 5 << 40, 0));
    source.add(0, b"", file("gone", 4 << 40, 0));
    let mut it = Driver::new(source, Settings::default());
    it.source.rescans = true;
    assert_eq!(it.current(), "keep dir");
    it.keys("  d111\n");
    assert_eq!(it.message(), "removed 1 file, 4.0K; 5.0G free now; failures: 1: 'keep': Permission denied");
    assert_eq!(it.source.calls, ["rescan keep dir"]);
    // Nothing is walked if nothing was removed.
    it.keys("d110\n");
    assert_eq!(it.source.calls, ["rescan keep dir"]);
}

#[test]
fn the_trash_is_walked_again() {
    let mut it = explorer();
    it.source.rescans = true;
    it.keys("D110\n");
    assert_eq!(it.source.calls, ["rescan .Trash-0"]);
    it.keys("d110\n");
    assert_eq!(it.source.calls.len(), 1);
}

#[test]
fn the_window_lists_the_entries_with_their_sizes_and_who_has_them_open() {
    let mut it = explorer();
    it.remover.holder = Some("tail (pid 4711)".to_owned());
    it.keys("2/*.log\n+d");
    let screen = it.screen(80, 24);
    let window: Vec<_> =
        screen.lines().filter_map(|line| line.split('│').nth(1)).map(str::trim_end).collect();
    let sizes: Vec<_> =
        window.iter().filter(|line| line.contains(".log")).map(|line| line.trim_start()).collect();
    assert_eq!(sizes.len(), 3, "{screen}");
    assert!(sizes.iter().all(|line| line.starts_with(|letter: char| letter.is_ascii_digit())), "{screen}");
    assert!(screen.contains("1.0M on disk, frees 512K now"), "{screen}");
    assert!(screen.contains("256K of it are open, the largest file in tail (pid 4711)"), "{screen}");
    // On a small screen, the question is there, and the others are counted.
    let small = it.screen(40, 10);
    assert!(small.contains("and 2 more") && small.contains("Remove? (y, n)"), "{small}");
    it.keys("y");
    let removed = it.state.removed().deleted;
    assert_eq!((removed.files, removed.directories, removed.bytes), (2, 0, 2 << 12));
}

#[test]
fn the_space_of_the_filesystem_is_shown_and_read_again_after_a_removal() {
    let mut it = explorer();
    assert_eq!(it.space_reads, 2, "at the start, and when the walk has ended");
    let bytes = Space { size: 3 << 30, used: 3 << 30, free: 0 };
    let file = DeletedFile {
        identity: fathom_remove::Identity { dev: 1, ino: 2 },
        allocated: 350 << 20,
        holder: FileHolder { pid: 4711 },
        path: b"/var/log/big.log".to_vec(),
    };
    let largest_deleted = vec![(file, b"tail".to_vec())];
    let space = DiskSpace { dev: 1, bytes, deleted: 350 << 20, largest_deleted, is_whole: false };
    it.send(Event::Answer(Answer::Space(vec![Some(space)])));
    let screen = it.screen(160, 24);
    assert!(screen.contains("filesystem 3.0G, 0 free, 350M deleted but open: tail (pid 4711)"), "{screen}");
    it.keys("i");
    let screen = it.screen(80, 24);
    assert!(screen.contains("disk      3.0G, 3.0G used, 0 free"), "{screen}");
    assert!(screen.contains("350M tail (pid 4711): /var/log/big.log"), "{screen}");
    it.keys("\x1bfnotes\ndy");
    assert_eq!(it.space_reads, 3);
}
