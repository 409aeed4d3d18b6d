//! A saved run from an untrusted source, as arbitrary bytes and as a valid run with changed values:
//! it is rejected, or every operation on runs succeeds on it.

#![no_main]

use std::sync::OnceLock;

use fathom_bench::report::{csv, from_json, table, to_json, to_json_line};
use fathom_bench::{Run, compare};
use fathom_report::run_page;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const KNOWN: &str = include_str!("../seeds/run/four-arms.json");
/// All numbers are finite, as JSON requires, but results computed from them may not be.
const NUMBERS: &str =
    "[0, -0.0, 5e-324, 1e-12, 0.1, 1, 1e18, 1.7976931348623157e308, -1.7976931348623157e308]";
const COUNTS: &str = "[0, 1, 2, 64, 4294967295, 18446744073709551615]";
const TEXTS: &str =
    r#"["", " ", ",", "\"", "</script>", "\u0000\u001b[2J", "read", "read, cold", "warm", "cold", "sync"]"#;

/// Collects the JSON pointers of all values that are neither objects nor arrays.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| leaves(value, &format!("{at}/{key}"), found))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| leaves(value, &format!("{at}/{index}"), found))
        }
        _ => found.push(at.to_owned()),
    }
}

struct KnownRun {
    run: Run,
    value: Value,
    pointers: Vec<String>,
    /// Replacements for numbers, counts and texts.
    replacements: [Vec<Value>; 3],
}

fn known() -> &'static KnownRun {
    static KNOWN_RUN: OnceLock<KnownRun> = OnceLock::new();
    KNOWN_RUN.get_or_init(|| {
        let value: Value = serde_json::from_str(KNOWN).expect("the known run is JSON");
        let mut pointers = Vec::new();
        leaves(&value, "", &mut pointers);
        let replacements =
            [NUMBERS, COUNTS, TEXTS].map(|list| serde_json::from_str(list).expect("the lists are JSON"));
        let run = from_json(KNOWN.as_bytes(), "known").expect("the known run is one");
        KnownRun { run, value, pointers, replacements }
    })
}

/// Returns the known run with changes. Each three bytes are the number of a value and the index of
/// its replacement.
fn changed(changes: &[u8]) -> Vec<u8> {
    let KnownRun { value, pointers, replacements: [numbers, counts, texts], .. } = known();
    let mut value = value.clone();
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % pointers.len();
        let Some(value) = value.pointer_mut(&pointers[place]) else { continue };
        let from = |list: &[Value]| list[usize::from(change[2]) % list.len()].clone();
        *value = match value {
            Value::Bool(yes) => Value::Bool(!*yes),
            Value::String(_) => from(texts),
            Value::Number(number) if number.is_u64() => from(counts),
            _ if change[2] == u8::MAX => Value::Null,
            _ => from(numbers),
        };
    }
    value.to_string().into_bytes()
}

/// Applies every operation of `fathom bench` on a saved run.
fn check_all_operations(text: &[u8]) {
    let Ok(run) = from_json(text, "fuzzed") else { return };
    assert!(table(&run).ends_with('\n'));
    let lines = csv(&run.rows).expect("a run that was read has rows that can be written");
    assert!(lines.lines().count() > run.rows.len());
    let page = run_page(&to_json_line(&run).expect("a run that was read can be written"), None);
    // The script, the run, and what stands before it.
    assert!(
        page.matches("<script").count() == 3 && page.matches("</script").count() == 3,
        "a text became markup"
    );
    let saved = to_json(&run).expect("a run that was read can be written");
    from_json(saved.as_bytes(), "saved").expect("and read again");
    for (first, second) in [(&run, &run), (&known().run, &run), (&run, &known().run)] {
        let comparison = compare(first, second);
        assert!(comparison.text().ends_with('\n'));
        serde_json::to_string(&comparison).expect("a comparison has numbers, texts and lists of them only");
    }
}

fuzz_target!(|bytes: &[u8]| {
    check_all_operations(bytes);
    check_all_operations(&changed(bytes));
});
