//! Samples as CSV (RFC 4180, but with LF line ends): a header and one record for each sample.

use serde_json::{Map, Value};

use crate::{Error, Op, Row};

/// Formats `rows` as CSV. The header has the field names of [`Row`] in their order; an unknown
/// value is empty.
///
/// # Errors
/// [`Op::Write`] if serde rejects a row.
pub fn csv(rows: &[Row]) -> Result<String, Error> {
    let mut text = line(fields(&Row::default())?.keys().map(String::as_str));
    for row in rows {
        let values: Vec<String> = fields(row)?.values().map(cell).collect();
        text += &line(values.iter().map(String::as_str));
    }
    Ok(text)
}

/// Serialises a row. The map preserves the order of the fields.
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
    fn only_fields_with_special_characters_are_quoted() {
        assert_eq!(quoted("10_threads pwrite"), "10_threads pwrite");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"a\"\n"), "\"say \"\"a\"\"\n\"");
    }
}
