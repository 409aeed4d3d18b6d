//! The three small du's: each sums the lengths of regular files under one I/O model and no other, so that the
//! difference in their times is the model's. Owns their command line and their lines; all else is `fathom-du`'s.

#[allow(dead_code, reason = "shared with the other binaries of this crate, which use more of it")]
#[path = "output.rs"]
mod output;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::Arc;

use fathom_du::again::Operands;
use fathom_du::options::{Follow, Links, Measure, Options};
use fathom_du::problem::Problem;
use fathom_du::scan::{Engine, Line, Operand, Report, scan};
use fathom_text::human::BlockSize;
use fathom_text::quote::{Charset, NameStyle};
use fathom_walk::Choice;
use output::{Output, complain, stdout_is_terminal};

const HELP: &str = "[-hs] [DIR]...
Shows how long the regular files below each DIR (or the current directory) are
together: the size, a tab, the directory.

  -h          sizes for people, in powers of 1024
  -s          one line for each DIR, not for all directories below it too
      --help  show this help and end

Hard links count each time, directories and links nothing. `fathom du` does more.
";

/// Exit status of a command line that means nothing.
const MISUSE: u8 = 2;

/// Runs the program called `name` with one I/O model.
pub(crate) fn main(name: &'static str, choice: Choice) -> ExitCode {
    fathom_io::sys::restore_sigpipe();
    let status = match read(std::env::args_os().skip(1)) {
        Ok(Some(asked)) => measure(name, choice, asked),
        Ok(None) => {
            let mut out = Output::new();
            out.buffer().extend_from_slice(format!("Usage: {name} {HELP}").as_bytes());
            out.finish(name)
        }
        Err(word) => {
            let hint = format!("'\nTry '{name} --help' for more information.\n");
            complain(&[name.as_bytes(), b": unknown option '", &word, hint.as_bytes()].concat());
            MISUSE
        }
    };
    ExitCode::from(output::status(status))
}

/// What a command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    human: bool,
    summarize: bool,
    paths: Vec<OsString>,
}

/// Reads a command line; `None` asks for help, an error is the option that there is not.
fn read(mut words: impl Iterator<Item = OsString>) -> Result<Option<Asked>, Vec<u8>> {
    let mut asked = Asked::default();
    while let Some(word) = words.next() {
        match word.as_encoded_bytes() {
            b"--" => asked.paths.extend(words.by_ref()),
            b"--help" => return Ok(None),
            [b'-', letters @ ..] if !letters.is_empty() => {
                if !letters.iter().all(|letter| b"hs".contains(letter)) {
                    return Err(word.into_vec());
                }
                asked.human |= letters.contains(&b'h');
                asked.summarize |= letters.contains(&b's');
            }
            _ => asked.paths.push(word),
        }
    }
    if asked.paths.is_empty() {
        asked.paths.push(".".into());
    }
    Ok(Some(asked))
}

fn measure(name: &'static str, choice: Choice, asked: Asked) -> u8 {
    let options = Options {
        measure: Measure::Lengths,
        links: Links::EachTime,
        follow: Follow::Operands,
        depth_max: asked.summarize.then_some(0),
        ..Options::default()
    };
    let block_size = if asked.human { BlockSize::HUMAN } else { BlockSize::BYTES };
    let mut lines =
        Lines { name, block_size, paths: asked.paths.into_iter(), out: Output::new(), failed: false };
    let engine = Engine { choice, ..Engine::default() };
    if let Err(error) = scan(Arc::new(options), engine, &Operands::One, &mut lines, &mut |_| ()) {
        lines.complain(error.to_string().as_bytes());
    }
    lines.out.finish(name).max(u8::from(lines.failed))
}

/// Writes a line for each directory.
struct Lines {
    name: &'static str,
    block_size: BlockSize,
    paths: std::vec::IntoIter<OsString>,
    out: Output,
    failed: bool,
}

impl Lines {
    fn complain(&mut self, message: &[u8]) {
        self.failed = true;
        self.out.flush();
        complain(&[self.name.as_bytes(), b": ", message, b"\n"].concat());
    }
}

impl Report for Lines {
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
        self.out.relieve();
    }

    fn problem(&mut self, problem: &Problem<'_>) {
        self.complain(&problem.message(Charset::Ascii));
    }

    fn message(&mut self, message: &[u8]) {
        self.complain(message);
    }

    fn stopped(&mut self) -> bool {
        self.out.has_failed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(words: &str) -> Result<Option<Asked>, Vec<u8>> {
        read(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn letters_bundle_and_two_dashes_end_them() {
        let asked = |human, summarize, paths: &[&str]| {
            Ok(Some(Asked { human, summarize, paths: paths.iter().map(OsString::from).collect() }))
        };
        assert_eq!(read_words(""), asked(false, false, &["."]));
        assert_eq!(read_words("-hs d"), asked(true, true, &["d"]));
        assert_eq!(read_words("d -s e"), asked(false, true, &["d", "e"]));
        assert_eq!(read_words("-h -- -s -"), asked(true, false, &["-s", "-"]));
    }

    #[test]
    fn what_there_is_not_is_named() {
        assert_eq!(read_words("-hx d"), Err(b"-hx".to_vec()));
        assert_eq!(read_words("--human"), Err(b"--human".to_vec()));
        assert_eq!(read_words("-s --help -x"), Ok(None));
    }
}
