//! The structure of the page, checked without a browser: its sections, and its safety for any run.

use fathom_bench::report::html::html;
use fathom_bench::report::{sentences, table, to_json};
use fathom_bench::{ArmSummary, Interval, LatencyBucket, Noise, Row, Run, UnavailableArm};
use proptest::prelude::*;

use crate::run::{HOSTILE, realistic};

/// Returns the texts of all elements called `name`.
fn texts<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let [start, end] = [format!("<{name}"), format!("</{name}>")];
    let found = page.split(&start).skip(1).filter(|rest| rest.starts_with(['>', ' ']));
    found.map(|rest| rest.split_once('>').unwrap().1.split(&end).next().unwrap()).collect()
}

#[test]
fn a_small_run_has_all_its_parts() {
    let run = small();
    let page = html(&run);
    assert_eq!(texts(&page, "h1"), ["read"]);
    assert_eq!(
        texts(&page, "h2"),
        [
            "In short",
            "read, warm",
            "read, cold",
            "Warm against cold",
            "Notes",
            "Not available",
            "Discarded",
            "Machine",
            "Run it again",
            "All samples"
        ]
    );
    let of_cell =
        ["Ratios", "Latency of an operation", "Throughput against operations in flight", "Single samples"];
    assert_eq!(texts(&page, "h3"), [&of_cell[..], &of_cell[..], &["read"]].concat());
    assert_eq!(texts(&page, "summary"), ["read, warm <small>3</small>", "read, cold <small>3</small>"]);
    assert_eq!(
        page.matches(
            "class=\"mark discarded\" d=\"M-4-4L4 4M-4 4L4-4\"><title>block 3: 2.00\u{a0}s, discarded: steal"
        )
        .count(),
        1
    );
    assert_eq!(page, html(&run));
}

#[test]
fn a_sentence_names_the_fastest_or_says_that_nothing_is() {
    let plain = |run: &Run| {
        let page = html(run);
        let sentence =
            texts(&page, "p").into_iter().find(|text| text.contains("astest") || text.contains("counted"));
        let mut text = String::new();
        for part in sentence.unwrap_or_default().split('<') {
            text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        }
        text
    };
    let mut run = small();
    assert_eq!(
        plain(&run),
        "pread is the fastest: it takes 0.500 [0.490, 0.510] of the time of the baseline, blocking."
    );
    // A noise floor of 1 or more is a factor of 2 or more, not a reason to say that all are equal.
    let of_floor = |floor: f64| {
        let mut run = run.clone();
        run.noise.iter_mut().for_each(|noise| noise.floor = floor);
        plain(&run)
    };
    assert_eq!(of_floor(0.9), plain(&run));
    assert!(of_floor(1.1).starts_with("No material difference: "), "{}", of_floor(1.1));
    run.arms[0].ratio = Some(Interval { median: 0.99, low: 0.97, high: 1.01 });
    let even = "No material difference: nothing is shown to be faster than the baseline, blocking, by more \
                than 5.0 %. The fastest of the others, pread, takes 0.990 [0.970, 1.01] of its time.";
    assert_eq!(plain(&run), even);
    run.arms.swap(0, 1);
    run.arms[0].among_best = true;
    run.arms[1].among_best = false;
    run.arms[1].ratio = Some(Interval { median: 2.0, low: 1.9, high: 2.1 });
    let baseline = "The baseline, blocking, is the fastest. The fastest of the others, pread, takes 2.00 [1.90, 2.10] of its time.";
    assert_eq!(plain(&run), baseline);
    run.arms[0].runs = 0;
    run.arms[1].runs = 0;
    assert_eq!(plain(&run), "No sample was counted, so nothing can be said.");
}

/// Text without tags.
fn stripped(html: &str) -> String {
    let parts = html.split('<').enumerate();
    parts.map(|(at, part)| if at == 0 { part } else { part.split_once('>').unwrap().1 }).collect()
}

type RunChange = fn(&mut Run);

/// The page said "No material difference" of a cell for which the terminal advised a gain.
#[test]
fn table_json_and_page_have_the_same_words_for_runs_of_every_kind() {
    let changes: [(&str, RunChange); 10] = [
        ("is the fastest: it takes 0.500", |_| {}),
        ("No material difference: ", |run| run.noise[0].floor = 1.5),
        ("No material difference: ", |run| {
            run.arms[0].ratio = Some(Interval { median: 0.9, low: 0.8, high: 1.1 })
        }),
        ("No material difference: ", |run| {
            run.arms[0].ratio = Some(Interval { median: 0.97, low: 0.96, high: 0.98 });
            run.arms[1].among_best = true;
        }),
        // Two copies of the baseline differ more than most arms, and less than this one.
        ("is the fastest: it takes 0.300", |run| {
            run.noise[0].floor = 1.2;
            run.arms[0].ratio = Some(Interval { median: 0.3, low: 0.25, high: 0.5 });
            run.arms[1].among_best = true;
        }),
        ("No sample was counted", |run| run.arms.iter_mut().for_each(|arm| arm.runs = 0)),
        ("Only ", |run| run.arms[1].runs = 0),
        ("5 blocks are too few", |run| run.arms.iter_mut().for_each(|arm| arm.runs = 5)),
        ("there is no baseline to relate it to", |run| {
            run.arms[1].ratio = Some(Interval { median: 1.0, low: 0.9, high: 1.1 });
        }),
        ("The baseline, blocking", |run| {
            run.arms[0].among_best = false;
            run.arms[0].ratio = Some(Interval { median: 2.0, low: 1.9, high: 2.1 });
            run.arms.swap(0, 1);
        }),
    ];
    for (at, (words, change)) in changes.into_iter().enumerate() {
        for languages in [false, true] {
            let mut run = small();
            change(&mut run);
            if languages {
                run.arms[3].lang = "go".into();
            }
            let sentence = sentences(&run)[0].sentence.clone();
            assert!(sentence.contains(words), "{at}: {sentence}");
            let page = html(&run);
            let shown: Vec<String> = texts(&page, "p").into_iter().map(stripped).collect();
            assert!(shown.contains(&sentence), "{at}: {sentence} is not in {shown:?}");
            assert!(table(&run).contains(&format!("\n{sentence}\n")), "{at}: {}", table(&run));
            let json: serde_json::Value = serde_json::from_str(&to_json(&run).unwrap()).unwrap();
            assert_eq!(json["findings"][0]["sentence"], sentence, "{at}");
        }
    }
}

/// Models had the colours of their places within a cell.
#[test]
fn a_model_has_one_colour_on_the_page() {
    let mut run = small();
    run.arms.retain(|arm| arm.method != "blocking");
    for (at, (cell, model, threads)) in [
        ("read, warm", "uring", 1),
        ("read, warm", "uring", 8),
        ("read, cold", "uring", 1),
        ("read, cold", "uring", 8),
    ]
    .into_iter()
    .enumerate()
    {
        let arm = ArmSummary {
            cell: cell.into(),
            model: model.into(),
            method: format!("ring {at}"),
            threads,
            ..run.arms[0].clone()
        };
        // The fastest in one cell, the slowest in the other.
        if cell == "read, warm" { run.arms.insert(0, arm) } else { run.arms.push(arm) }
    }
    let page = html(&run);
    let classes: Vec<&str> = page
        .match_indices(">uring</span>")
        .map(|(at, _)| {
            let before = &page[..at];
            let class = &before[before.rfind("class=\"mark s").expect("a mark") + 12..];
            class.split('"').next().unwrap()
        })
        .collect();
    assert_eq!(classes, ["s1"; 2], "threads come first in the palette");
}

#[test]
fn a_run_without_arms_says_so() {
    let page = html(&Run::default());
    assert_eq!(texts(&page, "h1"), ["nothing measured"]);
    assert!(page.contains("This run has no arms: nothing was measured."));
    assert!(!page.contains("<figure"));
}

#[test]
fn hostile_names_are_text() {
    let page = html(&realistic());
    assert!(!page.contains(HOSTILE) && !page.contains("alert(2)</script>"));
    assert!(page.contains("<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>"));
    assert_eq!(foreign_tags(&page), [""; 0]);
}

/// Returns the tags that the page itself does not use.
fn foreign_tags(page: &str) -> Vec<&str> {
    const OWN: [&str; 44] = [
        "!DOCTYPE",
        "html",
        "head",
        "meta",
        "link",
        "title",
        "style",
        "body",
        "header",
        "main",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "a",
        "ul",
        "li",
        "dl",
        "div",
        "dt",
        "dd",
        "span",
        "small",
        "code",
        "pre",
        "wbr",
        "figure",
        "figcaption",
        "svg",
        "line",
        "rect",
        "path",
        "text",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "script",
    ];
    let tags = page.split('<').skip(1).map(|tag| tag.trim_start_matches('/'));
    let names = tags.map(|tag| tag.split([' ', '>', '\n']).next().unwrap());
    names.filter(|name| !OWN.contains(name)).collect()
}

/// Returns the attributes of drawings that are not a length of 0 to 100 percent or pixels.
fn wild_places(page: &str) -> Vec<&str> {
    let drawn = page
        .split('<')
        .filter(|tag| ["line ", "svg ", "rect ", "text "].iter().any(|name| tag.starts_with(name)));
    let values = drawn.flat_map(|tag| tag.split('>').next().unwrap().split(' ')).filter_map(|part| {
        let (name, value) = part.split_once("=\"")?;
        ["x", "y", "x1", "x2", "y1", "y2", "width", "height"]
            .contains(&name)
            .then(|| value.trim_end_matches(['"', '/']))
    });
    let is_tame = |value: &&str| {
        let number = value.trim_end_matches(['%', 'e', 'm']).parse::<f64>();
        number.is_ok_and(|number| number.is_finite() && (0.0..=100.0).contains(&number))
    };
    values.filter(|value| !is_tame(value)).collect()
}

fn small() -> Run {
    let interval = |median: f64| Interval { median, low: median * 0.98, high: median * 1.02 };
    let mut run = Run { schema: 1, blocks: 3, command: "fathom bench read".into(), ..Run::default() };
    run.notes = vec!["A note.".into()];
    run.machine = vec![("cpu".into(), "one".into())];
    run.unavailable =
        vec![UnavailableArm { lang: "rust".into(), method: "uring".into(), reason: "no".into() }];
    for cache in ["warm", "cold"] {
        for (method, threads, ratio) in [("pread", 2, Some(interval(0.5))), ("blocking", 1, None)] {
            run.arms.push(ArmSummary {
                cell: format!("read, {cache}"),
                lang: "rust".into(),
                method: method.into(),
                model: "threads".into(),
                threads,
                depth: 1,
                cache: cache.into(),
                runs: 6,
                seconds: interval(if threads == 2 { 1.0 } else { 2.0 }),
                ratio,
                among_best: threads == 2,
                bytes_per_s: 1e9 * f64::from(threads),
                p50_us: Some(4.0),
                ..ArmSummary::default()
            });
        }
        for block in 1..=3 {
            run.rows.push(Row {
                workload: "read".into(),
                lang: "rust".into(),
                method: "pread".into(),
                model: "threads".into(),
                threads: 2,
                depth: 1,
                cache: cache.into(),
                block,
                seconds: if block == 3 { 2.0 } else { 1.0 },
                discarded: if (block, cache) == (3, "cold") { "steal".into() } else { String::new() },
                ..Row::default()
            });
        }
        run.noise.push(Noise {
            cell: format!("read, {cache}"),
            method: "blocking".into(),
            ratio: interval(1.0),
            floor: 0.02,
        });
    }
    run
}

/// Any float, with preference for plausible values.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        1e-3..1e3,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(0.0),
        Just(5e-324),
        Just(f64::MAX)
    ]
}

fn interval() -> impl Strategy<Value = Interval> {
    [number(), number(), number()].prop_map(|[median, low, high]| Interval { median, low, high })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", any::<String>(), "[<>&\"'/a-z_ =-]{0,12}"]
}

fn summary() -> impl Strategy<Value = ArmSummary> {
    let names =
        (prop_oneof!["read, (warm|cold)", name()], name(), name(), prop_oneof!["(warm|cold)", name()]);
    let ratios = (interval(), prop::option::of(interval()), prop::option::of(interval()), any::<bool>());
    let numbers = prop::collection::vec(number(), 8);
    (names, ratios, numbers, any::<u32>(), any::<u32>(), 0..3_u32).prop_map(
        |(names, ratios, numbers, threads, depth, runs)| ArmSummary {
            cell: names.0,
            lang: names.1.clone(),
            method: names.2.clone(),
            model: names.2,
            threads,
            depth,
            cache: names.3,
            runs,
            seconds: ratios.0,
            ratio: ratios.1,
            ratio_to_best: ratios.2,
            among_best: ratios.3,
            bytes_per_s: numbers[0],
            ops_per_s: numbers[1],
            cpu_s_per_gb: Some(numbers[2]),
            cpu_s_per_million_ops: numbers[3],
            p50_us: Some(numbers[4]),
            p95_us: Some(numbers[5]),
            p99_us: (runs > 1).then_some(numbers[6]),
            punted: Some(numbers[7]),
            ..ArmSummary::default()
        },
    )
}

fn any_run() -> impl Strategy<Value = Run> {
    let arms = prop::collection::vec(summary(), 0..6);
    let samples =
        prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), number(), name()), 0..12);
    (arms, samples, number(), name()).prop_map(|(arms, samples, floor, text)| {
        let row = |(at, block, seconds, discarded): (prop::sample::Index, u32, f64, String)| {
            let arm: &ArmSummary = at.get(&arms);
            let workload = arm.cell.split(' ').next().unwrap().to_owned();
            let (lang, method, model) = (arm.lang.clone(), arm.method.clone(), arm.model.clone());
            let (threads, depth, cache) = (arm.threads, arm.depth, arm.cache.clone());
            Row {
                workload,
                lang,
                method,
                model,
                threads,
                depth,
                cache,
                block,
                seconds,
                discarded,
                ..Row::default()
            }
        };
        let rows = if arms.is_empty() { Vec::new() } else { samples.into_iter().map(row).collect() };
        let noise =
            arms.iter().map(|arm| Noise { cell: arm.cell.clone(), floor, ..Noise::default() }).collect();
        let machine = vec![(text.clone(), text.clone())];
        Run { notes: vec![text.clone()], command: text, machine, noise, rows, arms, ..Run::default() }
    })
}

proptest! {
    #![proptest_config(fathom_cases::property(256))]

    #[test]
    fn no_run_breaks_the_page(run in any_run()) {
        let page = html(&run);
        prop_assert_eq!(wild_places(&page), Vec::<&str>::new());
        prop_assert_eq!(foreign_tags(&page), Vec::<&str>::new());
        prop_assert_eq!(page.matches("<script").count(), 1);
        prop_assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        prop_assert_eq!(&page, &html(&run));
    }
}

#[test]
fn an_invalid_position_and_a_foreign_tag_are_found() {
    let page = r#"<svg width="NaN%"><line x1="inf%" x2="4.00%" y1="-3"/></svg><img src=x><script>"#;
    assert_eq!(wild_places(page), ["NaN%", "inf%", "-3"]);
    assert_eq!(foreign_tags(page), ["img"]);
}

#[test]
fn a_histogram_has_a_bar_for_each_bucket_and_is_left_out_without_any() {
    let mut run = small();
    assert!(!html(&run).contains("<h3>Latencies</h3>"));
    let bucket = |below_us, count| LatencyBucket { below_us, count };
    run.arms[0].histogram = vec![bucket(1.024, 3), bucket(2.048, 1), bucket(f64::MAX, 2)];
    let page = html(&run);
    assert_eq!(page.matches("<rect class=\"count\"").count(), 2, "no axis shows the third");
    for height in ["height=\"100.00%\"><title>3 below ", "height=\"33.33%\"><title>1 below "] {
        assert!(page.contains(height), "{height}");
    }
}
