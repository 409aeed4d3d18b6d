//! The question before a removal, on a terminal, and the words for sums.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_remove::{RemovalLimit, RemovalSummary};
use fathom_text::counts::files_and_directories;
use fathom_text::human::BlockSize;
use fathom_text::quote::escape_controls;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::NAME;
use super::args::{PathList, RmArgs};
use crate::shared::output::write_stderr;
use crate::shared::removal::program;

/// Where the question is asked.
#[derive(Debug)]
pub(crate) enum Confirmation {
    /// On standard error; the answer is a line of standard input.
    StandardInput,
    /// On the terminal of the session: standard input is the list of paths.
    Terminal(File),
}

impl Confirmation {
    /// Returns where it is asked before a removal; `None` if it is not, because the arguments say
    /// so or because standard input is no terminal.
    ///
    /// # Errors
    /// A message if standard input is the list, and there is no terminal.
    pub(crate) fn of(args: &RmArgs, list: &PathList) -> Result<Option<Self>, Vec<u8>> {
        if args.force || args.dry_run || args.trash {
            return Ok(None);
        }
        if !list.is_standard_input() {
            return Ok(std::io::stdin().is_terminal().then_some(Self::StandardInput));
        }
        let terminal = File::options().read(true).write(true).open("/dev/tty");
        let message =
            b"cannot ask for confirmation: standard input is the list, and there is no terminal; use -f";
        terminal.map(|terminal| Some(Self::Terminal(terminal))).map_err(|_| message.to_vec())
    }

    /// Asks whether to remove what a dry run has counted, beside the `reasons` why something stays.
    /// A signal, which sets `stop`, is no.
    pub(crate) fn is_given(&mut self, plan: &RemovalSummary, reasons: &[u8], stop: &AtomicBool) -> bool {
        let question = [reasons, question(plan).as_bytes()].concat();
        let answer = match self {
            Self::StandardInput => {
                write_stderr(&question);
                answer(std::io::stdin().as_fd(), stop)
            }
            Self::Terminal(terminal) => {
                // A question that cannot be written has no answer.
                let written = terminal.write_all(&escape_controls(&question));
                written.ok().and_then(|()| answer(terminal.as_fd(), stop))
            }
        };
        let answer = answer.unwrap_or_default();
        let is_given = is_yes(plan, answer.trim());
        if let Some(message) = wrong_number(plan, answer.trim()).filter(|_| !is_given) {
            write_stderr(&message);
        }
        is_given
    }
}

/// Reads a line of a terminal; `None` at its end, after an error, and when a signal sets `stop`.
fn answer(terminal: BorrowedFd<'_>, stop: &AtomicBool) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && !stop.load(Ordering::Relaxed) {
        let mut byte = [0];
        // The handlers of signals make read(2) go on, and poll(2) end (signal(7)).
        match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], None) {
            Ok(_) if rustix::io::read(terminal, &mut byte) == Ok(1) => line.extend(byte),
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    line.ends_with(b"\n").then(|| String::from_utf8_lossy(&line).into_owned())
}

fn question(plan: &RemovalSummary) -> String {
    let amount = amount(plan);
    match number(plan) {
        Some(_) => format!("{NAME}: remove {amount}? Type the number of {} to confirm: ", counted(plan)),
        None => format!("{NAME}: remove {amount}? [y/N] "),
    }
}

fn number(plan: &RemovalSummary) -> Option<u64> {
    RemovalLimit { files: plan.files, directories: plan.directories }.number_to_type()
}

/// Returns what the number to type is of.
fn counted(plan: &RemovalSummary) -> &'static str {
    if plan.files > 0 { "files" } else { "directories" }
}

fn is_yes(plan: &RemovalSummary, answer: &str) -> bool {
    match number(plan) {
        Some(number) => answer.parse() == Ok(number),
        None => matches!(answer, "y" | "Y" | "yes" | "Yes" | "YES"),
    }
}

/// Returns a message about an answer that is another number, or a yes where a number is needed.
fn wrong_number(plan: &RemovalSummary, answer: &str) -> Option<Vec<u8>> {
    number(plan).filter(|_| !matches!(answer, "" | "n" | "N" | "no" | "No" | "NO"))?;
    let text = format!("{NAME}: '{answer}' is not the number of {}: nothing was removed\n", counted(plan));
    Some(escape_controls(text.as_bytes()).into_owned())
}

/// Returns the numbers of files and directories, as in "3 files and 1 directory".
pub(crate) fn counts(summary: &RemovalSummary) -> String {
    files_and_directories(summary.files, summary.directories)
}

/// Returns the counts with the bytes.
pub(crate) fn amount(summary: &RemovalSummary) -> String {
    let (allocated, freed) = (human(summary.allocated), human(summary.freed));
    let held = summary.holder.map_or_else(String::new, |holder| {
        format!(
            "; {} more when open files are closed, the largest by {}",
            human(summary.held),
            program(holder)
        )
    });
    format!("{} ({allocated} allocated, {freed} would be free{held})", counts(summary))
}

/// Returns the counts with the bytes, none of which would be free.
pub(crate) fn amount_kept(summary: &RemovalSummary) -> String {
    format!("{} ({} allocated)", counts(summary), human(summary.allocated))
}

fn human(bytes: u64) -> String {
    BlockSize::HUMAN.text(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(files: u64, directories: u64) -> RemovalSummary {
        RemovalSummary { files, directories, allocated: 8192, freed: 4096, ..RemovalSummary::default() }
    }

    #[test]
    fn more_than_a_hundred_need_their_number_and_others_a_yes() {
        assert_eq!(
            question(&plan(112, 1)),
            "fathom rm: remove 112 files and 1 directory (8.0K allocated, 4.0K would be free)? Type the number of files to confirm: "
        );
        assert_eq!(
            question(&plan(1, 0)),
            "fathom rm: remove 1 file (8.0K allocated, 4.0K would be free)? [y/N] "
        );
        let yes =
            |plan: &RemovalSummary| ["112", "y", "", "1", "112 files"].map(|answer| is_yes(plan, answer));
        assert_eq!(yes(&plan(112, 3)), [true, false, false, false, false]);
        assert_eq!(yes(&plan(100, 100)), [false, true, false, false, false]);
        assert_eq!(yes(&plan(0, 112)), [true, false, false, false, false]);
        let wrong = |answer| wrong_number(&plan(112, 3), answer).map(|text| String::from_utf8(text).unwrap());
        assert_eq!(["", "n", "No"].map(wrong), [None, None, None]);
        assert_eq!(wrong("y").unwrap(), "fathom rm: 'y' is not the number of files: nothing was removed\n");
    }
}
