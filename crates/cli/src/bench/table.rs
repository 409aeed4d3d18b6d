//! The options of `fathom bench`: names and help texts. `args.rs` implements them.

use crate::models::{ALL_MODELS, BENCH_MORE};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, long};

/// The options of `fathom bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchOption {
    Models,
    Lang,
    Threads,
    Depth,
    Batch,
    Backlog,
    Wait,
    Size,
    Block,
    Files,
    Direct,
    Sync,
    Read,
    Rate,
    Cache,
    Blocks,
    Seed,
    Path,
    Tree,
    File,
    Save,
    Validate,
    Quick,
    Time,
    Csv,
    Json,
    Html,
    Markdown,
    FailAbove,
    Name,
    Prepare,
    Output,
    SameOutput,
    IgnoreFailure,
}

/// The values of `--cache`.
pub(crate) const CACHE_WORDS: &[&str] = &["warm", "cold"];

/// The values of `--wait`.
pub(crate) const WAIT_WORDS: &[&str] = &["block", "spin"];

/// The values of `--output`.
pub(crate) const OUTPUT_WORDS: &[&str] = &["pipe", "null"];

/// The values of `--same-output`.
pub(crate) const SAME_OUTPUT_WORDS: &[&str] = &["bytes", "lines"];

const WORK: &str = "What is done";
const RUN: &str = "How often, and where";
const COMMANDS: &str = "Commands of your own";
const ADVICE: &str = "Advice";
const SHOWN: &str = "What is shown";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<BenchOption>] = &[
    long(BenchOption::Models, "models", WORK, "only these I/O models, separated by commas, and blocking calls to compare with")
        .required("LIST", ValueKind::Text)
        .more(BENCH_MORE),
    long(BenchOption::Lang, "lang", WORK, "the same operations in other languages: `all`, or some of `bun`, `c`, `cpp`, `deno`, `go`, `java`, `node`, `python`, `rust-crates` (without fathom), `zig`")
        .required("LIST", ValueKind::Text)
        .more(
            "Short programs, which are part of fathom, are built in release mode with the toolchains that are found, and run in \
             the same shuffled blocks. A language without a toolchain is reported and left out, and so is an operation that a language does not have. \
             They do `write`, `read`, `random-read`, `append-sync`, `walk` and `stat`, and arms of one name have the same numbers \
             of threads and of operations in flight. What the loop around the calls takes in each language is shown.",
        ),
    long(BenchOption::Threads, "threads", WORK, "numbers of threads, separated by commas: blocking calls, threads and rings (or what `--models` says) with each")
        .required("LIST", ValueKind::Text)
        .more(
            "`--threads`, `--depth` and `--batch` take the place of the numbers that the arms usually have: there is an arm for \
             each combination that a model has, also in other languages.",
        ),
    long(BenchOption::Depth, "depth", WORK, "numbers of operations that each thread keeps in flight").required("LIST", ValueKind::Text),
    long(BenchOption::Batch, "batch", WORK, "numbers of operations that a ring submits at once").required("LIST", ValueKind::Text),
    long(BenchOption::Backlog, "backlog", WORK, "of `walk` and `stat`: the threads send entries to a consumer, for which so many may wait; separated by commas")
        .required("LIST", ValueKind::Text)
        .more("The consumer counts them, as that of the gatherer in the crate `fathom-walk`. The table has the peak memory."),
    long(BenchOption::Wait, "wait", WORK, "how a ring waits: in the kernel (`block`), or polling (`spin`)")
        .required("HOW", ValueKind::Words(WAIT_WORDS)),
    long(BenchOption::Size, "size", WORK, "bytes of the file; units as K, M and G may follow; otherwise 1G").required("SIZE", ValueKind::Text),
    long(BenchOption::Block, "block", WORK, "bytes of one operation; otherwise 4K, for `read` and `copy` 128K").required("SIZE", ValueKind::Text),
    long(BenchOption::Files, "files", WORK, "files of the tree that `walk` and `stat` look at; otherwise 100000").required("N", ValueKind::Text),
    long(BenchOption::Direct, "direct", WORK, "bypass the page cache (`O_DIRECT`)"),
    long(BenchOption::Sync, "sync", WORK, "include an fdatasync at the end in the measured time"),
    long(BenchOption::Read, "read", WORK, "of `mixed`: PERCENT of the blocks are read, and the others written; otherwise 70").required("PERCENT", ValueKind::Text),
    long(BenchOption::Rate, "rate", WORK, "of `serve`: N requests a second, whether or not earlier ones have been answered")
        .required("N", ValueKind::Text)
        .more(
            "Arms are compared by the mean latency. The latency of a request counts from the time at which it was due, so the wait \
             behind a slow response is part of it. Without a rate, each of the 64 connections sends its next request after a response: then a slow \
             server gets fewer requests, and the latencies of those that it delayed are missing (coordinated omission).",
        ),
    long(BenchOption::Tree, "tree", WORK, "a tree of your own for `walk` and `stat`, which is only read")
        .required("DIR", ValueKind::File)
        .more("If it changes meanwhile, the sample counts as disturbed. Directories that cannot be read are left out, counted and named."),
    long(BenchOption::File, "file", WORK, "a file of your own for `read` and `random-read`, which is only read; with `--size`, its beginning")
        .required("FILE", ValueKind::File)
        .more("Its bytes are counted, and not verified, because what they should be is unknown."),
    long(BenchOption::Cache, "cache", WORK, "for reading: whether the file is in the page cache (`warm`) or not (`cold`); otherwise both, one after the other")
        .required("STATE", ValueKind::Words(CACHE_WORDS)),
    long(BenchOption::Blocks, "blocks", RUN, "repetitions; otherwise 10").required("N", ValueKind::Text),
    long(BenchOption::Time, "time", RUN, "answer within TIME (`30s`, `2m`); of `advise` otherwise three minutes")
        .required("TIME", ValueKind::Text)
        .more(
            "No sample begins after it; repetitions that are not complete do not count, and how many were is said below the table. \
             `advise` asks the most valuable questions first: walks, serving, small files, copies, reads, writes. What there was no \
             time for is listed, and not in the profile of `--save`. The first question has three minutes however short the time, except with `--quick`.",
        ),
    long(BenchOption::Seed, "seed", RUN, "of the order, the data and the intervals; otherwise random, and shown").required("N", ValueKind::Text),
    long(BenchOption::Path, "path", RUN, "the directory in which files are made; otherwise the current one").required("DIR", ValueKind::File),
    long(BenchOption::Prepare, "prepare", COMMANDS, "text for sh(1) that runs before each sample, unmeasured; once, or once for each command")
        .required("TEXT", ValueKind::Text),
    long(BenchOption::Name, "name", COMMANDS, "a name for a command in the reports; once for each").required("NAME", ValueKind::Text),
    long(BenchOption::Output, "output", COMMANDS, "where the commands write: a `pipe` that is read, or `/dev/null`; otherwise the pipe")
        .required("WHERE", ValueKind::Words(OUTPUT_WORDS))
        .more("Programs such as tar(1) and grep(1) do less work if they write to `/dev/null`."),
    long(BenchOption::SameOutput, "same-output", COMMANDS, "measure nothing unless all outputs have the same `bytes`, or the same `lines` in any order")
        .optional("HOW", ValueKind::Words(SAME_OUTPUT_WORDS))
        .more("Otherwise a difference is noted below the table."),
    long(BenchOption::IgnoreFailure, "ignore-failure", COMMANDS, "go on if a command ends with another status than 0"),
    long(BenchOption::Save, "save", ADVICE, "keep the advice for this filesystem as a profile, which `--io auto` starts from; in FILE, or where it is looked for")
        .optional("FILE", ValueKind::File)
        .more("That is `fathom/io-profile.json` in `$XDG_CONFIG_HOME`, or in `~/.config`."),
    long(BenchOption::Quick, "quick", ADVICE, "a tenth of the work, in half a minute unless `--time` is given: sooner, and less sure"),
    long(BenchOption::Validate, "validate", ADVICE, "then try the advice on sizes and seeds it has not seen, beside fixed choices; takes minutes more")
        .more("`--blocks` says how often each is repeated; otherwise 7 times."),
    long(BenchOption::Csv, "csv", SHOWN, "every sample as a line of CSV, in FILE or instead of the table").optional("FILE", ValueKind::File).more(
        "`plain` and `plain:FILE` have the three columns that io-playground has, without a header: method, seconds, bytes a \
         second. A file of that name is `./plain`.",
    ),
    long(BenchOption::Json, "json", SHOWN, "everything as JSON, in FILE or instead of the table").optional("FILE", ValueKind::File),
    long(BenchOption::Html, "html", SHOWN, "a page with plots, in FILE").required("FILE", ValueKind::File),
    long(BenchOption::Markdown, "markdown", SHOWN, "tables as Markdown, also of `compare`"),
    long(BenchOption::FailAbove, "fail-above", SHOWN, "of `compare`: exit status 1 if an arm is shown to be slower, by more than PERCENT")
        .required("PERCENT", ValueKind::Text)
        .more(
            "Shown: the interval of the ratio is above 1. An arm with fewer than six blocks in a run has no interval. If such an \
             arm, or one that the second run lacks, leaves the question open, the status is 1 as well.",
        ),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const BENCH: Command<BenchOption> = Command {
    name: "fathom bench",
    brief: "measure which I/O model fits a disk and a workload",
    usage: &[
        "WORKLOAD [OPTION]...",
        "advise [OPTION]... [DIR]",
        "run [OPTION]... -- COMMAND [-- COMMAND]...",
        "compare [OPTION]... OLD.json NEW.json",
    ],
    about: &[
        "Does the same work under every I/O model, and tells which is fastest here, by how much, and whether that is more than \
         chance. `write` writes a file once; `read` and `random-read` read one; `random-write` overwrites the blocks of one in random order; `mixed` reads some of them and overwrites the others; `append-sync` writes blocks and syncs each; `walk` reads the names of a tree, `stat` takes the metadata of all of it as well, \
         `small-files` opens, reads and closes files of one block, `serve` has `fathom serve` send such files over loopback, and `copy` \
         makes a copy of a file.",
        "Each repetition runs every model once, in shuffled order and in a process of its own; ratios are of samples within one \
         repetition, with intervals of 95 % confidence. One model runs twice, as a control. Every written byte is read back, the \
         stamp of every page that was read is checked, and the page cache's state is asked of the kernel before each sample.",
        "Arms called `blocking_...` differ from `blocking` in a hint for the page cache alone: `sequential` and `willneed` \
         (POSIX_FADV_SEQUENTIAL, POSIX_FADV_WILLNEED for a window ahead of the reads) for `read`, `dontcache` (`RWF_DONTCACHE`, \
         from Linux 6.14) for `read` and `random-write`, and with `--models sync` for `write`, `readahead` (none) for a cold `random-read`.",
        "`run` measures any commands by the same rules, each against the first, which runs twice as the control: time, processor \
         time, peak memory, page faults, context switches, migrations to another CPU, and bytes that devices read and wrote. \
         A command is words; a single word with a space in it is text for sh(1), which may have a `--` of its own. Each command runs once more before that, so \
         that outputs can be compared.",
        "`compare` reads two runs that `--json` has saved, and shows how much longer each arm takes in the second, with the interval \
         of the ratio.",
        "`advise` asks about all workloads at once, in less than three minutes: it measures what calls, hand-offs and rings cost here, \
         predicts every model from that, measures those that may be the best, and says in one sentence what to use, for what, and \
         what would change that.",
    ],
    sections: &[WORK, RUN, COMMANDS, ADVICE, SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[ALL_MODELS, FILES, CLOCKS, COMMAND_NUMBERS, STATUS],
    examples: &[
        ("fathom bench advise --quick", "what to use on the filesystem of this directory, roughly"),
        ("fathom bench write --size 16M --blocks 6", "ways of writing a file, quickly"),
        ("fathom bench random-read --cache cold --size 4M --blocks 6", "how deep this disk wants its queue"),
        ("fathom bench stat --files 5000 --blocks 6", "how many threads a tree wants, warm and cold"),
        ("fathom bench stat --tree . --blocks 6 --cache warm", "the same for a tree that is there"),
        ("fathom bench run -- du -s . -- fathom du -s .", "which of two commands is faster, and by how much"),
        (
            "fathom bench compare --fail-above 5% old.json new.json",
            "whether anything became slower, of two runs saved with `--json`",
        ),
        (
            "fathom bench write --lang c --size 4M --blocks 6 --csv=out.csv --html out.html",
            "the same in C as well, for programs and with plots",
        ),
    ],
    see_also: &["fathom", "fathom-io", "fathom-du"],
};

const FILES: Note = Note {
    title: "Files",
    text: &[
        "Files are made in a directory `.fathom-bench-...` below DIR, which is removed afterwards, also on Ctrl-C and on errors. \
         Before anything is written there must be room for it on the disk.",
    ],
    man_only: true,
};

const CLOCKS: Note = Note {
    title: "Clocks",
    text: &[
        "The compared time runs from the first operation to the end of the last one. For writes there are two more \
         times, which include an fdatasync and the close: `sync_s` and `close_s` in CSV and JSON. Before each \
         sample everything is synced, so that no sample waits for the writes of another.",
        "Latencies are those of whole operations. For `append-sync`, whose operation is a write and a sync, there are also those \
         of the writes (`write_p50_us` and so on) and of the fdatasync calls (`fdatasync_p50_us`); for `mixed`, those of the reads \
         (`read_p50_us`) and of the writes.",
        "Processor time is that of the whole process, with the kernel's threads that work for its rings. In `serve`, that is the server, from its start to its end.",
    ],
    man_only: true,
};

const COMMAND_NUMBERS: Note = Note {
    title: "Numbers of commands",
    text: &[
        "The time runs from the start of the process to its end, without what prepares it. Processor time, faults, switches and \
         blocks are those of the process and of the descendants that it has waited for (getrusage(2)); the peak memory is that of \
         the largest of them. The kernel begins it at the memory of the program that starts a command, so that of a small command \
         is only known to be less than a few megabytes, which is noted. Migrations are counted for root, or where \
         `/proc/sys/kernel/perf_event_paranoid` is 1 or less.",
        "A command has no standard input. If it fails, the run ends with the first line of its standard error.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 if the question was answered. 1 if something failed, there is no room, data was wrong, or no sample counted. 2 if the \
         command line makes no sense, or a sample panicked, which is a bug. 130 after Ctrl-C, with what is known by then.",
    ],
    man_only: true,
};
