//! A row of a command's option table. The parser, `--help`, the man pages and the shells' completions are all
//! read off the same rows, so none of them can forget or misname an option. What an option does is not here:
//! its `key` tells the command's own reader.

/// One option, in all its spellings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag<K: 'static> {
    /// What the command's reader matches on; two spellings that cannot be one row share a key.
    pub(crate) key: K,
    /// The letter after a single dash.
    pub(crate) short: Option<u8>,
    /// The name after two dashes.
    pub(crate) long: Option<&'static str>,
    /// Whether a value follows.
    pub(crate) value: Value,
    /// The heading it is listed under.
    pub(crate) section: &'static str,
    /// One sentence without a final dot; `code` stands between backticks.
    pub(crate) brief: &'static str,
    /// What the man page adds to `brief`; may be empty.
    pub(crate) more: &'static str,
    /// Not in the program this command stands in for: never gets in the way of that program's abbreviations.
    pub(crate) added: bool,
}

/// Which rows of a table exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them.
    Full,
    /// Those of the program that the command stands in for.
    Original,
}

impl Scope {
    /// Whether `flag` exists.
    pub(crate) fn covers<K>(self, flag: &Flag<K>) -> bool {
        self == Scope::Full || !flag.added
    }
}

/// Whether an option takes a value, and how the value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// No value.
    None,
    /// `--name=VALUE`, `--name VALUE`, `-nVALUE` or `-n VALUE`.
    Required(Meta),
    /// `--name` or `--name=VALUE`.
    Optional(Meta),
    /// `--name=VALUE` only: `--name` alone already means something else.
    Attached(Meta),
}

/// A value's placeholder and what a shell may offer for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The placeholder, in capitals.
    pub(crate) name: &'static str,
    /// What the value is.
    pub(crate) kind: Kind,
}

/// What a value is, as far as completion is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything.
    Text,
    /// The path of a file.
    File,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// An option with a letter and a name.
pub(crate) const fn both<K>(
    key: K,
    short: u8,
    long: &'static str,
    section: &'static str,
    brief: &'static str,
) -> Flag<K> {
    Flag {
        key,
        short: Some(short),
        long: Some(long),
        value: Value::None,
        section,
        brief,
        more: "",
        added: false,
    }
}

/// An option that has only a name.
pub(crate) const fn long<K>(
    key: K,
    long: &'static str,
    section: &'static str,
    brief: &'static str,
) -> Flag<K> {
    Flag { key, short: None, long: Some(long), value: Value::None, section, brief, more: "", added: false }
}

/// An option that has only a letter.
pub(crate) const fn short<K>(key: K, short: u8, section: &'static str, brief: &'static str) -> Flag<K> {
    Flag { key, short: Some(short), long: None, value: Value::None, section, brief, more: "", added: false }
}

impl<K: Copy> Flag<K> {
    /// The same option with a value that must follow.
    pub(crate) const fn required(mut self, name: &'static str, kind: Kind) -> Self {
        self.value = Value::Required(Meta { name, kind });
        self
    }

    /// The same option with a value that may follow after `=`.
    pub(crate) const fn optional(mut self, name: &'static str, kind: Kind) -> Self {
        self.value = Value::Optional(Meta { name, kind });
        self
    }

    /// The same option with a value that must follow after `=`.
    pub(crate) const fn attached(mut self, name: &'static str, kind: Kind) -> Self {
        self.value = Value::Attached(Meta { name, kind });
        self
    }

    /// The same option with a longer description in the man page.
    pub(crate) const fn more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    /// The same option, marked as fathom's own.
    pub(crate) const fn added(mut self) -> Self {
        self.added = true;
        self
    }

    /// What stands behind the long name, or the letter if that is all there is: `=SIZE`, `[=WORD]`, nothing.
    pub(crate) fn placeholder(&self) -> String {
        match self.value {
            Value::None => String::new(),
            Value::Required(meta) if self.long.is_none() => format!(" {}", meta.name),
            Value::Required(meta) | Value::Attached(meta) => format!("={}", meta.name),
            Value::Optional(meta) => format!("[={}]", meta.name),
        }
    }

    /// The value's placeholder and kind, if there is a value.
    pub(crate) fn meta(&self) -> Option<Meta> {
        match self.value {
            Value::None => None,
            Value::Required(meta) | Value::Optional(meta) | Value::Attached(meta) => Some(meta),
        }
    }
}
