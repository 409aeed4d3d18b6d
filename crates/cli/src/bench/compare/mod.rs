//! `fathom bench compare`: how much longer each arm takes in the second of two saved runs.

pub(crate) mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fathom_bench::{ArmKey, RunComparison, TimeChange, compare, report};
use fathom_text::quote::Charset;

use self::table::{COMPARE, CompareOption};
use super::NAME;
use super::reports::{ReportTargets, fail, write_report};
use super::values;
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};
use crate::shared::locale;
use crate::shared::output::print;

/// The arguments of `compare`.
#[derive(Debug, Default)]
struct CompareArgs {
    old: PathBuf,
    new: PathBuf,
    targets: ReportTargets,
    /// The share by which an arm may become slower.
    fail_above: Option<f64>,
}

impl CompareArgs {
    fn apply(&mut self, key: CompareOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        match key {
            CompareOption::Report(key) => self.targets.apply(key, option)?,
            CompareOption::FailAbove => self.fail_above = Some(values::percent(option)?),
        }
        Ok(())
    }
}

/// Parses the command line behind `compare`. Error messages do not contain the program name.
fn parse(words: Vec<OsString>, charset: Charset) -> Result<CompareArgs, ArgsEnd> {
    let mut args = CompareArgs::default();
    let operands =
        cmdline::parse(&COMPARE, words.into_iter(), charset, |key, value| args.apply(key, &value))?;
    let mut operands = operands.into_iter();
    let mut run = || operands.next().map(PathBuf::from).ok_or_else(|| b"missing operand: two runs".to_vec());
    (args.old, args.new) = (run()?, run()?);
    no_more(operands, charset)?;
    Ok(args)
}

/// Runs the command with the arguments `words` behind `compare`. Returns the exit status.
pub(super) fn main(words: Vec<OsString>) -> u8 {
    match parse(words, locale::current()) {
        Ok(args) => compare_runs(&args),
        Err(end) => end.answer(&COMPARE),
    }
}

fn compare_runs(args: &CompareArgs) -> u8 {
    let read = |path: &Path| report::read(path);
    match read(&args.old).and_then(|old| Ok((old, read(&args.new)?))) {
        Err(error) => fail(&error.to_string()),
        Ok((old, new)) => {
            let comparison = compare(&old, &new);
            let status = match &args.targets.json {
                None if args.targets.markdown => print(NAME, &comparison.markdown()),
                None => print(NAME, &comparison.text()),
                Some(target) => match serde_json::to_string_pretty(&comparison) {
                    Ok(text) => write_report(target, &(text + "\n")),
                    Err(error) => fail(&format!("cannot write the comparison: {error}")),
                },
            };
            status.max(args.fail_above.map_or(0, |above| judge(&comparison, above)))
        }
    }
}

/// Returns the exit status of a comparison in which no arm may be slower by more than the share
/// `above`, or impossible to judge.
fn judge(comparison: &RunComparison, above: f64) -> u8 {
    let unknown = comparison.arms.iter().filter(|compared| compared.change == TimeChange::Unknown);
    let unknown: Vec<&ArmKey> = unknown.map(|compared| &compared.arm).chain(&comparison.only_first).collect();
    let slower: Vec<&ArmKey> =
        comparison.slower_by(above).into_iter().map(|compared| &compared.arm).collect();
    let mut status = 0;
    if !slower.is_empty() {
        let most = ((above * 1e6).round() / 1e4).to_string();
        status = fail(&format!("slower by more than {most} %: {}", arm_names(&slower)));
    }
    if !unknown.is_empty() || comparison.arms.is_empty() {
        let cause = "both runs need an arm with at least six blocks";
        let names = if unknown.is_empty() { "any arm".to_owned() } else { arm_names(&unknown) };
        status = fail(&format!("cannot judge {names}: {cause}"));
    }
    status
}

fn arm_names(arms: &[&ArmKey]) -> String {
    let name = |ArmKey { cell, lang, method }: &ArmKey| format!("{lang} {method} ({cell})");
    arms.iter().map(|arm| name(arm)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::parsed;

    #[test]
    fn two_runs_are_compared() {
        let args = parsed("old.json new.json --fail-above 5%", parse).expect("it makes sense");
        assert_eq!((args.new.to_str(), args.fail_above), (Some("new.json"), Some(0.05)));
        for (line, cause) in [
            ("one.json", "missing operand: two runs"),
            ("a b c", "extra operand 'c'"),
            ("a b --csv", "unrecognized option '--csv'"),
            ("a b --fail-above x", "invalid argument 'x' for '--fail-above': a percentage, such as 5%"),
        ] {
            assert_eq!(parsed(line, parse).expect_err(line), cause);
        }
    }
}
