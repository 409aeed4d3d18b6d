//! The events of crossterm as keys of the explorer.

use std::io;
use std::time::Duration;

use crossterm::event::{
    self, Event as TerminalEvent, KeyCode, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use fathom_explore::input::Key;

/// The number of events that are handled before the next frame.
const EVENTS_MAX: usize = 256;
/// The time to wait for an event whose bytes are there. With 0, crossterm does not read.
const READ_TIME: Duration = Duration::from_millis(1);

/// Returns the keys that have been typed, and whether there may be more.
pub(super) fn read_keys() -> io::Result<(Vec<Key>, bool)> {
    let mut keys = Vec::new();
    for _ in 0..EVENTS_MAX {
        if !event::poll(READ_TIME)? {
            return Ok((keys, false));
        }
        keys.extend(key(&event::read()?));
    }
    Ok((keys, true))
}

/// Returns the key of an event; `None` for events that mean nothing here.
fn key(event: &TerminalEvent) -> Option<Key> {
    match event {
        TerminalEvent::Key(event) if event.kind != KeyEventKind::Release => {
            let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
            match event.code {
                KeyCode::Char(letter) if ctrl => Some(Key::Ctrl(letter)),
                KeyCode::Char(letter) => Some(Key::Char(letter)),
                code => special(code),
            }
        }
        TerminalEvent::Mouse(event) => match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                Some(Key::Click { column: event.column, line: event.row })
            }
            MouseEventKind::ScrollUp => Some(Key::WheelUp),
            MouseEventKind::ScrollDown => Some(Key::WheelDown),
            _ => None,
        },
        _ => None,
    }
}

fn special(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}
