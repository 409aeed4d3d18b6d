//! The options of `fathom query`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom query`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryOption {
    Format,
    Json,
    File,
}

/// The values of `--format`, in the order of [`super::args::AnswerFormat`].
pub(crate) const FORMAT_WORDS: &[&str] = &["table", "csv", "json", "jsonl"];

const QUERY_AND_ANSWER: &str = "The query and its answer";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<QueryOption>] = &[
    long(QueryOption::Format, "format", QUERY_AND_ANSWER, "`table` (the default), `csv`, `json` or `jsonl`")
        .required("FORMAT", ValueKind::Words(FORMAT_WORDS))
        .more(
            "`table` is for people: of more than 1,000 rows it shows the first and the last, and says so. The others \
             have all rows and need no memory for them: `csv` has a line of names first, `json` is one array of \
             objects, `jsonl` an object a line.",
        ),
    long(QueryOption::Json, "json", QUERY_AND_ANSWER, "the same as `--format=json`"),
    both(QueryOption::File, b'f', "file", QUERY_AND_ANSWER, "read the query from FILE; `-` is standard input")
        .required("FILE", ValueKind::File),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const QUERY: Command<QueryOption> = Command {
    name: "fathom query",
    brief: "ask an inventory in SQL",
    usage: &["[OPTION]... INVENTORY SQL", "[OPTION]... -f FILE INVENTORY"],
    about: &[
        "Answers one SQL query about an inventory that `fathom scan` made. DuckDB does the work: the program `duckdb` \
         in PATH, or else the module of that name of `python3`. If SQL is `-` it is read from standard input. \
         Of a directory of `fathom scan --keep`, the newest inventory answers.",
    ],
    sections: &[QUERY_AND_ANSWER, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[VIEWS, SAFETY, ENVIRONMENT, STATUS],
    examples: &[
        (
            "fathom query home.inv 'SELECT path, size FROM files ORDER BY size DESC LIMIT 10'",
            "the largest files",
        ),
        ("fathom query home.inv 'SELECT path, t_blocks * 512 FROM dirs WHERE depth <= 1'", "what du says"),
        ("fathom query --format=csv home.inv 'FROM errors' >errors.csv", "what could not be read"),
        ("fathom query home.inv 'DESCRIBE files'", "which columns there are"),
    ],
    see_also: &["fathom", "fathom-scan", "duckdb"],
};

const VIEWS: Note = Note {
    title: "Views",
    text: &[
        "`files`: a row for each entry that is no directory, with its `path`.",
        "`dirs`: a row for each directory, with the sums of its own entries and of everything below it.",
        "`entries`: all entries, directories too, with the columns of `files`.",
        "`errors`, `links`, `users`, `groups`: what could not be read, names of files that have several, and owners.",
    ],
    man_only: false,
};

const SAFETY: Note = Note {
    title: "What a query can do",
    text: &[
        "A query is a single SELECT (or FROM, WITH, DESCRIBE, SUMMARIZE, SHOW), and nothing else: it writes nothing and reads \
         no file but those that the inventory's manifest lists, and nothing from the network. DuckDB's settings cannot be \
         changed by it. This needs DuckDB 1.2 or newer; with an older one no query is run.",
        "Intermediate results that do not fit in memory go to a directory below TMPDIR.",
    ],
    man_only: true,
};

const ENVIRONMENT: Note = Note {
    title: "Environment",
    text: &[
        "FATHOM_DUCKDB: the program to use; one whose name begins with `python` has to have the module `duckdb`.",
        "TMPDIR: the directory for data that does not fit in memory.",
        "TZ: the time zone in which times are shown.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the query was answered, if from an incomplete inventory then with a warning.",
        "1: DuckDB reports an error.",
        "2: the command line was wrong, or there is no inventory, or no DuckDB that is new enough.",
    ],
    man_only: true,
};
