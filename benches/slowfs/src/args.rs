//! The command line of slowfs. A mistake is reported as a sentence on what to change.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// The output of `slowfs --help`.
pub(crate) const HELP: &str = "\
Usage: slowfs SOURCE MOUNTPOINT [OPTION]...
Shows SOURCE at MOUNTPOINT, read-only unless you say otherwise; each operation takes as long as you say, and any number run at once.
Prints 'mounted MOUNTPOINT' when it is ready; unmounts and exits on SIGINT, SIGTERM or an umount from outside.

  --delay-us N       microseconds each answer is held back (default 1000)
  --ttl-ms N         milliseconds the kernel may keep names and attributes (default 0)
  --allow-other      let other users in; the kernel then checks permissions, which costs more operations
  --removable        files and directories can be removed, and nothing else changed
  --die-with-parent  unmount when the process that started this one ends
  --help             show this
";

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) source: PathBuf,
    pub(crate) mountpoint: PathBuf,
    pub(crate) delay: Duration,
    pub(crate) ttl: Duration,
    pub(crate) allow_other: bool,
    pub(crate) removable: bool,
    pub(crate) die_with_parent: bool,
}

/// Parses the arguments that follow the program's name. `None`: the help text was requested.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, String> {
    let mut options = Options {
        source: PathBuf::new(),
        mountpoint: PathBuf::new(),
        delay: Duration::from_millis(1),
        ttl: Duration::ZERO,
        allow_other: false,
        removable: false,
        die_with_parent: false,
    };
    let mut operands = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help") => return Ok(None),
            Some("--delay-us") => {
                options.delay = Duration::from_micros(number("--delay-us", arguments.next())?)
            }
            Some("--ttl-ms") => options.ttl = Duration::from_millis(number("--ttl-ms", arguments.next())?),
            Some("--allow-other") => options.allow_other = true,
            Some("--removable") => options.removable = true,
            Some("--die-with-parent") => options.die_with_parent = true,
            Some(option) if option.starts_with("--") => return Err(format!("unknown option '{option}'")),
            _ => operands.push(PathBuf::from(argument)),
        }
    }
    let [source, mountpoint] =
        operands.try_into().map_err(|_| "expected SOURCE and MOUNTPOINT".to_owned())?;
    Ok(Some(Options { source, mountpoint, ..options }))
}

fn number(option: &str, value: Option<OsString>) -> Result<u64, String> {
    let value = value.ok_or_else(|| format!("option '{option}' needs a number"))?;
    let text = value.to_str().unwrap_or_default();
    // The limit is one minute. It keeps every deadline representable as an `Instant`.
    match text.parse() {
        Ok(number) if number <= 60_000_000 => Ok(number),
        _ => Err(format!("option '{option}': not a number up to 60000000: '{}'", OsStr::display(&value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<Option<Options>, String> {
        parse(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_may_stand_anywhere() {
        let options = parse_words("a --delay-us 250 b --die-with-parent --removable").unwrap().unwrap();
        assert_eq!((options.source, options.mountpoint), (PathBuf::from("a"), PathBuf::from("b")));
        assert_eq!((options.delay, options.ttl), (Duration::from_micros(250), Duration::ZERO));
        assert!(options.die_with_parent && options.removable && !options.allow_other);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse_words("a").unwrap_err(), "expected SOURCE and MOUNTPOINT");
        assert_eq!(parse_words("a b c").unwrap_err(), "expected SOURCE and MOUNTPOINT");
        assert_eq!(parse_words("a b --fast").unwrap_err(), "unknown option '--fast'");
        assert_eq!(parse_words("a b --ttl-ms").unwrap_err(), "option '--ttl-ms' needs a number");
        assert!(parse_words("a b --delay-us -1").unwrap_err().ends_with("'-1'"));
        assert_eq!(parse_words("--help"), Ok(None));
    }
}
