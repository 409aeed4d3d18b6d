//! `fathom diff`: from the command line to the exit status.

mod args;
mod show;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use fathom_inventory::diff::{Change, Sheet, Sides, Summary, Verb, diff, growth};
use fathom_inventory::store::{Error, Inventory};
use fathom_inventory::top::Failure;
use fathom_text::quote::{Charset, quoteaf};

use self::args::{Asked, DiffArgs, Form};
use crate::du::extra::When;
use crate::du::view::screen::Screen;
use crate::flag::Scope;
use crate::output::{self, Output, print, reason, say_misuse};
use crate::top::lack;
use crate::{help, locale};

const NAME: &str = "fathom diff";
const SAME: u8 = 0;
const DIFFERENT: u8 = 1;
/// Exit status where it cannot be told, be it for a mistake.
const TROUBLE: u8 = 2;
/// Trees that are named where there are more that cannot be compared.
const NAMED_MAX: usize = 3;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    match args::parse(words, charset) {
        Ok(Asked::Diff(args)) => run(&args, charset),
        Ok(Asked::Help) => print(NAME, &help::render(&table::DIFF, NAME, Scope::Full)),
        Ok(Asked::Version) => print(NAME, &help::version(NAME)),
        Err(message) => {
            say_misuse(NAME, &message);
            TROUBLE
        }
    }
}

fn say(message: &[u8]) {
    output::say(NAME, message);
}

fn run(args: &DiffArgs, charset: Charset) -> u8 {
    let Sides { old, new } = &args.inventories;
    let opened = Inventory::open(old).and_then(|old| Ok((old, Inventory::open(new)?)));
    let (old, new) = match opened {
        Ok(opened) => opened,
        Err(error) => return refuse(&error.into(), args, charset),
    };
    let run = Run { args, inventories: Sides { old: &old, new: &new }, charset };
    let shown = match &args.form {
        Form::Dirs { lines, json } => run.dirs(*lines, *json),
        Form::Parquet(file) => match sheet(file.as_deref()) {
            Ok(sheet) => run.parquet(sheet),
            Err(message) => {
                say(&message);
                return TROUBLE;
            }
        },
        Form::Text | Form::Json | Form::Null => run.changes(),
    };
    shown.unwrap_or_else(|failure| refuse(&failure, args, charset))
}

/// Says why there is nothing to show; the exit status.
fn refuse(failure: &Failure, args: &DiffArgs, charset: Charset) -> u8 {
    let below = || quoteaf(args.ask.below.as_deref().unwrap_or_default(), charset);
    match failure {
        Failure::Absent => say(&[b"no inventory has a directory ", &below()[..]].concat()),
        Failure::Ambiguous => {
            say(&[b"an inventory has several directories ", &below()[..], b": give the whole path"].concat());
        }
        Failure::Unreadable(error) => say(error.to_string().as_bytes()),
    }
    TROUBLE
}

/// The Parquet file that is asked for, or standard output.
fn sheet(file: Option<&Path>) -> Result<Sheet, Vec<u8>> {
    let made = match file {
        Some(file) => Sheet::create(file),
        None if std::io::stdout().is_terminal() => {
            return Err(b"standard output is a terminal, which shows no Parquet file".to_vec());
        }
        None => {
            let stdout = std::io::stdout().as_fd().try_clone_to_owned();
            let stdout = stdout.map_err(|error| [b"standard output: ", &reason(&error)[..]].concat())?;
            Sheet::to_stream(stdout.into(), Path::new("-"))
        }
    };
    made.map_err(|error| error.to_string().into_bytes())
}

/// Two inventories and what is asked of them.
struct Run<'a> {
    args: &'a DiffArgs,
    inventories: Sides<&'a Inventory>,
    charset: Charset,
}

impl Run<'_> {
    /// Calls `each` for every change that is asked for.
    fn each(&self, mut each: impl FnMut(&Change) -> ControlFlow<()>) -> Result<Summary, Failure> {
        let mut counts = [0; Verb::ALL.len()];
        let summary = diff(&self.inventories, &self.args.ask, &mut |change| {
            if !self.args.only.contains(&change.verb) {
                return ControlFlow::Continue(());
            }
            counts[change.verb as usize] += 1;
            each(change)
        })?;
        Ok(Summary { counts, ..summary })
    }

    fn changes(&self) -> Result<u8, Failure> {
        let (screen, json) = (Screen::new(When::Never, self.charset), show::Json::new());
        let mut out = Output::new();
        let summary = self.each(|change| {
            match self.args.form {
                Form::Json => json.write(change, out.buffer()),
                Form::Null => out.buffer().extend_from_slice(&[&change.path[..], b"\0"].concat()),
                _ => show::text(change, &screen, out.buffer()),
            }
            out.relieve();
            if out.has_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if self.args.form == Form::Json {
            show::json_end(&summary, self.is_complete(&summary.lone), out.buffer());
        }
        let written = out.finish(NAME) == 0;
        Ok(if written { self.judge(&summary) } else { TROUBLE })
    }

    fn parquet(&self, mut sheet: Sheet) -> Result<u8, Failure> {
        let mut failed: Option<Error> = None;
        let summary = self.each(|change| match sheet.push(change) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or_else(|| sheet.finish(), Err)?;
        Ok(self.judge(&summary))
    }

    fn dirs(&self, lines: usize, json: bool) -> Result<u8, Failure> {
        let report = growth(&self.inventories, &self.args.ask, lines)?;
        let mut out = Output::new();
        if json {
            show::dirs_json(&report, self.is_complete(&report.lone), &mut out);
        } else {
            show::dirs(&report, &Screen::new(When::Never, self.charset), &mut out);
        }
        if out.finish(NAME) != 0 {
            return Ok(TROUBLE);
        }
        Ok(self.status(!report.rows.is_empty(), &report.lone))
    }

    /// Says what cannot be told; the exit status.
    fn judge(&self, summary: &Summary) -> u8 {
        let status = self.status(summary.counts.iter().any(|count| *count > 0), &summary.lone);
        if summary.unknown > 0 {
            let count = summary.unknown;
            let what = "are not shown: what the other inventory has in their place is not known";
            say(format!("warning: {count} entries of one inventory {what}").as_bytes());
        }
        if status == SAME && summary.unknown > 0 { TROUBLE } else { status }
    }

    /// Says what is incomplete; the exit status.
    fn status(&self, differs: bool, lone: &Sides<Vec<Vec<u8>>>) -> u8 {
        let paths = &self.args.inventories;
        let quoted = |path: &Path| quoteaf(path.as_os_str().as_bytes(), self.charset);
        let sides = [
            (self.inventories.old, &paths.old, &lone.old, &paths.new),
            (self.inventories.new, &paths.new, &lone.new, &paths.old),
        ];
        for (inventory, path, lone, other) in sides {
            let found = &inventory.manifest().completeness;
            if !found.is_complete() {
                say(&[b"warning: ", &quoted(path)[..], lack(found).as_bytes()].concat());
            }
            for root in lone.iter().take(NAMED_MAX) {
                let root = quoteaf(root, self.charset);
                let parts =
                    [&quoted(path)[..], b" has ", &root, b", which ", &quoted(other), b" does not have"];
                say(&[b"warning: ", &parts.concat()[..], b": it is not compared"].concat());
            }
            if lone.len() > NAMED_MAX {
                say(format!("warning: nor are {} other trees", lone.len() - NAMED_MAX).as_bytes());
            }
        }
        match (differs, self.is_complete(lone)) {
            (true, _) => DIFFERENT,
            (false, true) => SAME,
            (false, false) => TROUBLE,
        }
    }

    fn is_complete(&self, lone: &Sides<Vec<Vec<u8>>>) -> bool {
        let is_whole = |inventory: &Inventory| inventory.manifest().completeness.is_complete();
        let Sides { old, new } = self.inventories;
        is_whole(old) && is_whole(new) && lone.old.is_empty() && lone.new.is_empty()
    }
}
