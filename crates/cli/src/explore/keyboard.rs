//! The events of crossterm as keys of the explorer.

use std::io;
use std::time::Duration;

use crossterm::event::{
    self, Event as TerminalEvent, KeyCode, KeyEventKind, KeyModifiers, MouseButton, MouseEvent,
    MouseEventKind,
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
        keys.extend(self::keys(&event::read()?).into_iter().flatten());
    }
    Ok((keys, true))
}

/// Returns the keys of an event; none for events that mean nothing here.
///
/// Escape and a character that follow each other closely arrive as the character with Alt, for
/// which the explorer has no other use.
fn keys(event: &TerminalEvent) -> [Option<Key>; 2] {
    match event {
        TerminalEvent::Key(event) if event.kind != KeyEventKind::Release => {
            let has = |modifier| event.modifiers.contains(modifier);
            match event.code {
                KeyCode::Char(letter) if has(KeyModifiers::CONTROL) => [Some(Key::Ctrl(letter)), None],
                KeyCode::Char(letter) if has(KeyModifiers::ALT) => {
                    [Some(Key::Escape), Some(Key::Char(letter))]
                }
                KeyCode::Char(letter) => [Some(Key::Char(letter)), None],
                code => [special(code), None],
            }
        }
        TerminalEvent::Mouse(event) => [mouse(*event), None],
        _ => [None, None],
    }
}

fn mouse(event: MouseEvent) -> Option<Key> {
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Key::Click { column: event.column, line: event.row }),
        MouseEventKind::ScrollUp => Some(Key::WheelUp),
        MouseEventKind::ScrollDown => Some(Key::WheelDown),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyEvent;

    #[test]
    fn modifiers_make_other_keys() {
        let keys = |letter, modifiers| {
            self::keys(&TerminalEvent::Key(KeyEvent::new(KeyCode::Char(letter), modifiers)))
        };
        assert_eq!(keys('q', KeyModifiers::NONE), [Some(Key::Char('q')), None]);
        assert_eq!(keys('D', KeyModifiers::SHIFT), [Some(Key::Char('D')), None]);
        assert_eq!(keys('z', KeyModifiers::CONTROL), [Some(Key::Ctrl('z')), None]);
        assert_eq!(keys('q', KeyModifiers::ALT), [Some(Key::Escape), Some(Key::Char('q'))]);
    }
}
