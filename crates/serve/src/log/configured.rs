//! Opens the logs that a configuration names.

use std::io::{self, Write};

use fathom_io::Clock;

use super::{AccessLogWriter, ErrorCategory, ErrorReporter, LogFormat, LogTarget};
use crate::config::Config;
use crate::config::words::AccessLogFormat;
use crate::error::{Error, cause};

/// A stream that the caller has opened, for a log without a file.
type LogStream = Box<dyn Write + Send>;

/// Returns the format of the access log; `None` if there is no log.
pub(crate) fn log_style(config: &Config) -> Option<LogFormat> {
    match config.access_log.format {
        Some(AccessLogFormat::Json) => Some(LogFormat::Json),
        Some(AccessLogFormat::Combined) => Some(LogFormat::Combined),
        None if config.access_log.file.is_some() => Some(LogFormat::Combined),
        Some(AccessLogFormat::Off) | None => None,
    }
}

/// Opens the error log that a configuration names, or else `stream`. Without either, messages are
/// discarded.
pub(crate) fn open_error_log(
    config: &Config,
    stream: Option<LogStream>,
    clock: Clock,
) -> Result<ErrorReporter, Error> {
    match (&config.error_log.file, stream) {
        (Some(file), _) => ErrorReporter::start(LogTarget::File(file.clone()), clock),
        (None, Some(stream)) => ErrorReporter::start(LogTarget::Stream(stream), clock),
        (None, None) => Ok(ErrorReporter::default()),
    }
}

/// Opens the access log, if there is to be one: the file that a configuration names, or else
/// `stream`. Returns a warning if there is neither.
pub(crate) fn open_access_log(
    config: &Config,
    stream: Option<LogStream>,
    errors: &ErrorReporter,
) -> Result<(Option<AccessLogWriter>, Option<String>), Error> {
    let Some(style) = log_style(config) else { return Ok((None, None)) };
    let target = match (&config.access_log.file, stream) {
        (Some(file), _) => LogTarget::File(file.clone()),
        (None, Some(stream)) => LogTarget::Stream(stream),
        (None, None) => return Ok((None, Some("the access log has no file".to_owned()))),
    };
    let errors = errors.clone();
    let name =
        config.access_log.file.as_ref().map_or_else(String::new, |file| format!(" '{}'", file.display()));
    let failed = move |error: &io::Error| {
        errors
            .report(ErrorCategory::AccessLog, || format!("cannot write access log{name}: {}", cause(error)));
    };
    Ok((Some(AccessLogWriter::start(style, target, failed)?), None))
}
