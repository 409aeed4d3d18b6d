//! `fathom serve`: from the command line to the exit status.

mod args;
mod config_help;
mod env;
mod explore;
mod merge;
mod profile;
mod report;
mod run;
pub(crate) mod table;
mod value;

use std::ffi::OsString;
use std::path::Path;

use fathom_io::sys::raise_fd_limit;
use fathom_serve::config::SiteConfig;
use fathom_serve::server::Server;
use fathom_serve::{Config, Error, rules};

use self::args::{ServeAction, ServeArgsError};
use self::profile::PoolProfile;
use crate::shared::cmdline::exit::FAILED;
use crate::shared::locale;
use crate::shared::output::{print, print_error};

const NAME: &str = table::SERVE.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let charset = locale::current();
    let parse = || args::parse(words.iter().cloned(), &locale::env, charset);
    let warn_of_variables = || {
        for name in env::unknown(std::env::vars_os().map(|(name, _)| name)) {
            print_error(NAME, format!("warning: no option has the variable {name}").as_bytes());
        }
    };
    let done = match parse() {
        Ok(ServeAction::HelpConfig) => Ok(print(NAME, &config_help::table())),
        Ok(ServeAction::Check(config)) => {
            warn_of_variables();
            check(&config)
        }
        Ok(ServeAction::IoReport { mut config, json }) => {
            // The server raises the limit too, so the report shows the limit in effect.
            raise_fd_limit();
            let profile = PoolProfile::read(&config, charset);
            profile.apply(&mut config);
            config.check().and_then(|()| report::show(&config, &profile, json, charset))
        }
        Ok(ServeAction::Serve(mut config)) => {
            warn_of_variables();
            let profile = PoolProfile::read(&config, charset);
            profile.apply(&mut config);
            run::serve(&config, || {
                let mut parsed = parse();
                if let Ok(ServeAction::Serve(config)) = &mut parsed {
                    profile.apply(config);
                }
                parsed
            })
        }
        Err(ServeArgsError::File(errors)) => {
            errors.iter().for_each(|error| print_error(NAME, error.to_string().as_bytes()));
            return FAILED;
        }
        Err(ServeArgsError::Args(end)) => return end.answer(&table::SERVE),
    };
    done.unwrap_or_else(|error| {
        print_error(NAME, error.to_string().as_bytes());
        FAILED
    })
}

/// Returns a directory as an absolute path, for messages.
fn shown(root: &Path) -> String {
    let absolute = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    absolute.display().to_string().escape_debug().to_string()
}

/// Performs the checks of a start, without binding an address. Prints addresses, certificates and
/// sites.
fn check(config: &Config) -> Result<u8, Error> {
    for warning in Server::check(config)? {
        print_error(NAME, format!("warning: {warning}").as_bytes());
    }
    let mut lines = vec!["Configuration OK".to_owned()];
    lines.extend(config.listen.iter().map(|address| format!("listen on {address}")));
    if let Some(tls) = &config.tls {
        let more = tls.more.iter().map(|files| &files.certificate);
        let certificates = tls.certificate.iter().chain(more);
        lines.extend(certificates.map(|path| format!("certificate '{}'", shown(path))));
        lines.extend(tls.self_signed.then(|| "certificate: self-signed".to_owned()));
        lines.extend(tls.redirect_from.iter().map(|address| format!("redirect {address} to HTTPS")));
    }
    lines.extend(rules::sites(config).flat_map(|(key, site)| described(&key, site)));
    Ok(print(NAME, &(lines.join("\n") + "\n")))
}

/// Returns a line for a site, and one for each of its mounts.
fn described(key: &str, site: &SiteConfig) -> Vec<String> {
    let name = match (key, site.names.is_empty()) {
        ("site", true) => "default site".to_owned(),
        ("site", false) => format!("default site {}", site.names.join(", ")),
        _ => format!("site {}", site.names.join(", ")),
    };
    let own = match site.has_root() {
        true => format!("{name}: '{}'", shown(&site.root)),
        false => format!("{name}: no directory, so requests for other hosts are refused (421)"),
    };
    let mounts = site.mounts.iter().map(|mount| format!("{name}, {}: '{}'", mount.path, shown(&mount.root)));
    std::iter::once(own).chain(mounts).collect()
}
