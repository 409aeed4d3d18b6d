//! Each key, and what must not change by it.

use fathom_explore::input::{Answer, Effect, Event, Key, QueryKind};
use fathom_explore::memory::{MemorySource, directory, file};
use fathom_explore::source::{Amount, Row, RowState, Source, SourceError, SourceProgress};
use fathom_explore::state::{Overlay, Settings, State, View};

use fathom_remove::Identity;

use crate::driver::{Driver, explorer, find, sample};

#[test]
fn the_largest_entry_is_first_and_keys_walk_the_tree() {
    let mut it = explorer();
    assert_eq!(it.current(), "photos");
    it.keys("j");
    assert_eq!(it.current(), "projects");
    it.keys("l");
    assert_eq!((it.current(), it.state.place().unwrap().below.clone()), ("old".into(), b"projects".to_vec()));
    it.press(Key::Down);
    it.press(Key::Right);
    assert_eq!(it.current(), "target");
    // The cursor goes back to the directory that is left.
    it.press(Key::Left);
    assert_eq!(it.current(), "fathom");
    it.keys("h");
    assert_eq!(it.current(), "projects");
    it.keys("hh");
    assert_eq!(it.state.place().unwrap().below, b"");
    it.press(Key::End);
    let last = it.state.cursor();
    assert_eq!(last.0, last.1 - 1);
    it.press(Key::PageUp);
    it.press(Key::Home);
    assert_eq!(it.state.cursor().0, 0);
    it.press(Key::PageDown);
    assert_eq!(it.state.cursor(), last);
    // A file cannot be entered.
    it.keys("fnotes\nl");
    assert_eq!(it.state.place().unwrap().below, b"");
}

#[test]
fn sort_keys_sort_and_reverse_and_the_cursor_stays_on_its_row() {
    let mut it = explorer();
    it.keys("jj");
    let current = it.current();
    for key in ["n", "n", "s", "s", "C", "C", "M", "M", "w", "w", "t", "a", "a", "t"] {
        it.keys(key);
        assert_eq!(it.current(), current, "{key}");
    }
    it.keys("n");
    let names = it.names();
    assert!(names.is_sorted(), "{names:?}");
    it.keys("n");
    let mut reversed = it.names();
    reversed.reverse();
    assert_eq!(reversed, names);
    it.keys("snt");
    let names = it.names();
    assert_eq!(names[..7], ["locked", "log", "partial", "photos", "proc", "projects", "walking"]);
    it.keys("M");
    assert_eq!(it.names()[0], "log");
}

#[test]
fn hidden_names_and_a_filter_take_rows_away_and_bring_them_back() {
    let mut it = explorer();
    let all = it.state.cursor().1;
    it.keys("e");
    assert_eq!(it.state.cursor().1, all - 1);
    it.keys("e/*.txt\n");
    assert_eq!(it.names(), ["notes.txt", "日本語の名前.txt"]);
    it.keys("/\u{8}");
    it.press(Key::Ctrl('u'));
    it.keys("type:d size>1M !p\n");
    assert_eq!(it.names(), ["log"]);
    // A word without a meaning is named, and stays in the prompt with the filter as it was.
    it.keys("/");
    it.press(Key::Ctrl('u'));
    it.keys("size>x\n");
    assert!(it.message().contains("invalid size"), "{}", it.message());
    assert_eq!(it.names(), ["log"]);
    assert!(matches!(it.state.overlay(), Some(Overlay::Prompt(prompt)) if prompt.text == "size>x"));
    it.keys("\x1b\x1b");
    assert_eq!(it.state.cursor().1, all);
}

/// Once, the keys after a filter without a meaning marked all rows, and deleted them.
#[test]
fn the_keys_behind_a_refused_filter_or_path_are_its_own() {
    for refused in ["/*.log age>1z\n", "/age>\n", "f/nowhere/x\n"] {
        let mut it = explorer();
        it.keys(refused);
        assert!(!it.message().is_empty(), "{refused}");
        it.keys("+dy\n");
        assert_eq!((it.marked().len(), it.remover.removed.len()), (0, 0), "{refused}");
        let text = format!("{}+dy", &refused[1..refused.len() - 1]);
        assert!(matches!(it.state.overlay(), Some(Overlay::Prompt(prompt)) if prompt.text == text));
    }
}

#[test]
fn nothing_is_marked_or_removed_before_the_rows_that_were_asked_for_are_shown() {
    let mut it = explorer();
    let mut asked = it.state.handle(Event::Key(Key::Char('2')));
    for letter in [' ', '+', '*', 'd', 'D', 'W'] {
        assert!(it.state.handle(Event::Key(Key::Char(letter))).is_empty());
        assert!(it.message().contains("still reading"), "{letter}: {}", it.message());
        assert!(it.marked().is_empty() && it.state.overlay().is_none(), "{letter}");
    }
    let Some(Effect::Query(query)) = asked.pop() else { panic!("the largest files are asked for") };
    let answer = find(&mut it.source, &query);
    it.send(Event::Answer(answer));
    it.keys("+");
    assert_eq!(it.marked().len(), it.state.cursor().1);
}

#[test]
fn marks_are_the_same_whatever_is_sorted_filtered_shown_or_read_again() {
    let mut it = explorer();
    it.keys("j j ");
    let marked = it.marked();
    assert_eq!(marked.len(), 2);
    let identities = |it: &Driver| it.state.marks().iter().map(|mark| mark.row.identity).collect::<Vec<_>>();
    let before = identities(&it);
    it.source.rescans = true;
    for key in [
        "n", "n", "s", "C", "M", "w", "a", "t", "e", "e", "g", "c", "m", "u", "/log\n", "/\x1b", "\x1b", "l",
        "h", "2", "3", "4", "5", "6", "1", "r", "p", "f", "x\x1b", "i", "i", "?", "?", "\t", "\t", "y",
    ] {
        it.keys(key);
        assert_eq!((it.marked(), identities(&it)), (marked.clone(), before.clone()), "{key:?}");
    }
    // A file that replaces a marked one under the same name is not marked.
    let place = it.state.marks().iter().next().unwrap().place.clone();
    let row = it.state.marks().iter().next().unwrap().row.clone();
    it.source.removed(&[(place.clone(), row.clone())]);
    let mut other = row.clone();
    other.identity.ino = 999;
    it.source.add(0, &place.below, other.clone());
    it.keys("r");
    assert!(it.state.marks().contains(&place, &row) && !it.state.marks().contains(&place, &other));
}

#[test]
fn marks_can_be_inverted_added_and_taken_away() {
    let mut it = explorer();
    let all = it.state.cursor().1;
    it.keys(" *");
    assert_eq!(it.marked().len(), all - 1);
    it.keys("+");
    assert_eq!(it.marked().len(), all);
    it.keys("-");
    assert_eq!(it.marked().len(), 0);
    // Only what is shown is marked.
    it.keys("/log\n*");
    assert_eq!(it.marked(), ["/data/log"]);
    it.keys("\t ");
    assert!(it.marked().is_empty() && matches!(it.state.overlay(), Some(Overlay::Marks { .. })));
}

#[test]
fn the_list_of_marks_leads_to_an_entry() {
    let mut it = explorer();
    it.keys("2");
    assert_eq!((it.state.view(), it.current()), (View::Largest, "movie.mkv".into()));
    it.keys("  ");
    assert_eq!(it.marked(), ["/data/photos/2025/movie.mkv", "/data/projects/old/core.dump"]);
    it.keys("1\tj\n");
    assert_eq!(
        (it.current(), it.state.place().unwrap().below.clone()),
        ("core.dump".into(), b"projects/old".to_vec())
    );
}

#[test]
fn names_are_found_by_their_beginning_and_by_their_path() {
    let mut it = explorer();
    it.keys("fPROJ\n");
    assert_eq!(it.current(), "projects");
    it.keys("fprojects/old/keep\n");
    assert_eq!(it.state.place().unwrap().below, b"projects/old");
    it.keys("f/data/photos/2024/img two.jpg\n");
    assert_eq!(
        (it.current(), it.state.place().unwrap().below.clone()),
        ("img two.jpg".into(), b"photos/2024".to_vec())
    );
    it.keys("f/data/log/\n");
    assert_eq!((it.current(), it.state.place().unwrap().below.clone()), ("x.log".into(), b"log".to_vec()));
    it.keys("f/nowhere/x\n");
    assert!(it.message().contains("no such path"), "{}", it.message());
    it.keys("\x1bf../missing/\n");
    assert!(it.message().contains("cannot open directory"), "{}", it.message());
    assert_eq!(it.state.place().unwrap().below, b"log");
}

#[test]
fn views_show_sums_and_go_back_to_the_tree() {
    let mut it = explorer();
    it.keys("jl");
    for (key, view) in [("2", View::Largest), ("3", View::Extensions), ("4", View::Owners), ("5", View::Ages)]
    {
        it.keys(key);
        assert_eq!((it.state.view(), it.state.cursor().0), (view, 0), "{key}");
        assert!(it.state.cursor().1 > 0);
        // Keys that need an entry do nothing to sums.
        it.keys(" *jnnCMs");
        it.keys(if view == View::Largest { "-" } else { "" });
        assert!(it.marked().is_empty(), "{key}");
    }
    it.keys("h");
    assert_eq!(
        (it.state.view(), it.state.place().unwrap().below.clone()),
        (View::Tree, b"projects".to_vec())
    );
    it.keys("6");
    assert_eq!(it.state.view(), View::Treemap);
    it.press(Key::Down);
    assert_eq!(it.current(), "fathom");
    it.keys("l");
    assert_eq!((it.state.view(), it.current()), (View::Treemap, "target".into()));
    // A file of the list is shown in its directory.
    it.keys("2l");
    assert_eq!((it.state.view(), it.current()), (View::Tree, "fathom".into()));
}

#[test]
fn effects_have_paths_of_this_machine() {
    let mut it = explorer();
    it.keys("lboy");
    let outside = format!("{:?}", it.outside);
    let path = |text: &str| format!("{:?}", text.as_bytes());
    let expected = [
        format!("Shell({})", path("/data/photos")),
        format!("Open({})", path("/data/photos/2025")),
        format!("Copy({})", path("/data/photos/2025")),
    ];
    assert_eq!(outside, format!("[{}]", expected.join(", ")));
    it.press(Key::Ctrl('z'));
    it.press(Key::Ctrl('c'));
    assert!(matches!(it.outside[3..], [Effect::Suspend, Effect::Abort]));
}

#[test]
fn text_is_shown_of_files_and_capital_q_prints_the_directory() {
    let mut it = explorer();
    it.keys("v");
    assert_eq!((it.message().as_str(), it.outside.len()), ("not a regular file", 0));
    it.keys("G");
    assert_eq!(it.state.cursor().0 + 1, it.state.cursor().1);
    it.keys("fnotes\nv");
    assert!(
        matches!(&it.outside[..], [Effect::View(path)] if path == b"/data/notes.txt"),
        "{:?}",
        it.outside
    );
    it.press(Key::Home);
    it.keys("lQ");
    assert!(matches!(it.outside[1..], [Effect::Quit]));
    assert_eq!(it.state.printed_directory().unwrap(), b"/data/photos");
    it.keys("q");
    assert_eq!(it.state.printed_directory(), None);
}

#[test]
fn a_script_removes_the_marked_entries() {
    let mut it = explorer();
    it.keys("jl W");
    it.keys("2\n");
    let [Effect::WriteScript { path, text }] = &it.outside[..] else { panic!("{:?}", it.outside) };
    assert_eq!(path, b"remove.sh2");
    assert!(String::from_utf8_lossy(text).contains(" '/data/projects/old'\n"));
}

#[test]
fn what_is_gone_is_shown_and_nothing_is_done_with_it() {
    let mut source = MemorySource::default();
    let root = source.root("/data", Some(b"/data"));
    let growth = Some(Amount { apparent: -50, allocated: -4096, entries: -1 });
    let gone = Row {
        state: RowState::Gone,
        links: 0,
        identity: Identity { dev: 0, ino: 0 },
        ..directory("gone", 0, 0)
    };
    source.add(root, b"", Row { growth, ..gone });
    source.add(root, b"", file("here", 7, 0));
    let mut it = Driver::new(source, Settings::default());
    it.keys("fgone\n");
    for key in [" ", "o", "v", "d", "D", "W", "l"] {
        it.keys(key);
        assert_eq!(it.message(), "only the older inventory has this entry", "{key}");
    }
    it.keys("l+");
    assert_eq!((it.current(), it.state.marks().len()), ("gone".to_owned(), 1));
    assert!(it.outside.is_empty() && it.state.overlay().is_none());
}

#[test]
fn the_rows_that_are_shown_are_written_in_their_order() {
    let mut source = MemorySource::default();
    let root = source.root("/data", Some(b"/data"));
    source.add(root, b"", Row { uid: None, newest_mtime_s: None, ..file("a,\"b\".log", 5000, 0) });
    source.add(root, b"", file("-1.log", 7, 1_700_000_000));
    source.add(root, b"", file("other", 1, 0));
    let mut it = Driver::new(source, Settings::default());
    it.keys("/*.log\nnE\n");
    let [Effect::WriteRows { path, text }] = &it.outside[..] else { panic!("{:?}", it.outside) };
    assert_eq!(path, b"rows.csv");
    let lines: Vec<_> = std::str::from_utf8(text).unwrap().lines().collect();
    assert_eq!(lines[0], "path,path_bytes,type,disk,apparent,entries,newest,owner,growth,state");
    assert_eq!(lines[1], "/data/-1.log,,regular,7,7,,2023-11-14T22:13:20Z,0,,complete");
    assert_eq!(lines[2], "\"/data/a,\"\"b\"\".log\",,regular,5000,5000,,,,,complete");
    assert_eq!(lines.len(), 3);
    it.keys("3E\n");
    let Some(Effect::WriteRows { text, .. }) = it.outside.get(1) else { panic!("{:?}", it.outside) };
    assert!(text.starts_with(b"key,key_bytes,disk,apparent,files\r\nlog,,5007,5007,2\r\n"), "{text:?}");
}

#[test]
fn a_tree_of_another_machine_can_be_looked_at_only() {
    let mut source = MemorySource::default();
    let root = source.root("nas:/srv", None);
    source.add(root, b"", file("a", 1, 0));
    let mut it = Driver::new(source, Settings::default());
    for key in ["b", "o", "d", "D"] {
        it.keys(key);
        assert_eq!(it.message(), "this tree is not on this machine", "{key}");
    }
    it.keys("r");
    assert!(it.message().contains("it is in memory"), "{}", it.message());
    assert!(it.outside.is_empty() && it.state.overlay().is_none());
}

#[test]
fn nothing_is_changed_with_read_only() {
    let mut it = Driver::new(sample(), Settings { is_read_only: true, ..Settings::default() });
    for key in ["b", "o", "d", "D", "W", "E"] {
        it.keys(key);
        assert_eq!(it.message(), "disabled by --read-only", "{key}");
    }
    assert!(it.outside.is_empty() && it.state.overlay().is_none());
}

#[test]
fn quitting_with_marks_is_asked_about_unless_they_are_printed() {
    let mut it = explorer();
    it.keys(" qn");
    assert!(it.outside.is_empty() && it.state.overlay().is_none());
    it.keys("qy");
    assert!(matches!(it.outside[..], [Effect::Quit]));
    let mut it = Driver::new(sample(), Settings { prints_marks: true, ..Settings::default() });
    it.keys(" q");
    assert!(matches!(it.outside[..], [Effect::Quit]));
}

#[test]
fn several_roots_are_a_list_and_cannot_be_marked() {
    let mut source = sample();
    let root = source.root("/other", None);
    source.add(root, b"", file("a", 1, 0));
    let mut it = Driver::new(source, Settings::default());
    assert_eq!((it.current(), it.state.place()), ("/data".into(), None));
    it.keys(" ");
    assert!(it.marked().is_empty() && it.message().contains("root"));
    it.keys("jl");
    assert_eq!((it.current(), it.state.place().unwrap().root), ("a".into(), 1));
    it.keys("h");
    assert_eq!((it.current(), it.state.place()), ("/other".into(), None));
}

#[test]
fn rows_are_read_again_when_the_sums_grow_and_the_cursor_keeps_its_row() {
    let mut it = explorer();
    it.keys("j");
    assert_eq!(it.current(), "projects");
    it.source.add(0, b"log", file("huge", 1 << 40, 0));
    it.source.set_progress(SourceProgress { version: 2, ..SourceProgress::default() });
    let progress = it.source.progress();
    it.send(Event::Answer(Answer::Progress(progress)));
    assert_eq!((it.current(), it.state.cursor().0), ("projects".into(), 2));
    assert_eq!(it.names()[0], "log");
    // At the top, the cursor stays at the top.
    it.press(Key::Home);
    it.source.add(0, b"photos", file("huger", 1 << 41, 0));
    it.source.set_progress(SourceProgress { version: 3, ..SourceProgress::default() });
    let progress = it.source.progress();
    it.send(Event::Answer(Answer::Progress(progress)));
    assert_eq!(it.current(), "photos");
    it.keys("p");
    assert_eq!(it.source.calls, ["pause true"]);
    it.keys("p");
    assert_eq!(it.source.calls, ["pause true", "pause false"]);
}

#[test]
fn an_answer_that_is_no_longer_wanted_is_ignored() {
    let mut it = explorer();
    // Two requests before the first answer: the first answer must not be shown.
    let first = it.state.handle(Event::Key(Key::Enter));
    it.state.handle(Event::Key(Key::Down));
    let second = it.state.handle(Event::Key(Key::Enter));
    let [Effect::Query(first)] = &first[..] else { panic!("{first:?}") };
    let [Effect::Query(second)] = &second[..] else { panic!("{second:?}") };
    let answer = crate::driver::find(&mut it.source, first);
    it.send(Event::Answer(answer));
    assert!(it.state.is_waiting() && it.state.place().unwrap().below.is_empty());
    let answer = crate::driver::find(&mut it.source, second);
    it.send(Event::Answer(answer));
    assert_eq!(it.state.place().unwrap().below, b"projects");
    // Escape takes a request back.
    let third = it.state.handle(Event::Key(Key::Enter));
    it.press(Key::Escape);
    let [Effect::Query(third)] = &third[..] else { panic!("{third:?}") };
    let answer = crate::driver::find(&mut it.source, third);
    it.send(Event::Answer(answer));
    assert_eq!(it.state.place().unwrap().below, b"projects");
}

#[test]
fn clicks_select_and_then_enter() {
    let mut it = explorer();
    it.send(Event::Resize(80, 24));
    it.press(Key::Click { column: 40, line: 3 });
    assert_eq!(it.current(), "projects");
    it.press(Key::Click { column: 40, line: 3 });
    assert_eq!(it.state.place().unwrap().below, b"projects");
    it.press(Key::Click { column: 40, line: 23 });
    it.press(Key::Click { column: 40, line: 0 });
    it.press(Key::WheelDown);
    assert_eq!(it.state.cursor().0, 1);
    it.press(Key::WheelUp);
    it.keys("h6");
    // The largest area is at the upper left.
    it.press(Key::Click { column: 1, line: 3 });
    assert_eq!(it.state.place().unwrap().below, b"");
    it.press(Key::Click { column: 0, line: 2 });
    assert_eq!(it.state.place().unwrap().below, b"photos");
}

#[test]
fn a_script_has_the_entries_that_were_marked_when_it_was_asked_for() {
    let mut it = explorer();
    it.keys("fnotes\n");
    let sequence = it.state.handle(Event::Key(Key::Char('r')));
    assert!(matches!(&sequence[..], [Effect::Rescan(_)]));
    it.keys("W");
    // The rows are read again while the name is typed: another entry is under the cursor.
    let notes = it.state.current().unwrap().clone();
    let top = it.state.place().unwrap().clone();
    it.source.removed(&[(top, notes)]);
    let progress = it.source.progress();
    it.send(Event::Answer(Answer::Progress(progress)));
    assert_ne!(it.current(), "notes.txt");
    it.keys("\n");
    let [Effect::WriteScript { text, .. }] = &it.outside[..] else { panic!("{:?}", it.outside) };
    assert!(String::from_utf8_lossy(text).contains(" '/data/notes.txt'\n"));
}

#[test]
fn an_entry_without_a_valid_name_is_never_removed() {
    for name in ["", ".", "..", "a/b"] {
        let mut source = MemorySource::default();
        let root = source.root("/data", Some(b"/data"));
        source.add(root, b"", file(name, 1, 0));
        let mut it = Driver::new(source, Settings::default());
        for key in ["d", "D", "W"] {
            it.keys(key);
            assert_eq!(it.message(), "an entry has no valid name", "{name:?}");
            assert!(it.state.overlay().is_none() && it.outside.is_empty());
        }
    }
}

#[test]
fn a_root_that_cannot_be_read_is_shown_with_the_reason() {
    let mut it = Driver::new(sample(), Settings::default());
    let mut state = State::new(Settings::default());
    let effects = state.start();
    let [Effect::Query(query)] = &effects[..] else { panic!("{effects:?}") };
    let effects = state.handle(Event::Answer(find(&mut it.source, query)));
    let [Effect::ReadSpace(_), Effect::Query(query)] = &effects[..] else { panic!("{effects:?}") };
    let result = Err(SourceError::Other("it is a file".to_owned()));
    let effects = state.handle(Event::Answer(Answer::Found { sequence: query.sequence, result }));
    assert!(effects.is_empty() && !state.is_waiting());
    assert_eq!((&*state.current().unwrap().name, state.cursor()), (&b"/data"[..], (0, 1)));
    assert!(state.message().unwrap().ends_with(b"it is a file"));
    // It can be walked again, and entered.
    assert!(matches!(&state.handle(Event::Key(Key::Char('r')))[..], [Effect::Rescan(_)]));
    let progress = SourceProgress { version: 99, ..it.source.progress() };
    let effects = state.handle(Event::Answer(Answer::Progress(progress)));
    let [Effect::ReadSpace(_), Effect::Query(query)] = &effects[..] else { panic!("{effects:?}") };
    assert!(state.handle(Event::Answer(find(&mut it.source, query))).is_empty());
    let effects = state.handle(Event::Key(Key::Enter));
    let [Effect::Query(query)] = &effects[..] else { panic!("{effects:?}") };
    state.handle(Event::Answer(find(&mut it.source, query)));
    assert!(state.cursor().1 > 1);
}

#[test]
fn the_end_of_a_walk_ends_its_pause() {
    let mut it = explorer();
    let progress = SourceProgress { finished: false, ..it.source.progress() };
    it.send(Event::Answer(Answer::Progress(progress)));
    it.keys("p");
    it.send(Event::Answer(Answer::Progress(SourceProgress { finished: true, ..progress })));
    assert_eq!(it.source.calls, ["pause true", "pause false"]);
}

#[test]
fn the_header_of_sums_is_not_that_of_a_directory() {
    let mut it = explorer();
    it.keys("l");
    for key in ["3", "4", "5"] {
        it.keys(key);
        let screen = it.screen(80, 24);
        assert!(screen.starts_with(" /data  "), "{screen}");
    }
    it.keys("2");
    assert!(it.screen(80, 24).starts_with(" /data/photos "));
}

/// Starts with more rows than the state sorts by itself.
fn wide() -> Driver {
    let mut source = MemorySource::default();
    let root = source.root("/wide", Some(b"/wide"));
    (0..20_000).for_each(|number| source.add(root, b"", file(&format!("f{number}"), number, 0)));
    Driver::new(source, Settings::default())
}

#[test]
fn many_rows_are_arranged_by_a_query() {
    let mut it = wide();
    it.keys("jj");
    assert_eq!(it.current(), "f19997");
    let first = it.state.handle(Event::Key(Key::Char('n')));
    let [Effect::Query(first)] = &first[..] else { panic!("{first:?}") };
    assert!(matches!(first.kind, QueryKind::Known(_)));
    assert_eq!((it.current().as_str(), it.state.cursor().0), ("f19997", 2), "the order is still the old one");
    // Another order replaces it, and the late answer changes nothing.
    let second = it.state.handle(Event::Key(Key::Char('n')));
    let [Effect::Query(second)] = &second[..] else { panic!("{second:?}") };
    let answer = find(&mut it.source, first);
    it.send(Event::Answer(answer));
    assert_eq!(it.state.cursor().0, 2);
    let answer = find(&mut it.source, second);
    it.send(Event::Answer(answer));
    assert_eq!(it.current(), "f19997");
    it.press(Key::Home);
    assert_eq!((it.current().as_str(), it.state.is_waiting()), ("f9999", false));
    it.keys("/f1999*\n");
    assert_eq!(it.state.cursor().1, 11);
    it.press(Key::Escape);
    assert_eq!(it.state.cursor().1, 20_000);
}

#[test]
fn an_order_does_not_cancel_the_way_to_another_directory() {
    let mut it = wide();
    it.source.add(0, b"sub", file("x", 1 << 40, 0));
    it.source.set_progress(SourceProgress { version: 99, ..it.source.progress() });
    let progress = it.source.progress();
    it.send(Event::Answer(Answer::Progress(progress)));
    it.press(Key::Home);
    assert_eq!(it.current(), "sub");
    let effects = it.state.handle(Event::Key(Key::Enter));
    let [Effect::Query(query)] = &effects[..] else { panic!("{effects:?}") };
    assert!(it.state.handle(Event::Key(Key::Char('n'))).is_empty());
    let answer = find(&mut it.source, query);
    it.send(Event::Answer(answer));
    assert_eq!((it.current().as_str(), it.state.is_waiting()), ("x", false));
    it.keys("h");
    assert_eq!((it.current().as_str(), it.state.cursor().0), ("sub", 20_000), "by name");
    // If it is given up, the rows that are shown are brought into the order.
    let effects = it.state.handle(Event::Key(Key::Enter));
    assert!(matches!(&effects[..], [Effect::Query(_)]));
    assert!(it.state.handle(Event::Key(Key::Char('s'))).is_empty());
    it.press(Key::Escape);
    assert_eq!((it.state.cursor().0, it.state.is_waiting()), (0, false));
}

/// A filter once applied to the largest files only.
#[test]
fn a_filter_finds_files_that_are_not_among_the_largest_and_all_can_be_marked() {
    let mut source = MemorySource::default();
    let root = source.root("/data", Some(b"/data"));
    for number in 0..1500 {
        source.add(root, b"videos", file(&format!("{number}.mov"), 1 << 30, 0));
        source.add(
            root,
            format!("photos/{}", number % 7).as_bytes(),
            file(&format!("{number}.jpg"), 1 << 20, 0),
        );
    }
    let mut it = Driver::new(source, Settings::default());
    it.keys("2/*.jpg\n");
    assert_eq!(it.state.cursor().1, 1000);
    let screen = it.screen(120, 10);
    assert!(screen.contains("1.5G in 1500 matching files, the largest 1000 shown"), "{screen}");
    it.keys("+");
    assert_eq!(it.marked().len(), 1500);
    assert!(it.marked().iter().all(|path| path.ends_with(".jpg")));
    it.keys("*");
    assert_eq!(it.marked().len(), 0, "all of them are inverted");
    // Too many: nothing is marked, and the reason is said.
    it.keys("\x1b/!*.txt\n+");
    assert_eq!(
        (it.marked().len(), it.message()),
        (0, "nothing marked: more than 2000 files match".to_owned())
    );
    // Below a directory only; with the filter removed, the largest are shown.
    it.keys("\x1b1fphotos\n\n2/*.mov\n");
    assert_eq!(it.state.cursor().1, 0);
    it.keys("\x1b");
    assert_eq!(it.state.cursor().1, 1000);
    assert!(it.current().ends_with(".jpg"));
}

#[test]
fn a_search_is_not_repeated_when_sums_grow_and_can_be_stopped() {
    let mut it = explorer();
    it.keys("2/*.log\n");
    let searches = |it: &Driver| it.source.calls.iter().filter(|call| call.starts_with("search")).count();
    assert_eq!(searches(&it), 1);
    let grown = SourceProgress { version: 99, ..it.source.progress() };
    it.send(Event::Answer(Answer::Progress(grown)));
    it.keys("snn");
    assert_eq!(searches(&it), 1);
    // A removal is looked for again, because others may take its place.
    it.keys("dy");
    assert_eq!(searches(&it), 2);
    let effects = it.state.handle(Event::Key(Key::Char('e')));
    let [Effect::Query(query)] = &effects[..] else { panic!("{effects:?}") };
    it.send(Event::Answer(Answer::Searching { sequence: query.sequence, entries: 12_345 }));
    assert!(it.screen(80, 10).contains("searching: 12345 entries (Esc stops)"));
    it.keys("+");
    assert_eq!((it.marked().len(), it.message()), (0, "still reading the rows".to_owned()));
    let effects = it.state.handle(Event::Key(Key::Escape));
    assert!(matches!(&effects[..], [Effect::CancelQuery, Effect::Query(query)]
        if matches!(query.kind, QueryKind::Directory(_))));
}

#[test]
fn a_directory_shows_what_it_shares_with_others() {
    let mut source = MemorySource::default();
    let root = source.root("/data", Some(b"/data"));
    source.add(root, b"", Row { shared: 64 << 20, ..directory("backups", 90 << 20, 0) });
    let mut it = Driver::new(source, Settings::default());
    assert!(it.screen(80, 10).contains("backups/ (64M shared)"));
    it.keys("i");
    assert!(it.screen(80, 20).contains("shared    64M also have names elsewhere (hard links)"));
}
