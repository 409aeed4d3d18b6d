//! Command-line parsing with the rules of GNU `getopt_long`: separates options, their values and
//! operands, and words the error messages. Knows no option by name (the table does) and interprets
//! no value (the command's parser does).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fathom_text::nearest::nearest;

use super::flag::{Flag, ValueSpec};

/// A command-line parser: yields one option at a time and collects the operands.
pub(crate) struct Getopt<K: 'static> {
    table: Vec<&'static Flag<K>>,
    words: std::vec::IntoIter<Vec<u8>>,
    /// Letters of a bundle such as `-sh` that remain to be parsed.
    bundle: VecDeque<u8>,
    operands: Vec<OsString>,
    order: OperandOrder,
    /// Options of another program that would parse as bundles here, each with the option to
    /// suggest.
    foreign: &'static [(&'static str, &'static str)],
    /// Whether the message about an unknown name suggests the nearest one. GNU du's does not.
    suggests: bool,
}

/// Whether options may follow operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandOrder {
    /// Options and operands may be mixed.
    Permute,
    /// The first operand ends the options (POSIXLY_CORRECT).
    RequireOrder,
}

/// An option on the command line, and its value.
#[derive(Debug)]
pub(crate) struct ParsedOption<K: 'static> {
    /// The row of the table.
    pub(crate) flag: &'static Flag<K>,
    /// The spelling for messages: `-d`, or `--max-depth` even if it was abbreviated.
    pub(crate) spelling: String,
    /// The value, if the option takes one and has it.
    pub(crate) value: Option<Vec<u8>>,
}

/// A command line that the table does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GetoptError {
    /// An abbreviation of several options, which are all listed.
    Ambiguous { typed: Vec<u8>, possibilities: Vec<&'static str> },
    /// A name that is not a prefix of any option's name, and the name that may be meant.
    Unrecognized { typed: Vec<u8>, meant: Option<&'static str> },
    /// `--name=value` for an option without a value.
    UnwantedValue { long: &'static str },
    /// A long option without its required value at the end.
    NoValue { long: &'static str },
    /// A letter without its required value at the end.
    NoShortValue { short: u8 },
    /// An unknown letter.
    Invalid { short: u8 },
    /// An option of another program.
    Foreign { typed: &'static str, meant: &'static str },
}

impl GetoptError {
    /// Returns GNU's message, without the program name. It always uses ASCII quotes, unlike other
    /// messages, and repeats the typed bytes unchanged.
    pub(crate) fn message(&self) -> Vec<u8> {
        let parts: [&[u8]; 3] = match self {
            GetoptError::Ambiguous { typed, possibilities } => return ambiguous(typed, possibilities),
            GetoptError::Unrecognized { typed, meant: None } => [b"unrecognized option '--", typed, b"'"],
            GetoptError::Unrecognized { typed, meant: Some(meant) } => {
                let meant = format!("', did you mean '--{meant}'?");
                return [b"unrecognized option '--", &typed[..], meant.as_bytes()].concat();
            }
            GetoptError::UnwantedValue { long } => {
                [b"option '--", long.as_bytes(), b"' doesn't allow an argument"]
            }
            GetoptError::NoValue { long } => [b"option '--", long.as_bytes(), b"' requires an argument"],
            GetoptError::NoShortValue { short } => {
                [b"option requires an argument -- '", std::slice::from_ref(short), b"'"]
            }
            GetoptError::Invalid { short } => [b"invalid option -- '", std::slice::from_ref(short), b"'"],
            GetoptError::Foreign { typed, meant } => {
                return format!("unrecognized option '{typed}', did you mean '{meant}'?").into_bytes();
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
    /// Creates a parser of `words`, the command line without the program name.
    pub(crate) fn new(
        table: impl Iterator<Item = &'static Flag<K>>,
        words: impl Iterator<Item = OsString>,
        order: OperandOrder,
    ) -> Self {
        let words: Vec<_> = words.map(OsString::into_vec).collect();
        Getopt {
            table: table.collect(),
            words: words.into_iter(),
            bundle: VecDeque::new(),
            operands: Vec::new(),
            order,
            foreign: &[],
            suggests: true,
        }
    }

    /// Rejects these options of another program, and suggests the option that replaces each.
    pub(crate) fn with_foreign(self, foreign: &'static [(&'static str, &'static str)]) -> Self {
        Self { foreign, ..self }
    }

    /// Suggests no name in the message about an unknown one.
    pub(crate) fn without_suggestions(self) -> Self {
        Self { suggests: false, ..self }
    }

    /// Returns the operands in their order. They are complete when the iterator has ended.
    pub(crate) fn into_operands(self) -> Vec<OsString> {
        self.operands
    }

    fn take_operand(&mut self, word: Vec<u8>) {
        self.operands.push(OsString::from_vec(word));
        if self.order == OperandOrder::RequireOrder {
            self.take_rest();
        }
    }

    fn take_rest(&mut self) {
        self.operands.extend(self.words.by_ref().map(OsString::from_vec));
    }

    fn short(&mut self, letter: u8) -> Result<ParsedOption<K>, GetoptError> {
        let flag = self.table.iter().copied().find(|flag| flag.short == Some(letter));
        let flag = flag.ok_or(GetoptError::Invalid { short: letter })?;
        let value = match flag.value {
            ValueSpec::Required(_) => Some(self.short_value(letter)?),
            ValueSpec::None | ValueSpec::Optional(_) | ValueSpec::Attached(_) => None,
        };
        Ok(ParsedOption { flag, spelling: format!("-{}", char::from(letter)), value })
    }

    fn short_value(&mut self, letter: u8) -> Result<Vec<u8>, GetoptError> {
        if !self.bundle.is_empty() {
            return Ok(self.bundle.drain(..).collect());
        }
        self.words.next().ok_or(GetoptError::NoShortValue { short: letter })
    }

    fn long(&mut self, typed: Vec<u8>) -> Result<ParsedOption<K>, GetoptError> {
        let equals = typed.iter().position(|&byte| byte == b'=');
        let attached = equals.map(|at| typed[at + 1..].to_vec());
        let (flag, long) = self.look_up(typed, equals)?;
        let value = match (flag.value, attached) {
            (ValueSpec::None, Some(_)) => return Err(GetoptError::UnwantedValue { long }),
            (ValueSpec::Required(_), None) => Some(self.words.next().ok_or(GetoptError::NoValue { long })?),
            (ValueSpec::Attached(_), None) => return Err(GetoptError::NoValue { long }),
            (_, attached) => attached,
        };
        Ok(ParsedOption { flag, spelling: format!("--{long}"), value })
    }

    /// Finds the row with the long name `typed`, up to its `=`: an exact match, or else an
    /// unambiguous prefix. Rows that are `added` are searched last, so that they do not change the
    /// meaning of any abbreviation.
    fn look_up(
        &self,
        typed: Vec<u8>,
        equals: Option<usize>,
    ) -> Result<(&'static Flag<K>, &'static str), GetoptError> {
        let name = &typed[..equals.unwrap_or(typed.len())];
        let rows = || self.table.iter().filter_map(|&flag| Some((flag, flag.long?)));
        let usable = |flag: &Flag<K>| equals.is_some() || !matches!(flag.value, ValueSpec::Attached(_));
        if let Some(exact) = rows().find(|(flag, long)| long.as_bytes() == name && usable(flag)) {
            return Ok(exact);
        }
        let matching =
            |added| rows().filter(move |row| row.0.added == added && row.1.as_bytes().starts_with(name));
        let mut found: Vec<_> = matching(false).collect();
        if found.is_empty() {
            found = matching(true).collect();
        }
        match found[..] {
            [] => {
                let meant = std::str::from_utf8(name).ok().filter(|_| self.suggests);
                let meant = meant.and_then(|name| nearest(name, rows().map(|row| row.1), |long| long));
                Err(GetoptError::Unrecognized { typed, meant })
            }
            [only] => Ok(only),
            _ => {
                Err(GetoptError::Ambiguous { typed, possibilities: found.iter().map(|row| row.1).collect() })
            }
        }
    }
}

impl<K> Iterator for Getopt<K> {
    type Item = Result<ParsedOption<K>, GetoptError>;

    /// Returns the next option. An error does not end the iteration, because GNU programs report
    /// all of them.
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
                        return Some(Err(GetoptError::Foreign { typed, meant }));
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
    use super::super::flag::{ValueKind, both, long, short};
    use super::*;

    const TABLE: &[Flag<u8>] = &[
        both(b'a', b'a', "all", "", ""),
        long(b'A', "apparent", "", ""),
        both(b'd', b'd', "depth", "", "").required("N", ValueKind::Text),
        long(b'b', "bytes", "", ""),
        long(b't', "time", "", "").optional("WORD", ValueKind::Text),
        long(b'T', "time-style", "", "").required("STYLE", ValueKind::Text),
        short(b'x', b'x', "", ""),
        long(b'B', "by", "", "").attached("KEY", ValueKind::Text).added(),
        long(b'r', "tree", "", "").added(),
        long(b'o', "allocate", "", "").added(),
    ];

    /// Formats the parsed keys and values, errors as messages, then the operands: `a d=1 | x y`.
    fn read_as(line: &[&[u8]], order: OperandOrder, additions: bool) -> String {
        let table = TABLE.iter().filter(|flag| additions || !flag.added);
        let words = line.iter().map(|word| OsString::from_vec(word.to_vec()));
        let mut getopt = Getopt::new(table, words, order).without_suggestions();
        let mut read = String::new();
        for step in getopt.by_ref() {
            read += &match step {
                Err(misuse) => format!("({})", String::from_utf8_lossy(&misuse.message())),
                Ok(ParsedOption { flag, value: None, .. }) => char::from(flag.own_key().unwrap()).to_string(),
                Ok(ParsedOption { flag, value: Some(value), .. }) => {
                    format!("{}={}", char::from(flag.own_key().unwrap()), String::from_utf8_lossy(&value))
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
        read_as(&words, OperandOrder::Permute, false)
    }

    fn read_with_additions(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        read_as(&words, OperandOrder::Permute, true)
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
        assert_eq!(read_as(&[b"", b"-a"], OperandOrder::Permute, false), "a | ");
        assert_eq!(read_as(&[b"-a", b"x", b"-x", b"--"], OperandOrder::RequireOrder, false), "a | x -x --");
        assert_eq!(read_as(&[b"--", b"-a", b"x"], OperandOrder::RequireOrder, false), " | -a x".trim_start());
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
        let misuse = GetoptError::Unrecognized { typed: b"f\xff\n".to_vec(), meant: None };
        assert_eq!(misuse.message(), b"unrecognized option '--f\xff\n'");
        assert_eq!(GetoptError::Invalid { short: 0xff }.message(), b"invalid option -- '\xff'");
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
        let spellings: Vec<_> = Getopt::new(TABLE.iter(), words.into_iter(), OperandOrder::Permute)
            .map(|step| step.unwrap().spelling)
            .collect();
        assert_eq!(spellings, ["--depth", "-d"]);
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let message = |word: &str| {
            let words = std::iter::once(OsString::from(word));
            let error = Getopt::new(TABLE.iter(), words, OperandOrder::Permute).next().unwrap().unwrap_err();
            String::from_utf8(error.message()).unwrap()
        };
        assert_eq!(message("--dpeth=1"), "unrecognized option '--dpeth=1', did you mean '--depth'?");
        assert_eq!(message("--apparently-not-one"), "unrecognized option '--apparently-not-one'");
        assert_eq!(message("--xyz"), "unrecognized option '--xyz'");
    }
}
