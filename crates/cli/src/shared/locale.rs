//! The charset of the user's locale, for messages and patterns. Languages are not supported:
//! messages are in English, numbers and times as in the C locale.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use fathom_text::quote::Charset;

/// Returns an environment variable.
pub(crate) fn env(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(OsString::into_vec)
}

/// Returns the charset of this process.
pub(crate) fn current() -> Charset {
    charset(&env)
}

/// Returns the charset that the environment selects.
pub(crate) fn charset(env: &dyn Fn(&str) -> Option<Vec<u8>>) -> Charset {
    charset_below(Path::new("/usr/lib/locale"), env)
}

/// Behaves like setlocale(3): a locale that is not installed under `installed` is treated as the C
/// locale.
fn charset_below(installed: &Path, env: &dyn Fn(&str) -> Option<Vec<u8>>) -> Charset {
    let set = |name: &&str| env(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    let locale = String::from_utf8_lossy(&locale);
    let (language, codeset) = locale.split_once('.').unwrap_or((&locale, ""));
    let codeset = codeset.split('@').next().unwrap_or_default().to_ascii_lowercase().replace('-', "");
    let known = || {
        // C.UTF-8 is built into the C library. The contents of an archive are not examined: trust
        // the user.
        language == "C"
            || !installed.is_dir()
            || installed.join("locale-archive").exists()
            || installed.join(format!("{language}.{codeset}")).exists()
            || installed.join(&*locale).exists()
    };
    if codeset == "utf8" && known() { Charset::Utf8 } else { Charset::Ascii }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charset_with(installed: &Path, variables: &[(&str, &str)]) -> Charset {
        charset_below(installed, &|name| {
            let found = variables.iter().find(|variable| variable.0 == name);
            found.map(|variable| variable.1.as_bytes().to_vec())
        })
    }

    #[test]
    fn the_first_variable_that_is_not_empty_decides() {
        let none = tempfile::tempdir().unwrap();
        let charset = |variables: &[_]| charset_with(none.path(), variables);
        assert_eq!(charset(&[]), Charset::Ascii);
        assert_eq!(charset(&[("LANG", "C.UTF-8")]), Charset::Utf8);
        assert_eq!(charset(&[("LANG", "C.UTF-8"), ("LC_CTYPE", "C")]), Charset::Ascii);
        assert_eq!(charset(&[("LANG", "C.UTF-8"), ("LC_CTYPE", "")]), Charset::Utf8);
        assert_eq!(charset(&[("LANG", "C"), ("LC_ALL", "C.utf8")]), Charset::Utf8);
        assert_eq!(charset(&[("LC_ALL", "POSIX"), ("LANG", "C.UTF-8")]), Charset::Ascii);
    }

    #[test]
    fn a_locale_has_to_be_installed() {
        let installed = tempfile::tempdir().unwrap();
        let german = [("LANG", "de_DE.UTF-8@euro")];
        assert_eq!(charset_with(installed.path(), &german), Charset::Ascii);
        assert_eq!(charset_with(installed.path(), &[("LANG", "c.utf-8")]), Charset::Ascii);
        std::fs::create_dir(installed.path().join("de_DE.utf8")).unwrap();
        assert_eq!(charset_with(installed.path(), &german), Charset::Utf8);
        assert_eq!(charset_with(installed.path(), &[("LANG", "de_DE.ISO-8859-1")]), Charset::Ascii);
    }
}
