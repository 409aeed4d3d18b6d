//! The loop of a session: waits for keys, answers and signals, passes them to the state, and draws
//! a frame if anything has happened.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use fathom_explore::input::{Answer, Effect, Event};
use fathom_explore::script::clipboard;
use fathom_explore::session::Session;
use fathom_explore::state::State;
use fathom_text::quote::Charset;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, getsid, kill_current_process_group, kill_process};

use super::inbox::{AnswerInbox, drain};
use super::keyboard::read_keys;
use super::programs::{self, NewFile};
use super::signals::SessionSignals;
use super::tty::{ExploreTerminal, has_panicked};
use crate::shared::cmdline::exit::{INTERRUPTED, PANICKED};

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The user has quit.
    Quit,
    /// It was interrupted, with this exit status.
    Interrupted(u8),
}

/// A session with its terminal.
pub(super) struct Running {
    pub(super) state: State,
    pub(super) session: Session,
    pub(super) inbox: Arc<AnswerInbox>,
    pub(super) wake: UnixStream,
    pub(super) signals: SessionSignals,
    pub(super) terminal: ExploreTerminal,
    pub(super) charset: Charset,
}

/// The readiness of the descriptors.
struct Readiness {
    keys: bool,
    hung_up: bool,
}

impl Running {
    /// Runs the session until it ends.
    ///
    /// # Errors
    /// If the terminal fails.
    pub(super) fn run(&mut self) -> io::Result<SessionEnd> {
        let (columns, lines) = self.terminal.size();
        let mut effects = self.state.start();
        effects.extend(self.state.handle(Event::Resize(columns, lines)));
        if let Some(end) = self.perform(effects)? {
            return Ok(end);
        }
        let (mut size, mut has_more) = ((columns, lines), false);
        loop {
            self.terminal.draw(&self.state)?;
            let ready = self.wait(has_more)?;
            if let Some(end) = self.ended(&ready) {
                return Ok(end);
            }
            self.obey_job_control()?;
            let mut events = Vec::new();
            let now = self.terminal.size();
            if size != now {
                size = now;
                events.push(Event::Resize(now.0, now.1));
            }
            events.extend(self.inbox.take().into_iter().map(Event::Answer));
            if ready.keys || has_more {
                let (keys, more) = read_keys()?;
                has_more = more;
                events.extend(keys.into_iter().map(Event::Key));
            }
            for event in events {
                let effects = self.state.handle(event);
                if let Some(end) = self.perform(effects)? {
                    return Ok(end);
                }
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self, has_more: bool) -> io::Result<Readiness> {
        let stdin = rustix::stdio::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut fds, has_more.then_some(&none)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [keys, wake] = [fds[0].revents(), fds[1].revents()];
        if !wake.is_empty() {
            // Before the answers are taken: a later one wakes again.
            drain(&self.wake);
        }
        let hung_up = keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        Ok(Readiness { keys: keys.contains(PollFlags::IN), hung_up })
    }

    fn ended(&self, ready: &Readiness) -> Option<SessionEnd> {
        if has_panicked() {
            return Some(SessionEnd::Interrupted(PANICKED));
        }
        let hangup = 128 + signal_hook::consts::SIGHUP as u8;
        let status = self.signals.status().or(ready.hung_up.then_some(hangup));
        status.map(SessionEnd::Interrupted)
    }

    /// Stops if a signal asks for it, and takes the terminal again after it was continued.
    fn obey_job_control(&mut self) -> io::Result<()> {
        if self.signals.take_stop() && self.can_stop() {
            self.terminal.leave()?;
            // SIGSTOP instead of SIGTSTP, for which there is a handler. The call returns when the
            // process is continued.
            kill_process(getpid(), Signal::STOP)?;
        }
        if self.signals.take_continued() {
            self.terminal.resume()?;
        }
        Ok(())
    }

    /// Carries out the effects for the terminal and the program.
    fn perform(&mut self, effects: Vec<Effect>) -> io::Result<Option<SessionEnd>> {
        for effect in effects {
            let Some(effect) = self.session.perform(effect) else { continue };
            match effect {
                Effect::Quit => return Ok(Some(SessionEnd::Quit)),
                Effect::Abort => return Ok(Some(SessionEnd::Interrupted(INTERRUPTED))),
                Effect::Copy(text) => self.terminal.write(&clipboard(&text))?,
                Effect::Shell(directory) => self.run_program(programs::shell(directory))?,
                Effect::View(path) => self.run_program(programs::pager(path))?,
                Effect::Open(path) => self.run_program(programs::opener(path))?,
                Effect::WriteScript { path, text } => {
                    self.say(programs::write_new(&path, &text, NewFile::SCRIPT, self.charset));
                }
                Effect::WriteRows { path, text } => {
                    self.say(programs::write_new(&path, &text, NewFile::ROWS, self.charset));
                }
                Effect::Suspend if self.can_stop() => {
                    self.terminal.leave()?;
                    // As the terminal does it for Ctrl-Z: all processes of the job.
                    kill_current_process_group(Signal::STOP)?;
                    self.terminal.resume()?;
                }
                // The session has taken all others.
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns whether a shell would continue the process.
    fn can_stop(&mut self) -> bool {
        let is_alone = is_job_of_terminal();
        if is_alone {
            self.say(b"no shell to return to".to_vec());
        }
        !is_alone
    }

    fn run_program(&mut self, command: std::process::Command) -> io::Result<()> {
        self.terminal.leave()?;
        let mut stop = || {
            if !is_job_of_terminal() {
                // A process may always signal its own group.
                let _ = kill_current_process_group(Signal::STOP);
            }
        };
        let message = programs::run(command, self.terminal.output(), &mut stop);
        self.signals.forget_keyboard();
        self.terminal.resume()?;
        if let Some(message) = message {
            self.say(message);
        }
        Ok(())
    }

    fn say(&mut self, message: Vec<u8>) {
        // A message asks for no effects.
        let _ = self.state.handle(Event::Answer(Answer::Message(message)));
    }
}

/// Returns whether this is the job of the terminal itself, without a shell. The kernel ignores
/// SIGTSTP for it (an orphaned process group).
fn is_job_of_terminal() -> bool {
    getsid(None).is_ok_and(|session| session == getpgrp())
}
