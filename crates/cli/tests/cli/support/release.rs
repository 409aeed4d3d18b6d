//! Differences between GNU du 9.10, whose behaviour fathom has, and earlier releases. Used only
//! where no newer GNU du is installed to compare with.

use std::ffi::OsString;

use super::outcome::Outcome;
use super::program;

/// Returns the change between releases that makes a comparison with the installed GNU du pointless.
pub(crate) fn change_since(
    words: &[OsString],
    env: &[(OsString, OsString)],
    gnu: &Outcome,
) -> Option<&'static str> {
    if program::gnu_version() >= (9, 10) {
        return None;
    }
    let (words, err) = (words.iter().map(|word| word.to_string_lossy()), gnu.err());
    let words: Vec<_> = words.collect();
    let any = |is: fn(&str) -> bool| words.iter().any(|word| is(word));
    let styled = env.iter().any(|(name, _)| name == "TIME_STYLE") || any(|word| word.contains("time-style"));
    match () {
        () if any(is_apparent) => Some("9.10: apparent sizes of directories, -A"),
        () if any(|word| word.starts_with("-d -") || word.starts_with("-d-") || word.contains("depth=-")) => {
            Some("9.4: negative depths")
        }
        () if err.contains("invalid maximum depth") => Some("9.4: negative depths"),
        () if any(|word| word.ends_with(['R', 'Q'])) => Some("9.10: the suffixes R and Q"),
        () if styled && err.contains("time style") => Some("9.10: the list of time styles"),
        () if err.contains("stdin, no file name") => Some("9.10: what - is called in a list"),
        () if err.contains("'''") => Some("9.10: quotes around a name that has one"),
        () if err.ends_with("write error\n") => Some("9.10: reasons of write errors"),
        () => None,
    }
}

fn is_apparent(word: &str) -> bool {
    let bundle = word.starts_with('-') && !word.starts_with("--");
    let flags = word.split(['B', 'X', 't', 'd']).next().unwrap_or_default();
    word.starts_with("--app") || (bundle && flags.contains(['b', 'A']))
}
