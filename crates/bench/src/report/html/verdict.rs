//! One sentence for each cell: the fastest arm, or that there is no material difference.

use serde_json::Value;

use super::cells::{ArmSection, CellSection};
use super::figure::arm_name;
use super::number;

/// The largest number of equally fast arms that the sentence names.
const NAMED_MAX: usize = 3;

/// A function that formats an arm's name as HTML.
type ArmFormatter<'n> = &'n dyn Fn(&ArmSection) -> String;

/// Formats the sentence as HTML.
pub(super) fn sentence(cell: &CellSection, json: &Value, is_polyglot: bool) -> String {
    let name = |arm: &ArmSection| arm_name(cell, arm, is_polyglot);
    let Some(best) = cell.counted().next() else {
        return "No sample was counted, so nothing can be said.".to_owned();
    };
    let Some(baseline) = cell.baseline() else {
        return format!(
            "{} is the fastest; there is no baseline to relate it to.{}",
            name(best),
            peers(cell, best, &name)
        );
    };
    if cell.counted().count() == 1 {
        return format!("Only {} was counted, so nothing can be compared.", name(best));
    }
    if is_tie(cell, best, baseline) {
        return no_difference(cell, baseline, &name, json);
    }
    if best.at == baseline.at {
        return format!("The baseline, {}, is the fastest.{}", name(best), next(cell, baseline, &name, json));
    }
    format!(
        "{} is the fastest: it takes {} of the time of the baseline, {}.{}",
        name(best),
        ratio(best, json),
        name(baseline),
        peers(cell, best, &name)
    )
}

/// Returns whether no arm is shown to be faster than the baseline by more than the noise.
fn is_tie(cell: &CellSection, best: &ArmSection, baseline: &ArmSection) -> bool {
    let others_among_best = cell.counted().any(|arm| arm.at != baseline.at && arm.summary.among_best);
    if baseline.summary.among_best && others_among_best {
        return true;
    }
    let floor = cell.noise.map_or(0.0, |(_, noise)| noise.floor);
    best.at != baseline.at
        && best.summary.ratio.is_some_and(|ratio| ratio.high >= 1.0 || ratio.median > 1.0 - floor)
}

fn no_difference(cell: &CellSection, baseline: &ArmSection, name: ArmFormatter, json: &Value) -> String {
    let next = next(cell, baseline, name, json);
    format!(
        "No material difference: nothing is shown to be faster than the baseline, {}.{next}",
        name(baseline)
    )
}

/// Formats the ratio of the fastest arm other than the baseline.
fn next(cell: &CellSection, baseline: &ArmSection, name: ArmFormatter, json: &Value) -> String {
    let next = cell.counted().find(|arm| arm.at != baseline.at);
    let said =
        |arm| format!(" The fastest of the others, {}, takes {} of its time.", name(arm), ratio(arm, json));
    next.map_or(String::new(), said)
}

fn ratio(arm: &ArmSection, json: &Value) -> String {
    let at = format!("/arms/{}", arm.at);
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    format!(r#"<span data-at="{at}">{}</span>"#, number::interval(object, "ratio"))
}

/// Names the other arms that may be as fast, or their number if there are many.
fn peers(cell: &CellSection, best: &ArmSection, name: ArmFormatter) -> String {
    let peers: Vec<String> =
        cell.counted().filter(|arm| arm.at != best.at && arm.summary.among_best).map(name).collect();
    match peers.as_slice() {
        [] => String::new(),
        [.., _] if peers.len() > NAMED_MAX => format!(" {} others may be as fast.", peers.len()),
        [one] => format!(" {one} may be as fast."),
        [first @ .., last] => format!(" {} and {last} may be as fast.", first.join(", ")),
    }
}
