//! Samples as CSV (RFC 4180, but with LF line ends): a header and one record for each sample.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::workload::{CONTROL, NULL};
use crate::{ArmName, Error, Op, Row, Workload};

/// Formats `rows` as CSV. The header has the field names of [`Row`] in their order; an unknown
/// value is empty. The baseline's second copy has the name of the baseline, and true in the column
/// `second_copy`.
///
/// # Errors
/// [`Op::Write`] if serde rejects a row.
pub fn csv(rows: &[Row]) -> Result<String, Error> {
    let mut text = line(fields(&Row::default())?.keys().map(String::as_str));
    for row in rows {
        let name = ArmName::of(row);
        let row = &Row { second_copy: name.is_second_copy(), method: name.without_copy(), ..row.clone() };
        let values: Vec<String> = fields(row)?.values().map(cell).collect();
        text += &line(values.iter().map(String::as_str));
    }
    Ok(text)
}

/// Formats the counted samples of `rows` as CSV of the three columns of io-playground, without a
/// header: method, seconds, bytes a second. The baseline's second copy and the loop without calls
/// are not in it. Methods have the language if there are several, and the state of the cache;
/// methods of `write` have the names that io-playground has for them.
#[must_use]
pub fn plain_csv(rows: &[Row]) -> String {
    let is_counted =
        |row: &&Row| row.discarded.is_empty() && row.method != NULL && !ArmName::of(row).is_second_copy();
    let counted: Vec<&Row> = rows.iter().filter(is_counted).collect();
    let languages: BTreeSet<&str> = counted.iter().map(|row| row.lang.as_str()).collect();
    let has_languages = languages.iter().filter(|lang| **lang != CONTROL).count() > 1;
    let has_caches = counted.iter().any(|row| row.cache != counted[0].cache);
    let record = |row: &Row| {
        let lang =
            if has_languages && row.lang != CONTROL { format!("{} ", row.lang) } else { String::new() };
        let cache = if has_caches { format!(" ({})", row.cache) } else { String::new() };
        let method = format!("{lang}{}{cache}", published_name(row).unwrap_or_else(|| row.method.clone()));
        line([method.as_str(), &row.seconds.to_string(), &row.bytes_per_s.to_string()].into_iter())
    };
    counted.into_iter().map(record).collect()
}

/// Returns the name that io-playground has for an arm of `write`; `None` if it has none.
fn published_name(row: &Row) -> Option<String> {
    let is_usual = row.workload == Workload::Write.name() && row.wait == "wait" && row.batch == row.depth;
    let Row { threads, depth, .. } = row;
    match row.method.split([':', '=']).next()? {
        _ if !is_usual => None,
        "sync" if !row.method.contains(':') => Some("blocking".to_owned()),
        "threads" => Some(format!("{threads}_threads_pwrite")),
        "goroutines" => Some(format!("{threads}_goroutines_pwrite")),
        "uring" => Some(format!("{threads}_threads_iouring_pwrite_{depth}_entries")),
        _ => None,
    }
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
        Value::Array(values) if values.is_empty() => String::new(),
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
