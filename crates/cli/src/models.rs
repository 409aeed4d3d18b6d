//! The texts about I/O models in help texts, man pages and completions. They are made at compile
//! time from the list of models in `fathom-io`, so no text here has the name of a model.

use fathom_io::{Model, Use};

use crate::shared::cmdline::description::Note;

/// The values of `--io` of the commands that walk directories. `=` and a number may follow some.
pub(crate) const WALK_WORDS: &[&str] =
    &Model::names_with::<{ Model::count_with(Use::Metadata) }>(Use::Metadata);

/// The meaning of `--io` of the commands that walk directories.
pub(crate) const WALK_BRIEF: &str = joined(&join::<{ length(&WALK_BRIEF_PARTS) }>(&WALK_BRIEF_PARTS));

/// The meaning of `--models` of `fathom bench`, after its brief.
pub(crate) const BENCH_MORE: &str = joined(&join::<{ length(&BENCH_PARTS) }>(&BENCH_PARTS));

/// The models that walk directories.
pub(crate) const WALK_MODELS: Note = Note {
    title: TITLE,
    text: &[
        joined(&join::<{ length(&WALK_PARTS) }>(&WALK_PARTS)),
        "`auto` is the default. It starts with one thread for each CPU, or with the number that a saved profile has for \
         the file system, if the profile has not expired and kernel and number of CPUs are unchanged.",
        PROFILE,
        "All models give the same output. If a named model cannot run here, the command ends with the likely cause; only `auto` \
         falls back to another model.",
    ],
    man_only: true,
};

/// The models of the server.
pub(crate) const SERVE_MODELS: Note = Note {
    title: TITLE,
    text: &[
        joined(&join::<{ length(&SERVE_PARTS) }>(&SERVE_PARTS)),
        "`auto` is the default, and the only model that keeps files open between requests. All models send the same bytes.",
    ],
    man_only: true,
};

/// All models, with their uses.
pub(crate) const ALL_MODELS: Note = Note {
    title: TITLE,
    text: &[
        joined(&join::<{ length(&ALL_PARTS) }>(&ALL_PARTS)),
        "`--io` of `fathom du`, `fathom list` and `fathom scan` takes the models for metadata, `fathom serve --io` those for \
         serving, and `fathom bench --models` all of them.",
        PROFILE,
    ],
    man_only: true,
};

const TITLE: &str = "I/O models";
const PROFILE: &str = "The profile is `fathom/io-profile.json` in XDG_CONFIG_HOME or else in `~/.config`, or the file that \
                       FATHOM_PROFILE names; if that is empty, none is read. A damaged profile is ignored with a warning.";

/// The largest number of texts in the line of a model.
const LINE_PARTS: usize = 24;
/// The largest number of texts about all models.
const PARTS: usize = LINE_PARTS * Model::ALL.len();

const WALK_PARTS: [&str; PARTS] = lines(Some(Use::Metadata));
const SERVE_PARTS: [&str; PARTS] = lines(Some(Use::Serve));
const ALL_PARTS: [&str; PARTS] = lines(None);
const WALK_BRIEF_PARTS: [&str; PARTS] = names("the I/O model: ", Some(Use::Metadata), "; otherwise `auto`");
const BENCH_PARTS: [&str; PARTS] = names(
    "Some of ",
    None,
    ". A model that is not for the workload is left out. Without this option, `write` has the methods of a published \
     comparison, and the other workloads have all models.",
);

/// Texts that are to be joined.
struct TextParts {
    parts: [&'static str; PARTS],
    len: usize,
}

impl TextParts {
    const fn push(&mut self, part: &'static str) {
        self.parts[self.len] = part;
        self.len += 1;
    }
}

const fn is_wanted(model: Model, wanted: Option<Use>) -> bool {
    match wanted {
        Some(wanted) => model.has(wanted),
        None => true,
    }
}

/// Returns the texts of a paragraph for each model with a use: name and mechanism, and for all
/// models the uses.
const fn lines(wanted: Option<Use>) -> [&'static str; PARTS] {
    let mut text = TextParts { parts: [""; PARTS], len: 0 };
    let mut at = 0;
    while at < Model::ALL.len() {
        let model = Model::ALL[at];
        at += 1;
        if !is_wanted(model, wanted) {
            continue;
        }
        text.push(if text.len == 0 { "`" } else { "\n`" });
        text.push(model.name());
        if let (Some(parameter), None | Some(Use::Metadata)) = (model.parameter(), wanted) {
            text.push("` or `");
            text.push(model.name());
            text.push("=");
            text.push(parameter);
        }
        text.push("`: ");
        text.push(model.summary());
        if wanted.is_none() {
            push_uses(&mut text, model);
        }
        text.push(".");
    }
    text.parts
}

const fn push_uses(text: &mut TextParts, model: Model) {
    text.push(if model.is_for_benchmarks_only() { "; for benchmarks only: " } else { "; for " });
    let (uses, mut at) = (model.uses(), 0);
    while at < uses.len() {
        text.push(if at == 0 { "" } else { ", " });
        text.push(uses[at].name());
        at += 1;
    }
}

/// Returns the texts of one sentence with the names of the models with a use.
const fn names(before: &'static str, wanted: Option<Use>, behind: &'static str) -> [&'static str; PARTS] {
    let mut text = TextParts { parts: [""; PARTS], len: 0 };
    text.push(before);
    let mut at = 0;
    while at < Model::ALL.len() {
        let model = Model::ALL[at];
        at += 1;
        if !is_wanted(model, wanted) {
            continue;
        }
        text.push(if text.len == 1 { "`" } else { "`, `" });
        text.push(model.name());
        if let (Some(parameter), Some(Use::Metadata)) = (model.parameter(), wanted) {
            text.push("[=");
            text.push(parameter);
            text.push("]");
        }
    }
    text.push("`");
    text.push(behind);
    text.parts
}

/// Returns the number of bytes of all texts.
const fn length(parts: &[&str; PARTS]) -> usize {
    let (mut at, mut length) = (0, 0);
    while at < PARTS {
        length += parts[at].len();
        at += 1;
    }
    length
}

/// Copies the texts one behind the other.
const fn join<const N: usize>(parts: &[&str; PARTS]) -> [u8; N] {
    let (mut bytes, mut end, mut at) = ([0; N], 0, 0);
    while at < PARTS {
        let part = parts[at].as_bytes();
        let mut from = 0;
        while from < part.len() {
            bytes[end] = part[from];
            (end, from) = (end + 1, from + 1);
        }
        at += 1;
    }
    bytes
}

const fn joined(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("texts that are joined are a text"),
    }
}
