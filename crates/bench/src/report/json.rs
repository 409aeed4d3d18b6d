//! Runs as JSON, written and read. Input is untrusted.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CellSentence, sentences};
use crate::{Error, Op, Run};

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// A run with what it shows, one sentence for each cell, which readers derive again.
#[derive(Serialize)]
struct SavedRun<'a> {
    #[serde(flatten)]
    run: &'a Run,
    findings: Vec<CellSentence>,
}

/// Formats `run` as indented JSON, with a sentence for each cell in `findings`.
///
/// # Errors
/// If a number is NaN or infinite: JSON cannot represent it, so the saved run could not be read.
pub fn to_json(run: &Run) -> Result<String, Error> {
    Ok(saved(run, |saved| serde_json::to_string_pretty(saved))? + "\n")
}

/// Formats `run` as the same JSON on one line, for a page.
///
/// # Errors
/// See [`to_json`].
pub fn to_json_line(run: &Run) -> Result<String, Error> {
    saved(run, |saved| serde_json::to_string(saved))
}

fn saved(run: &Run, format: fn(&SavedRun<'_>) -> serde_json::Result<String>) -> Result<String, Error> {
    let failed = |error: serde_json::Error| Error::new(Op::Write, &run.command, error);
    let text = format(&SavedRun { run, findings: sentences(run) }).map_err(failed)?;
    serde_json::from_str::<Run>(&text).map_err(failed)?;
    Ok(text)
}

/// Reads a run from the file `path`.
///
/// # Errors
/// [`Op::Read`] if the file cannot be read, is not JSON, has another version, or lacks a field.
pub fn read(path: &Path) -> Result<Run, Error> {
    let named = path.display().to_string();
    let text = fs::read(path).map_err(|error| Error::new(Op::Read, &named, error))?;
    from_json(&text, &named)
}

/// Parses a run. `named` is its name in errors.
///
/// # Errors
/// [`Op::Read`] if `text` is not JSON, has another version, or lacks a field.
pub fn from_json(text: &[u8], named: &str) -> Result<Run, Error> {
    parse(text).map_err(|cause| Error::new(Op::Read, named, cause))
}

/// The version alone. It is parsed first, so that another version is not reported as a syntax
/// error.
#[derive(Deserialize)]
struct SchemaHeader {
    schema: u32,
}

/// The run that an advice of `fathom bench advise` has.
#[derive(Deserialize)]
struct SavedAdvice<T> {
    run: T,
}

fn parse(text: &[u8]) -> Result<Run, String> {
    let malformed = |error: serde_json::Error| format!("not a run saved by fathom bench: {error}");
    let advice = serde_json::from_slice::<SavedAdvice<SchemaHeader>>(text);
    let is_advice = advice.is_ok();
    let header = advice.map(|advice| advice.run).or_else(|_| serde_json::from_slice(text));
    let SchemaHeader { schema } = header.map_err(malformed)?;
    if schema != SCHEMA {
        return Err(format!("its format has version {schema}, expected {SCHEMA}"));
    }
    if is_advice {
        return serde_json::from_slice(text).map(|SavedAdvice { run }| run).map_err(malformed);
    }
    serde_json::from_slice(text).map_err(malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn another_version_is_reported_before_other_errors() {
        let found = parse(br#"{"schema": 2, "everything": "different"}"#);
        assert_eq!(found, Err("its format has version 2, expected 1".into()));
        let found = parse(br#"{"sentence": "x", "run": {"schema": 2}}"#);
        assert_eq!(found, Err("its format has version 2, expected 1".into()));
    }

    #[test]
    fn the_run_of_an_advice_is_read() {
        let run = Run { schema: SCHEMA, program: "fathom".to_owned(), ..Run::default() };
        let advice = crate::advise::Advice { run: run.clone(), ..Default::default() };
        assert_eq!(parse(&serde_json::to_vec(&advice).unwrap()), Ok(run));
    }

    #[test]
    fn a_malformed_run_is_reported_with_its_position() {
        let cause = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(cause("").contains("EOF while parsing a value at line 1"));
        assert!(cause("{}").contains("missing field `schema`"));
        assert!(cause("{\"schema\": 1}").contains("missing field `program`"));
        assert!(cause("{\"schema\": -1}").contains("invalid value: integer `-1`"));
        assert!(cause(&"[".repeat(100_000)).contains("not a run"));
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        /// Damage to a byte of a saved run yields an error or another run, never a panic.
        #[test]
        fn damage_does_not_panic(at in 0_usize..10_000, byte: u8, end in 0_usize..10_000) {
            let run = Run { schema: 1, rows: vec![crate::Row::default()], ..Run::default() };
            let mut text = to_json(&run).unwrap().into_bytes();
            let len = text.len();
            text[at % len] = byte;
            let _ = parse(&text);
            prop_assert!(parse(&text[..end % len]).is_err() || end % len == len - 1);
        }
    }
}
