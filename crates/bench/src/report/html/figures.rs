//! The figures with a row for each arm: ratios, latencies, single samples, and warm against cold
//! times. A figure without rows is empty.

use super::cells::{ArmSection, CellSection};
use super::figure::{Figure, FigureRow, MarkShape, segment, stroke, upright};
use super::markup::Escaped;
use super::number::Unit;
use super::scale::Scale;
use crate::{Interval, LatencyBucket, Row};

const SECONDS: Unit = Unit::Seconds(1.0);
const MICROS: Unit = Unit::Seconds(1e-6);
/// The middle of a track.
const MIDDLE: f64 = 50.0;

/// Formats the times of `cell` divided by the baseline's, with their intervals and the noise floor.
pub(super) fn ratios(cell: &CellSection) -> String {
    let ends = |ratio: Interval| [ratio.low, ratio.median, ratio.high];
    let ratios: Vec<f64> = cell
        .counted()
        .filter_map(|arm| arm.summary.ratio)
        .flat_map(ends)
        .filter(|ratio| !ratio.is_nan())
        .collect();
    let floor = cell.noise.map_or(0.0, |(_, noise)| noise.floor.max(0.0));
    let marked = [1.0, 1.0 / (1.0 + floor), 1.0 + floor];
    let scale = Scale::over(ratios.iter().copied().chain(marked)).filter(|_| !ratios.is_empty());
    let Some(scale) = scale else { return String::new() };
    let band_key = r#"<span class="key"><svg aria-hidden="true" width="14" height="14"><rect class="band" width="14" height="14"/></svg>less than the noise floor</span>"#;
    let is_ranked = cell.counted().any(|arm| arm.summary.among_best);
    let rank_key = |class, text| if is_ranked { MarkShape::Circle.key(class, text) } else { String::new() };
    let keys = [
        rank_key("best", "not shown to be slower than the fastest"),
        rank_key("other", "slower, or with too few samples"),
        MarkShape::Diamond.key("base", "baseline"),
        cell.noise.map_or(String::new(), |_| band_key.to_owned()),
    ];
    let row = |arm: &ArmSection| match arm.summary.ratio {
        Some(ratio) => (ratio_track(arm, &scale, ratio), arm.interval("ratio")),
        None => {
            let one = scale.place(1.0).map(|x| MarkShape::Diamond.mark((x, MIDDLE), "base", "baseline"));
            (one.unwrap_or_default(), "baseline".to_owned())
        }
    };
    Figure {
        title: "Ratios",
        caption: "Time in relation to the baseline; left of 1 is faster. The stroke is the 95\u{a0}% confidence interval.",
        keys: keys.concat(),
        axis: "time ÷ baseline",
        unit: Unit::Plain,
        ground: ratio_ground(&scale, marked),
    }
    .html(&scale, cell.counted().map(|arm| FigureRow::of(arm, row(arm))))
}

fn ratio_ground(scale: &Scale, [one, low, high]: [f64; 3]) -> String {
    let Some(one) = scale.place(one) else { return String::new() };
    let low = scale.place(low).unwrap_or(0.0);
    let band = scale.place(high).map_or(String::new(), |high| {
        format!(r#"<rect class="band" x="{low:.2}%" width="{:.2}%" y="0" height="100%"/>"#, high - low)
    });
    band + &upright("one", one)
}

fn ratio_track(arm: &ArmSection, scale: &Scale, ratio: Interval) -> String {
    let class = if arm.summary.among_best { "best" } else { "other" };
    let (bar, hint) = (format!("bar {class}"), Unit::Plain.show(ratio.median));
    let mark = scale.place(ratio.median).map(|x| MarkShape::Circle.mark((x, MIDDLE), class, &hint));
    // The end strokes are taller than the mark, so that a narrow interval stays visible.
    if ratio.low.is_nan() {
        return mark.unwrap_or_default();
    }
    let ends = [ratio.low, ratio.high].into_iter().filter_map(|value| scale.place(value));
    let ends: String = ends.map(|x| segment(&bar, (x, 28.0), (x, 72.0))).collect();
    ends + &stroke(scale, (ratio.low, ratio.high), &bar) + &mark.unwrap_or_default()
}

/// JSON key, name and shape of each percentile. The name is also the CSS class.
const PERCENTILES: [(&str, &str, MarkShape); 3] = [
    ("p50_us", "p50", MarkShape::Circle),
    ("p95_us", "p95", MarkShape::Diamond),
    ("p99_us", "p99", MarkShape::Triangle),
];

/// Formats three percentiles of single operations for each arm.
pub(super) fn latencies(cell: &CellSection) -> String {
    let percentiles = |arm: &ArmSection| [arm.summary.p50_us, arm.summary.p95_us, arm.summary.p99_us];
    let all = cell.counted().flat_map(percentiles).flatten();
    let Some(scale) = Scale::over(all) else { return String::new() };
    let row = |arm: &ArmSection| {
        let values = percentiles(arm);
        let known = values.into_iter().flatten();
        let ends =
            known.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (value.min(low), value.max(high)));
        let marks = PERCENTILES.iter().zip(values).filter_map(|((_, name, shape), value)| {
            let hint = format!("{name} {}", MICROS.show(value?));
            Some(shape.mark((scale.place(value?)?, MIDDLE), name, &hint))
        });
        let track = stroke(&scale, ends, "span") + &marks.collect::<String>();
        (track, PERCENTILES.map(|(key, ..)| arm.number(key)).join(" · "))
    };
    let timed = cell.counted().filter(|arm| percentiles(arm).iter().any(Option::is_some));
    Figure {
        title: "Latency of an operation",
        caption: "How long one operation takes: medians, over the samples, of three percentiles.",
        keys: PERCENTILES.map(|(_, name, shape)| shape.key(name, name)).concat(),
        axis: "latency",
        unit: MICROS,
        ground: String::new(),
    }
    .html(&scale, timed.map(|arm| FigureRow::of(arm, row(arm))))
}

/// Formats the histogram of the latencies of each arm. The fullest bucket has the whole height.
pub(super) fn histograms(cell: &CellSection) -> String {
    let ends = |bucket: &LatencyBucket| [bucket.below_us / 2.0, bucket.below_us];
    let all = cell.counted().flat_map(|arm| &arm.summary.histogram).flat_map(ends);
    let Some(scale) = Scale::log_over(all) else { return String::new() };
    let row = |arm: &ArmSection| {
        let most = arm.summary.histogram.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
        let bar = |bucket: &LatencyBucket| {
            let [low, high] = ends(bucket).map(|end| scale.place(end));
            let (low, high, share) = (low?, high?, bucket.count as f64 / most as f64 * 100.0);
            let (width, top) = (high - low, 100.0 - share);
            let hint = format!("{} below {}", bucket.count, MICROS.show(bucket.below_us));
            Some(format!(
                r#"<rect class="count" x="{low:.2}%" width="{width:.2}%" y="{top:.2}%" height="{share:.2}%"><title>{hint}</title></rect>"#
            ))
        };
        let timed: u64 = arm.summary.histogram.iter().map(|bucket| bucket.count).fold(0, u64::saturating_add);
        (arm.summary.histogram.iter().filter_map(bar).collect(), format!("{timed} timed"))
    };
    let timed = cell.counted().filter(|arm| !arm.summary.histogram.is_empty());
    Figure {
        title: "Latencies",
        caption: "How many of the timed operations took how long, over all samples, between powers of two.",
        keys: String::new(),
        axis: "latency",
        unit: MICROS,
        ground: String::new(),
    }
    .html(&scale, timed.map(|arm| FigureRow::of(arm, row(arm))))
}

/// Formats one mark for each sample of an arm, the first block on top, so that drift appears as a
/// slant.
pub(super) fn samples(cell: &CellSection) -> String {
    let samples = || cell.arms.iter().flat_map(|arm| &arm.samples);
    let Some(scale) = Scale::over(samples().map(|row| row.compared_s())) else { return String::new() };
    let blocks = samples().map(|row| row.block).max().unwrap_or(1);
    let row = |arm: &ArmSection| {
        let value = match arm.summary.discarded {
            0 => format!("{} counted", arm.number("runs")),
            _ => format!("{} counted, {} discarded", arm.number("runs"), arm.number("discarded")),
        };
        (arm.samples.iter().filter_map(|row| sample_mark(row, &scale, blocks)).collect(), value)
    };
    let sampled = cell.arms.iter().filter(|arm| !arm.samples.is_empty());
    Figure {
        title: "Single samples",
        caption: "One mark a sample; the first block is on top, so a slant is a drift.",
        keys: MarkShape::Circle.key("sample", "counted") + &MarkShape::Cross.key("discarded", "discarded"),
        axis: "time",
        unit: SECONDS,
        ground: String::new(),
    }
    .html(&scale, sampled.map(|arm| FigureRow::of(arm, row(arm))))
}

fn sample_mark(row: &Row, scale: &Scale, blocks: u32) -> Option<String> {
    let depth = f64::from(row.block.saturating_sub(1)) / f64::from(blocks.saturating_sub(1).max(1));
    // A fifth of the track's height is free above the first block and below the last one.
    let place = (scale.place(row.compared_s())?, 20.0 + depth.min(1.0) * 60.0);
    let hint = format!("block {}: {}", row.block, SECONDS.show(row.compared_s()));
    Some(if row.discarded.is_empty() {
        MarkShape::Circle.mark(place, "sample", &hint)
    } else {
        MarkShape::Cross.mark(place, "discarded", &format!("{hint}, discarded: {}", Escaped(&row.discarded)))
    })
}

/// Formats a figure for each pair of cells that differ only in the cache state.
pub(super) fn warm_cold(cells: &[CellSection]) -> String {
    let twin = |warm: &CellSection| {
        let is_cold = |cold: &&CellSection| cold.cache() == "cold";
        cells.iter().filter(is_cold).find(|cold| cold.name_without_cache() == warm.name_without_cache())
    };
    let warm = cells.iter().filter(|cell| cell.cache() == "warm");
    warm.filter_map(|warm| Some(warm_cold_pair(warm, twin(warm)?))).collect()
}

fn warm_cold_pair(warm: &CellSection, cold: &CellSection) -> String {
    let same = |arm: &ArmSection| cold.counted().find(|other| other.key() == arm.key());
    let pairs: Vec<_> = warm
        .counted()
        .filter_map(|arm| Some((arm, [arm, same(arm)?].map(|arm| arm.summary.seconds.median))))
        .collect();
    let Some(scale) = Scale::over(pairs.iter().flat_map(|(_, medians)| *medians)) else {
        return String::new();
    };
    let states = [(MarkShape::Circle, "warm"), (MarkShape::Square, "cold")];
    let row = |arm, [warm, cold]: [f64; 2]| {
        let marks = states.into_iter().zip([warm, cold]).filter_map(|((shape, class), value)| {
            Some(shape.mark(
                (scale.place(value)?, MIDDLE),
                class,
                &format!("{class} {}", SECONDS.show(value)),
            ))
        });
        let track = stroke(&scale, (warm, cold), "span") + &marks.collect::<String>();
        let times = Unit::Plain.show(cold / warm);
        let value = format!("{} → {}, {times}\u{a0}×", SECONDS.show(warm), SECONDS.show(cold));
        FigureRow { at: "", ..FigureRow::of(arm, (track, value)) }
    };
    Figure {
        title: &Escaped(&warm.name_without_cache()).to_string(),
        caption: "Median time of the same work with the file in the page cache, and without.",
        keys: states.map(|(shape, class)| shape.key(class, class)).concat(),
        axis: "time",
        unit: SECONDS,
        ground: String::new(),
    }
    .html(&scale, pairs.iter().map(|&(arm, medians)| row(arm, medians)))
}
