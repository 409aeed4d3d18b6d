//! The description of `fathom bench`: the options of `fathom bench WORKLOAD`, and the list of the
//! other commands, which have tables of their own. `workload/args.rs` implements the options.

use fathom_bench::Workload;

use super::measuring::{RUN, RunOption, blocks, seed, time};
use super::reports::{SHOWN, TargetOption, csv, html, json, markdown};
use crate::models::{ALL_MODELS, BENCH_MORE};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, long};

/// The options of `fathom bench WORKLOAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchOption {
    Run(RunOption),
    Report(TargetOption),
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
    Path,
    Tree,
    File,
}

impl BenchOption {
    /// Returns whether the option has an effect on `workload`.
    pub(super) fn is_for(self, workload: Workload) -> bool {
        let has_one_file = !workload.is_of_small_files() && workload != Workload::Copy;
        let has_numbers = !matches!(workload, Workload::AppendSync | Workload::Copy | Workload::Serve);
        let has_batches = has_numbers && !workload.is_of_tree() && !workload.is_of_small_files();
        match self {
            Self::Lang => has_one_file && !workload.overwrites(),
            Self::Direct | Self::Sync => has_one_file && !workload.is_of_tree(),
            Self::Threads | Self::Depth => has_numbers,
            Self::Batch | Self::Wait => has_batches,
            Self::Backlog | Self::Files | Self::Tree => workload.is_of_tree(),
            Self::File => matches!(workload, Workload::Read | Workload::RandomRead),
            Self::Cache => workload.reads(),
            Self::Read => workload == Workload::Mixed,
            Self::Rate => workload == Workload::Serve,
            Self::Run(_) | Self::Report(_) | Self::Models | Self::Size | Self::Block | Self::Path => true,
        }
    }
}

/// The values of `--cache`.
pub(super) const CACHE_WORDS: &[&str] = &["warm", "cold"];

/// The values of `--wait`.
pub(super) const WAIT_WORDS: &[&str] = &["block", "spin"];

const WORK: &str = "Workload";
const ARMS: &str = "Models and numbers";
pub(super) const ABOUT: &str = "General";

/// The effect of `--time` on commands that repeat everything.
pub(super) const TIME_MORE: &str = "No sample begins after it. Repetitions that are not complete do not count; the number of \
                                    complete ones is below the table.";

const FLAGS: &[Flag<BenchOption>] = &[
    long(BenchOption::Size, "size", WORK, "set the size of the file; units such as K, M and G may follow (default: 4M to 1G)")
        .required("SIZE", ValueKind::Text)
        .more("The default is 1G for `write`, `read`, `walk` and `stat`, 4M for `append-sync`, 40M for `small-files` and `serve`, and 256M for the others."),
    long(BenchOption::Block, "block", WORK, "set the bytes of one operation (default: 4K; `read` and `copy`: 128K)")
        .required("SIZE", ValueKind::Text),
    long(BenchOption::Files, "files", WORK, "make a tree of N files for `walk` and `stat` (default: 100000)").required("N", ValueKind::Text),
    long(BenchOption::Tree, "tree", WORK, "read your own tree in `walk` and `stat`; nothing is written")
        .required("DIR", ValueKind::File)
        .more("If it changes meanwhile, the sample counts as disturbed. Directories that cannot be read are skipped, counted and named."),
    long(BenchOption::File, "file", WORK, "read your own file in `read` and `random-read`, or its first `--size` bytes")
        .required("FILE", ValueKind::File)
        .more("Its bytes are counted, and not verified, because the right ones are unknown."),
    long(BenchOption::Cache, "cache", WORK, "read with the file in the page cache (`warm`) or not (`cold`) (default: both in turn)")
        .required("STATE", ValueKind::Words(CACHE_WORDS)),
    long(BenchOption::Direct, "direct", WORK, "bypass the page cache (`O_DIRECT`)"),
    long(BenchOption::Sync, "sync", WORK, "include an fdatasync in the measured time"),
    long(BenchOption::Read, "read", WORK, "read PERCENT of the blocks of `mixed` and write the others (default: 70)").required("PERCENT", ValueKind::Text),
    long(BenchOption::Rate, "rate", WORK, "send N requests per second to `serve`, without waiting for responses")
        .required("N", ValueKind::Text)
        .more(
            "Arms are compared by the mean latency. The latency of a request counts from the time at which it was due, so the wait \
             behind a slow response is part of it. Without a rate, each of the 64 connections sends its next request after a response: then a slow \
             server gets fewer requests, and the latencies of those that it delayed are missing (coordinated omission).",
        ),
    long(BenchOption::Models, "models", ARMS, "measure only these I/O models, with commas, and blocking calls for comparison")
        .required("LIST", ValueKind::Text)
        .more(BENCH_MORE),
    long(BenchOption::Threads, "threads", ARMS, "use these numbers of threads, with commas, for blocking calls, threads and rings (or the `--models`)")
        .required("LIST", ValueKind::Text)
        .more(
            "`--threads`, `--depth` and `--batch` take the place of the numbers that the arms usually have: there is an arm for \
             each combination that a model has, also in other languages.",
        ),
    long(BenchOption::Depth, "depth", ARMS, "keep these numbers of operations in flight in each thread").required("LIST", ValueKind::Text),
    long(BenchOption::Batch, "batch", ARMS, "submit these numbers of operations to a ring at once").required("LIST", ValueKind::Text),
    long(BenchOption::Wait, "wait", ARMS, "let a ring wait in the kernel (`block`) or poll (`spin`) (default: block)")
        .required("HOW", ValueKind::Words(WAIT_WORDS)),
    long(BenchOption::Backlog, "backlog", ARMS, "let threads of `walk` and `stat` send entries to a consumer through queues of these lengths, with commas")
        .required("LIST", ValueKind::Text)
        .more("The consumer counts the entries, like the consumer of the gatherer in the crate `fathom-walk`. The table has the peak memory."),
    long(BenchOption::Lang, "lang", ARMS, "run the operations in other languages too: `all`, or some of `bun`, `c`, `cpp`, `deno`, `go`, `java`, `node`, `python`, `rust-crates` (without fathom), `zig`")
        .required("LIST", ValueKind::Text)
        .more(
            "Short programs, which are part of fathom, are built in release mode with the toolchains that are found, and run in \
             the same shuffled blocks. A language without a toolchain is reported and left out, and so is an operation that a language does not have. \
             They do `write`, `read`, `random-read`, `append-sync`, `walk` and `stat`, and arms of one name have the same numbers \
             of threads and of operations in flight. What the loop around the calls takes in each language is shown.",
        ),
    blocks(BenchOption::Run(RunOption::Blocks), "repeat every measurement N times (default: 10)"),
    time(BenchOption::Run(RunOption::Time), "answer within TIME, such as `30s` or `2m`").more(TIME_MORE),
    seed(BenchOption::Run(RunOption::Seed)),
    long(BenchOption::Path, "path", RUN, "create the files in DIR (default: the current directory)").required("DIR", ValueKind::File),
    csv(BenchOption::Report(TargetOption::Csv)).more(
        "`plain` and `plain:FILE` have the three columns that io-playground has, without a header: method, seconds, bytes a \
         second. A file of that name is `./plain`.",
    ),
    json(BenchOption::Report(TargetOption::Json)),
    html(BenchOption::Report(TargetOption::Html)),
    markdown(BenchOption::Report(TargetOption::Markdown)),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The commands and workloads, with their briefs.
const WORDS: &[(&str, &str)] = &[
    ("advise", super::advise::table::ADVISE.brief),
    ("run", super::commands::table::COMMANDS_RUN.brief),
    ("compare", super::compare::table::COMPARE.brief),
    ("write", "write a file once"),
    ("read", "read a file in order"),
    ("random-read", "read the blocks of a file in random order"),
    ("random-write", "overwrite the blocks of a file in random order"),
    ("mixed", "read some blocks of a file and overwrite the others"),
    ("append-sync", "append blocks and sync each"),
    ("walk", "read the names of a tree"),
    ("stat", "read the names of a tree and the metadata of every entry"),
    ("small-files", "open, read and close files of one block"),
    ("serve", "send files of one block over loopback with fathom serve"),
    ("copy", "copy a file"),
];

/// The description of the command.
pub(crate) const BENCH: Command<BenchOption> = Command {
    name: "fathom bench",
    brief: "measure which I/O model fits a disk and a workload",
    usage: &[
        "advise [OPTION]... [DIR]",
        "run [OPTION]... -- COMMAND [-- COMMAND]...",
        "compare [OPTION]... OLD.json NEW.json",
        "WORKLOAD [OPTION]...",
    ],
    about: &[
        "Does the same work under every I/O model, and shows which is fastest here, by how much, and whether that is more than \
         chance. The options below are those of a workload; `advise`, `run` and `compare` have their own: see \
         `fathom bench advise --help`.",
        "Each repetition runs every model once, in shuffled order and in a process of its own; ratios are of samples within one \
         repetition, with intervals of 95 % confidence. One model runs twice, as a control. Every written byte is read back, the \
         stamp of every page that was read is checked, and the page cache's state is asked of the kernel before each sample.",
        "An arm has the name of its I/O model, as `--io` spells it, and then the numbers and hints in which it differs from others: \
         `sync`, `threads=8`, `uring=128:threads=10:batch=1:spin`. Hints are for the page cache alone: `sequential` and `willneed` \
         (POSIX_FADV_SEQUENTIAL, POSIX_FADV_WILLNEED for a window ahead of the reads) for `read`, `dontcache` (`RWF_DONTCACHE`, \
         from Linux 6.14) for `read` and `random-write`, and with `--models sync` for `write`, `readahead` (none) for a cold `random-read`.",
    ],
    sections: &[WORK, ARMS, RUN, SHOWN, ABOUT],
    flags: FLAGS,
    commands: WORDS,
    notes: &[ALL_MODELS, FILES, CLOCKS, STATUS],
    examples: &[
        ("fathom bench advise --quick", "which I/O model to use on this file system, roughly"),
        ("fathom bench write --size 16M --blocks 6", "compare ways of writing a file, quickly"),
        ("fathom bench random-read --cache cold --size 4M --blocks 6", "the best queue depth for this disk"),
        ("fathom bench stat --files 5000 --blocks 6", "the best number of threads for a tree, warm and cold"),
        ("fathom bench stat --tree . --blocks 6 --cache warm", "the same for your own tree"),
        ("fathom bench run -- du -s . -- fathom du -s .", "compare two commands"),
        (
            "fathom bench compare --fail-above 5% old.json new.json",
            "exit with 1 if anything became slower between two runs saved with `--json`",
        ),
        (
            "fathom bench write --lang c --size 4M --blocks 6 --csv=out.csv --html out.html",
            "also measure C, and write the results as CSV and as a page with plots",
        ),
    ],
    see_also: &["fathom", "fathom-io", "fathom-du"],
};

pub(super) const FILES: Note = Note {
    title: "Files",
    text: &[
        "Files are created in a directory `.fathom-bench-...` below DIR, which is removed afterwards, also on Ctrl-C and on errors. \
         Nothing is written unless the disk has room for everything.",
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

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 if the question was answered. 1 if something failed, there is no room, data was wrong, or no sample counted. 2 for a \
         wrong command line, or if a sample panicked, which is a bug. 130 after Ctrl-C: what was measured before is shown.",
    ],
    man_only: true,
};
