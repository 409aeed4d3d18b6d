//! From a command line, the environment and a file to what a run of `fathom serve` needs, or to what it has to say instead. Prints
//! nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fathom_serve::{Config, Error};
use fathom_text::quote::{Charset, quote};

use super::env;
use super::merge::merge;
use super::table::{FLAGS, Key};
use super::value::Given;
use crate::getopt::{Getopt, Order};

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Check(Box<Config>),
    IoReport { config: Box<Config>, json: bool },
    Serve(Box<Config>),
}

/// Why it comes to nothing.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A message about the command line or the environment, without the program's name.
    Misuse(Vec<u8>),
    /// The file.
    File(Error),
}

/// Reads the command line `words`, without the program's and the command's name, the variables that `get` has, and the file that
/// either names.
pub(crate) fn parse(
    words: impl Iterator<Item = OsString>,
    get: &dyn Fn(&str) -> Option<Vec<u8>>,
    charset: Charset,
) -> Result<Asked, Refused> {
    let mut getopt = Getopt::new(FLAGS.iter(), words, Order::Permute);
    let (mut options, mut check, mut report, mut json) = (Vec::new(), false, false, false);
    for step in getopt.by_ref() {
        let option = step.map_err(|misuse| Refused::Misuse(misuse.message()))?;
        match option.flag.key {
            Key::Help => return Ok(Asked::Help),
            Key::Version => return Ok(Asked::Version),
            Key::Check => check = true,
            Key::IoReport => report = true,
            Key::Json => json = true,
            key => options.push(Given { key, name: option.spelling, value: option.value, charset }),
        }
    }
    options.extend(operand(getopt.into_operands(), charset).map_err(Refused::Misuse)?);
    let config = Box::new(config(env::read(get, charset), options)?);
    Ok(match (check, report) {
        (true, _) => Asked::Check(config),
        (false, true) => Asked::IoReport { config, json },
        (false, false) => Asked::Serve(config),
    })
}

/// The directory, if it is given.
fn operand(operands: Vec<OsString>, charset: Charset) -> Result<Option<Given>, Vec<u8>> {
    let mut operands = operands.into_iter().map(OsString::into_vec);
    let root = operands.next();
    match operands.next() {
        Some(extra) => Err([b"extra operand ", &quote(&extra, charset)[..]].concat()),
        None => {
            Ok(root.map(|root| Given { key: Key::Root, name: "DIR".to_owned(), value: Some(root), charset }))
        }
    }
}

fn config(variables: Vec<Given>, options: Vec<Given>) -> Result<Config, Refused> {
    let named = |source: &[Given]| source.iter().rfind(|given| given.key == Key::Config).cloned();
    let file = match named(&options).or_else(|| named(&variables)) {
        Some(given) => Config::read(&given.path().map_err(Refused::Misuse)?).map_err(Refused::File)?,
        None => Config::default(),
    };
    merge(file, &[variables, options]).map_err(Refused::Misuse)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn asked(line: &[&str], variables: &[(&str, &str)]) -> Result<Asked, Refused> {
        let get =
            |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.as_bytes().to_vec());
        parse(line.iter().map(OsString::from), &get, Charset::Ascii)
    }

    #[track_caller]
    fn served(line: &[&str], variables: &[(&str, &str)]) -> Config {
        match asked(line, variables).unwrap() {
            Asked::Serve(config) => *config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_said_is_here_and_8080() {
        let config = served(&[], &[]);
        assert_eq!(
            (config.listen, config.site.root.as_path()),
            (vec!["127.0.0.1:8080".to_owned()], Path::new("."))
        );
    }

    #[test]
    fn what_is_asked_for_is_found_out() {
        assert!(matches!(asked(&["--help", "--port=x"], &[]), Ok(Asked::Help)));
        assert!(matches!(asked(&["-h"], &[]), Ok(Asked::Help)));
        assert_eq!(served(&["-l", "8000"], &[]).listen, ["127.0.0.1:8000"]);
        assert!(matches!(asked(&["--version"], &[]), Ok(Asked::Version)));
        assert!(matches!(asked(&["-t", "--io-report"], &[]), Ok(Asked::Check(_))));
        assert!(matches!(asked(&["--io-report", "--json"], &[]), Ok(Asked::IoReport { json: true, .. })));
        assert!(
            matches!(asked(&["--io-report", "d"], &[]), Ok(Asked::IoReport { config, json: false }) if config.site.root == Path::new("d"))
        );
    }

    #[test]
    fn options_go_before_variables_and_those_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.toml");
        std::fs::write(
            &file,
            "workers = 1\nlisten = ['unix:/f']\nmetrics = '/m'\n[site]\nroot = '/f'\nlisting = true\n",
        )
        .unwrap();
        let file = file.to_str().unwrap();
        let variables =
            [("FATHOM_SERVE_CONFIG", file), ("FATHOM_SERVE_WORKERS", "2"), ("FATHOM_SERVE_ROOT", "/e")];
        let config = served(&["--workers", "3", "--listing=no"], &variables);
        assert_eq!(config.workers.map(|workers| workers.get()), Some(3));
        assert_eq!((config.site.root.as_path(), config.site.listing), (Path::new("/e"), false));
        assert_eq!((config.metrics.as_deref(), &config.listen[0][..]), (Some("/m"), "unix:/f"));
        let other = served(&["-c", file, "/o"], &[("FATHOM_SERVE_CONFIG", "/nonexistent")]);
        assert_eq!(
            (other.site.root.as_path(), other.workers.map(|workers| workers.get())),
            (Path::new("/o"), Some(1))
        );
    }

    #[test]
    fn mistakes_are_told_where_they_are() {
        for (line, variables, expected) in [
            (&["--port=x"][..], &[][..], "invalid argument 'x' for '--port': a port is a number up to 65535"),
            (
                &[],
                &[("FATHOM_SERVE_DRAIN", "x")],
                "invalid argument 'x' for 'FATHOM_SERVE_DRAIN': a time is like 500ms, 10s, 1.5h, 1h30m, 2d or 1w",
            ),
            (&["a", "b"], &[], "extra operand 'b'"),
            (&[""], &[], "invalid argument '' for 'DIR': a path is not empty"),
            (&["--nonsense"], &[], "unrecognized option '--nonsense'"),
        ] {
            match asked(line, variables) {
                Err(Refused::Misuse(message)) => assert_eq!(String::from_utf8(message).unwrap(), expected),
                other => panic!("{line:?}: {other:?}"),
            }
        }
        let refused = asked(&["-c", "/nonexistent/a.toml"], &[]);
        assert!(matches!(refused, Err(Refused::File(error)) if error.thing() == "/nonexistent/a.toml"));
    }
}
