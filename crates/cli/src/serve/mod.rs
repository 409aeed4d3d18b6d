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

use self::args::{Asked, Refused};
use self::profile::Profiled;
use crate::flag::Scope;
use crate::output::{print, say, say_misuse};
use crate::{help, locale};

const NAME: &str = "fathom serve";
/// Exit status where the server could not start, or the configuration makes no sense.
const FAILED: u8 = 1;
/// Exit status where the command line makes no sense.
const MISUSED: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let get = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&get);
    let done = match args::parse(words, &get, charset) {
        Ok(Asked::Help) => return print(NAME, &help::render(&table::SERVE, NAME, Scope::Full)),
        Ok(Asked::Version) => return print(NAME, &help::version(NAME)),
        Ok(Asked::Check(config)) => check(&config),
        Ok(Asked::IoReport { mut config, json }) => {
            // As the server does, so that what is shown is what it would have.
            raise_fd_limit();
            let profiled = Profiled::read(&config, charset);
            profiled.apply(&mut config);
            config.check().and_then(|()| report::show(&config, &profiled, json, charset))
        }
        Ok(Asked::Serve(mut config)) => {
            let profiled = Profiled::read(&config, charset);
            profiled.apply(&mut config);
            run::serve(&config, || {
                let mut asked = args::parse(std::env::args_os().skip(2), &get, charset);
                if let Ok(Asked::Serve(config)) = &mut asked {
                    profiled.apply(config);
                }
                asked
            })
        }
        Err(Refused::File(error)) => Err(error),
        Err(Refused::Misuse(message)) => {
            say_misuse(NAME, &message);
            return MISUSED;
        }
    };
    done.unwrap_or_else(|error| {
        say(NAME, error.to_string().as_bytes());
        FAILED
    })
}

/// Opens everything that a start opens, but takes no address.
fn check(config: &Config) -> Result<u8, Error> {
    for warning in Server::check(config)? {
        say(NAME, format!("warning: {warning}").as_bytes());
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
