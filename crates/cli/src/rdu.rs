//! The three small du programs: each sums the lengths of regular files with one fixed I/O model, so
//! that their times differ by the model only. Owns their command line and output; `fathom-du` does
//! the rest.

#[allow(dead_code, reason = "shared with the other binaries of this crate, which use more of it")]
#[path = "output.rs"]
mod output;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::Arc;

use fathom_du::dedup::KnownOperands;
use fathom_du::options::{Follow, HardLinks, Measure, Options};
use fathom_du::problem::Problem;
use fathom_du::scan::{Engine, Line, Operand, Report, scan};
use fathom_text::human::BlockSize;
use fathom_text::quote::{Charset, NameStyle};
use fathom_walk::{Model, Op};
use output::{Output, PANICKED, stdout_is_terminal, write_stderr};

const HELP: &str = "[-hs] [DIR]...
Shows how long the regular files below each DIR (or the current directory) are
together: the size, a tab, the directory.

  -h          sizes for people, in powers of 1024
  -s          one line for each DIR, not for all directories below it too
      --help  show this help and end

Hard links count each time, directories and links nothing. `fathom du` does more.
";

/// Exit status for an invalid command line.
const MISUSE: u8 = 2;

/// Runs the program called `name` with one I/O model.
pub(crate) fn main(name: &'static str, choice: Model) -> ExitCode {
    fathom_io::sys::restore_sigpipe();
    output::report_panics(name);
    ExitCode::from(output::exit_status(|| run(name, choice)))
}

fn run(name: &'static str, choice: Model) -> u8 {
    match read(std::env::args_os().skip(1)) {
        Ok(Some(args)) => measure(name, choice, args),
        Ok(None) => {
            let mut out = Output::new();
            out.buffer().extend_from_slice(format!("Usage: {name} {HELP}").as_bytes());
            out.finish(name)
        }
        Err(word) => {
            let hint = format!("'\nTry '{name} --help' for more information.\n");
            write_stderr(&[name.as_bytes(), b": unknown option '", &word, hint.as_bytes()].concat());
            MISUSE
        }
    }
}

/// A parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct RduArgs {
    human: bool,
    summarize: bool,
    paths: Vec<OsString>,
}

/// Parses a command line. `None` requests the help text.
///
/// # Errors
/// Returns the unknown option.
fn read(mut words: impl Iterator<Item = OsString>) -> Result<Option<RduArgs>, Vec<u8>> {
    let mut args = RduArgs::default();
    while let Some(word) = words.next() {
        match word.as_encoded_bytes() {
            b"--" => args.paths.extend(words.by_ref()),
            b"--help" => return Ok(None),
            [b'-', letters @ ..] if !letters.is_empty() => {
                if !letters.iter().all(|letter| b"hs".contains(letter)) {
                    return Err(word.into_vec());
                }
                args.human |= letters.contains(&b'h');
                args.summarize |= letters.contains(&b's');
            }
            _ => args.paths.push(word),
        }
    }
    if args.paths.is_empty() {
        args.paths.push(".".into());
    }
    Ok(Some(args))
}

fn measure(name: &'static str, choice: Model, args: RduArgs) -> u8 {
    let options = Options {
        measure: Measure::Lengths,
        links: HardLinks::EachTime,
        follow: Follow::Operands,
        depth_max: args.summarize.then_some(0),
        ..Options::default()
    };
    let block_size = if args.human { BlockSize::HUMAN } else { BlockSize::BYTES };
    let mut report =
        RduReport { name, block_size, paths: args.paths.into_iter(), out: Output::new(), failed: false };
    let engine = Engine { choice, ..Engine::default() };
    if let Err(error) = scan(Arc::new(options), engine, &KnownOperands::AtMostOne, &mut report, &mut |_| ()) {
        report.print_error(error.to_string().as_bytes());
        if error.op() == Op::Work {
            return PANICKED;
        }
    }
    report.out.finish(name).max(u8::from(report.failed))
}

/// Prints a line for each directory.
struct RduReport {
    name: &'static str,
    block_size: BlockSize,
    paths: std::vec::IntoIter<OsString>,
    out: Output,
    failed: bool,
}

impl RduReport {
    fn print_error(&mut self, message: &[u8]) {
        self.failed = true;
        self.out.flush();
        write_stderr(&[self.name.as_bytes(), b": ", message, b"\n"].concat());
    }
}

impl Report for RduReport {
    fn next_operand(&mut self, _wait: bool) -> Operand {
        match self.paths.next().map(|path| CString::new(path.into_vec())) {
            None => Operand::End,
            Some(Ok(path)) if !path.is_empty() => Operand::Path(path),
            Some(_) => Operand::Message(b"an empty name is no directory's".to_vec()),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        let buffer = self.out.buffer();
        self.block_size.write(line.totals.bytes, buffer);
        buffer.push(b'\t');
        NameStyle::of(stdout_is_terminal(), false, Charset::Ascii).write(line.path, buffer);
        buffer.push(b'\n');
        self.out.flush_if_full();
    }

    fn problem(&mut self, problem: &Problem<'_>) {
        self.print_error(&problem.message(Charset::Ascii));
    }

    fn message(&mut self, message: &[u8]) {
        self.print_error(message);
    }

    fn stopped(&mut self) -> bool {
        self.out.has_failed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(words: &str) -> Result<Option<RduArgs>, Vec<u8>> {
        read(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn letters_bundle_and_two_dashes_end_them() {
        let args = |human, summarize, paths: &[&str]| {
            Ok(Some(RduArgs { human, summarize, paths: paths.iter().map(OsString::from).collect() }))
        };
        assert_eq!(read_words(""), args(false, false, &["."]));
        assert_eq!(read_words("-hs d"), args(true, true, &["d"]));
        assert_eq!(read_words("d -s e"), args(false, true, &["d", "e"]));
        assert_eq!(read_words("-h -- -s -"), args(true, false, &["-s", "-"]));
    }

    #[test]
    fn unknown_options_are_named() {
        assert_eq!(read_words("-hx d"), Err(b"-hx".to_vec()));
        assert_eq!(read_words("--human"), Err(b"--human".to_vec()));
        assert_eq!(read_words("-s --help -x"), Ok(None));
    }
}
