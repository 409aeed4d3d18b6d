//! The arguments of `fathom history`: parses and checks the command line. Prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_scans::history::Retention;
use fathom_text::quote::Charset;

use super::table::{HISTORY, HistoryOption};
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::value;

/// The word that asks for the removal of old inventories.
const PRUNE: &str = "prune";

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum HistoryAction {
    List { store: PathBuf, json: bool },
    Prune { store: PathBuf, retention: Retention, dry_run: bool },
}

/// Parses the command line `words`, without the names of program and command. Error messages do not
/// contain the program name.
pub(crate) fn parse(
    words: impl Iterator<Item = OsString>,
    charset: Charset,
) -> Result<HistoryAction, ArgsEnd> {
    let mut parser = HistoryParser::default();
    let operands = cmdline::parse(&HISTORY, words, charset, |key, value| parser.apply(key, value))?;
    Ok(parser.finish(operands, charset)?)
}

/// The options parsed so far.
#[derive(Default)]
struct HistoryParser {
    json: bool,
    dry_run: bool,
    retention: Retention,
}

impl HistoryParser {
    fn apply(&mut self, key: HistoryOption, option: OptionValue) -> Result<(), Vec<u8>> {
        match key {
            HistoryOption::Json => self.json = true,
            HistoryOption::DryRun => self.dry_run = true,
            HistoryOption::KeepLast => self.retention.last = option.read(value::count)?.get(),
            HistoryOption::KeepDaily => self.retention.daily = option.read(value::count)?.get(),
            HistoryOption::KeepWeekly => self.retention.weekly = option.read(value::count)?.get(),
            HistoryOption::KeepMonthly => self.retention.monthly = option.read(value::count)?.get(),
        }
        Ok(())
    }

    fn finish(self, operands: Vec<OsString>, charset: Charset) -> Result<HistoryAction, Vec<u8>> {
        let refused = |what: &str| Err(what.as_bytes().to_vec());
        let mut operands = operands.into_iter().peekable();
        let is_prune = operands.next_if(|word| word == PRUNE).is_some();
        let store = operands.next().map(PathBuf::from);
        no_more(operands, charset)?;
        if !is_prune {
            if self.dry_run || !self.retention.is_empty() {
                return refused("--dry-run and --keep-... require prune");
            }
            return Ok(HistoryAction::List { store: store.unwrap_or_else(|| ".".into()), json: self.json });
        }
        let Self { json, dry_run, retention } = self;
        match store {
            _ if json => refused("--json cannot be combined with prune"),
            _ if retention.is_empty() => refused("missing option: what to keep, such as --keep-daily 14"),
            None => refused("missing operand: DIR, the store to prune"),
            Some(store) => Ok(HistoryAction::Prune { store, retention, dry_run }),
        }
    }
}
