//! Tests of the argument parser.

use super::*;

fn read(line: &str) -> Result<BenchAction, String> {
    let words = line.split_whitespace().map(OsString::from);
    parse(words, Charset::Ascii).map_err(|end| match end {
        ArgsEnd::Misuse(message) => String::from_utf8_lossy(&message).into_owned(),
        ArgsEnd::Information(information) => format!("{information:?}"),
    })
}

fn bench(line: &str) -> BenchArgs {
    match read(line) {
        Ok(BenchAction::Bench(args)) => *args,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_defaults_are_the_published_protocol() {
    let args = bench("write");
    assert_eq!((args.size, args.block, args.direct, args.sync), (1 << 30, 4096, false, false));
    assert_eq!((args.workload, args.blocks, args.caches), (Workload::Write, 10, vec![CacheState::Any]));
    assert_eq!((bench("read").block, bench("random-read").block), (128 << 10, 4096));
    let args = bench("random-write");
    assert_eq!((args.size, args.block, args.caches), (256 << 20, 4096, vec![CacheState::Any]));
    let args = bench("mixed");
    assert_eq!((args.size, args.block, args.read_percent), (256 << 20, 4096, 70));
    assert_eq!((bench("mixed --read 5%").read_percent, bench("mixed --read=100").read_percent), (5, 100));
}

#[test]
fn reading_is_both_warm_and_cold_unless_one_is_named() {
    assert_eq!(bench("read").caches, [CacheState::Warm, CacheState::Cold]);
    assert_eq!(bench("read --cache=cold").caches, [CacheState::Cold]);
    assert_eq!(bench("read --direct").caches, [CacheState::Any]);
    assert_eq!(bench("mixed").caches, [CacheState::Warm, CacheState::Cold]);
}

#[test]
fn a_server_has_files_of_one_block_in_40_mib() {
    let args = bench("serve");
    assert_eq!((args.workload, args.size, args.block), (Workload::Serve, 40 << 20, 4096));
    assert_eq!(args.caches, [CacheState::Warm, CacheState::Cold]);
    assert_eq!((args.rate, bench("serve --rate 5000").rate), (0, 5000));
    assert_eq!(read("read --rate 5").unwrap_err(), "--rate is for serve");
    assert_eq!(read("serve --rate 10000001").unwrap_err(), "--rate is at most 10000000");
    assert_eq!(
        read("advise --rate 5").unwrap_err(),
        "--rate is not for advise, which asks about all workloads"
    );
}

#[test]
fn sizes_lists_and_targets_are_read() {
    let args = bench("write --size 64M --block=1kB --models uring,pool --lang c,zig --csv --json=x.json");
    assert_eq!((args.size, args.block), (64 << 20, 1000));
    assert_eq!(
        (args.models, args.langs),
        (vec![Model::Uring(None), Model::Pool], vec!["c".into(), "zig".into()])
    );
    assert_eq!(
        (args.targets.csv, args.targets.json),
        (Some(ReportTarget::Output), Some(ReportTarget::File("x.json".into())))
    );
    assert_eq!(bench("write --lang all").langs.len(), 11);
}

#[test]
fn advice_is_about_a_directory() {
    let Ok(BenchAction::Advise(args)) = read("advise /srv --validate --save --json=a.json") else { panic!() };
    assert_eq!((args.path, args.validate), ("/srv".into(), Some(BLOCKS_VALIDATE)));
    assert_eq!(
        (args.save, args.json),
        (Some(ReportTarget::Output), Some(ReportTarget::File("a.json".into())))
    );
    let Ok(BenchAction::Advise(args)) = read("advise --validate --blocks 3") else { panic!() };
    assert_eq!((args.path, args.validate, args.save), (".".into(), Some(3), None));
}

#[test]
fn senseless_combinations_are_rejected() {
    for (line, said) in [
        ("", "missing operand: the workload"),
        ("wirte", "unknown workload 'wirte'"),
        ("write more", "extra operand 'more'"),
        ("write --size 0", "--size must be at least 1"),
        ("write --size x", "invalid --size argument 'x'"),
        ("write --block=5q", "invalid suffix in --block argument '5q'"),
        ("write --cache warm", "--cache is for workloads that read"),
        ("random-write --cache cold", "--cache is for workloads that read"),
        ("random-write --lang c", "--lang is not for this workload"),
        ("mixed --lang c", "--lang is not for this workload"),
        ("random-read --read 50", "--read is for mixed"),
        ("mixed --read 101", "invalid argument '101' for '--read': a percentage, from 0 to 100"),
        ("mixed --read 7.5", "invalid argument '7.5' for '--read': a percentage, from 0 to 100"),
        ("advise --read 50", "--read is not for advise, which asks about all workloads"),
        ("write --direct --block 1000", "with --direct, --size and --block must be multiples of 512"),
        ("serve --direct", "--direct and --sync are not for this workload"),
        ("copy --lang c", "--lang is not for this workload"),
        ("write --csv --json", "--csv and --json cannot both go to standard output"),
        ("write --seed -1", "invalid --seed argument '-1'"),
        ("compare one.json", "missing operand: two runs"),
        ("advise . more", "extra operand 'more'"),
        ("advise --size 1M", "--size is not for advise, which asks about all workloads"),
        ("advise --blocks 3", "--blocks is not for advise, which asks about all workloads"),
        ("write --save", "--validate, --quick and --save are for advise"),
    ] {
        assert_eq!(read(line).unwrap_err(), said, "{line}");
    }
    assert!(read("write --models uring,zfs").unwrap_err().contains("'zfs'"));
    assert!(read("write --blocks 0").unwrap_err().contains("at least 1"));
}

fn commands(line: &str) -> CommandsArgs {
    match read(line) {
        Ok(BenchAction::Commands(args)) => args,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn commands_follow_dashes_and_have_the_names_that_they_are() {
    let args = commands("run --blocks 3 --prepare sync -- du -s . -- find . -name x'y -- du -s .");
    let names: Vec<&str> = args.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["du -s .", "find . -name 'x'\\''y'", "du -s . #3"]);
    assert!(args.arms.iter().all(|arm| arm.prepare.as_deref() == Some("sync".as_ref())));
    assert_eq!((args.arms[1].words.len(), args.blocks, args.same_output), (4, 3, SameOutput::Noted));
    let args = commands("run --name a --name b --prepare x --prepare y --same-output=lines -- true -- false");
    let prepared = |at: usize| args.arms[at].prepare.as_deref().and_then(|text| text.to_str());
    assert_eq!((args.arms[1].name.as_str(), prepared(0), prepared(1)), ("b", Some("x"), Some("y")));
    assert_eq!(args.same_output, SameOutput::Lines);
    assert_eq!(commands("run --same-output -- true").same_output, SameOutput::Bytes);
}

#[test]
fn senseless_command_lines_of_run_are_rejected() {
    for (line, cause) in [
        ("run", "missing operand: commands, each after a '--'"),
        ("run --", "missing operand: commands, each after a '--'"),
        ("run -- -- true", "missing operand: commands, each after a '--'"),
        ("run true -- false", "extra operand 'true'"),
        ("run --size 1M -- true", "--size is not for run, which measures commands"),
        ("run --validate -- true", "--validate is not for run, which measures commands"),
        ("run --name a -- true -- false", "--name is for each command: 1 are given for 2 commands"),
        ("run --name a --name a -- true -- false", "--name is given twice as 'a'"),
        (
            "run --prepare a --prepare b -- true",
            "--prepare is for all commands, or each command: 2 are given for 1 commands",
        ),
        ("run --output=x -- true", "invalid argument 'x'"),
        ("write --prepare sync", "--prepare is not for this workload, but for run"),
        ("write -- --size", "extra operand '--size'"),
        ("advise --same-output", "--same-output is not for this workload, but for run"),
    ] {
        let said = read(line).unwrap_err();
        assert!(said.starts_with(cause), "{line}: {said}");
    }
}
