//! One row of a command's option table. The parser, `--help`, the man pages and the completions all
//! read the same rows, so none of them can omit or misname an option. The effect of an option is
//! not described here: the command's parser matches on its `key`.

/// One option with all its spellings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag<K: 'static> {
    /// The effect of the option.
    pub(crate) key: FlagKey<K>,
    /// The letter behind a single dash.
    pub(crate) short: Option<u8>,
    /// The name behind two dashes.
    pub(crate) long: Option<&'static str>,
    /// Whether a value follows.
    pub(crate) value: ValueSpec,
    /// The heading under which it is listed.
    pub(crate) section: &'static str,
    /// One sentence without a final dot, with `code` between backticks.
    pub(crate) brief: &'static str,
    /// Text that the man page adds to `brief`. May be empty.
    pub(crate) more: &'static str,
    /// Whether the option does not exist in the program that this command replaces (GNU du).
    /// Abbreviations are resolved among that program's options first.
    pub(crate) added: bool,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagKey<K> {
    /// Prints the help text and exits.
    Help,
    /// Prints the version and exits.
    Version,
    /// An effect of the command's own, whose parser matches on this key. Two spellings that do not
    /// fit into one row share a key.
    Own(K),
}

/// The set of rows in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All rows.
    Full,
    /// The rows of the program that this command replaces.
    Original,
}

impl Scope {
    /// Returns whether `flag` is in the set.
    pub(crate) fn covers<K>(self, flag: &Flag<K>) -> bool {
        self == Scope::Full || !flag.added
    }
}

/// Whether an option takes a value, and its syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueSpec {
    /// No value.
    None,
    /// `--name=VALUE`, `--name VALUE`, `-nVALUE` or `-n VALUE`.
    Required(Placeholder),
    /// `--name` or `--name=VALUE`.
    Optional(Placeholder),
    /// `--name=VALUE` only, because `--name` alone already has another meaning.
    Attached(Placeholder),
}

/// The placeholder of a value, and its kind for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    /// The placeholder, in capitals.
    pub(crate) name: &'static str,
    /// The kind of the value.
    pub(crate) kind: ValueKind,
}

/// The kind of a value, as far as completions distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// Any text.
    Text,
    /// The path of a file.
    File,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// Creates an option with a letter and a name.
pub(crate) const fn both<K: Copy>(
    key: K,
    short: u8,
    long: &'static str,
    section: &'static str,
    brief: &'static str,
) -> Flag<K> {
    self::long(key, long, section, brief).letter(short)
}

/// Creates an option with a name only.
pub(crate) const fn long<K: Copy>(
    key: K,
    long: &'static str,
    section: &'static str,
    brief: &'static str,
) -> Flag<K> {
    Flag::new(FlagKey::Own(key), Some(long), section, brief)
}

/// Creates an option with a letter only.
pub(crate) const fn short<K: Copy>(key: K, short: u8, section: &'static str, brief: &'static str) -> Flag<K> {
    Flag::new(FlagKey::Own(key), None, section, brief).letter(short)
}

/// Creates the option `--help`.
pub(crate) const fn help<K: Copy>(section: &'static str) -> Flag<K> {
    Flag::new(FlagKey::Help, Some("help"), section, "show this help and exit")
}

/// Creates the option `--version`.
pub(crate) const fn version<K: Copy>(section: &'static str) -> Flag<K> {
    Flag::new(FlagKey::Version, Some("version"), section, "show the version and exit")
}

impl<K: Copy> Flag<K> {
    const fn new(
        key: FlagKey<K>,
        long: Option<&'static str>,
        section: &'static str,
        brief: &'static str,
    ) -> Self {
        Flag { key, short: None, long, value: ValueSpec::None, section, brief, more: "", added: false }
    }

    /// Adds a letter.
    pub(crate) const fn letter(mut self, short: u8) -> Self {
        self.short = Some(short);
        self
    }

    /// Returns the command's own key; `None` for `--help` and `--version`.
    pub(crate) fn own_key(&self) -> Option<K> {
        match self.key {
            FlagKey::Own(key) => Some(key),
            FlagKey::Help | FlagKey::Version => None,
        }
    }

    /// Makes the value required.
    pub(crate) const fn required(mut self, name: &'static str, kind: ValueKind) -> Self {
        self.value = ValueSpec::Required(Placeholder { name, kind });
        self
    }

    /// Makes the value optional, behind `=`.
    pub(crate) const fn optional(mut self, name: &'static str, kind: ValueKind) -> Self {
        self.value = ValueSpec::Optional(Placeholder { name, kind });
        self
    }

    /// Makes the value required, behind `=`.
    pub(crate) const fn attached(mut self, name: &'static str, kind: ValueKind) -> Self {
        self.value = ValueSpec::Attached(Placeholder { name, kind });
        self
    }

    /// Adds text for the man page.
    pub(crate) const fn more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    /// Marks the option as an addition of fathom.
    pub(crate) const fn added(mut self) -> Self {
        self.added = true;
        self
    }

    /// Returns the placeholder with its punctuation, for the long name or else the letter: `=SIZE`,
    /// `[=WORD]`, or an empty text.
    pub(crate) fn placeholder(&self) -> String {
        match self.value {
            ValueSpec::None => String::new(),
            ValueSpec::Required(meta) if self.long.is_none() => format!(" {}", meta.name),
            ValueSpec::Required(meta) | ValueSpec::Attached(meta) => format!("={}", meta.name),
            ValueSpec::Optional(meta) => format!("[={}]", meta.name),
        }
    }

    /// Returns the placeholder and kind of the value; `None` if the option takes no value.
    pub(crate) fn meta(&self) -> Option<Placeholder> {
        match self.value {
            ValueSpec::None => None,
            ValueSpec::Required(meta) | ValueSpec::Optional(meta) | ValueSpec::Attached(meta) => Some(meta),
        }
    }
}
