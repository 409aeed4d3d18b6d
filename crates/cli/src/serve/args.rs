//! The configuration of `fathom serve`: parses the command line, the environment and the
//! configuration file. Prints nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fathom_serve::config::keys::KEYS;
use fathom_serve::config::{ConfigFile, FileRefusal, SiteConfig};
use fathom_serve::{Config, Error};
use fathom_text::quote::Charset;

use super::env;
use super::merge::merge;
use super::table::{FLAGS, SERVE, ServeOption};
use super::value::OptionArg;
use crate::shared::cmdline::{self, ArgsEnd, no_more};

/// The action that a command line requests.
#[derive(Debug)]
pub(crate) enum ServeAction {
    Check(Box<Config>),
    /// Print the table of keys of the configuration file.
    HelpConfig,
    IoReport {
        config: Box<Config>,
        json: bool,
    },
    Serve(Box<Config>),
}

/// The reason why there is no configuration.
#[derive(Debug)]
pub(crate) enum ServeArgsError {
    /// The command line requests a text, or the command line or the environment is invalid.
    Args(ArgsEnd),
    /// The errors in the configuration file, in the order of lines.
    File(Vec<Error>),
}

impl From<ArgsEnd> for ServeArgsError {
    fn from(end: ArgsEnd) -> Self {
        ServeArgsError::Args(end)
    }
}

impl From<Vec<u8>> for ServeArgsError {
    fn from(message: Vec<u8>) -> Self {
        ServeArgsError::Args(message.into())
    }
}

/// Parses the command line `words`, without the names of program and command, the environment
/// variables that `get` returns, and the configuration file that either of them names.
pub(crate) fn parse(
    words: impl Iterator<Item = OsString>,
    get: &dyn Fn(&str) -> Option<Vec<u8>>,
    charset: Charset,
) -> Result<ServeAction, ServeArgsError> {
    let (mut options, mut check, mut report, mut json) = (Vec::new(), false, false, false);
    let mut help_config = false;
    let operands = cmdline::parse(&SERVE, words, charset, |key, option| {
        match key {
            ServeOption::Check => check = true,
            ServeOption::HelpConfig => help_config = true,
            ServeOption::IoReport => report = true,
            ServeOption::Json => json = true,
            key => options.push(OptionArg { key, name: option.spelling, value: option.given, charset }),
        }
        Ok(())
    })?;
    if help_config {
        return Ok(ServeAction::HelpConfig);
    }
    options.extend(operand(operands, charset)?);
    let config = Box::new(config(env::read(get, charset), options)?);
    Ok(match (check, report) {
        (true, _) => ServeAction::Check(config),
        (false, true) => ServeAction::IoReport { config, json },
        (false, false) => ServeAction::Serve(config),
    })
}

/// Returns the directory operand, if it is given.
fn operand(operands: Vec<OsString>, charset: Charset) -> Result<Option<OptionArg>, Vec<u8>> {
    let mut operands = operands.into_iter();
    let root = operands.next().map(OsString::into_vec);
    no_more(operands, charset)?;
    Ok(root.map(|root| OptionArg {
        key: ServeOption::Root,
        name: "DIR".to_owned(),
        value: Some(root),
        charset,
    }))
}

fn config(variables: Vec<OptionArg>, options: Vec<OptionArg>) -> Result<Config, ServeArgsError> {
    let named = |source: &[OptionArg]| source.iter().rfind(|given| given.key == ServeOption::Config).cloned();
    let path = named(&options).or_else(|| named(&variables)).map(|given| given.path()).transpose()?;
    let sources = [variables, options];
    let Some(path) = path else {
        // With a file, there is no default: the working directory of a service is `/`.
        let site = SiteConfig { root: ".".into(), ..SiteConfig::default() };
        return Ok(merge(Config { site, ..Config::default() }, &sources)?);
    };
    let file = ConfigFile::read(&path).map_err(|error| ServeArgsError::File(vec![error]))?;
    let set: Vec<_> = sources.iter().flatten().flat_map(keys_of).collect();
    let is_set = |key: &str| set.iter().any(|own| is_at_or_below(key, own));
    file.config(|config| merge(config, &sources), is_set).map_err(|refusal| match refusal {
        FileRefusal::File(errors) => ServeArgsError::File(errors),
        FileRefusal::Other(message) => message.into(),
    })
}

/// Returns the keys of the configuration file that mean the same as an option.
fn keys_of(given: &OptionArg) -> impl Iterator<Item = &'static str> + use<> {
    let name = FLAGS.iter().find(|flag| flag.own_key() == Some(given.key)).and_then(|flag| flag.long);
    let is_own = move |options: &[&str]| name.is_some_and(|name| options.contains(&name));
    KEYS.iter().filter(move |row| is_own(row.options)).map(|row| row.key)
}

/// Returns whether `key` is `own`, or below it.
fn is_at_or_below(key: &str, own: &str) -> bool {
    key.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::shared::cmdline::Information;

    fn parse_line(line: &[&str], variables: &[(&str, &str)]) -> Result<ServeAction, ServeArgsError> {
        let get =
            |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.as_bytes().to_vec());
        parse(line.iter().map(OsString::from), &get, Charset::Ascii)
    }

    #[track_caller]
    fn served(line: &[&str], variables: &[(&str, &str)]) -> Config {
        match parse_line(line, variables).unwrap() {
            ServeAction::Serve(config) => *config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_the_current_directory_on_port_8080() {
        let config = served(&[], &[]);
        assert_eq!(
            (config.listen, config.site.root.as_path()),
            (vec!["127.0.0.1:8080".to_owned()], Path::new("."))
        );
    }

    #[test]
    fn options_select_the_action() {
        let text = |line: &[&str]| match parse_line(line, &[]) {
            Err(ServeArgsError::Args(ArgsEnd::Information(text))) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!([text(&["--help", "--port=x"]), text(&["-h"])], [Information::Help; 2]);
        assert_eq!(text(&["--version"]), Information::Version);
        assert_eq!(served(&["-l", "8000"], &[]).listen, ["127.0.0.1:8000"]);
        assert!(matches!(parse_line(&["-t", "--io-report"], &[]), Ok(ServeAction::Check(_))));
        assert!(matches!(
            parse_line(&["--io-report", "--json"], &[]),
            Ok(ServeAction::IoReport { json: true, .. })
        ));
        assert!(
            matches!(parse_line(&["--io-report", "d"], &[]), Ok(ServeAction::IoReport { config, json: false }) if config.site.root == Path::new("d"))
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
    fn errors_name_their_place() {
        for (line, variables, expected) in [
            (
                &["--port=x"][..],
                &[][..],
                "invalid argument 'x' for '--port': expected a port, a number up to 65535",
            ),
            (
                &[],
                &[("FATHOM_SERVE_DRAIN", "x")],
                "invalid argument 'x' for 'FATHOM_SERVE_DRAIN': expected a time like 500ms, 10s, 1.5h, 1h30m, 2d, 1w or 1y",
            ),
            (&["a", "b"], &[], "extra operand 'b'"),
            (&[""], &[], "invalid argument '' for 'DIR': the path is empty"),
            (&["--nonsense"], &[], "unrecognized option '--nonsense'"),
        ] {
            match parse_line(line, variables) {
                Err(ServeArgsError::Args(ArgsEnd::Misuse(message))) => {
                    assert_eq!(String::from_utf8(message).unwrap(), expected)
                }
                other => panic!("{line:?}: {other:?}"),
            }
        }
        let refused = parse_line(&["-c", "/nonexistent/a.toml"], &[]);
        assert!(
            matches!(refused, Err(ServeArgsError::File(errors)) if errors[0].thing() == "/nonexistent/a.toml")
        );
    }
}
