//! The values of the options that `fathom du` adds to GNU du's.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use fathom_io::Choice;
use fathom_text::quote::{Charset, quote};

use super::table::{BY_WORDS, WHEN_WORDS};
use crate::flag::Scope;
use crate::list::table::ORDER_WORDS;

/// What the additions ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extra {
    /// The I/O model.
    pub(crate) model: Choice,
    /// How many threads to keep, instead of adapting their number.
    pub(crate) threads: Option<NonZeroUsize>,
    /// What is shown of the result.
    pub(crate) view: View,
    /// The inventory to take everything from.
    pub(crate) from: Option<PathBuf>,
    /// Whether it is shown as JSON.
    pub(crate) json: bool,
    /// When progress is shown on standard error.
    pub(crate) progress: When,
    /// When colours are used.
    pub(crate) color: When,
    /// Whether standard error tells what was done and how.
    pub(crate) verbose: bool,
}

impl Extra {
    /// Nothing asked for. Without additions nothing shows that they could exist.
    pub(crate) fn new(scope: Scope) -> Self {
        let when = if scope == Scope::Full { When::Auto } else { When::Never };
        Extra {
            model: Choice::Auto,
            threads: None,
            view: View::Lines,
            from: None,
            json: false,
            progress: when,
            color: when,
            verbose: false,
        }
    }
}

/// What is shown of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// GNU du's lines.
    Lines,
    /// A sorted tree with bars.
    Tree,
    /// The largest files and directories.
    Top(NonZeroU64),
    /// Totals by a property of files.
    By(Property),
}

impl View {
    /// The option that asks for it; none for the default.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            View::Lines => None,
            View::Tree => Some("--tree"),
            View::Top(_) => Some("--top"),
            View::By(_) => Some("--by"),
        }
    }
}

/// By what files are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// What follows the last dot of the name.
    Extension,
    /// The owner.
    User,
    /// The owning group.
    Group,
    /// The time since the last modification.
    Age,
    /// Regular file, directory, symbolic link and so on.
    Type,
}

/// When something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// On a terminal.
    Auto,
    /// Anywhere.
    Always,
    /// Nowhere.
    Never,
}

/// The value of `--progress` or `--color`.
pub(crate) fn when(word: &[u8]) -> Result<When, Refusal> {
    one_of(word, WHEN_WORDS, &[When::Auto, When::Always, When::Never])
}

/// The value of `--order`: whether there is one.
pub(crate) fn order(word: &[u8]) -> Result<bool, Refusal> {
    one_of(word, ORDER_WORDS, &[true, false])
}

/// The value of `--by`.
pub(crate) fn property(word: &[u8]) -> Result<Property, Refusal> {
    use Property::{Age, Extension, Group, Type, User};
    one_of(word, BY_WORDS, &[Extension, User, Group, Age, Type])
}

/// The value of `--io`.
pub(crate) fn model(word: &[u8]) -> Result<Choice, Refusal> {
    let choice = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    choice.ok_or(Refusal { ambiguous: false, valid: Valid::Models })
}

/// The value of `--threads`.
pub(crate) fn threads(word: &[u8]) -> Result<NonZeroUsize, Refusal> {
    let count = number(word).and_then(|count| usize::try_from(count.get()).ok()).and_then(NonZeroUsize::new);
    count.filter(|count| count.get() <= Choice::COUNT_MAX).ok_or(Refusal {
        ambiguous: false,
        valid: Valid::Text(format!("a number from 1 to {}", Choice::COUNT_MAX)),
    })
}

/// The value of `--top`.
pub(crate) fn top(word: &[u8]) -> Result<NonZeroU64, Refusal> {
    number(word)
        .ok_or_else(|| Refusal { ambiguous: false, valid: Valid::Text("a number, at least 1".into()) })
}

fn number(word: &[u8]) -> Option<NonZeroU64> {
    let digits = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    digits?.parse().ok()
}

/// The meaning of `word`, which may be cut short as long as it can be only one of `words`.
pub(crate) fn one_of<T: Copy>(
    word: &[u8],
    words: &'static [&'static str],
    meanings: &[T],
) -> Result<T, Refusal> {
    if let Some(at) = words.iter().position(|full| full.as_bytes() == word) {
        return Ok(meanings[at]);
    }
    let mut begun = words.iter().zip(meanings).filter(|(full, _)| full.as_bytes().starts_with(word));
    match (begun.next(), begun.next()) {
        (Some((_, meaning)), None) => Ok(*meaning),
        (first, _) => Err(Refusal { ambiguous: first.is_some(), valid: Valid::Words(words) }),
    }
}

/// A value that an option does not take.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    ambiguous: bool,
    valid: Valid,
}

#[derive(Debug, PartialEq, Eq)]
enum Valid {
    Words(&'static [&'static str]),
    Models,
    Text(String),
}

impl Refusal {
    /// The message, in the words that GNU du has for `--time`; without the program's name and a last newline.
    pub(crate) fn message(&self, option: &str, value: &[u8], charset: Charset) -> Vec<u8> {
        let quote = |text: &[u8]| quote(text, charset);
        let kind: &[u8] = if self.ambiguous { b"ambiguous" } else { b"invalid" };
        let mut message = [kind, b" argument ", &quote(value), b" for ", &quote(option.as_bytes())].concat();
        message.extend_from_slice(b"\nValid arguments are:");
        let mut list = |words: &[&str]| {
            words.iter().for_each(|word| message.extend([b"\n  - ", &quote(word.as_bytes())[..]].concat()));
        };
        match &self.valid {
            Valid::Text(text) => message.extend_from_slice(format!("\n  - {text}").as_bytes()),
            Valid::Words(words) => list(words),
            Valid::Models => {
                list(&Choice::NAMES);
                let range = format!("\nN and DEPTH are numbers from 1 to {}", Choice::COUNT_MAX);
                message.extend_from_slice(range.as_bytes());
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::du::table::IO_WORDS;

    #[test]
    fn words_may_be_cut_short() {
        assert_eq!(when(b"al"), Ok(When::Always));
        assert_eq!(when(b"never"), Ok(When::Never));
        assert!(when(b"a").unwrap_err().ambiguous);
        assert!(!when(b"alwayss").unwrap_err().ambiguous);
        assert_eq!(property(b"t"), Ok(Property::Type));
        assert_eq!(property(b"ext"), Ok(Property::Extension));
    }

    #[test]
    fn models_and_the_words_completion_offers_are_the_engines() {
        for word in IO_WORDS {
            assert_eq!(model(word.as_bytes()).map(|choice| choice.to_string()), Ok(word.to_string()));
        }
        assert_eq!(IO_WORDS.len(), Choice::NAMES.len());
        assert_eq!(model(b"threads=3"), Ok(Choice::Threads(Some(3))));
        assert!(model(b"threads=0").is_err() && model(b"\xff").is_err());
    }

    #[test]
    fn counts_are_whole_numbers_from_one() {
        for word in ["", "0", "-1", "+1", "1x", " 1", "99999999999999999999999"] {
            assert!(threads(word.as_bytes()).is_err() && top(word.as_bytes()).is_err(), "{word}");
        }
        assert!(threads(b"4096").is_ok() && threads(b"4097").is_err());
        assert_eq!(top(b"007").map(NonZeroU64::get), Ok(7));
    }

    #[test]
    fn messages_list_what_is_valid() {
        let message = |refusal: Refusal, option| {
            String::from_utf8(refusal.message(option, b"x'", Charset::Ascii)).unwrap()
        };
        assert_eq!(
            message(threads(b"x'").unwrap_err(), "--threads"),
            "invalid argument 'x\\'' for '--threads'\nValid arguments are:\n  - a number from 1 to 4096"
        );
        assert_eq!(
            message(when(b"").unwrap_err(), "--color"),
            "ambiguous argument 'x\\'' for '--color'\nValid arguments are:\n  - 'auto'\n  - 'always'\n  - \
             'never'"
        );
    }
}
