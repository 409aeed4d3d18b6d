//! One sentence a cell: which arm is the fastest, or that there is no material difference.

use serde_json::Value;

use super::cells::{Arm, Cell};
use super::figure::arm_name;
use super::number;

/// The sentence as HTML.
pub(super) fn sentence(cell: &Cell, json: &Value, is_polyglot: bool) -> String {
    let name = |arm: &Arm| arm_name(cell, arm, is_polyglot);
    let Some(best) = cell.counted().next() else {
        return "No sample was counted, so nothing can be said.".to_owned();
    };
    let Some(baseline) = cell.baseline() else {
        return format!(
            "{} is the fastest; there is no baseline to relate it to.{}",
            name(best),
            peers(cell, best)
        );
    };
    if cell.counted().count() == 1 {
        return format!("Only {} was counted, so nothing can be compared.", name(best));
    }
    if is_even(cell, best, baseline) {
        return even(cell, best, baseline, &name, json);
    }
    if best.at == baseline.at {
        return format!("The baseline, {}, is the fastest.{}", name(best), peers(cell, best));
    }
    format!(
        "{} is the fastest: it takes {} of the time of the baseline, {}.{}",
        name(best),
        ratio(best, json),
        name(baseline),
        peers(cell, best)
    )
}

/// Whether nothing shows that another arm is faster than the baseline by more than noise.
fn is_even(cell: &Cell, best: &Arm, baseline: &Arm) -> bool {
    let others_among_best = cell.counted().any(|arm| arm.at != baseline.at && arm.summary.among_best);
    if baseline.summary.among_best && others_among_best {
        return true;
    }
    let floor = cell.noise.map_or(0.0, |(_, noise)| noise.floor);
    best.at != baseline.at
        && best.summary.ratio.is_some_and(|ratio| ratio.high >= 1.0 || ratio.median > 1.0 - floor)
}

fn even(cell: &Cell, best: &Arm, baseline: &Arm, name: &dyn Fn(&Arm) -> String, json: &Value) -> String {
    let best_of_others =
        if best.at == baseline.at { cell.counted().find(|arm| arm.at != baseline.at) } else { Some(best) };
    let closest = best_of_others.map_or(String::new(), |arm| {
        format!(" The fastest of the others, {}, takes {} of its time.", name(arm), ratio(arm, json))
    });
    format!(
        "No material difference: nothing is shown to be faster than the baseline, {}.{closest}",
        name(baseline)
    )
}

fn ratio(arm: &Arm, json: &Value) -> String {
    let at = format!("/arms/{}", arm.at);
    let object = json.pointer(&at).unwrap_or(&Value::Null);
    format!(r#"<span data-at="{at}">{}</span>"#, number::interval(object, "ratio"))
}

/// How many others may be as fast.
fn peers(cell: &Cell, best: &Arm) -> String {
    match cell.counted().filter(|arm| arm.at != best.at && arm.summary.among_best).count() {
        0 => String::new(),
        1 => " Another one may be as fast.".to_owned(),
        n => format!(" {n} others may be as fast."),
    }
}
