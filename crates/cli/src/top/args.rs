//! From a command line to what a run of `fathom top` needs, or to what it has to say instead. Prints nothing.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::top::{Ask, By};
use fathom_text::quote::{Charset, quote};

use super::table::{BY_WORDS, FLAGS, Key};
use crate::du::extra;
use crate::getopt::{Getopt, Match, Order};

/// Lines where nobody says how many.
const LINES: usize = 20;

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Top(TopArgs),
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct TopArgs {
    pub(crate) inventory: PathBuf,
    pub(crate) ask: Ask,
    pub(crate) json: bool,
}

/// Reads the command line `words`, without the program's and the command's name. A message is without the program's name.
pub(crate) fn parse(words: impl Iterator<Item = OsString>, charset: Charset) -> Result<Asked, Vec<u8>> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, Order::Permute);
    let mut reader = Reader { by: By::Dir, lines: None, below: None, json: false };
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| misuse.message())?;
        match option.flag.key {
            Key::Help => return Ok(Asked::Help),
            Key::Version => return Ok(Asked::Version),
            key => reader.take(key, option, charset)?,
        }
    }
    reader.finish(getopt.into_operands(), charset).map(Asked::Top)
}

/// What is known so far.
struct Reader {
    by: By,
    lines: Option<NonZeroU64>,
    below: Option<Vec<u8>>,
    json: bool,
}

impl Reader {
    fn take(&mut self, key: Key, option: Match<Key>, charset: Charset) -> Result<(), Vec<u8>> {
        let value = option.value.unwrap_or_default();
        let refused = |refusal: extra::Refusal| refusal.message(&option.spelling, &value, charset);
        match key {
            Key::By => self.by = by(&value).map_err(refused)?,
            Key::Lines => self.lines = Some(extra::top(&value).map_err(refused)?),
            Key::Below if value.is_empty() => return Err(b"invalid zero-length file name".to_vec()),
            Key::Below => self.below = Some(value),
            Key::Json => self.json = true,
            Key::Help | Key::Version => {}
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<TopArgs, Vec<u8>> {
        let mut operands = operands.into_iter();
        let inventory = operands.next().ok_or_else(|| b"missing operand: the inventory".to_vec())?;
        if let Some(more) = operands.next() {
            return Err([b"extra operand ", &quote(more.as_encoded_bytes(), charset)[..]].concat());
        }
        let all = matches!(self.by, By::Age | By::Size | By::Depth);
        let count = match self.lines {
            Some(lines) => usize::try_from(lines.get()).unwrap_or(usize::MAX),
            None => {
                if all {
                    usize::MAX
                } else {
                    LINES
                }
            }
        };
        let ask = Ask { by: self.by, count, below: self.below, now: now() };
        Ok(TopArgs { inventory: inventory.into(), ask, json: self.json })
    }
}

/// The value of `--by`.
fn by(word: &[u8]) -> Result<By, extra::Refusal> {
    use By::{Age, Depth, Dir, Ext, File, Group, Size, Type, User};
    extra::one_of(word, BY_WORDS, &[Dir, File, User, Group, Ext, Age, Size, Type, Depth])
}

/// In microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
