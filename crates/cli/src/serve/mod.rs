//! `fathom serve`: from the command line to the exit status.

mod args;
mod env;
mod merge;
mod profile;
mod report;
mod run;
pub(crate) mod table;
mod value;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fathom_io::sys::raise_fd_limit;
use fathom_serve::server::Server;
use fathom_serve::{Config, Error, rules};

use self::args::{ServeAction, ServeArgsError};
use self::profile::PoolProfile;
use crate::shared::flag::Scope;
use crate::shared::output::{print, print_error, print_usage_error};
use crate::shared::{help, locale};

const NAME: &str = "fathom serve";
/// Exit status if the server cannot start or the configuration is invalid.
const FAILED: u8 = 1;
/// Exit status for an invalid command line.
const MISUSED: u8 = 2;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let get = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&get);
    let done = match args::parse(words, &get, charset) {
        Ok(ServeAction::Help) => return print(NAME, &help::render(&table::SERVE, NAME, Scope::Full)),
        Ok(ServeAction::Version) => return print(NAME, &help::version(NAME)),
        Ok(ServeAction::Check(config)) => check(&config),
        Ok(ServeAction::IoReport { mut config, json }) => {
            // The server raises the limit too, so the report shows the limit in effect.
            raise_fd_limit();
            let profile = PoolProfile::read(&config, charset);
            profile.apply(&mut config);
            config.check().and_then(|()| report::show(&config, &profile, json, charset))
        }
        Ok(ServeAction::Serve(mut config)) => {
            let profile = PoolProfile::read(&config, charset);
            profile.apply(&mut config);
            run::serve(&config, || {
                let mut parsed = args::parse(std::env::args_os().skip(2), &get, charset);
                if let Ok(ServeAction::Serve(config)) = &mut parsed {
                    profile.apply(config);
                }
                parsed
            })
        }
        Err(ServeArgsError::File(error)) => Err(error),
        Err(ServeArgsError::Misuse(message)) => {
            print_usage_error(NAME, &message);
            return MISUSED;
        }
    };
    done.unwrap_or_else(|error| {
        print_error(NAME, error.to_string().as_bytes());
        FAILED
    })
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
            text += &format!("{key}: '{}'\n", root.display().to_string().escape_debug());
        }
    }
    Ok(print(NAME, &text))
}
