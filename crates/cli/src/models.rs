//! The texts about I/O models in help texts, man pages and completions, without the name of any
//! model: `shared/cmdline/model_text.rs` writes names and lines from the list in `fathom-io`.

use fathom_io::{Model, Use};

use crate::shared::cmdline::description::Note;

/// The values of `--io` of the commands that walk directories. `=` and a number may follow some.
pub(crate) const WALK_WORDS: &[&str] =
    &Model::names_with::<{ Model::count_with(Use::Metadata) }>(Use::Metadata);

/// The meaning of `--io` of the commands that walk directories.
pub(crate) const WALK_BRIEF: &str = "the I/O model: {names:metadata}; otherwise `auto`";

/// The meaning of `--models` of `fathom bench`, after its brief.
pub(crate) const BENCH_MORE: &str = "Some of {names:all}. A model that is not for the workload is left out. Without this option, \
                                     `write` has the methods of a published comparison, and the other workloads have all models.";

/// The models that walk directories.
pub(crate) const WALK_MODELS: Note = Note {
    title: TITLE,
    text: &[
        "{lines:metadata}",
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
        "{lines:serving}",
        "`auto` is the default, and the only model that keeps files open between requests. All models send the same bytes.",
    ],
    man_only: true,
};

/// All models, with their uses.
pub(crate) const ALL_MODELS: Note = Note {
    title: TITLE,
    text: &[
        "{lines:all}",
        "`--io` of `fathom du`, `fathom list` and `fathom scan` takes the models for metadata, `fathom serve --io` those for \
         serving, and `fathom bench --models` all of them.",
        PROFILE,
    ],
    man_only: true,
};

const TITLE: &str = "I/O models";
const PROFILE: &str = "The profile is `fathom/io-profile.json` in XDG_CONFIG_HOME or else in `~/.config`, or the file that \
                       FATHOM_PROFILE names; if that is empty, none is read. A damaged profile is ignored with a warning.";
