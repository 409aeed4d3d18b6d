//! `fathom bench sample`: takes one sample in its own process, with the command line of the
//! playground's programs (playground/README.md). The benchmark runner starts it; users rarely do.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use fathom_bench::Workload;
use fathom_bench::sample::{AccessHint, NULL, SampleError, SampleSpec, execute};
use fathom_io::Model;
use fathom_io::uring::Completion;

use crate::shared::output::{print, print_error};

const NAME: &str = "fathom bench sample";

const HELP: &str = "\
Usage: fathom bench sample --op OP --method METHOD --path PATH --size BYTES --block BYTES [OPTION...]
   or: fathom bench sample --list
Takes one sample of a benchmark in this process and prints it as one line of key=value, separated by tabs.

  --op OP              write, read, random-read, random-write, mixed, append-sync, walk, stat, small-files, serve
                       or copy
  --method METHOD      an I/O model of --list, or null: the loop without its calls
  --path PATH          the file, which write and append-sync create or truncate and random-write and mixed overwrite,
                       or the directory of a tree
  --size BYTES         the size of the file
  --block BYTES        the size of one operation
  --threads N          threads with a partition each (1)
  --depth N            operations that each thread keeps in flight (1)
  --batch N            operations that are submitted at once (1)
  --wait HOW           wait, spin or adaptive: how a ring waits for completions (wait)
  --direct YES_OR_NO   whether the page cache is bypassed (no)
  --advice ADVICE      a hint to the kernel: normal, random (do not read ahead), sequential (read ahead further),
                       willneed (read now, for a window ahead), dontcache (keep no page; Linux 6.14), or, with O_DIRECT,
                       hipri (poll the device) (normal)
  --read PERCENT       of mixed: the share of blocks that are read, and not written (70)
  --seed N             the seed of the data and of random orders (1)
  --backlog N          of walk and stat with threads: entries go to a consumer, for which N may wait (0: to none)
  --rate N             of serve: requests a second (0: each connection sends the next after a response)
  --pattern YES_OR_NO  whether a file that is read has the data pattern, which is checked (yes)
  --generation N       the generation of the data (1)
  --calls FILE         for append-sync and mixed: write the latencies of reads, writes and syncs to FILE, a line each:
                       kind, number of timed calls, median, 95th and 99th percentile, and maximum in us
  --list               print the methods, and exit
  --help               print this help, and exit

Files that are read must hold the data pattern of playground/README.md, as write leaves it with the same seed
and generation; the blocks that mixed reads have generation 0. Exit status: 0, 1 if an operation failed, 2 for a wrong command line, 3 if the method cannot run here.

Example:
  fathom bench sample --op write --method sync --path out.bin --size 1048576 --block 4096
";

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: &[OsString]) -> u8 {
    if words == ["--help"] {
        return print(NAME, HELP);
    }
    if words == ["--list"] {
        let names = Model::ALL.into_iter().map(Model::name).chain([NULL]);
        return print(NAME, &names.map(|name| format!("{name}\tok\n")).collect::<String>());
    }
    match parse(words).and_then(|spec| execute(&spec, &own_program()?)) {
        Ok(outcome) => print(NAME, &format!("{outcome}\n")),
        Err(failure) => {
            print_error(NAME, failure.to_string().as_bytes());
            failure.status()
        }
    }
}

/// Returns the path of this executable, which a sample of a server starts a second time.
fn own_program() -> Result<PathBuf, SampleError> {
    let path = std::env::current_exe();
    path.map_err(|error| SampleError::Io("find", PathBuf::from("/proc/self/exe"), error))
}

fn misuse(message: String) -> SampleError {
    SampleError::Usage(message)
}

fn parse(words: &[OsString]) -> Result<SampleSpec, SampleError> {
    let mut spec = SampleSpec {
        workload: Workload::Write,
        model: Some(Model::Sync),
        path: PathBuf::new(),
        size: 0,
        block: 0,
        threads: 1,
        depth: 1,
        batch: 1,
        completion: Completion::Wait,
        direct: false,
        hint: AccessHint::Normal,
        read_percent: 70,
        seed: 1,
        has_pattern: true,
        backlog: 0,
        rate: 0,
        generation: 1,
        calls: None,
    };
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            return Err(misuse(format!("option '{}' requires an argument", pair[0].display())));
        };
        set(&mut spec, name, value)?;
    }
    if spec.path.as_os_str().is_empty() {
        return Err(misuse("missing option --path".to_owned()));
    }
    Ok(spec)
}

fn set(spec: &mut SampleSpec, name: &OsStr, value: &OsStr) -> Result<(), SampleError> {
    let refused = || misuse(format!("invalid argument '{}' for '{}'", value.display(), name.display()));
    let text = value.to_str();
    let number = || text.and_then(|text| text.parse::<u64>().ok()).ok_or_else(refused);
    let count = || usize::try_from(number()?).map_err(|_| refused());
    match name.to_str().unwrap_or_default() {
        "--op" => spec.workload = text.and_then(Workload::named).ok_or_else(refused)?,
        "--method" => spec.model = method(text).ok_or_else(refused)?,
        "--path" => spec.path = value.into(),
        "--size" => spec.size = number()?,
        "--block" => spec.block = count()?,
        "--threads" => spec.threads = count()?,
        "--depth" => spec.depth = count()?,
        "--batch" => spec.batch = count()?,
        "--wait" => spec.completion = completion(text).ok_or_else(refused)?,
        "--direct" => spec.direct = yes_or_no(text).ok_or_else(refused)?,
        "--advice" => spec.hint = text.and_then(AccessHint::named).ok_or_else(refused)?,
        "--read" => spec.read_percent = u8::try_from(number()?).map_err(|_| refused())?,
        "--backlog" => spec.backlog = count()?,
        "--rate" => spec.rate = u32::try_from(number()?).map_err(|_| refused())?,
        "--pattern" => spec.has_pattern = yes_or_no(text).ok_or_else(refused)?,
        "--seed" => spec.seed = number()?,
        "--generation" => spec.generation = number()?,
        "--calls" => spec.calls = Some(value.into()),
        _ => return Err(misuse(format!("unrecognized option '{}'", name.display()))),
    }
    Ok(())
}

/// Parses the value of `--method`: a model, or the loop without one.
fn method(name: Option<&str>) -> Option<Option<Model>> {
    match name? {
        NULL => Some(None),
        name => Model::named(name).map(Some),
    }
}

fn completion(word: Option<&str>) -> Option<Completion> {
    match word? {
        "wait" => Some(Completion::Wait),
        "spin" => Some(Completion::Spin),
        "adaptive" => Some(Completion::Adaptive),
        _ => None,
    }
}

fn yes_or_no(word: Option<&str>) -> Option<bool> {
    match word? {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}
