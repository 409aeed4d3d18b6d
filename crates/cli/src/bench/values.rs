//! The values of the options of `fathom bench`: sizes, times, percentages, and lists.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fathom_text::quote::{Charset, quote};
use fathom_text::{duration, number};

use crate::shared::cmdline::{EMPTY_NAME, OptionValue};
use crate::shared::value;

/// The maximum number of repetitions.
const BLOCKS_MAX: u64 = 10_000;

pub(super) fn path(value: &[u8]) -> Result<PathBuf, Vec<u8>> {
    if value.is_empty() { Err(EMPTY_NAME.to_vec()) } else { Ok(os_string(value).into()) }
}

pub(super) fn os_string(value: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(value.to_vec())
}

pub(super) fn time(option: &OptionValue) -> Result<Duration, Vec<u8>> {
    let time = Some(option.time()?).filter(|time| !time.is_zero());
    time.ok_or_else(|| option.refuse(b"time", duration::FORMS.as_bytes()))
}

/// Parses a number of repetitions. One above the maximum is the maximum.
pub(super) fn blocks(option: &OptionValue) -> Result<u32, Vec<u8>> {
    let count = option.read(value::count)?.get();
    Ok(u32::try_from(count.min(BLOCKS_MAX)).unwrap_or(u32::MAX))
}

/// Parses a percentage, with or without its sign, and returns the share.
pub(super) fn percent(option: &OptionValue) -> Result<f64, Vec<u8>> {
    let text = std::str::from_utf8(option.bytes()).ok().map(|text| text.strip_suffix('%').unwrap_or(text));
    let number = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let share = number.and_then(|text| text.parse::<f64>().ok()).map(|percent| percent / 100.0);
    share.filter(|share| share.is_finite()).ok_or_else(|| invalid(option, "a percentage, such as 5%"))
}

/// Parses a whole percentage, with or without its sign.
pub(super) fn whole_percent(option: &OptionValue) -> Result<u8, Vec<u8>> {
    let digits = option.bytes().strip_suffix(b"%").unwrap_or(option.bytes());
    let percent = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
    percent.filter(|percent| *percent <= 100).ok_or_else(|| invalid(option, "a percentage, from 0 to 100"))
}

fn invalid(option: &OptionValue, expected: &str) -> Vec<u8> {
    let given = quote(option.bytes(), option.charset);
    let name = option.spelling.as_bytes();
    [b"invalid argument ", &given[..], b" for '", name, b"': ", expected.as_bytes()].concat()
}

pub(super) fn whole(option: &OptionValue) -> Result<u64, Vec<u8>> {
    let number = std::str::from_utf8(option.bytes()).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| number::NumberError::Invalid.message(&option.spelling, option.bytes()))
}

/// Parses words separated by commas, each one of `valid`.
pub(super) fn list(option: &OptionValue, valid: &[&str]) -> Result<Vec<String>, Vec<u8>> {
    option.bytes().split(|byte| *byte == b',').map(|word| known(word, valid, option)).collect()
}

fn known(word: &[u8], valid: &[&str], option: &OptionValue) -> Result<String, Vec<u8>> {
    let found = valid.iter().find(|valid| valid.as_bytes() == word);
    found.map(|valid| (*valid).to_owned()).ok_or_else(|| {
        let (word, name) = (quote(word, option.charset), quote(option.spelling.as_bytes(), option.charset));
        let parts = [b"invalid argument ", &word[..], b" for ", &name];
        [&parts.concat()[..], b"\nValid arguments are: ", valid.join(", ").as_bytes()].concat()
    })
}

/// Parses numbers from 1 to `most`, separated by commas.
pub(super) fn numbers(option: &OptionValue, most: usize) -> Result<Vec<u32>, Vec<u8>> {
    let words = option.bytes().split(|byte| *byte == b',');
    words.map(|word| number_up_to(most, word, &option.spelling, option.charset)).collect()
}

fn number_up_to(most: usize, word: &[u8], name: &str, charset: Charset) -> Result<u32, Vec<u8>> {
    let number = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|b| b.is_ascii_digit()));
    let number = number.and_then(|word| word.parse::<u32>().ok());
    number.filter(|number| (1..=most).contains(&(*number as usize))).ok_or_else(|| {
        let given = quote(word, charset);
        let most = most.to_string();
        [b"invalid number ", &given[..], b" for '", name.as_bytes(), b"': from 1 to ", most.as_bytes()]
            .concat()
    })
}
