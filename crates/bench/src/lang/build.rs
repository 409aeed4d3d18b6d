//! Toolchains, and programs built with them: each once, in a directory that is named after sources and toolchain.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::recipe::{Need, Recipe};
use super::{Lang, Program, child};
use crate::error::{Error, Op};

/// What is shown of a compiler's words.
const WORDS_MAX: usize = 4000;

/// What a language's program can be built and run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    lang: Lang,
    search: OsString,
    version: String,
}

impl Toolchain {
    /// Looks for the toolchain of `lang` in the directories of `search`, which is as PATH is, and asks its version.
    ///
    /// # Errors
    /// With [`Op::Start`] if it is not there, and how to get it; with [`Op::Execute`] if `stop` became true.
    pub fn find(lang: Lang, search: &OsStr, stop: &AtomicBool) -> Result<Self, Error> {
        let mut version = String::new();
        for need in Recipe::of(lang).needs {
            version += &answer(lang, need, search, stop)?;
        }
        Ok(Self { lang, search: search.to_owned(), version })
    }

    /// Builds the program below `cache`, which is made, unless it was built before.
    ///
    /// # Errors
    /// With [`Op::Start`] and the compiler's words if it does not build; with [`Op::Execute`] if `stop` became true.
    pub fn build(&self, cache: &Path, stop: &AtomicBool) -> Result<Program, Error> {
        let dir = cache.join(format!("{}-{:016x}", self.lang, self.fingerprint()));
        if !dir.is_dir() {
            self.build_aside(cache, &dir, stop)?;
        }
        Ok(self.program(&dir))
    }

    fn fingerprint(&self) -> u64 {
        let recipe = Recipe::of(self.lang);
        let mut hasher = DefaultHasher::new();
        (recipe.files, recipe.build, &self.version).hash(&mut hasher);
        hasher.finish()
    }

    /// Builds in a directory of its own and then names it `dir`, so that no half of a build is ever used.
    fn build_aside(&self, cache: &Path, dir: &Path, stop: &AtomicBool) -> Result<(), Error> {
        static BUILDS: AtomicU64 = AtomicU64::new(0);
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let aside = cache.join(format!(".{}-{}-{number}", self.lang, process::id()));
        let built =
            self.write(&aside).and_then(|()| self.compile(&aside, stop)).and_then(|()| name(&aside, dir));
        if built.is_err() {
            // The build's error is the one to be told; what is left is never used.
            let _ = fs::remove_dir_all(&aside);
        }
        built
    }

    fn write(&self, dir: &Path) -> Result<(), Error> {
        let failed = |error| Error::new(Op::Start, dir.display().to_string(), error);
        // Left by an earlier process with the same number.
        ignore_missing(fs::remove_dir_all(dir)).and_then(|()| fs::create_dir_all(dir)).map_err(failed)?;
        let mut files = Recipe::of(self.lang).files.iter();
        files.try_for_each(|(name, text)| fs::write(dir.join(name), text)).map_err(failed)
    }

    fn compile(&self, dir: &Path, stop: &AtomicBool) -> Result<(), Error> {
        let recipe = Recipe::of(self.lang);
        let Some((program, words)) = recipe.build.split_first() else { return Ok(()) };
        let failed = |cause: String| Error::new(Op::Start, self.lang.name(), cause);
        let program = found(program, &self.search).ok_or_else(|| failed(format!("{program} is missing")))?;
        let mut command = Command::new(program);
        command
            .args(words)
            .envs(recipe.environment.iter().copied())
            .env("PATH", &self.search)
            .current_dir(dir);
        let Some(ended) = child::run(&mut command, stop).map_err(|error| failed(error.to_string()))? else {
            return Err(stopped(self.lang));
        };
        if !ended.status.success() {
            return Err(failed(compiler_words(&ended)));
        }
        let scrap = |name| ignore_missing(fs::remove_dir_all(dir.join(name)));
        recipe.scrap.iter().try_for_each(scrap).map_err(|error| failed(error.to_string()))
    }

    fn program(&self, dir: &Path) -> Program {
        let in_dir = |word: &&str| match word.strip_prefix("{dir}") {
            Some(rest) => [dir.as_os_str(), OsStr::new(rest)].into_iter().collect(),
            None => OsString::from(word),
        };
        let mut command: Vec<OsString> = Recipe::of(self.lang).run.iter().map(in_dir).collect();
        if let Some(program) = command[0].to_str().and_then(|name| found(name, &self.search)) {
            command[0] = program.into();
        }
        Program::new(self.lang, command, &self.search)
    }
}

/// What a need's command says, which tells one version of a toolchain from another.
fn answer(lang: Lang, need: &Need, search: &OsStr, stop: &AtomicBool) -> Result<String, Error> {
    let missing =
        || Error::new(Op::Start, lang.name(), format!("{} is missing: {}", need.thing, need.install));
    let program = found(need.command[0], search).ok_or_else(missing)?;
    let mut command = Command::new(program);
    command.args(&need.command[1..]).env("PATH", search);
    let ended = child::run(&mut command, stop).map_err(|error| Error::new(Op::Start, lang.name(), error))?;
    let ended = ended.ok_or_else(|| stopped(lang))?;
    if !ended.status.success() {
        return Err(missing());
    }
    // Java tells its version as an error.
    Ok(String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned())
}

pub(super) fn stopped(lang: Lang) -> Error {
    Error::new(Op::Execute, lang.name(), "stopped")
}

/// The first executable file of that name.
fn found(name: &str, search: &OsStr) -> Option<PathBuf> {
    let executable =
        |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    // A relative one would mean another directory while building.
    split_paths(search).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(executable)
}

fn compiler_words(ended: &child::Ended) -> String {
    let words = if ended.stderr.is_empty() { &ended.stdout } else { &ended.stderr };
    let text = super::program::printable(&String::from_utf8_lossy(words));
    let text: String = text.trim().chars().take(WORDS_MAX).collect();
    if text.is_empty() { format!("the compiler ended with {}, without a word", ended.status) } else { text }
}

/// Names a finished build, unless another process was faster.
fn name(aside: &Path, dir: &Path) -> Result<(), Error> {
    match fs::rename(aside, dir) {
        Err(_) if dir.is_dir() => {
            // Its copy is as good; this one is of no use, and no harm if it cannot be removed.
            let _ = fs::remove_dir_all(aside);
            Ok(())
        }
        renamed => renamed.map_err(|error| Error::new(Op::Start, dir.display().to_string(), error)),
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
