//! The arguments of `fathom bench advise`.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_text::quote::Charset;

use super::table::{ADVISE, AdviseOption};
use crate::bench::measuring::RunArgs;
use crate::bench::reports::{ReportTarget, ReportTargets, target};
use crate::bench::values;
use crate::shared::cmdline::{self, ArgsEnd, OptionValue, no_more};

/// The default number of repetitions of a validation.
const BLOCKS_VALIDATE: u32 = 7;

/// The arguments of `advise`.
#[derive(Debug, Default)]
pub(crate) struct AdviseArgs {
    pub(crate) path: PathBuf,
    pub(crate) run: RunArgs,
    /// The profile to write: the default one, or this file.
    pub(crate) save: Option<ReportTarget>,
    /// Whether to try the advice on data it has not seen.
    pub(crate) validate: bool,
    /// Whether to do a fraction of the work only.
    pub(crate) quick: bool,
    pub(crate) targets: ReportTargets,
}

impl AdviseArgs {
    /// Returns the repetitions of the validation; `None` for no validation.
    pub(super) fn validation_blocks(&self) -> Option<u32> {
        self.validate.then(|| self.run.blocks.unwrap_or(BLOCKS_VALIDATE))
    }

    fn apply(&mut self, key: AdviseOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        match key {
            AdviseOption::Run(key) => self.run.apply(key, option)?,
            AdviseOption::Report(key) => self.targets.apply(key, option)?,
            AdviseOption::Path => self.path = values::path(option.bytes())?,
            AdviseOption::Quick => self.quick = true,
            AdviseOption::Save => self.save = Some(target(option)?),
            AdviseOption::Validate => self.validate = true,
        }
        Ok(())
    }
}

/// Parses the command line behind `advise`. Error messages do not contain the program name.
pub(super) fn parse(words: Vec<OsString>, charset: Charset) -> Result<AdviseArgs, ArgsEnd> {
    let mut args = AdviseArgs { path: PathBuf::from("."), ..AdviseArgs::default() };
    let operands = cmdline::parse(&ADVISE, words.into_iter(), charset, |key, value| args.apply(key, &value))?;
    let mut operands = operands.into_iter();
    if let Some(dir) = operands.next() {
        args.path = dir.into();
    }
    no_more(operands, charset)?;
    if args.run.blocks.is_some() && !args.validate {
        return Err(b"--blocks needs --validate".to_vec().into());
    }
    args.targets.check()?;
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::parsed;

    fn read(line: &str) -> Result<AdviseArgs, String> {
        parsed(line, parse)
    }

    #[test]
    fn advice_is_about_a_directory() {
        let args = read("/srv --validate --save --json=a.json").expect("it makes sense");
        assert_eq!((args.path.to_str(), args.validation_blocks()), (Some("/srv"), Some(BLOCKS_VALIDATE)));
        let json = Some(ReportTarget::File("a.json".into()));
        assert_eq!((&args.save, &args.targets.json), (&Some(ReportTarget::Output), &json));
        let args = read("--validate --blocks 3").expect("it makes sense");
        assert_eq!((args.path.to_str(), args.validation_blocks(), &args.save), (Some("."), Some(3), &None));
    }

    #[test]
    fn options_of_other_commands_are_unknown() {
        for (line, cause) in [
            (". more", "extra operand 'more'"),
            ("--blocks 3", "--blocks needs --validate"),
            ("--size 1M", "unrecognized option '--size'"),
            ("--csv=plain", "--csv=plain requires a workload"),
            ("--csv --json", "--csv and --json cannot both go to standard output"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.starts_with(cause), "{line}: {said}");
        }
    }
}
