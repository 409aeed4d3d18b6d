//! Random sequences of keys, answers and sizes: whatever is pressed, the cursor is on a row, marks
//! change only by the keys that change them, nothing is removed unconfirmed, and every frame can be
//! drawn.

use fathom_explore::input::{Answer, Event, Key};
use fathom_explore::memory::file;
use fathom_explore::source::{Source, SourceProgress};
use fathom_explore::state::Overlay;
use fathom_explore::views::render;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::driver::{Driver, explorer};

#[derive(Clone, Debug)]
enum Step {
    Key(Key),
    Resize(u16, u16),
    /// A file appears, and the sums change.
    Grow(u64),
}

fn key() -> impl Strategy<Value = Key> {
    let special = [
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Tab,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::WheelUp,
        Key::WheelDown,
        Key::Ctrl('u'),
    ];
    prop_oneof![
        4 => prop::sample::select("kjlh123456nsCMwaetgcmui?/f *+-dDWyobrpq\u{e9}0".chars().collect::<Vec<_>>())
            .prop_map(Key::Char),
        3 => prop::sample::select(special.to_vec()),
        1 => any::<char>().prop_map(Key::Char),
        1 => (0_u16..210, 0_u16..70).prop_map(|(column, line)| Key::Click { column, line }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => key().prop_map(Step::Key),
        1 => (0_u16..210, 0_u16..70).prop_map(|(columns, lines)| Step::Resize(columns, lines)),
        1 => any::<u32>().prop_map(|size| Step::Grow(size.into())),
    ]
}

/// Whether a key may change the marks in the present state.
fn may_change_marks(it: &Driver, key: Key) -> bool {
    match it.state.overlay() {
        None => matches!(key, Key::Char(' ' | '*' | '+' | '-')),
        Some(Overlay::Marks { .. }) => matches!(key, Key::Char(' ' | '-')),
        Some(Overlay::Removal(_)) => true,
        Some(_) => false,
    }
}

fn check(it: &Driver, (columns, lines): (u16, u16)) {
    let (cursor, len) = it.state.cursor();
    assert!(cursor < len || (cursor, len) == (0, 0), "{cursor} of {len}");
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
    render(&it.state, &mut buffer);
    let controls = buffer.content().iter().any(|cell| cell.symbol().chars().any(char::is_control));
    assert!(!controls, "a control character in {buffer:?}");
}

proptest! {
    #![proptest_config(fathom_cases::property(300))]

    #[test]
    fn invariants_hold_after_any_keys(steps in prop::collection::vec(step(), 1..60)) {
        let mut it = explorer();
        let mut size = (80, 24);
        for (number, step) in (2..).zip(steps) {
            let before = (it.state.marks().clone(), it.remover.removed.len());
            let (marks_may_change, is_removing) = match step {
                Step::Key(key) => {
                    (may_change_marks(&it, key), matches!(it.state.overlay(), Some(Overlay::Removal(_))))
                }
                _ => (false, false),
            };
            match step {
                Step::Key(key) => it.press(key),
                Step::Resize(columns, lines) => {
                    size = (columns, lines);
                    it.send(Event::Resize(columns, lines));
                }
                Step::Grow(bytes) => {
                    it.source.add(0, b"log", file(&format!("new {number}"), bytes, 0));
                    let progress = SourceProgress { version: number, ..it.source.progress() };
                    it.source.set_progress(progress);
                    it.send(Event::Answer(Answer::Progress(progress)));
                }
            }
            prop_assert!(marks_may_change || *it.state.marks() == before.0, "marks changed");
            prop_assert!(is_removing || it.remover.removed.len() == before.1, "removed without a question");
            check(&it, size);
        }
    }
}
