//! A server's life as its user sees it: where it is, what signals do, how it ends.

use std::io;

use fathom_io::sys::{ignore_sigpipe, raise_fd_limit};
use fathom_serve::config::Site;
use fathom_serve::listen::Activation;
use fathom_serve::server::{Outfit, Server};
use fathom_serve::{Config, Error, Op};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::NAME;
use super::args::{Asked, Refused};
use crate::interrupt::INTERRUPTED;
use crate::output::{print, say};

/// Exit status where connections were still open when the time to drain was over.
const CUT_OFF: u8 = 1;

/// Serves until a signal ends it. SIGHUP has the configuration read again, by `again`; SIGUSR1 has
/// the logs opened again.
pub(super) fn serve(config: &Config, again: impl Fn() -> Result<Asked, Refused>) -> Result<u8, Error> {
    ignore_sigpipe();
    raise_fd_limit();
    // Before the first thread: what arrives from now on is seen below.
    let failed = |error: io::Error| Error::new(Op::Start, "signals", error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1]).map_err(failed)?;
    let variable = |name| std::env::var(name).ok();
    let (pid, fds) = (variable("LISTEN_PID"), variable("LISTEN_FDS"));
    let activation = Activation { pid: pid.as_deref(), fds: fds.as_deref() };
    let stream = Some(Box::new(io::stdout()) as Box<dyn io::Write + Send>);
    let errors = Some(Box::new(Complaints) as Box<dyn io::Write + Send>);
    let mut server = Server::start(config, Outfit { activation, stream, errors })?;
    greet(&server, config);
    for signal in signals.forever() {
        match signal {
            SIGHUP => reload(&mut server, &again),
            SIGUSR1 => warn(&server.reopen_logs()),
            SIGINT => return Ok(end(server, INTERRUPTED, &mut signals)),
            _ => return Ok(end(server, 0, &mut signals)),
        }
    }
    Ok(0)
}

/// Standard error, where each message of the error log begins with the command's name.
struct Complaints;

impl io::Write for Complaints {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        say(NAME, message.strip_suffix(b"\n").unwrap_or(message));
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| say(NAME, format!("warning: {warning}").as_bytes()));
}

/// Says where it is: on standard output, unless the log goes there.
fn greet(server: &Server, config: &Config) {
    warn(server.warnings());
    let root = config.site.root.display().to_string();
    let mut text = format!("Serving '{}' on {}\n", root.escape_debug(), server.addresses().join(", "));
    if is_bare(&config.site) {
        let names = config.site.index.join(" or ");
        text.push_str(&format!("No {names} there, so / is answered 404; --listing lists directories\n"));
    }
    let logs_to_stdout = config.access_log.file.is_none()
        && !matches!(config.access_log.format.as_deref(), None | Some("off"));
    if logs_to_stdout {
        crate::output::complain(text.as_bytes());
    } else {
        print(NAME, &text);
    }
}

/// Returns whether `/` would be a 404 without a visible reason: the site has no index file, no
/// listing and no rule.
fn is_bare(site: &Site) -> bool {
    let has_rules = site.fallback.is_some() || !site.redirects.is_empty() || !site.rewrites.is_empty();
    let has_index = site.index.iter().any(|name| site.root.join(name).exists());
    site.root.is_dir() && !(site.listing || has_rules || has_index || site.index.is_empty())
}

fn reload(server: &mut Server, again: &impl Fn() -> Result<Asked, Refused>) {
    let reloaded = match again() {
        Ok(Asked::Serve(config)) => server.reload(&config).map_err(|error| error.to_string().into_bytes()),
        Ok(_) => Ok(Vec::new()),
        Err(Refused::File(error)) => Err(error.to_string().into_bytes()),
        Err(Refused::Misuse(message)) => Err(message),
    };
    match reloaded {
        Ok(warnings) => {
            warn(&warnings);
            say(NAME, b"reloaded");
        }
        Err(message) => say(NAME, &[b"not reloaded: ", &message[..]].concat()),
    }
}

/// Lets what is under way end; a second signal, or Ctrl-C, does not wait for it.
fn end(server: Server, status: u8, signals: &mut Signals) -> u8 {
    if status == INTERRUPTED {
        drop(server);
        return status;
    }
    let handle = signals.handle();
    let (timeout, mut again) = (server.drain_timeout(), Signals::new([SIGINT, SIGTERM]).ok());
    handle.close();
    // Where no thread can be started, a second signal does not cut the drain short.
    let _ = std::thread::Builder::new().spawn(move || {
        if let Some(signal) = again.as_mut().and_then(|signals| signals.forever().next()) {
            std::process::exit(128 + signal);
        }
    });
    if server.drain(timeout) { status } else { CUT_OFF }
}
