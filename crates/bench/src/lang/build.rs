//! Toolchains and the programs built with them. Each program is built once, in a directory named
//! after a hash of sources and toolchain version.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::recipe::{Recipe, Requirement};
use super::{Lang, Program, child};
use crate::error::{Error, Op};
use crate::remove::{remove_tree, remove_tree_if_present};

/// Characters of a compiler's output that an error quotes.
const OUTPUT_CHARS_MAX: usize = 4000;

/// The toolchain of one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    lang: Lang,
    search: OsString,
    version: String,
}

impl Toolchain {
    /// Looks for the toolchain of `lang` in the directories of `search`, which has the format of
    /// PATH, and queries its version.
    ///
    /// # Errors
    /// With [`Op::Start`] and installation instructions if it is missing; with [`Op::Execute`] if
    /// `stop` became true.
    pub fn find(lang: Lang, search: &OsStr, stop: &AtomicBool) -> Result<Self, Error> {
        let mut version = String::new();
        for need in Recipe::of(lang).needs {
            version += &query_version(lang, need, search, stop)?;
        }
        Ok(Self { lang, search: search.to_owned(), version })
    }

    /// Builds the program in a directory below `cache`, which is created if necessary, or returns
    /// the existing build.
    ///
    /// # Errors
    /// With [`Op::Start`] and the compiler's output if the build fails; with [`Op::Execute`] if
    /// `stop` became true.
    pub fn build(&self, cache: &Path, stop: &AtomicBool) -> Result<Program, Error> {
        let dir = cache.join(format!("{}-{:016x}", self.lang, self.fingerprint()));
        if !dir.is_dir() {
            self.build_atomically(cache, &dir, stop)?;
        }
        Ok(self.program(&dir))
    }

    fn fingerprint(&self) -> u64 {
        let recipe = Recipe::of(self.lang);
        let mut hasher = DefaultHasher::new();
        (recipe.files, recipe.build, &self.version).hash(&mut hasher);
        hasher.finish()
    }

    /// Builds in a private directory, then renames it to `dir`: an incomplete build never has that
    /// name.
    fn build_atomically(&self, cache: &Path, dir: &Path, stop: &AtomicBool) -> Result<(), Error> {
        static BUILDS: AtomicU64 = AtomicU64::new(0);
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let private_dir = cache.join(format!(".{}-{}-{number}", self.lang, process::id()));
        let built = self
            .write(&private_dir)
            .and_then(|()| self.compile(&private_dir, stop))
            .and_then(|()| publish(&private_dir, dir));
        if built.is_err() {
            // Ignore the error: the build's own error is reported, and the remains are never used.
            let _ = remove_tree_if_present(&private_dir);
        }
        built
    }

    fn write(&self, dir: &Path) -> Result<(), Error> {
        let failed = |error| Error::new(Op::Start, dir.display().to_string(), error);
        // An earlier process with the same PID may have left a directory.
        remove_tree_if_present(dir).map_err(|error| Error::new(Op::Start, error.thing(), error.cause()))?;
        fs::create_dir_all(dir).map_err(failed)?;
        let mut files = Recipe::of(self.lang).files.iter();
        files.try_for_each(|(name, text)| fs::write(dir.join(name), text)).map_err(failed)
    }

    fn compile(&self, dir: &Path, stop: &AtomicBool) -> Result<(), Error> {
        let recipe = Recipe::of(self.lang);
        let Some((program, words)) = recipe.build.split_first() else { return Ok(()) };
        let failed = |cause: String| Error::new(Op::Start, self.lang.name(), cause);
        let program =
            find_executable(program, &self.search).ok_or_else(|| failed(format!("{program} is missing")))?;
        let mut command = Command::new(program);
        command
            .args(words)
            .envs(recipe.environment.iter().copied())
            .env("PATH", &self.search)
            .current_dir(dir);
        let Some(output) = child::run(&mut command, stop).map_err(|error| failed(error.to_string()))? else {
            return Err(stopped_error(self.lang));
        };
        if !output.status.success() {
            return Err(failed(compiler_output(&output)));
        }
        let remove = |name| remove_tree_if_present(&dir.join(name));
        recipe.leftovers.iter().try_for_each(remove).map_err(|error| failed(error.to_string()))
    }

    fn program(&self, dir: &Path) -> Program {
        let in_dir = |word: &&str| match word.strip_prefix("{dir}") {
            Some(rest) => [dir.as_os_str(), OsStr::new(rest)].into_iter().collect(),
            None => OsString::from(word),
        };
        let mut command: Vec<OsString> = Recipe::of(self.lang).run.iter().map(in_dir).collect();
        if let Some(program) = command[0].to_str().and_then(|name| find_executable(name, &self.search)) {
            command[0] = program.into();
        }
        Program::new(self.lang, command, &self.search)
    }
}

/// Runs the command of a requirement and returns its output, which identifies the toolchain
/// version.
fn query_version(lang: Lang, need: &Requirement, search: &OsStr, stop: &AtomicBool) -> Result<String, Error> {
    let missing =
        || Error::new(Op::Start, lang.name(), format!("{} is missing: {}", need.thing, need.install));
    let program = find_executable(need.command[0], search).ok_or_else(missing)?;
    let mut command = Command::new(program);
    command.args(&need.command[1..]).env("PATH", search);
    let output = child::run(&mut command, stop).map_err(|error| Error::new(Op::Start, lang.name(), error))?;
    let output = output.ok_or_else(|| stopped_error(lang))?;
    if !output.status.success() {
        return Err(missing());
    }
    // Java prints its version to standard error.
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

pub(super) fn stopped_error(lang: Lang) -> Error {
    Error::new(Op::Execute, lang.name(), "stopped")
}

/// Returns the first executable file called `name` in the directories of `search`.
fn find_executable(name: &str, search: &OsStr) -> Option<PathBuf> {
    let executable =
        |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    // A relative directory would resolve differently during the build, which runs in another
    // directory.
    split_paths(search).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(executable)
}

fn compiler_output(output: &child::ChildOutput) -> String {
    let words = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let text = super::program::printable(&String::from_utf8_lossy(words));
    let text: String = text.trim().chars().take(OUTPUT_CHARS_MAX).collect();
    if text.is_empty() {
        format!("the compiler exited with {} and printed nothing", output.status)
    } else {
        text
    }
}

/// Renames a finished build to its final name, unless another process has finished the same build.
fn publish(private_dir: &Path, dir: &Path) -> Result<(), Error> {
    match fs::rename(private_dir, dir) {
        Err(_) if dir.is_dir() => {
            // The other build is equivalent, so this one is removed; a failure to remove it is
            // harmless.
            let _ = remove_tree(private_dir);
            Ok(())
        }
        renamed => renamed.map_err(|error| Error::new(Op::Start, dir.display().to_string(), error)),
    }
}
