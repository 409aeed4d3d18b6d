//! A configuration file: reads it, and reports all of its errors in the order of lines.
//!
//! Owns: the position of each error, and the directory of relative paths. Does not own: whether a
//! value is valid (`check`, `rules`), and the words about unknown keys and wrong types (`message`).

use std::path::{Path, PathBuf};

use super::Config;
use super::document::{Document, Span};
use super::message::explain;
use crate::error::{Error, Op};

/// The number of errors after which a file is not examined further.
const ERRORS_MAX: usize = 100;

impl Config {
    /// Parses `text`. Missing keys have their default values, and relative paths stay as they are.
    ///
    /// # Errors
    /// If the text is not TOML, has an unknown key, or a value of another type. The cause begins
    /// with line and column, from 1.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let refused = |error: &toml::de::Error| {
            let span = error.span().unwrap_or_default();
            Error::new(Op::ReadConfig, "configuration", Problem::parsing(error, span).text(text))
        };
        let document = Document::parse(text)
            .map_err(|errors| errors.first().map_or_else(|| unreadable("configuration"), refused))?;
        document.config().map_err(|error| refused(&error))
    }

    /// Makes all relative paths relative to `directory`.
    fn resolve(&mut self, directory: &Path) {
        let tls = self.tls.iter_mut().flat_map(|tls| {
            let more = tls.more.iter_mut().flat_map(|files| [&mut files.certificate, &mut files.key]);
            [&mut tls.certificate, &mut tls.key, &mut tls.client_ca].into_iter().flatten().chain(more)
        });
        let logs = [&mut self.access_log.file, &mut self.error_log.file].into_iter().flatten();
        let sites = std::iter::once(&mut self.site).chain(&mut self.host);
        let of_sites = sites.flat_map(|site| {
            let own = site.auth.iter_mut().filter_map(|auth| auth.file.as_mut());
            let own = own.chain(&mut site.maintenance.flag_file).chain([&mut site.root]);
            own.chain(site.mounts.iter_mut().flat_map(|mount| {
                let auth = mount.auth.iter_mut().flatten().filter_map(|auth| auth.file.as_mut());
                let maintenance = mount.maintenance.iter_mut().filter_map(|page| page.flag_file.as_mut());
                auth.chain(maintenance).chain([&mut mount.root])
            }))
        });
        // An empty root is none, and `join` leaves absolute paths alone.
        let paths = tls.chain(logs).chain(of_sites).filter(|path| !path.as_os_str().is_empty());
        paths.for_each(|path| *path = directory.join(&*path));
        for address in &mut self.listen {
            if let Some(path) = address.strip_prefix("unix:").filter(|path| !path.starts_with(['@', '/'])) {
                *address = format!("unix:{}", directory.join(path).display());
            }
        }
    }
}

fn unreadable(name: &str) -> Error {
    Error::new(Op::ReadConfig, name, "not a TOML file")
}

/// The reason why a file gives no configuration.
#[derive(Debug)]
pub enum FileRefusal<E> {
    /// The errors in the file, in the order of lines.
    File(Vec<Error>),
    /// The error of the function that completes the configuration.
    Other(E),
}

/// A configuration file.
///
/// ```
/// use fathom_serve::config::{ConfigFile, FileRefusal};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("site.toml");
/// std::fs::write(&path, "health = true\n[site]\nroot = 'www'\nspa = true\n")?;
/// let refused = ConfigFile::read(&path)?.config(Ok::<_, ()>, |_| false);
/// let Err(FileRefusal::File(errors)) = refused else { panic!("{refused:?}") };
/// assert_eq!(errors.len(), 2);
/// assert!(errors[0].cause().contains("line 1, column 10: in health: expected a path"));
/// assert!(errors[1].cause().contains("unknown key 'spa': the key is 'fallback'"));
///
/// std::fs::write(&path, "[site]\nroot = 'www'")?;
/// let config = ConfigFile::read(&path)?.config(Ok::<_, ()>, |_| false).expect("a valid file");
/// assert_eq!(config.site.root, directory.path().join("www"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new(Op::ReadConfig, path.display().to_string(), error))?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// Returns the configuration, completed by `complete` with the values of other sources, and
    /// checked. Relative paths are relative to the directory of the file. `is_set_elsewhere` says
    /// whether another source has a value for a key, whose error is then not an error of the file.
    ///
    /// An entry with an error is removed before the next error is looked for. Errors that may
    /// follow from the removal are left out.
    ///
    /// # Errors
    /// The errors of the file; the error of `complete` if there are none before.
    pub fn config<E>(
        &self,
        complete: impl Fn(Config) -> Result<Config, E>,
        is_set_elsewhere: impl Fn(&str) -> bool,
    ) -> Result<Config, FileRefusal<E>> {
        let parsing = |error: &toml::de::Error| Problem::parsing(error, error.span().unwrap_or_default());
        let mut document = Document::parse(&self.text)
            .map_err(|errors| self.refusal(errors.iter().map(parsing).collect(), None))?;
        let (mut problems, mut shortened): (Vec<Problem>, Vec<Span>) = (Vec::new(), Vec::new());
        while problems.len() < ERRORS_MAX {
            let problem = match document.config() {
                Err(error) => parsing(&error),
                Ok(mut config) => {
                    config.resolve(self.path.parent().unwrap_or(Path::new("")));
                    let checked = match complete(config) {
                        Ok(config) => config.check().map(|()| config),
                        Err(error) if problems.is_empty() => return Err(FileRefusal::Other(error)),
                        Err(_) => break,
                    };
                    match checked {
                        Ok(config) if problems.is_empty() => return Ok(config),
                        Ok(_) => break,
                        // A value that is still missing after the removal of its table.
                        Err(error) if problems.iter().any(|known| known.key == error.thing()) => break,
                        Err(error) => match Problem::of_check(&error, &document, &is_set_elsewhere) {
                            Some(problem) => problem,
                            None => return Err(self.refusal(problems, Some(error))),
                        },
                    }
                }
            };
            let (entry, follows) = (problem.entry.clone(), problem.follows_from(&shortened));
            if !follows {
                problems.push(problem);
            }
            match document.remove(&entry) {
                Some(parents) => shortened.extend(parents),
                None => break,
            }
        }
        Err(self.refusal(problems, None))
    }

    /// Returns the errors in the order of lines. `elsewhere` is an error without a line.
    fn refusal<E>(&self, mut problems: Vec<Problem>, elsewhere: Option<Error>) -> FileRefusal<E> {
        problems.sort_by_key(|problem| problem.offset);
        let name = self.path.display().to_string();
        let error = |problem: &Problem| Error::new(Op::Configure, name.clone(), problem.text(&self.text));
        FileRefusal::File(problems.iter().map(error).chain(elsewhere).collect())
    }
}

/// An error in a file.
struct Problem {
    /// The byte offset of its position.
    offset: usize,
    /// The position of the entry that is wrong.
    entry: Span,
    /// The tables and lists that may lack an entry; empty if the entry itself is wrong.
    lacking: Vec<Span>,
    /// The key, or the table of an unknown or missing key; empty for none.
    key: String,
    message: String,
}

impl Problem {
    fn parsing(error: &toml::de::Error, span: Span) -> Self {
        let key = key(error).unwrap_or_default();
        let message = explain(error.message(), &key);
        let lacking = message.starts_with("missing field").then(|| span.clone()).into_iter().collect();
        Self { offset: span.start, entry: span, lacking, key, message }
    }

    /// Returns the position of an error of [`Config::check`]; `None` if the file does not cause it.
    fn of_check(
        error: &Error,
        document: &Document<'_>,
        is_set_elsewhere: &impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let key = Some(error.thing()).filter(|key| error.op() == Op::Configure && !is_set_elsewhere(key))?;
        let (entry, is_exact) =
            document.find(key).filter(|(_, is_exact)| *is_exact || error.is_incomplete())?;
        let mut lacking = vec![entry.value.clone()];
        lacking.extend(is_exact.then_some(entry.parent));
        lacking.retain(|_| error.is_incomplete());
        Some(Self {
            offset: entry.key.start,
            entry: entry.value,
            lacking,
            key: key.to_owned(),
            message: error.cause(),
        })
    }

    /// Returns whether the error may follow from the removal of an entry from one of the tables
    /// `shortened`.
    fn follows_from(&self, shortened: &[Span]) -> bool {
        self.lacking.iter().any(|table| shortened.contains(table))
    }

    fn text(&self, text: &str) -> String {
        let (line, column) = line_and_column(text, self.offset);
        match self.key.is_empty() {
            true => format!("line {line}, column {column}: {}", self.message),
            false => format!("line {line}, column {column}: in {}: {}", self.key, self.message),
        }
    }
}

/// Returns the line and the column of the byte at `offset`, both from 1; columns count characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line, column)
}

/// Returns the table or key in which the error is. Only the `Display` text of an error without its
/// input names it.
fn key(error: &toml::de::Error) -> Option<String> {
    let mut error = error.clone();
    error.set_input(None);
    let text = error.to_string();
    let key = text.lines().last()?.strip_prefix("in `")?.strip_suffix('`')?;
    Some(key.to_owned())
}

#[cfg(test)]
mod tests;
