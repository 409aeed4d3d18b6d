//! GNU `getopt_long`: what is an option, what is its value, what is an operand, and the words for each
//! mistake. Knows no option by name (the table does) and gives no value a meaning (the command's reader
//! does).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::flag::{Flag, Value};

/// Reads a command line, one option a step, and keeps the operands for the end.
pub(crate) struct Getopt<K: 'static> {
    table: Vec<&'static Flag<K>>,
    words: std::vec::IntoIter<Vec<u8>>,
    /// Letters of a bundle such as `-sh` that are still to be read.
    bundle: VecDeque<u8>,
    operands: Vec<OsString>,
    order: Order,
    /// Words of another program that would be bundles here, and the options that are meant.
    foreign: &'static [(&'static str, &'static str)],
}

/// Whether options may follow operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// They may.
    Permute,
    /// The first operand ends the options (POSIXLY_CORRECT).
    OperandsLast,
}

/// An option that was found, and its value.
#[derive(Debug)]
pub(crate) struct Match<K: 'static> {
    /// The table's row.
    pub(crate) flag: &'static Flag<K>,
    /// How messages name it: `-d`, or `--max-depth` even if it was abbreviated.
    pub(crate) spelling: String,
    /// The value, if the option takes one and has it.
    pub(crate) value: Option<Vec<u8>>,
}

/// A command line that the table does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// An abbreviation of several options, all listed.
    Ambiguous { typed: Vec<u8>, possibilities: Vec<&'static str> },
    /// A name that begins no option's.
    Unrecognized { typed: Vec<u8> },
    /// `--name=value` of an option that takes none.
    UnwantedValue { long: &'static str },
    /// A long option at the end without its value.
    NoValue { long: &'static str },
    /// A letter at the end without its value.
    NoShortValue { short: u8 },
    /// A letter of no option.
    Invalid { short: u8 },
    /// A word of another program.
    Foreign { typed: &'static str, meant: &'static str },
}

impl Misuse {
    /// GNU's words, without the program's name. Always in ASCII quotes, unlike other messages; what was typed
    /// is repeated as it is.
    pub(crate) fn message(&self) -> Vec<u8> {
        let parts: [&[u8]; 3] = match self {
            Misuse::Ambiguous { typed, possibilities } => return ambiguous(typed, possibilities),
            Misuse::Unrecognized { typed } => [b"unrecognized option '--", typed, b"'"],
            Misuse::UnwantedValue { long } => {
                [b"option '--", long.as_bytes(), b"' doesn't allow an argument"]
            }
            Misuse::NoValue { long } => [b"option '--", long.as_bytes(), b"' requires an argument"],
            Misuse::NoShortValue { short } => {
                [b"option requires an argument -- '", std::slice::from_ref(short), b"'"]
            }
            Misuse::Invalid { short } => [b"invalid option -- '", std::slice::from_ref(short), b"'"],
            Misuse::Foreign { typed, meant } => {
                return format!("unrecognized option '{typed}', perhaps '{meant}' is meant").into_bytes();
            }
        };
        parts.concat()
    }
}

fn ambiguous(typed: &[u8], possibilities: &[&str]) -> Vec<u8> {
    let mut message = [b"option '--", typed, b"' is ambiguous; possibilities:"].concat();
    for long in possibilities {
        message.extend_from_slice(format!(" '--{long}'").as_bytes());
    }
    message
}

impl<K> Getopt<K> {
    /// Starts on `words`, the command line without the program's name.
    pub(crate) fn new(
        table: impl Iterator<Item = &'static Flag<K>>,
        words: impl Iterator<Item = OsString>,
        order: Order,
    ) -> Self {
        let words: Vec<_> = words.map(OsString::into_vec).collect();
        Getopt {
            table: table.collect(),
            words: words.into_iter(),
            bundle: VecDeque::new(),
            operands: Vec::new(),
            order,
            foreign: &[],
        }
    }

    /// The same, but these words of another program are mistakes, with the options that are meant.
    pub(crate) fn with_foreign(self, foreign: &'static [(&'static str, &'static str)]) -> Self {
        Self { foreign, ..self }
    }

    /// The operands, in their order; complete when the iterator has ended.
    pub(crate) fn into_operands(self) -> Vec<OsString> {
        self.operands
    }

    fn take_operand(&mut self, word: Vec<u8>) {
        self.operands.push(OsString::from_vec(word));
        if self.order == Order::OperandsLast {
            self.take_rest();
        }
    }

    fn take_rest(&mut self) {
        self.operands.extend(self.words.by_ref().map(OsString::from_vec));
    }

    fn short(&mut self, letter: u8) -> Result<Match<K>, Misuse> {
        let flag = self.table.iter().copied().find(|flag| flag.short == Some(letter));
        let flag = flag.ok_or(Misuse::Invalid { short: letter })?;
        let value = match flag.value {
            Value::Required(_) => Some(self.short_value(letter)?),
            Value::None | Value::Optional(_) | Value::Attached(_) => None,
        };
        Ok(Match { flag, spelling: format!("-{}", char::from(letter)), value })
    }

    fn short_value(&mut self, letter: u8) -> Result<Vec<u8>, Misuse> {
        if !self.bundle.is_empty() {
            return Ok(self.bundle.drain(..).collect());
        }
        self.words.next().ok_or(Misuse::NoShortValue { short: letter })
    }

    fn long(&mut self, typed: Vec<u8>) -> Result<Match<K>, Misuse> {
        let equals = typed.iter().position(|&byte| byte == b'=');
        let attached = equals.map(|at| typed[at + 1..].to_vec());
        let (flag, long) = self.look_up(typed, equals)?;
        let value = match (flag.value, attached) {
            (Value::None, Some(_)) => return Err(Misuse::UnwantedValue { long }),
            (Value::Required(_), None) => Some(self.words.next().ok_or(Misuse::NoValue { long })?),
            (Value::Attached(_), None) => return Err(Misuse::NoValue { long }),
            (_, attached) => attached,
        };
        Ok(Match { flag, spelling: format!("--{long}"), value })
    }

    /// The row that `typed`, up to its `=`, names: exactly, or else as the beginning of one name only. Rows
    /// that are `added` are asked last, so that each abbreviation keeps the meaning it has without them.
    fn look_up(
        &self,
        typed: Vec<u8>,
        equals: Option<usize>,
    ) -> Result<(&'static Flag<K>, &'static str), Misuse> {
        let name = &typed[..equals.unwrap_or(typed.len())];
        let rows = || self.table.iter().filter_map(|&flag| Some((flag, flag.long?)));
        let usable = |flag: &Flag<K>| equals.is_some() || !matches!(flag.value, Value::Attached(_));
        if let Some(exact) = rows().find(|(flag, long)| long.as_bytes() == name && usable(flag)) {
            return Ok(exact);
        }
        let begun =
            |added| rows().filter(move |row| row.0.added == added && row.1.as_bytes().starts_with(name));
        let mut found: Vec<_> = begun(false).collect();
        if found.is_empty() {
            found = begun(true).collect();
        }
        match found[..] {
            [] => Err(Misuse::Unrecognized { typed }),
            [only] => Ok(only),
            _ => Err(Misuse::Ambiguous { typed, possibilities: found.iter().map(|row| row.1).collect() }),
        }
    }
}

impl<K> Iterator for Getopt<K> {
    type Item = Result<Match<K>, Misuse>;

    /// The next option. A mistake does not end the reading: GNU reports all of them.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(letter) = self.bundle.pop_front() {
            return Some(self.short(letter));
        }
        while let Some(mut word) = self.words.next() {
            match &word[..] {
                b"--" => self.take_rest(),
                [b'-', b'-', ..] => return Some(self.long(word.split_off(2))),
                [b'-', letter, letters @ ..] => {
                    if let Some((typed, meant)) = self.foreign.iter().find(|row| row.0.as_bytes() == word) {
                        return Some(Err(Misuse::Foreign { typed, meant }));
                    }
                    self.bundle.extend(letters);
                    return Some(self.short(*letter));
                }
                _ => self.take_operand(word),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flag::{Kind, both, long, short};

    const TABLE: &[Flag<u8>] = &[
        both(b'a', b'a', "all", "", ""),
        long(b'A', "apparent", "", ""),
        both(b'd', b'd', "depth", "", "").required("N", Kind::Text),
        long(b'b', "bytes", "", ""),
        long(b't', "time", "", "").optional("WORD", Kind::Text),
        long(b'T', "time-style", "", "").required("STYLE", Kind::Text),
        short(b'x', b'x', "", ""),
        long(b'B', "by", "", "").attached("KEY", Kind::Text).added(),
        long(b'r', "tree", "", "").added(),
        long(b'o', "allocate", "", "").added(),
    ];

    /// The keys and values read, mistakes as messages, then the operands: `a d=1 | x y`.
    fn read_as(line: &[&[u8]], order: Order, additions: bool) -> String {
        let table = TABLE.iter().filter(|flag| additions || !flag.added);
        let words = line.iter().map(|word| OsString::from_vec(word.to_vec()));
        let mut getopt = Getopt::new(table, words, order);
        let mut read = String::new();
        for step in getopt.by_ref() {
            read += &match step {
                Err(misuse) => format!("({})", String::from_utf8_lossy(&misuse.message())),
                Ok(Match { flag, value: None, .. }) => char::from(flag.key).to_string(),
                Ok(Match { flag, value: Some(value), .. }) => {
                    format!("{}={}", char::from(flag.key), String::from_utf8_lossy(&value))
                }
            };
            read.push(' ');
        }
        let operands: Vec<_> =
            getopt.into_operands().into_iter().map(|word| word.into_string().unwrap()).collect();
        format!("{read}| {}", operands.join(" "))
    }

    fn read(line: &str) -> String {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect();
        read_as(&words, Order::Permute, false)
    }

    fn read_with_additions(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        read_as(&words, Order::Permute, true)
    }

    #[test]
    fn letters_bundle_and_a_value_ends_the_bundle() {
        assert_eq!(read("-ax"), "a x | ");
        assert_eq!(read("-axd1a"), "a x d=1a | ");
        assert_eq!(read("-d 1 -a"), "d=1 a | ");
        assert_eq!(read("-d=1"), "d==1 | ");
        assert_eq!(read("-d -a"), "d=-a | ");
        assert_eq!(read("-d --"), "d=-- | ");
    }

    #[test]
    fn long_values_follow_an_equals_sign_or_are_the_next_word() {
        assert_eq!(read("--depth=1 --depth 2"), "d=1 d=2 | ");
        assert_eq!(read("--depth=1=2"), "d=1=2 | ");
        assert_eq!(read("--depth="), "d= | ");
        assert_eq!(read("--depth --all"), "d=--all | ");
    }

    #[test]
    fn an_optional_value_is_never_the_next_word() {
        assert_eq!(read("--time atime"), "t | atime");
        assert_eq!(read("--time=atime"), "t=atime | ");
    }

    #[test]
    fn unambiguous_beginnings_are_names_and_an_exact_name_wins() {
        assert_eq!(read("--al --de 3 --time-"), "a d=3 (option '--time-style' requires an argument) | ");
        assert_eq!(read("--time --time=x"), "t t=x | ");
        assert_eq!(
            read("--tim=x"),
            "(option '--tim=x' is ambiguous; possibilities: '--time' '--time-style') | "
        );
        assert_eq!(
            read("--=x"),
            "(option '--=x' is ambiguous; possibilities: '--all' '--apparent' '--depth' '--bytes' '--time' \
             '--time-style') | "
        );
    }

    #[test]
    fn operands_may_stand_anywhere_but_after_two_dashes_all_are_operands() {
        assert_eq!(read("x -a y -x"), "a x | x y");
        assert_eq!(read("x -a -- -x --"), "a | x -x --");
        assert_eq!(read("- -a"), "a | -");
        assert_eq!(read_as(&[b"", b"-a"], Order::Permute, false), "a | ");
        assert_eq!(read_as(&[b"-a", b"x", b"-x", b"--"], Order::OperandsLast, false), "a | x -x --");
        assert_eq!(read_as(&[b"--", b"-a", b"x"], Order::OperandsLast, false), " | -a x".trim_start());
    }

    #[test]
    fn every_mistake_is_reported_in_gnus_words_and_reading_goes_on() {
        assert_eq!(
            read("-ayz --foo=1 --all=2 x"),
            "a (invalid option -- 'y') (invalid option -- 'z') (unrecognized option '--foo=1') \
             (option '--all' doesn't allow an argument) | x"
        );
        assert_eq!(read("-ad"), "a (option requires an argument -- 'd') | ");
        assert_eq!(read("--dep"), "(option '--depth' requires an argument) | ");
        assert_eq!(read("-a-x"), "a (invalid option -- '-') x | ");
    }

    #[test]
    fn bytes_are_repeated_as_they_are() {
        let misuse = Misuse::Unrecognized { typed: b"f\xff\n".to_vec() };
        assert_eq!(misuse.message(), b"unrecognized option '--f\xff\n'");
        assert_eq!(Misuse::Invalid { short: 0xff }.message(), b"invalid option -- '\xff'");
    }

    #[test]
    fn additions_do_not_exist_unless_asked_for() {
        assert_eq!(read("--tree"), "(unrecognized option '--tree') | ");
        assert_eq!(read("--by=x"), "(option '--bytes' doesn't allow an argument) | ");
    }

    #[test]
    fn additions_leave_every_abbreviation_its_meaning() {
        assert_eq!(read_with_additions("--by"), "b | ");
        assert_eq!(read_with_additions("--al"), "a | ");
        assert_eq!(
            read_with_additions("--t"),
            "(option '--t' is ambiguous; possibilities: '--time' '--time-style') | "
        );
        assert_eq!(read_with_additions("--by=ext --tr --allo"), "B=ext r o | ");
    }

    #[test]
    fn messages_name_a_long_option_in_full() {
        let words = ["--dep=1", "-d2"].map(OsString::from);
        let spellings: Vec<_> = Getopt::new(TABLE.iter(), words.into_iter(), Order::Permute)
            .map(|step| step.unwrap().spelling)
            .collect();
        assert_eq!(spellings, ["--depth", "-d"]);
    }
}
