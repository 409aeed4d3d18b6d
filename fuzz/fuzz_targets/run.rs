//! A saved run of somebody else, as any bytes, and as a run with any of its values changed: it is refused, or everything that is done with a
//! run can be done with it.

#![no_main]

use std::sync::OnceLock;

use fathom_bench::report::html::html;
use fathom_bench::report::{csv, from_json, table, to_json};
use fathom_bench::{Run, compare};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const KNOWN: &str = include_str!("../seeds/run/four-arms.json");
/// All of them are finite, as JSON has no others, but what is made of them may not be.
const NUMBERS: &str =
    "[0, -0.0, 5e-324, 1e-12, 0.1, 1, 1e18, 1.7976931348623157e308, -1.7976931348623157e308]";
const COUNTS: &str = "[0, 1, 2, 64, 4294967295, 18446744073709551615]";
const TEXTS: &str = r#"["", " ", ",", "\"", "</script>", "\u0000\u001b[2J", "read", "read, cold", "warm", "cold", "blocking"]"#;

/// The places of all values in `value` that have no others in them, as JSON pointers.
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

struct Known {
    run: Run,
    value: Value,
    places: Vec<String>,
    /// What numbers, counts and texts become.
    odd: [Vec<Value>; 3],
}

fn known() -> &'static Known {
    static KEPT: OnceLock<Known> = OnceLock::new();
    KEPT.get_or_init(|| {
        let value: Value = serde_json::from_str(KNOWN).expect("the known run is JSON");
        let mut places = Vec::new();
        leaves(&value, "", &mut places);
        let odd =
            [NUMBERS, COUNTS, TEXTS].map(|list| serde_json::from_str(list).expect("the lists are JSON"));
        let run = from_json(KNOWN.as_bytes(), "known").expect("the known run is one");
        Known { run, value, places, odd }
    })
}

/// The known run, where each three bytes are a place and what is there instead.
fn changed(changes: &[u8]) -> Vec<u8> {
    let Known { value, places, odd: [numbers, counts, texts], .. } = known();
    let mut value = value.clone();
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % places.len();
        let Some(value) = value.pointer_mut(&places[place]) else { continue };
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

/// Everything that `fathom bench` does with a saved run.
fn use_all_of(text: &[u8]) {
    let Ok(run) = from_json(text, "fuzzed") else { return };
    assert!(table(&run).ends_with('\n'));
    let lines = csv(&run.rows).expect("a run that was read has rows that can be written");
    assert!(lines.lines().count() > run.rows.len());
    let page = html(&run);
    assert!(
        page.matches("<script").count() == 1 && page.matches("</script").count() == 1,
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
    use_all_of(bytes);
    use_all_of(&changed(bytes));
});
