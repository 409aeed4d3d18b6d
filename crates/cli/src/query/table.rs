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

const QUERY_AND_ANSWER: &str = "Input and output";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<QueryOption>] = &[
    long(
        QueryOption::Format,
        "format",
        QUERY_AND_ANSWER,
        "print the answer as `table` (default), `csv`, `json` or `jsonl`",
    )
    .required("FORMAT", ValueKind::Words(FORMAT_WORDS))
    .more(
        "`table` is meant for people: of more than 1,000 rows it shows the first and the last, and \
             says so. The others print all rows in constant memory: `csv` begins with a line of column \
             names, `json` is one array of objects, and `jsonl` is one object per line.",
    ),
    long(QueryOption::Json, "json", QUERY_AND_ANSWER, "same as `--format=json`"),
    both(
        QueryOption::File,
        b'f',
        "file",
        QUERY_AND_ANSWER,
        "read the query from FILE; `-` is standard input",
    )
    .required("FILE", ValueKind::File),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const QUERY: Command<QueryOption> = Command {
    name: "fathom query",
    brief: "query an inventory in SQL",
    usage: &["[OPTION]... INVENTORY SQL", "[OPTION]... -f FILE INVENTORY"],
    about: &[
        "Runs one SQL query on INVENTORY, which `fathom scan` made. If it is a directory of `fathom scan \
         --keep`, the newest inventory in it is read. DuckDB runs the query: the program `duckdb` in PATH, \
         or else the module `duckdb` of `python3` (`pip install duckdb`). If SQL is `-`, it is read from \
         standard input.",
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
        (
            "fathom query home.inv 'SELECT path, t_blocks * 512 FROM dirs WHERE depth <= 1'",
            "disk usage, as du prints it",
        ),
        (
            "fathom query --format=csv home.inv 'FROM errors' >errors.csv",
            "a list of everything that could not be read",
        ),
        ("fathom query home.inv 'DESCRIBE files'", "the columns of a view"),
    ],
    see_also: &["fathom", "fathom-scan", "duckdb"],
};

const VIEWS: Note = Note {
    title: "Views",
    text: &[
        "`files`: a row for each entry that is not a directory, with its `path`.",
        "`dirs`: a row for each directory, with the sums of its own entries and of everything below it.",
        "`entries`: all entries including directories, with the columns of `files`.",
        "`errors`: entries that could not be read. `links`: names of files that have several. `users`, \
         `groups`: names of owners.",
    ],
    man_only: false,
};

const SAFETY: Note = Note {
    title: "What a query can do",
    text: &[
        "A query is a single SELECT (or FROM, WITH, DESCRIBE, SUMMARIZE, SHOW). It cannot write, read \
         files other than those that the inventory's manifest lists, use the network, or change DuckDB's \
         settings. This needs DuckDB 1.2 or newer; an older one is not used.",
        "Intermediate results that do not fit in memory are stored in a directory below TMPDIR.",
    ],
    man_only: true,
};

const ENVIRONMENT: Note = Note {
    title: "Environment",
    text: &[
        "FATHOM_DUCKDB: the program to use. If its name begins with `python`, it must have the module \
         `duckdb`.",
        "TMPDIR: the directory for data that does not fit in memory.",
        "TZ: the time zone of printed times.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the query was answered, with a warning if the inventory is incomplete.",
        "1: DuckDB reports an error.",
        "2: the command line is wrong, there is no inventory, or no DuckDB of at least version 1.2.",
    ],
    man_only: true,
};
