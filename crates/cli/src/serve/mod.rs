//! `fathom serve`: from the command line to the exit status.

mod args;
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
            print_error(NAME, format!("warning: the variable {name} is that of no option").as_bytes());
        }
    };
    let done = match parse() {
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
        Err(ServeArgsError::File(error)) => Err(error),
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

/// Performs the checks of a start, without binding an address.
fn check(config: &Config) -> Result<u8, Error> {
    for warning in Server::check(config)? {
        print_error(NAME, format!("warning: {warning}").as_bytes());
    }
    let mut text = format!("The configuration makes sense. Listens on {}.\n", config.listen.join(", "));
    for (key, site) in rules::sites(config) {
        let mounts = site.mounts.iter().enumerate();
        let mounts = mounts.map(|(number, mount)| (format!("{key}.mounts[{number}]"), &mount.root));
        for (key, root) in std::iter::once((key.clone(), &site.root)).chain(mounts) {
            text += &match root.as_os_str().is_empty() {
                true => format!("{key}: no directory, so requests for other hosts are refused (421)\n"),
                false => format!("{key}: '{}'\n", shown(root)),
            };
        }
    }
    Ok(print(NAME, &text))
}
