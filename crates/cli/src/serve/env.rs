//! The options that the environment has: `--max-body` is FATHOM_SERVE_MAX_BODY.

use fathom_text::quote::Charset;

use super::table::{FLAGS, Key};
use super::value::Given;
use crate::flag::Flag;

/// What each variable begins with.
const PREFIX: &str = "FATHOM_SERVE_";
/// Options that ask what to do, not how.
const DEEDS: [Key; 5] = [Key::Check, Key::IoReport, Key::Json, Key::Help, Key::Version];
/// Options of which a variable has one a line.
const REPEATED: [Key; 10] = [
    Key::Certificate,
    Key::CertificateSecret,
    Key::Mount,
    Key::ErrorPage,
    Key::CacheControl,
    Key::Header,
    Key::Auth,
    Key::AuthPath,
    Key::Hide,
    Key::Deny,
];

/// The variable that stands for an option, if one does.
pub(crate) fn variable(flag: &Flag<Key>) -> Option<String> {
    let long = flag.long.filter(|_| !DEEDS.contains(&flag.key))?;
    Some(format!("{PREFIX}{}", long.to_ascii_uppercase().replace('-', "_")))
}

/// All that `get` has. An empty variable counts for none.
pub(crate) fn read(get: &dyn Fn(&str) -> Option<Vec<u8>>, charset: Charset) -> Vec<Given> {
    let mut all = Vec::new();
    for flag in FLAGS {
        let Some(name) = variable(flag) else { continue };
        let Some(value) = get(&name).filter(|value| !value.is_empty()) else { continue };
        let given =
            |value: &[u8]| Given { key: flag.key, name: name.clone(), value: Some(value.to_vec()), charset };
        match REPEATED.contains(&flag.key) {
            true => all.extend(value.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(given)),
            false => all.push(given(&value)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (Key::Header, header(), b"*=A:1".to_vec()),
            (Key::Header, header(), b"*=B:2".to_vec()),
            (Key::MaxBody, "FATHOM_SERVE_MAX_BODY".to_owned(), b"1K".to_vec()),
        ];
        assert_eq!(found, expected);
    }
}
