//! Runs as a table, as CSV and as JSON.

use std::fs;

use fathom_bench::report::{
    BarStyle, SCHEMA, csv, markdown_table, plain_csv, read, table, table_with_bars, to_json,
};
use fathom_bench::summary::summarise;
use fathom_bench::{Row, Run, UnavailableArm};
use proptest::prelude::*;

use crate::simulated::{arm, row};

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for block in 1..=11 {
        let time = 0.68 + 0.004 * f64::from(block);
        rows.push(row("blocking", block, time));
        rows.push(row("blocking (again)", block, time * if block % 2 == 0 { 1.01 } else { 0.992 }));
        let mut threads = row("10_threads_pwrite", block, time * 0.61);
        (threads.p99_us, threads.switches) = (Some(12.345), Some(70));
        rows.push(threads);
        let mut ring =
            row("10_threads_iouring_pwrite_128_entries", block, time * (1.9 + 0.01 * f64::from(block)));
        (ring.p99_us, ring.switches, ring.punted) = (Some(1234.5), Some(2345), Some(0.998));
        rows.push(ring);
    }
    let discarded = Row { discarded: "steal above 2 %".into(), ..row("blocking", 3, 9.0) };
    rows.extend([discarded.clone(), discarded]);
    rows
}

fn run() -> Run {
    let rows = rows();
    let cell = summarise(&rows, "write 1 GB in 1 MB blocks, warm", &arm("blocking"), 7);
    let unavailable = UnavailableArm { lang: "zig".into(), method: "uring".into(), reason: "no zig".into() };
    Run {
        schema: SCHEMA,
        program: "fathom 0.1.0".into(),
        command: "fathom bench write".into(),
        blocks: 11,
        machine: vec![("kernel".into(), "6.18".into())],
        notes: vec!["cold in the guest, \u{1b}[31mwarm on the host".into()],
        arms: cell.arms,
        noise: cell.noise.into_iter().collect(),
        unavailable: vec![unavailable],
        rows,
        ..Run::default()
    }
}

#[test]
fn bars_are_between_the_sentence_and_the_table() {
    let text = table_with_bars(&run(), BarStyle { columns: 100, is_ascii: true });
    let plain = table(&run());
    let (sentence, rest) = plain.split_once("\n\n").unwrap();
    let bars = text.strip_prefix(&format!("{sentence}\n\n")).unwrap().strip_suffix(rest).unwrap();
    let lines: Vec<_> = bars.lines().collect();
    // The axis, three arms, the noise, and an empty line.
    assert_eq!(lines.len(), 6, "{bars}");
    let [fast, base, slow] = [1, 2, 3].map(|at: usize| lines[at][36..].find('o').unwrap());
    assert!(fast < base && base < slow, "{bars}");
    assert!(lines.iter().all(|line| line.len() <= 100) && lines[4].ends_with(". noise: 5 %"), "{bars}");
}

#[test]
fn the_table_is_aligned_and_says_what_it_is_worth() {
    let expected = "\
write 1 GB in 1 MB blocks, warm
Use 10_threads_pwrite: at least 1.64 times as fast as blocking, with 0.610 [0.610, 0.610] of its time.

   arm                                    runs  seconds                 ratio   GB/s  CPU-s/GB  p99 us  switches/op  punted %
*  10_threads_pwrite                        11   0.4294  0.610 [0.610, 0.610]   2.33     0.215    12.3       0.0700         -
   blocking                                 11   0.7040                     -   1.42     0.352       -            -         -
   10_threads_iouring_pwrite_128_entries    11    1.380     1.96 [1.92, 2.00]  0.725     0.690    1230         2.35      99.8

* may be as fast as the fastest (noise: 5.0 %)
ratio: time divided by that of rust blocking, median over blocks [95 % interval]
noise floor: 1.0 %: blocking divided by itself is 0.992 [0.992, 1.01]

discarded: 2 of 46 samples
  2 of rust blocking: steal above 2 %
unavailable: zig uring: no zig
note: cold in the guest, \\u{1b}[31mwarm on the host
";
    assert_eq!(table(&run()), expected, "\n{}", table(&run()));
}

#[test]
fn without_bytes_the_table_has_operations_and_languages_come_if_there_are_two() {
    let stat = |lang: &str, block, seconds| Row {
        lang: lang.into(),
        size_bytes: 0,
        ..row("blocking", block, seconds)
    };
    let rows: Vec<Row> =
        (1..=6).flat_map(|block| [stat("rust", block, 0.001), stat("go", block, 0.004)]).collect();
    let run = Run { arms: summarise(&rows, "stat", &arm("blocking"), 1).arms, rows, ..Run::default() };
    let expected = "\
stat
Use blocking rust: nothing is faster. The next, blocking go, takes 4.00 [4.00, 4.00] times as long.

   lang  arm       runs   seconds              ratio    ops/s  CPU-s/Mop
*  rust  blocking     6  0.001000                  -  1000000      0.500
   go    blocking     6  0.004000  4.00 [4.00, 4.00]   250000       2.00

* may be as fast as the fastest (noise: 5.0 %)
ratio: time divided by that of rust blocking, median over blocks [95 % interval]

discarded: 0 of 12 samples
";
    assert_eq!(table(&run), expected, "\n{}", table(&run));
}

#[test]
fn a_table_without_samples_says_so() {
    assert_eq!(table(&Run::default()), "discarded: 0 of 0 samples\n");
}

#[test]
fn the_columns_are_the_fields_in_their_order() {
    let text = csv(&[]).unwrap();
    assert!(text.starts_with(
        "workload,lang,method,model,threads,depth,block_bytes,size_bytes,cache,direct,sync,block,seconds,bytes_per_s,cpu_s,"
    ));
    let mut reference = serde_json::to_string(&Row::default()).unwrap();
    reference.retain(|c| !"{}".contains(c));
    let names = reference.split(',').map(|field| field.split(':').next().unwrap().trim_matches('"'));
    assert!(text.trim_end().split(',').eq(names), "{text}");
}

#[test]
fn csv_has_a_line_a_sample_and_nothing_for_what_is_not_known() {
    let row = Row { discarded: "a \"b\", c".into(), p50_us: Some(1.5), ..row("x", 1, 0.5) };
    let text = csv(&[row.clone(), Row::default()]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    let expected = "write,rust,x,threads,1,1,1000000,1000000000,warm,false,none,1,0.5,2000000000.0,0.25,1,wait,0.0,0.0,\
                    ,,1000,2000.0,1,1.5,,,,,,,,,,,0.0,true,\"a \"\"b\"\", c\",,,false";
    let of_commands = lines[1].strip_prefix(expected).unwrap_or("another line");
    assert!(of_commands.chars().all(|c| c == ','), "{text}");
    assert!(lines[2].starts_with(",,,,0,0,0,0,,false,,0,0.0,"), "{}", lines[2]);
}

/// The DuckDB line of io-playground reads three columns without a header.
#[test]
fn plain_csv_has_the_columns_of_the_publication() {
    let gone = Row { discarded: "steal".into(), ..row("blocking", 2, 9.0) };
    let rows = [row("blocking", 1, 0.5), row("blocking (again)", 1, 0.7), gone, row("x", 1, 0.25)];
    assert_eq!(plain_csv(&rows), "blocking,0.5,2000000000\nx,0.25,4000000000\n");
    let go = Row { lang: "go".into(), ..row("x", 1, 0.5) };
    assert_eq!(plain_csv(&[row("x", 1, 0.5), go]), "rust x,0.5,2000000000\ngo x,0.5,2000000000\n");
    assert_eq!(plain_csv(&[]), "");
    let control = Row { lang: "control".into(), ..row("dd", 1, 0.5) };
    assert_eq!(plain_csv(&[row("null", 1, 0.5), control]), "dd,0.5,2000000000\n");
    let cold = Row { cache: "cold".into(), ..row("x", 1, 0.5) };
    let both = plain_csv(&[row("x", 1, 0.5), cold]);
    assert_eq!(both, "x (warm),0.5,2000000000\nx (cold),0.5,2000000000\n");
    let again = csv(&[row("blocking (again)", 1, 0.5)]).unwrap();
    let line = again.lines().nth(1).unwrap();
    assert!(line.starts_with("write,rust,blocking,") && field(&again, "second_copy") == "true", "{line}");
}

#[test]
fn a_table_can_be_markdown() {
    let text = markdown_table(&run());
    assert!(text.starts_with("### write 1 GB in 1 MB blocks, warm\n\nUse 10\\_threads\\_pwrite: "), "{text}");
    assert!(text.contains("| \\* | 10\\_threads\\_pwrite | 11 | 0.4294 |"), "{text}");
    assert!(text.ends_with("- note: cold in the guest, \\\\u{1b}\\[31mwarm on the host\n"), "{text}");
}

#[test]
fn a_run_is_read_as_it_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    // Numbers with an exact decimal representation, because parsing may be off by one in the 17th
    // digit.
    let mut run = run();
    run.rows
        .iter_mut()
        .for_each(|row| (row.seconds, row.bytes_per_s, row.ops_per_s, row.cpu_s) = (0.5, 1e9, 8.0, 0.25));
    run.arms = summarise(&run.rows, "cell", &arm("blocking"), 1).arms;
    run.noise.clear();
    fs::write(&file, to_json(&run).unwrap()).unwrap();
    assert_eq!(read(&file).unwrap(), run);
}

#[test]
fn a_run_that_cannot_be_read_back_is_not_written() {
    let mut run = run();
    run.rows[0].steal = f64::NAN;
    assert!(
        to_json(&run)
            .unwrap_err()
            .to_string()
            .starts_with("cannot write 'fathom bench write': invalid type: null")
    );
}

#[test]
fn a_file_that_is_no_run_is_reported_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    let cause = || read(&file).unwrap_err().to_string().replace(dir.path().to_str().unwrap(), "");
    assert_eq!(cause(), "cannot read '/a.json': No such file or directory");
    fs::write(&file, to_json(&run()).unwrap().replacen("\"schema\": 1", "\"schema\": 9", 1)).unwrap();
    assert_eq!(cause(), "cannot read '/a.json': its format has version 9, expected 1");
    fs::write(&file, b"\xff").unwrap();
    assert!(cause().starts_with("cannot read '/a.json': not a run saved by fathom bench: "), "{}", cause());
}

/// Parses a CSV record by the grammar of RFC 4180.
fn parse(text: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.next_if_eq(&'"').is_some() => field.push('"'),
            ('"', _) => quoted = !quoted,
            (',', false) => fields.push(std::mem::take(&mut field)),
            ('\n', false) => break,
            _ => field.push(c),
        }
    }
    fields.push(field);
    fields
}

/// Returns the field of the first sample below the name `name`.
fn field(text: &str, name: &str) -> String {
    let (head, record) = text.split_once('\n').unwrap();
    parse(record).swap_remove(head.split(',').position(|column| column == name).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: ProptestConfig::default().failure_persistence, ..fathom_cases::property(64) })]

    #[test]
    fn any_text_survives_csv(method in "\\PC*|[,\"\n\r a]*", reason in "[,\"\n\r a]*") {
        let row = Row { method: method.clone(), discarded: reason.clone(), ..Row::default() };
        let text = csv(&[row]).unwrap();
        prop_assert_eq!(field(&text, "method"), method);
        prop_assert_eq!(field(&text, "discarded"), reason);
    }

    /// A saved run is untrusted: any numbers and names must produce a table.
    #[test]
    fn any_run_has_a_table(method in "\\PC{0,9}|[\n\u{1b}\u{7}]*", value in prop::num::f64::ANY, among_best: bool) {
        let mut run = run();
        let arm = &mut run.arms[0];
        arm.method = method;
        (arm.seconds.median, arm.bytes_per_s, arm.p99_us, arm.among_best) = (value, value, Some(value), among_best);
        run.noise[0].floor = value;
        let text = table(&run);
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{}", text);
        let without_legend = usize::from(!run.arms.iter().any(|arm| arm.among_best));
        prop_assert_eq!(text.lines().count(), table(&self::run()).lines().count() - without_legend);
    }
}
