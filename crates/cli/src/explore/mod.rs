//! `fathom explore`: from the command line to the exit status. The crate `fathom-explore` has the
//! state and the views; this module has the terminal, the signals and the programs.

mod args;
mod inbox;
mod keyboard;
mod open;
mod programs;
mod remote;
mod removal;
mod run;
mod signals;
pub(crate) mod table;
mod tty;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_explore::disk::DiskSpace;
use fathom_explore::filter::FilterContext;
use fathom_explore::session::Session;
use fathom_explore::source::Source;
use fathom_explore::state::{Settings, State};
use fathom_io::Clock;
use fathom_text::human::BlockSize;
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::time::{TimeStyle, Zone};

use self::args::ExploreArgs;
use self::inbox::{AnswerInbox, wake_pipe};
use self::open::OpenedSource;
use self::remote::FetchError;
use self::run::{Running, SessionEnd};
use self::signals::SessionSignals;
use self::tty::ExploreTerminal;
use crate::shared::cmdline::exit::{DONE, FAILED, MISUSED};
use crate::shared::locale;
use crate::shared::output::{self, Output, reason};

const NAME: &str = table::EXPLORE.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => explore(&args, charset),
        Err(end) => end.answer(&table::EXPLORE),
    }
}

fn explore(args: &ExploreArgs, charset: Charset) -> u8 {
    // The terminal first: without one, nothing is walked.
    let opened = tty::open(args.prints_marks).map_err(FetchError::Failed).and_then(|tty| {
        let wake = wake_pipe()
            .map_err(|error| FetchError::Failed([b"cannot create a pipe: ", &reason(&error)[..]].concat()))?;
        let opened = open::open_source(args, charset, &wake.1)?;
        Ok((tty, wake, opened))
    });
    let (tty, wake, opened) = match opened {
        Ok(opened) => opened,
        Err(FetchError::Failed(message)) => {
            output::print_error(NAME, &message);
            return MISUSED;
        }
        Err(FetchError::Interrupted(status)) => return status,
    };
    let OpenedSource { source, fetched, signals, is_whole_tree } = opened;
    // Its directory is removed after the source is closed.
    let _fetched = fetched;
    match run(args, charset, tty, (source, is_whole_tree), signals, wake) {
        Ok((SessionEnd::Quit, printed)) => print_paths(&printed),
        Ok((SessionEnd::Interrupted(status), _)) => status,
        Err(error) => {
            output::print_error(NAME, &[b"terminal: ", &reason(&error)[..]].concat());
            FAILED
        }
    }
}

/// Runs the session. Returns its end, and the text that it prints.
fn run(
    args: &ExploreArgs,
    charset: Charset,
    tty: std::fs::File,
    (source, is_whole_tree): (Box<dyn Source>, bool),
    signals: SessionSignals,
    wake_pair: (UnixStream, UnixStream),
) -> io::Result<(SessionEnd, Vec<u8>)> {
    let (wake, waker) = wake_pair;
    signals.install_job_control(&waker)?;
    tty::restore_on_panic(&tty, &waker)?;
    let inbox = Arc::new(AnswerInbox::new(waker));
    let answers = inbox.clone();
    let mut session =
        Session::start(source, removal::open_remover(args, charset), Clock::default(), move |answer| {
            answers.push(answer);
        })?;
    let is_single = args.one_file_system;
    session.read_space(move |roots| DiskSpace::read(roots, is_whole_tree, is_single))?;
    let state = State::new(settings(args, charset));
    let terminal = ExploreTerminal::enter(tty, args.uses_mouse)?;
    let mut running = Running { state, session, inbox, wake, signals, terminal, charset };
    let end = running.run();
    let left = running.terminal.leave();
    running.session.end();
    let end = end?;
    left?;
    tell_removed(&running.state, charset);
    Ok((end, printed(args, &running.state)))
}

/// Says what the session has removed, and where that is logged.
fn tell_removed(state: &State, charset: Charset) {
    let removed = state.removed();
    let log = removal::log_path().filter(|path| path.is_file());
    let log =
        log.map(|path| [b"; log: ", &quoteaf(path.as_os_str().as_encoded_bytes(), charset)[..]].concat());
    let tell = |words: String| {
        output::print_error(NAME, &[words.as_bytes(), log.as_deref().unwrap_or_default()].concat());
    };
    if removed.deleted.files + removed.deleted.directories > 0 {
        tell(format!("removed {}", removed.deleted.words(BlockSize::HUMAN)));
    }
    if removed.trashed > 0 {
        tell(format!("entries moved to the trash: {}", removed.trashed));
    }
}

fn settings(args: &ExploreArgs, charset: Charset) -> Settings {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let times = TimeStyle::parse(b"long-iso", Zone::from_env(locale::env)).unwrap_or_default();
    Settings {
        context: FilterContext { now_s, owners: Arc::new(open::owners()), charset },
        times,
        directory: std::env::current_dir().unwrap_or_default().into_os_string().into_vec(),
        arrangement: args.arrangement.clone(),
        is_read_only: args.is_read_only,
        prints_marks: args.prints_marks,
        units: if args.uses_si { BlockSize::SI } else { BlockSize::HUMAN },
        has_colors: has_colors(),
    }
}

/// Returns whether the environment allows colours.
fn has_colors() -> bool {
    let env = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    env("NO_COLOR").is_none() && env("TERM").is_some_and(|term| term != "dumb")
}

/// Returns the paths of the marked entries, if they were requested, and of the directory, if the
/// user has quit with `Q`.
fn printed(args: &ExploreArgs, state: &State) -> Vec<u8> {
    let marked = if args.prints_marks { state.marked_paths() } else { Vec::new() };
    let mut text: Vec<u8> = marked.into_iter().flat_map(|path| path.into_iter().chain([0])).collect();
    if let Some(path) = state.printed_directory() {
        text.extend_from_slice(&path);
        text.push(if args.prints_marks { 0 } else { b'\n' });
    }
    text
}

/// Prints paths. Returns the exit status.
fn print_paths(text: &[u8]) -> u8 {
    if text.is_empty() {
        return DONE;
    }
    let mut out = Output::new();
    out.buffer().extend_from_slice(text);
    out.finish(NAME)
}
