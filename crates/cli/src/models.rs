//! The texts about I/O models in help texts, man pages and completions, without the name of any
//! model: `shared/cmdline/model_text.rs` writes names and lines from the list in `fathom-io`.

use fathom_io::{Model, Use};

use crate::shared::cmdline::description::Note;

/// The values of `--io` of the commands that walk directories. `=` and a number may follow some.
pub(crate) const WALK_WORDS: &[&str] =
    &Model::names_with::<{ Model::count_with(Use::Metadata) }>(Use::Metadata);

/// The meaning of `--io` of the commands that walk directories.
pub(crate) const WALK_BRIEF: &str = "choose the I/O model: {names:metadata} (default: auto)";

/// The meaning of `--models` of `fathom bench`, after its brief.
pub(crate) const BENCH_MORE: &str = "LIST has names of {names:all}. Models that the workload does not have are skipped. By \
                                     default, `write` and `small-files` run a selection of the models, and the other \
                                     workloads run all models.";

/// The models that walk directories.
pub(crate) const WALK_MODELS: Note = Note {
    title: TITLE,
    text: &[
        "{lines:metadata}",
        "`auto` starts with one thread per CPU, or with the number of threads that a saved profile recommends for the file \
         system, unless the profile has expired or kernel or number of CPUs have changed.",
        PROFILE,
        "All models give the same output. If a named model cannot run here, the command fails and reports the likely cause; only \
         `auto` falls back to another model.",
    ],
    man_only: true,
};

/// The models of the server.
pub(crate) const SERVE_MODELS: Note = Note {
    title: TITLE,
    text: &[
        "{lines:serving}",
        "Only `auto` keeps files open between requests. All models send the same bytes.",
    ],
    man_only: true,
};

/// All models, with their uses.
pub(crate) const ALL_MODELS: Note = Note {
    title: TITLE,
    text: &[
        "{lines:all}",
        "`fathom serve --io` accepts the models for serving, `fathom bench --models` accepts all models, and `--io` of the other \
         commands accepts the models for metadata.",
        PROFILE,
    ],
    man_only: true,
};

const TITLE: &str = "I/O models";
const PROFILE: &str = "The profile is the file that FATHOM_PROFILE names (none if it is empty), or else \
                       `fathom/io-profile.json` in XDG_CONFIG_HOME or `~/.config`. A damaged profile is ignored with a warning.";
