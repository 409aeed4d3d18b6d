//! Values that options of several commands take: words, counts, I/O models; and the message about a
//! value that an option does not take.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use fathom_io::{Model, Use};
use fathom_text::quote::{Charset, quote};
use fathom_text::{duration, number};

use super::cmdline::OptionValue;

/// The maximum file size, a limit of file offsets.
const SIZE_MAX: i128 = i64::MAX as i128;
/// The values of `--progress` and `--color`.
pub(crate) const WHEN_WORDS: &[&str] = &["auto", "always", "never"];
/// When something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShowWhen {
    /// On a terminal only.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Parses the value of `--progress` or `--color`.
pub(crate) fn when(word: &[u8]) -> Result<ShowWhen, ValueError> {
    one_of(word, WHEN_WORDS, &[ShowWhen::Auto, ShowWhen::Always, ShowWhen::Never])
}

/// Parses the value of `--io`.
pub(crate) fn model(word: &[u8]) -> Result<Model, ValueError> {
    let model = std::str::from_utf8(word).ok().and_then(|word| Model::parse(word, Use::Metadata).ok());
    model.ok_or(ValueError { ambiguous: false, valid: ValidValues::Models })
}

/// Parses the value of `--threads`.
pub(crate) fn threads(word: &[u8]) -> Result<NonZeroUsize, ValueError> {
    let count =
        positive(word).and_then(|count| usize::try_from(count.get()).ok()).and_then(NonZeroUsize::new);
    count.filter(|count| count.get() <= Model::COUNT_MAX).ok_or(ValueError {
        ambiguous: false,
        valid: ValidValues::Text(format!("a number from 1 to {}", Model::COUNT_MAX)),
    })
}

/// Parses a number of lines or of repetitions.
pub(crate) fn count(word: &[u8]) -> Result<NonZeroU64, ValueError> {
    positive(word).ok_or_else(|| ValueError {
        ambiguous: false,
        valid: ValidValues::Text("a number, at least 1".into()),
    })
}

fn positive(word: &[u8]) -> Option<NonZeroU64> {
    let digits = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    digits?.parse().ok()
}

impl OptionValue {
    /// Returns the meaning that `parser` gives to the value.
    ///
    /// # Errors
    /// Returns the message about a value that `parser` refuses.
    pub(crate) fn read<T>(&self, parser: impl FnOnce(&[u8]) -> Result<T, ValueError>) -> Result<T, Vec<u8>> {
        parser(self.bytes()).map_err(|error| error.message(&self.spelling, self.bytes(), self.charset))
    }

    /// Returns the value as a number of bytes, at least 1.
    ///
    /// # Errors
    /// A message if it is another text.
    pub(crate) fn size(&self) -> Result<u64, Vec<u8>> {
        let (value, name) = (self.bytes(), self.spelling.as_str());
        let reading = number::read(value, 0, SIZE_MAX, number::SIZE_UNITS);
        match (reading.error, u64::try_from(reading.value)) {
            (None, Ok(0)) => Err([name.as_bytes(), b" must be at least 1"].concat()),
            (None, Ok(size)) => Ok(size),
            (error, _) => Err(error.unwrap_or(number::NumberError::Invalid).message(name, value)),
        }
    }

    /// Returns the value as a time; a number without a unit has seconds.
    ///
    /// # Errors
    /// A message if it is another text.
    pub(crate) fn time(&self) -> Result<Duration, Vec<u8>> {
        duration::parse_or_seconds(self.bytes()).map_err(|_| self.refuse(b"time", duration::FORMS.as_bytes()))
    }

    /// Returns the value of `--progress`, which alone means always.
    ///
    /// # Errors
    /// The same as for [`OptionValue::read`].
    pub(crate) fn progress(&self) -> Result<ShowWhen, Vec<u8>> {
        if self.bytes().is_empty() { Ok(ShowWhen::Always) } else { self.read(when) }
    }
}

/// Returns the meaning of `word`, which is one of `words` or an unambiguous prefix of one.
pub(crate) fn one_of<T: Copy>(
    word: &[u8],
    words: &'static [&'static str],
    meanings: &[T],
) -> Result<T, ValueError> {
    if let Some(at) = words.iter().position(|full| full.as_bytes() == word) {
        return Ok(meanings[at]);
    }
    let mut matching = words.iter().zip(meanings).filter(|(full, _)| full.as_bytes().starts_with(word));
    match (matching.next(), matching.next()) {
        (Some((_, meaning)), None) => Ok(*meaning),
        (first, _) => Err(ValueError { ambiguous: first.is_some(), valid: ValidValues::Words(words) }),
    }
}

/// The error for a value that an option does not take.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    ambiguous: bool,
    valid: ValidValues,
}

#[derive(Debug, PartialEq, Eq)]
enum ValidValues {
    Words(&'static [&'static str]),
    Models,
    Text(String),
}

impl ValueError {
    /// Returns the message in the form that GNU du uses for `--time`, without the program name and
    /// the last newline.
    pub(crate) fn message(&self, option: &str, value: &[u8], charset: Charset) -> Vec<u8> {
        let quote = |text: &[u8]| quote(text, charset);
        let kind: &[u8] = if self.ambiguous { b"ambiguous" } else { b"invalid" };
        let mut message = [kind, b" argument ", &quote(value), b" for ", &quote(option.as_bytes())].concat();
        message.extend_from_slice(b"\nValid arguments are:");
        let mut list = |words: &[&str]| {
            words.iter().for_each(|word| message.extend([b"\n  - ", &quote(word.as_bytes())[..]].concat()));
        };
        match &self.valid {
            ValidValues::Text(text) => message.extend_from_slice(format!("\n  - {text}").as_bytes()),
            ValidValues::Words(words) => list(words),
            ValidValues::Models => {
                let names: Vec<_> = Model::with(Use::Metadata).map(Model::syntax).collect();
                list(&names.iter().map(String::as_str).collect::<Vec<_>>());
                let range = format!("\nN and DEPTH are numbers from 1 to {}", Model::COUNT_MAX);
                message.extend_from_slice(range.as_bytes());
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::WALK_WORDS;

    #[test]
    fn words_may_be_cut_short() {
        assert_eq!(when(b"al"), Ok(ShowWhen::Always));
        assert_eq!(when(b"never"), Ok(ShowWhen::Never));
        assert!(when(b"a").unwrap_err().ambiguous);
        assert!(!when(b"alwayss").unwrap_err().ambiguous);
    }

    #[test]
    fn walks_accept_the_models_for_metadata() {
        for model in Model::ALL {
            let accepted = super::model(model.name().as_bytes()).ok();
            assert_eq!(accepted, model.has(Use::Metadata).then_some(model), "{model}");
            assert_eq!(WALK_WORDS.contains(&model.name()), accepted.is_some(), "{model}");
        }
        assert_eq!(model(b"threads=3"), Ok(Model::Threads(Some(3))));
        assert!(model(b"threads=0").is_err() && model(b"\xff").is_err());
    }

    #[test]
    fn counts_are_whole_numbers_from_one() {
        for word in ["", "0", "-1", "+1", "1x", " 1", "99999999999999999999999"] {
            assert!(threads(word.as_bytes()).is_err() && count(word.as_bytes()).is_err(), "{word}");
        }
        assert!(threads(b"4096").is_ok() && threads(b"4097").is_err());
        assert_eq!(count(b"007").map(NonZeroU64::get), Ok(7));
    }

    #[test]
    fn messages_list_what_is_valid() {
        let message = |refusal: ValueError, option| {
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
