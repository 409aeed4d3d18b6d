//! The terminal of a session: raw mode, the alternate screen and the mouse. However the session
//! ends, the terminal is as it was before.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{QueueableCommand, queue};
use fathom_explore::state::State;
use fathom_explore::views::render;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// The size of the buffer of a frame.
const FRAME_BYTES: usize = 64 * 1024;

/// Whether the terminal is in the modes of the explorer.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether a thread has panicked.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal of the session.
pub(crate) struct ExploreTerminal {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
    file: File,
    uses_mouse: bool,
}

/// Opens the terminal: standard output, or if that may be a pipe, the terminal of the session.
///
/// # Errors
/// A message if there is no terminal.
pub(crate) fn open(may_be_pipe: bool) -> Result<File, Vec<u8>> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    if !stdin.is_terminal() {
        return Err(b"standard input is not a terminal".to_vec());
    }
    if stdout.is_terminal() {
        let copy = stdout.as_fd().try_clone_to_owned();
        return copy.map(File::from).map_err(|error| refuse(&error));
    }
    if !may_be_pipe {
        let message = "standard output is not a terminal; for a pipe, see --print0-marked";
        return Err(message.as_bytes().to_vec());
    }
    File::options().read(true).write(true).open("/dev/tty").map_err(|error| refuse(&error))
}

fn refuse(error: &io::Error) -> Vec<u8> {
    [b"cannot open the terminal: ", &crate::shared::output::reason(error)[..]].concat()
}

/// Makes a panic of any thread restore the terminal before its message is printed, and wake the
/// session, which then ends.
///
/// # Errors
/// If the descriptors cannot be duplicated.
pub(crate) fn restore_on_panic(file: &File, wake: &UnixStream) -> io::Result<()> {
    let (file, wake) = (file.try_clone()?, wake.try_clone()?);
    let message = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Relaxed suffices: the state of the terminal is in the kernel.
        PANICKED.store(true, Ordering::Relaxed);
        let _ = restore(&file);
        message(panic);
        let _ = (&wake).write(&[0]);
    }));
    Ok(())
}

/// Returns whether a thread has panicked.
pub(crate) fn has_panicked() -> bool {
    PANICKED.load(Ordering::Relaxed)
}

/// Leaves the modes of the explorer, if the terminal is in them.
fn restore(mut file: &File) -> io::Result<()> {
    if !ACTIVE.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    let mut out = Vec::new();
    // To turn the mouse off does no harm if it was not on.
    queue!(out, DisableMouseCapture, LeaveAlternateScreen, Show)?;
    let written = file.write_all(&out);
    disable_raw_mode()?;
    written
}

impl ExploreTerminal {
    /// Enters the modes of the explorer.
    pub(crate) fn enter(file: File, uses_mouse: bool) -> io::Result<Self> {
        let writer = BufWriter::with_capacity(FRAME_BYTES, file.try_clone()?);
        let terminal = Terminal::new(CrosstermBackend::new(writer))?;
        let mut this = Self { terminal, file, uses_mouse };
        this.resume()?;
        Ok(this)
    }

    /// Enters the modes of the explorer again, after another program had the terminal.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        ACTIVE.store(true, Ordering::Relaxed);
        let mut out = Vec::new();
        out.queue(EnterAlternateScreen)?;
        if self.uses_mouse {
            out.queue(EnableMouseCapture)?;
        }
        (&self.file).write_all(&out)?;
        // Every cell is drawn again.
        self.terminal.clear()
    }

    /// Leaves the modes of the explorer.
    pub(crate) fn leave(&self) -> io::Result<()> {
        restore(&self.file)
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self, state: &State) -> io::Result<()> {
        fathom_io::fault::point("explore-frame");
        if has_panicked() {
            return Ok(());
        }
        self.terminal.draw(|frame| {
            render(state, frame.buffer_mut());
        })?;
        Ok(())
    }

    /// Returns the numbers of columns and of lines.
    pub(crate) fn size(&self) -> (u16, u16) {
        let size = rustix::termios::tcgetwinsize(&self.file);
        size.map_or((80, 24), |size| (size.ws_col, size.ws_row))
    }

    /// Writes a sequence for the terminal itself.
    pub(crate) fn write(&self, sequence: &[u8]) -> io::Result<()> {
        (&self.file).write_all(sequence)
    }

    /// Returns a copy of the descriptor, for the output of a program.
    pub(crate) fn output(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for ExploreTerminal {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}
