//! One sentence for each cell: the fastest arm, or that there is no material difference.

use super::cells::{ArmSection, CellSection};

/// The largest number of equally fast arms that the sentence names.
const NAMED_MAX: usize = 3;

/// Formats the sentence as HTML.
pub(super) fn sentence(cell: &CellSection) -> String {
    let Some(best) = cell.counted().next() else {
        return "No sample was counted, so nothing can be said.".to_owned();
    };
    let (name, peers) = (&best.name, peers(cell, best));
    let Some(baseline) = cell.baseline() else {
        return format!("{name} is the fastest; there is no baseline to relate it to.{peers}");
    };
    if cell.counted().count() == 1 {
        return format!("Only {name} was counted, so nothing can be compared.");
    }
    let (base, next) = (&baseline.name, next(cell, baseline));
    if is_tie(cell, best, baseline) {
        return format!(
            "No material difference: nothing is shown to be faster than the baseline, {base}.{next}"
        );
    }
    if best.at == baseline.at {
        return format!("The baseline, {base}, is the fastest.{next}");
    }
    let ratio = ratio(best);
    format!("{name} is the fastest: it takes {ratio} of the time of the baseline, {base}.{peers}")
}

/// Returns whether no arm is shown to be faster than the baseline by more than the noise.
fn is_tie(cell: &CellSection, best: &ArmSection, baseline: &ArmSection) -> bool {
    let others_among_best = cell.counted().any(|arm| arm.at != baseline.at && arm.summary.among_best);
    if baseline.summary.among_best && others_among_best {
        return true;
    }
    let floor = cell.noise.map_or(0.0, |(_, noise)| noise.floor);
    best.at != baseline.at
        && best.summary.ratio.is_some_and(|ratio| ratio.high >= 1.0 || ratio.median * (1.0 + floor) > 1.0)
}

/// Formats the ratio of the fastest arm other than the baseline.
fn next(cell: &CellSection, baseline: &ArmSection) -> String {
    let next = cell.counted().find(|arm| arm.at != baseline.at);
    next.map_or(String::new(), |arm| {
        format!(" The fastest of the others, {}, takes {} of its time.", arm.name, ratio(arm))
    })
}

fn ratio(arm: &ArmSection) -> String {
    format!(r#"<span data-at="{}">{}</span>"#, arm.at, arm.interval("ratio"))
}

/// Names the other arms that may be as fast, or their number if there are many.
fn peers(cell: &CellSection, best: &ArmSection) -> String {
    let peers = cell.counted().filter(|arm| arm.at != best.at && arm.summary.among_best);
    let peers: Vec<&str> = peers.map(|arm| arm.name.as_str()).collect();
    match peers.as_slice() {
        [] => String::new(),
        [.., _] if peers.len() > NAMED_MAX => format!(" {} others may be as fast.", peers.len()),
        [one] => format!(" {one} may be as fast."),
        [first @ .., last] => format!(" {} and {last} may be as fast.", first.join(", ")),
    }
}
