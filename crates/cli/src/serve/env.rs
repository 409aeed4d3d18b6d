//! Options in the environment: the variable of `--max-body` is FATHOM_SERVE_MAX_BODY.

use std::ffi::OsString;

use fathom_text::quote::Charset;

use super::table::{FLAGS, ServeOption};
use super::value::OptionArg;
use crate::shared::flag::Flag;

/// The prefix of all variables.
const PREFIX: &str = "FATHOM_SERVE_";
/// Options that select an action and have no variable.
const ACTIONS: [ServeOption; 4] =
    [ServeOption::Check, ServeOption::HelpConfig, ServeOption::IoReport, ServeOption::Json];
/// Repeatable options, whose variable has one value per line.
const REPEATED: [ServeOption; 10] = [
    ServeOption::Certificate,
    ServeOption::CertificateSecret,
    ServeOption::Mount,
    ServeOption::ErrorPage,
    ServeOption::CacheControl,
    ServeOption::Header,
    ServeOption::Auth,
    ServeOption::AuthPath,
    ServeOption::Hide,
    ServeOption::Deny,
];

/// Returns the variable of an option, if it has one.
pub(crate) fn variable(flag: &Flag<ServeOption>) -> Option<String> {
    let long = flag.long.filter(|_| flag.own_key().is_some_and(|key| !ACTIONS.contains(&key)))?;
    Some(format!("{PREFIX}{}", long.to_ascii_uppercase().replace('-', "_")))
}

/// Returns the options that `get` finds. An empty variable counts as unset.
pub(crate) fn read(get: &dyn Fn(&str) -> Option<Vec<u8>>, charset: Charset) -> Vec<OptionArg> {
    let mut all = Vec::new();
    for flag in FLAGS {
        let Some((key, name)) = flag.own_key().zip(variable(flag)) else { continue };
        let Some(value) = get(&name).filter(|value| !value.is_empty()) else { continue };
        let given =
            |value: &[u8]| OptionArg { key, name: name.clone(), value: Some(value.to_vec()), charset };
        match REPEATED.contains(&key) {
            true => all.extend(value.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(given)),
            false => all.push(given(&value)),
        }
    }
    all
}

/// Returns the names that look like variables of options and belong to no option. Kubernetes sets
/// some for a service with the name `fathom-serve`, which are left out.
pub(crate) fn unknown(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let known: Vec<_> = FLAGS.iter().filter_map(variable).collect();
    let is_of_kubernetes =
        |rest: &str| ["SERVICE_HOST", "SERVICE_PORT", "PORT"].iter().any(|start| rest.starts_with(start));
    let names = names.filter_map(|name| name.into_string().ok());
    let mut unknown: Vec<_> = names
        .filter(|name| name.strip_prefix(PREFIX).is_some_and(|rest| !is_of_kubernetes(rest)))
        .filter(|name| !known.contains(name))
        .collect();
    unknown.sort_unstable();
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_no_option_are_found() {
        let names = [
            "FATHOM_SERVE_MAX_BODY",
            "FATHOM_SERVE_MAX_BODIES",
            "FATHOM_SERVE_CHECK",
            "FATHOM_SERVE_SERVICE_PORT_HTTP",
            "FATHOM_SERVE_PORT_80_TCP_ADDR",
            "FATHOM_SERVERS",
        ];
        let found = unknown(names.into_iter().map(OsString::from));
        assert_eq!(found, ["FATHOM_SERVE_CHECK", "FATHOM_SERVE_MAX_BODIES"]);
    }

    #[test]
    fn variables_are_named_like_options() {
        let get = |name: &str| match name {
            "FATHOM_SERVE_MAX_BODY" => Some(b"1K".to_vec()),
            "FATHOM_SERVE_HEADER" => Some(b"*=A:1\n\n*=B:2\n".to_vec()),
            "FATHOM_SERVE_ROOT" => Some(Vec::new()),
            "FATHOM_SERVE_HELP" => Some(b"yes".to_vec()),
            _ => None,
        };
        let found: Vec<_> = read(&get, Charset::Ascii)
            .into_iter()
            .map(|given| (given.key, given.name, given.value.unwrap()))
            .collect();
        let header = || "FATHOM_SERVE_HEADER".to_owned();
        let expected = [
            (ServeOption::Header, header(), b"*=A:1".to_vec()),
            (ServeOption::Header, header(), b"*=B:2".to_vec()),
            (ServeOption::MaxBody, "FATHOM_SERVE_MAX_BODY".to_owned(), b"1K".to_vec()),
        ];
        assert_eq!(found, expected);
    }
}
