//! `fathom bench sample`: takes one sample in its own process, with the command line of the
//! playground's programs (playground/README.md). The benchmark runner starts it; users rarely do.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use fathom_bench::sample::{NULL, SampleError, SampleSpec, Workload, execute};
use fathom_io::Model;
use fathom_io::uring::Completion;

use crate::shared::output::{print, print_error};

const NAME: &str = "fathom bench sample";

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: &[OsString]) -> u8 {
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
        seed: 1,
        generation: 1,
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
        "--seed" => spec.seed = number()?,
        "--generation" => spec.generation = number()?,
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
