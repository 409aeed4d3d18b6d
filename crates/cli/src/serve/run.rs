//! The life cycle of a server process: start, signals, reload and exit status.

use std::io;
use std::sync::Arc;

use fathom_io::sys::{ignore_sigpipe, raise_fd_limit};
use fathom_serve::config::SiteConfig;
use fathom_serve::config::words::AccessLogFormat;
use fathom_serve::generator::Generator;
use fathom_serve::listen::Activation;
use fathom_serve::server::{Server, StartOptions};
use fathom_serve::{Config, Error, Op, rules};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::raise;

use super::args::{ServeAction, ServeArgsError};
use super::explore::InventoryExplorer;
use super::{NAME, shown};
use crate::shared::cmdline::ArgsEnd;
use crate::shared::cmdline::exit::{FAILED, INTERRUPTED, PANICKED};
use crate::shared::output::{print, print_error};

/// The last line of a reload with errors.
const REFUSED: &str = "reload failed, keeping the old configuration";

/// Serves until a signal ends the process. On SIGHUP, `again` parses the configuration again; on
/// SIGUSR1 the log files are reopened.
pub(super) fn serve(
    config: &Config,
    again: impl Fn() -> Result<ServeAction, ServeArgsError>,
) -> Result<u8, Error> {
    ignore_sigpipe();
    raise_fd_limit();
    // Register before the first thread starts, so that no signal is lost.
    let failed = |error: io::Error| Error::new(Op::Start, "signals", error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1]).map_err(failed)?;
    let variable = |name| std::env::var(name).ok();
    let (pid, fds) = (variable("LISTEN_PID"), variable("LISTEN_FDS"));
    let activation = Activation { pid: pid.as_deref(), fds: fds.as_deref() };
    let stream = Some(Box::new(io::stdout()) as Box<dyn io::Write + Send>);
    let errors = Some(Box::new(ErrorStream) as Box<dyn io::Write + Send>);
    // The same end as by the signal, with another status.
    let on_failure = Some(Box::new(|| drop(raise(SIGTERM))) as Box<dyn Fn() + Send + Sync>);
    let generator = Some(Arc::new(InventoryExplorer::default()) as Arc<dyn Generator>);
    let clock = fathom_io::Clock::default();
    let options = StartOptions { activation, stream, errors, on_failure, generator, clock };
    let mut server = Server::start(config, options)?;
    print_addresses(&server, config);
    let addresses = server.addresses().join(", ");
    notify(NotifyState::Ready, &format!("Serving on {addresses}"));
    for signal in signals.forever() {
        match signal {
            SIGHUP => {
                notify_reloading();
                let result = reload(&mut server, &again);
                notify(NotifyState::Ready, &format!("Serving on {addresses}; {result}"));
            }
            SIGUSR1 => print_warnings(&server.reopen_logs()),
            SIGINT => return Ok(shut_down(server, INTERRUPTED, &mut signals)),
            _ => {
                let status = if server.has_failed() { PANICKED } else { 0 };
                return Ok(shut_down(server, status, &mut signals));
            }
        }
    }
    Ok(0)
}

/// A writer to standard error that puts the command's name before each message of the error log.
struct ErrorStream;

impl io::Write for ErrorStream {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        print_error(NAME, message.strip_suffix(b"\n").unwrap_or(message));
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn print_warnings(warnings: &[String]) {
    warnings.iter().for_each(|warning| print_error(NAME, format!("warning: {warning}").as_bytes()));
}

/// Prints the addresses on standard output, or on standard error if standard output has the access
/// log.
fn print_addresses(server: &Server, config: &Config) {
    print_warnings(server.warnings());
    let mut sites = rules::sites(config).filter(|(_, site)| site.has_root());
    let root = sites.next().map_or(String::new(), |(_, site)| shown(&site.root));
    let others = match (config.site.has_root(), sites.count()) {
        (true, _) | (false, 0) => String::new(),
        (false, 1) => " and 1 other site".to_owned(),
        (false, others) => format!(" and {others} other sites"),
    };
    let mut text = format!("Serving '{root}'{others} on {}\n", server.addresses().join(", "));
    if is_bare(&config.site) {
        let names = config.site.index.join(" or ");
        text.push_str(&format!("No {names} there, so / is answered 404; --listing lists directories\n"));
    }
    let logs_to_stdout = config.access_log.file.is_none()
        && !matches!(config.access_log.format, None | Some(AccessLogFormat::Off));
    if logs_to_stdout {
        crate::shared::output::write_stderr(text.as_bytes());
    } else {
        print(NAME, &text);
    }
}

/// Tells the service manager a state of the server, if it has asked for that (sd_notify(3)), with a
/// line for `systemctl status`.
fn notify(state: NotifyState<'_>, status: &str) {
    // Without an answer, the server serves all the same.
    let _ = sd_notify::notify(&[state, NotifyState::Status(&status.replace('\n', " "))]);
}

/// Tells the service manager that the server reloads, and since when.
fn notify_reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        let _ = sd_notify::notify(&[NotifyState::Reloading, now]);
    }
}

/// Returns whether `/` would be a 404 without a visible reason: the site has no index file, no
/// listing and no rule.
fn is_bare(site: &SiteConfig) -> bool {
    let has_rules = site.fallback.is_some() || !site.redirects.is_empty() || !site.rewrites.is_empty();
    let has_index = site.index.iter().any(|name| site.root.join(name).exists());
    site.root.is_dir() && !(site.listing || site.explore || has_rules || has_index || site.index.is_empty())
}

/// Reloads the configuration, and prints the result. Returns it as words.
fn reload(server: &mut Server, again: &impl Fn() -> Result<ServeAction, ServeArgsError>) -> String {
    let reloaded = match again() {
        Ok(ServeAction::Serve(config)) => {
            server.reload(&config).map_err(|error| vec![error.to_string().into_bytes()])
        }
        Ok(_) | Err(ServeArgsError::Args(ArgsEnd::Information(_))) => Ok(Vec::new()),
        Err(ServeArgsError::File(errors)) => {
            Err(errors.iter().map(|error| error.to_string().into_bytes()).collect())
        }
        Err(ServeArgsError::Args(ArgsEnd::Misuse(message))) => Err(vec![message]),
    };
    match reloaded {
        Ok(warnings) => {
            print_warnings(&warnings);
            print_error(NAME, b"reloaded");
            "reloaded".to_owned()
        }
        Err(messages) => {
            messages.iter().for_each(|message| print_error(NAME, message));
            print_error(NAME, REFUSED.as_bytes());
            let first = messages.first().map_or(&b""[..], |message| message);
            format!("{REFUSED}: {}", String::from_utf8_lossy(first))
        }
    }
}

/// Drains the server. SIGINT, or a second signal, ends it immediately.
fn shut_down(server: Server, status: u8, signals: &mut Signals) -> u8 {
    notify(NotifyState::Stopping, "Shutting down: finishing requests");
    if status == INTERRUPTED {
        drop(server);
        return status;
    }
    let handle = signals.handle();
    let (timeout, mut again) = (server.drain_timeout(), Signals::new([SIGINT, SIGTERM]).ok());
    handle.close();
    // If no thread can be started, a second signal does not cut the drain short.
    let _ = std::thread::Builder::new().spawn(move || {
        if let Some(signal) = again.as_mut().and_then(|signals| signals.forever().next()) {
            std::process::exit(128 + signal);
        }
    });
    if server.drain(timeout) { status } else { FAILED }
}
