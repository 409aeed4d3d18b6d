//! Samples as CSV (RFC 4180, lines ended by a line feed): one line each, below a head.

use serde_json::{Map, Value};

use crate::{Error, Op, Row};

/// `rows` with the names of [`Row`]'s fields as head, in their order. What is not known is empty.
///
/// # Errors
/// [`Op::Write`] if serde refuses a row.
pub fn csv(rows: &[Row]) -> Result<String, Error> {
    let mut text = line(fields(&Row::default())?.keys().map(String::as_str));
    for row in rows {
        let values: Vec<String> = fields(row)?.values().map(cell).collect();
        text += &line(values.iter().map(String::as_str));
    }
    Ok(text)
}

/// The map keeps the order of the fields.
fn fields(row: &Row) -> Result<Map<String, Value>, Error> {
    serde_json::to_value(row)
        .and_then(serde_json::from_value)
        .map_err(|error| Error::new(Op::Write, &row.method, error))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_misread_is_quoted() {
        assert_eq!(quoted("10_threads pwrite"), "10_threads pwrite");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"a\"\n"), "\"say \"\"a\"\"\n\"");
    }
}
