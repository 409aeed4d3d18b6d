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
    assert_eq!((args.deed, args.blocks, args.caches), (Workload::Write, 10, vec![CacheState::Any]));
    assert_eq!((bench("read").block, bench("random-read").block), (128 << 10, 4096));
}

#[test]
fn reading_is_both_warm_and_cold_unless_one_is_named() {
    assert_eq!(bench("read").caches, [CacheState::Warm, CacheState::Cold]);
    assert_eq!(bench("read --cache=cold").caches, [CacheState::Cold]);
    assert_eq!(bench("read --direct").caches, [CacheState::Any]);
}

#[test]
fn a_server_has_files_of_one_block_in_40_mib() {
    let args = bench("serve");
    assert_eq!((args.deed, args.size, args.block), (Workload::Serve, 40 << 20, 4096));
    assert_eq!(args.caches, [CacheState::Warm, CacheState::Cold]);
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
        (args.csv, args.json),
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
        ("write --direct --block 1000", "with --direct, --size and --block must be multiples of 512"),
        ("serve --direct", "--direct and --sync are not for this workload"),
        ("copy --lang c", "--lang is not for this workload"),
        ("write --csv --json", "--csv and --json cannot both go to standard output"),
        ("write --seed -1", "invalid --seed argument '-1'"),
        ("compare one.json", "missing operand: two runs"),
        ("advise . more", "extra operand 'more'"),
        ("advise --size 1M", "--size is not for advise, which asks about all workloads"),
        ("advise --blocks 3", "--blocks is not for advise, which asks about all workloads"),
        ("write --save", "--validate, --quick, --time and --save are for advise"),
    ] {
        assert_eq!(read(line).unwrap_err(), said, "{line}");
    }
    assert!(read("write --models uring,zfs").unwrap_err().contains("'zfs'"));
    assert!(read("write --blocks 0").unwrap_err().contains("at least 1"));
}
