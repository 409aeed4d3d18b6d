//! Frames: snapshots at fixed sizes, and the work of a frame with a million rows.
//! `UPDATE_SNAPSHOTS=1` writes the snapshots.

use std::path::Path;
use std::time::Instant;

use fathom_explore::input::{Answer, Event, Key};
use fathom_explore::memory::{MemorySource, directory, file};
use fathom_explore::source::{Amount, Row, RowState, Source, SourceProgress};
use fathom_explore::state::{Settings, State};
use fathom_explore::views::render;
use fathom_text::quote::Charset;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::driver::{Driver, explorer, sample, text_of};

/// The sizes of the snapshots.
const SIZES: [(u16, u16); 3] = [(80, 24), (40, 10), (200, 60)];

fn draw(state: &State, terminal: &mut Terminal<TestBackend>) {
    let frame = terminal.draw(|frame| {
        render(state, frame.buffer_mut());
    });
    frame.unwrap();
}

/// Compares the screen after some keys with its snapshots.
#[track_caller]
fn compare(name: &str, it: &mut Driver) {
    let mut screens = String::new();
    for (columns, lines) in SIZES {
        it.send(Event::Resize(columns, lines));
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
        draw(&it.state, &mut terminal);
        screens.push_str(&format!("--- {columns}x{lines}\n{}", text_of(terminal.backend().buffer())));
    }
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explore/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &screens).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(screens == expected, "{name} differs from its snapshot:\n{screens}");
}

#[test]
fn the_views_look_as_they_did() {
    for (name, keys) in [
        ("tree", "jj "),
        ("largest", "2"),
        ("extensions", "3"),
        ("treemap", "6"),
        ("help", "?"),
        ("information", "i"),
        ("marks", "+\t"),
        ("delete", "fnotes\nd"),
        ("trash", "D1"),
        ("filter", "/*.txt age>30d"),
        ("empty", "/nothing like it\n"),
    ] {
        let mut it = explorer();
        it.keys(keys);
        compare(name, &mut it);
    }
}

#[test]
fn growth_and_progress_look_as_they_did() {
    let mut source = sample();
    let mut grown = file("grown", 5 << 20, 0);
    grown.growth = Some(Amount { apparent: 1 << 20, allocated: 1 << 20, entries: 0 });
    source.add(0, b"", grown);
    let lost = Some(Amount { apparent: -(7 << 20), allocated: -(7 << 20), entries: -1 });
    let state = RowState::Gone;
    source.add(0, b"", Row { growth: lost, state, links: 0, ..file("gone", 0, 0) });
    let doubled = Some(Amount { apparent: 3 << 20, allocated: 3 << 20, entries: 2 });
    source.add(0, b"", Row { growth: doubled, ..directory("doubled", 6 << 20, 0) });
    source.add(0, b"doubled", file("new", 3 << 20, 0));
    let mut it = Driver::new(source, Settings::default());
    let progress = SourceProgress { finished: false, failures: 3, version: 1, ..it.source.progress() };
    it.send(Event::Answer(Answer::Progress(progress)));
    compare("growth", &mut it);
    it.keys("fdoubled\nl");
    assert!(it.screen(80, 24).contains(" 1 items, growth +3.0M, "), "{}", it.screen(80, 24));
    it.keys("/nothing\n");
    assert!(!it.screen(80, 24).contains("growth +"), "it is that of all rows: {}", it.screen(80, 24));
}

#[test]
fn a_terminal_without_utf8_gets_ascii_only() {
    let mut settings = Settings::default();
    settings.context.charset = Charset::Ascii;
    for keys in ["", "6", "3", "2", "?", "i", "+\t", "d"] {
        let mut it = Driver::new(sample(), settings.clone());
        it.keys(keys);
        for (columns, lines) in SIZES {
            let screen = it.screen(columns, lines);
            assert!(screen.is_ascii(), "{keys}: {screen}");
        }
    }
}

#[test]
fn without_colours_no_cell_has_one() {
    for (has_colors, expected) in [(false, false), (true, true)] {
        let mut it = Driver::new(sample(), Settings { has_colors, ..Settings::default() });
        for keys in [" ", "6"] {
            it.keys(keys);
            let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
            render(&it.state, &mut buffer);
            let is_default = |color| matches!(color, ratatui::style::Color::Reset);
            let any = buffer.content().iter().any(|cell| !is_default(cell.fg) || !is_default(cell.bg));
            assert_eq!(any, expected);
        }
    }
}

#[test]
fn a_hostile_name_is_escaped_in_every_view() {
    let mut source = MemorySource::default();
    let root = source.root("/r\x1b]0;x\x07", Some(b"/r\x1b]0;x\x07"));
    for name in [&b"x\x1b[31m"[..], b"\xc2\x9b2J", b"\xff\xfe", b"nl\nline", b"\r", b"t\tab"] {
        let mut row = file("", 1000, 0);
        row.name = name.into();
        source.add(root, b"", row);
    }
    for keys in ["", "2", "3", "6", "i", "+\t", "d", "/\u{9b}\u{7}", "f\u{1b}x"] {
        let mut it = Driver::new(source_clone(&mut source), Settings::default());
        it.keys(keys);
        for (columns, lines) in SIZES {
            let screen = it.screen(columns, lines);
            assert!(
                !screen.chars().any(|letter| letter.is_control() && letter != '\n'),
                "{keys:?}: {screen:?}"
            );
        }
        assert!(it.screen(80, 24).contains(r"\033"), "{keys:?}: {}", it.screen(80, 24));
    }
}

/// Returns a source with the same files in its root.
fn source_clone(source: &mut MemorySource) -> MemorySource {
    let mut copy = MemorySource::default();
    let name = String::from_utf8(source.local_root(0).unwrap()).unwrap();
    let root = copy.root(&name, Some(name.as_bytes()));
    let place = fathom_explore::source::Place { root: 0, below: Vec::new() };
    let rows = source.list(&place, &Default::default()).unwrap();
    rows.into_iter().for_each(|row| copy.add(root, b"", row));
    copy
}

fn wide(count: u64) -> Driver {
    let mut source = MemorySource::default();
    let root = source.root("/wide", None);
    for number in 0..count {
        let size = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        source.add(root, b"", file(&format!("file {number}"), size, 0));
    }
    Driver::new(source, Settings::default())
}

#[test]
fn a_frame_formats_only_the_rows_that_it_shows() {
    let mut it = wide(100_000);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    it.send(Event::Resize(80, 24));
    for key in [Key::Home, Key::End, Key::PageUp, Key::Char('n'), Key::Char('*')] {
        it.press(key);
        assert_eq!(render(&it.state, &mut buffer), 24 - 3);
    }
    it.keys("6");
    assert!(render(&it.state, &mut buffer) <= fathom_explore::listing::TILES_MAX);
}

/// A measurement, which depends on the machine and is for optimised builds.
#[test]
#[ignore = "a measurement: run it alone, with --release"]
fn a_frame_with_a_million_rows_takes_less_than_16_ms() {
    let mut it = wide(1_000_000);
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    it.send(Event::Resize(200, 60));
    let mut slowest = std::time::Duration::ZERO;
    for key in [Key::Down, Key::End, Key::PageUp, Key::Home, Key::PageDown].repeat(20) {
        let start = Instant::now();
        it.press(key);
        draw(&it.state, &mut terminal);
        slowest = slowest.max(start.elapsed());
    }
    println!("slowest frame: {slowest:?}");
    for key in ["n", "s", "C", "/9\n", "\x1b", "*"] {
        let start = Instant::now();
        it.keys(key);
        println!("{key:?}: {:?}", start.elapsed());
    }
    assert!(slowest.as_millis() < 16, "{slowest:?}");
}
