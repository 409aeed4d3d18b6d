//! Tests of every message, of the order of evaluation, and of the effect of each option.

use super::*;
use crate::du::additions::GroupProperty;
use crate::shared::flag::ValueKind;
use fathom_io::Model;

fn invocation(scope: Scope) -> Invocation {
    let name: &[u8] = if scope == Scope::Full { b"fathom du" } else { b"du" };
    Invocation { name: name.to_vec(), scope, charset: Charset::Ascii }
}

/// Parses words separated by blanks. Words with a `=` before the first option are variables.
fn read(scope: Scope, line: &str) -> ParseOutcome {
    let (mut variables, mut words) = (Vec::new(), Vec::new());
    for word in line.split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if words.is_empty() && !word.starts_with('-') => {
                variables.push((name, value))
            }
            _ => words.push(OsString::from(word)),
        }
    }
    let env = |name: &str| {
        let found = variables.iter().find(|variable| variable.0 == name);
        found.map(|variable| variable.1.as_bytes().to_vec())
    };
    parse(&invocation(scope), words.into_iter(), &env)
}

fn run_as(scope: Scope, line: &str) -> DuArgs {
    let outcome = read(scope, line);
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "", "{line}");
    match outcome.action {
        DuAction::Run(args) => *args,
        other => panic!("{line}: {other:?}"),
    }
}

fn run(line: &str) -> DuArgs {
    run_as(Scope::Original, line)
}

fn run_full(line: &str) -> DuArgs {
    run_as(Scope::Full, line)
}

/// Returns the message before the reference to `--help`, which is present if `hint`.
fn failure_as(scope: Scope, line: &str, hint: bool) -> String {
    let outcome = read(scope, line);
    assert!(matches!(outcome.action, DuAction::Fail), "{line}: {outcome:?}");
    let text = String::from_utf8(outcome.stderr).unwrap();
    let name = String::from_utf8(invocation(scope).name).unwrap();
    let message = text.strip_suffix(&format!("Try '{name} --help' for more information.\n"));
    assert_eq!(message.is_some(), hint, "{line}: {text}");
    message.unwrap_or(&text).to_string()
}

fn usage(line: &str) -> String {
    failure_as(Scope::Original, line, true)
}

fn fatal(line: &str) -> String {
    failure_as(Scope::Original, line, false)
}

fn warning(line: &str) -> String {
    let outcome = read(Scope::Original, line);
    assert!(matches!(outcome.action, DuAction::Run(_)), "{line}: {outcome:?}");
    String::from_utf8(outcome.stderr).unwrap()
}

fn size(args: &DuArgs, bytes: u64) -> String {
    let mut out = Vec::new();
    args.format.block_size.write(bytes, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn without_arguments_the_current_directory_is_measured_in_kibibytes() {
    let args = run("");
    assert_eq!(args.operands, OperandSource::Listed(vec![OsString::from(".")]));
    assert_eq!(args.options.measure, Measure::Usage);
    assert_eq!(args.options.depth_max, None);
    assert_eq!((args.options.follow, args.options.links), (Follow::Never, HardLinks::Once));
    assert!(args.options.exclude.is_empty() && !args.unit_chosen);
    assert_eq!((size(&args, 3000), args.format.terminator), ("3".into(), b'\n'));
}

#[test]
fn each_switch_sets_its_field_by_letter_and_by_name() {
    for line in ["-acSxl0 -L", "--all --total --separate-dirs --one-file --count --null --dereference"] {
        let args = run(line);
        let options = &args.options;
        assert!(options.all && options.total && options.separate_dirs && options.one_file_system, "{line}");
        assert_eq!((options.links, options.follow), (HardLinks::EachTime, Follow::Always), "{line}");
        assert_eq!(args.format.terminator, b'\0');
    }
}

#[test]
fn every_option_of_the_table_is_read() {
    for flag in FLAGS {
        let sample = match flag.own_key().unwrap_or(DuOption::All) {
            DuOption::ExcludeFrom => "/dev/null",
            DuOption::Time | DuOption::TimeStyle | DuOption::By => {
                flag.meta().map_or("", |meta| match meta.kind {
                    ValueKind::Words(words) => words[0],
                    ValueKind::Text | ValueKind::File => "",
                })
            }
            DuOption::Color | DuOption::Progress | DuOption::Io => "auto",
            _ => "1",
        };
        let short = flag.short.map(|short| format!("-{}", char::from(short)));
        for spelling in short.into_iter().chain(flag.long.map(|long| format!("--{long}"))) {
            let joint = if spelling.starts_with("--") { "=" } else { "" };
            let line = if flag.meta().is_some() { format!("{spelling}{joint}{sample}") } else { spelling };
            let outcome = read(Scope::Full, &line);
            assert!(!matches!(outcome.action, DuAction::Fail), "{line}: {outcome:?}");
        }
    }
}

#[test]
fn the_last_of_the_dereferencing_options_wins() {
    for (line, follow) in [
        ("-L -P", Follow::Never),
        ("-P -D", Follow::Operands),
        ("-L -H", Follow::Operands),
        ("-D --dereference", Follow::Always),
        ("-L --no-dereference", Follow::Never),
        ("-P --dereference-args", Follow::Operands),
    ] {
        assert_eq!(run(line).options.follow, follow, "{line}");
    }
}

#[test]
fn the_last_unit_wins_and_the_apparent_size_of_b_stays() {
    for (line, text) in [
        ("-h", "2.5M"),
        ("-h -k", "2500"),
        ("-k -m", "3"),
        ("-m --si", "2.6M"),
        ("--si -B1000", "2560"),
        ("-BK --human", "2.5M"),
        ("-b --block-size=MB", "3MB"),
        ("-BM -b", "2560000"),
    ] {
        let args = run(line);
        assert_eq!(size(&args, 2_560_000), text, "{line}");
        assert!(args.unit_chosen);
        let measure =
            if line.contains("-b ") || line.ends_with("-b") { Measure::Apparent } else { Measure::Usage };
        assert_eq!(args.options.measure, measure, "{line}");
    }
}

#[test]
fn the_environment_chooses_the_unit_unless_an_option_does() {
    assert_eq!(size(&run("DU_BLOCK_SIZE=1 BLOCK_SIZE=512"), 1024), "1024");
    assert_eq!(size(&run("POSIXLY_CORRECT=1"), 1024), "2");
    assert_eq!(size(&run("DU_BLOCK_SIZE=bad"), 1024), "1");
    assert_eq!(size(&run("DU_BLOCK_SIZE=1 -k"), 1024), "1");
    assert!(!run("DU_BLOCK_SIZE=1").unit_chosen);
}

#[test]
fn posixly_correct_makes_every_word_after_an_operand_an_operand() {
    let names = |line| match run(line).operands {
        OperandSource::Listed(names) => names,
        other => panic!("{other:?}"),
    };
    assert_eq!(names("POSIXLY_CORRECT= a -c"), ["a", "-c"]);
    assert_eq!(names("a -c b"), ["a", "b"]);
    assert_eq!(names("a -- -c -"), ["a", "-c", "-"]);
}

#[test]
fn depths_are_c_numbers() {
    for (line, depth) in [
        ("-d 3", Some(3)),
        ("--max-depth=0x10", Some(16)),
        ("-d010", Some(8)),
        ("-d1 -d +7", Some(7)),
        ("-d-1", Some(0)),
        ("-d 9223372036854775807", Some(9_223_372_036_854_775_807)),
        ("-s", Some(0)),
    ] {
        assert_eq!(run(line).options.depth_max, depth, "{line}");
    }
    for bad in ["1x", "08", "0x", "9223372036854775808", "--", "1k"] {
        assert_eq!(usage(&format!("-d {bad}")), format!("du: invalid maximum depth '{bad}'\n"));
    }
    assert_eq!(usage("--max-depth="), "du: invalid maximum depth ''\n");
}

#[test]
fn summarizing_conflicts() {
    assert_eq!(usage("-a -s"), "du: cannot both summarize and show all entries\n");
    assert_eq!(usage("-as -d1"), "du: cannot both summarize and show all entries\n");
    assert_eq!(usage("-s -d3"), "du: warning: summarizing conflicts with --max-depth=3\n");
    assert_eq!(usage("-d-1 -s"), "du: warning: summarizing conflicts with --max-depth=-1\n");
    assert_eq!(warning("-s -d0"), "du: warning: summarizing is the same as using --max-depth=0\n");
}

#[test]
fn inodes_make_apparent_sizes_pointless() {
    let text = "du: warning: options --apparent-size and -b are ineffective with --inodes\n";
    assert_eq!(warning("--inodes -b"), text);
    assert_eq!(warning("-A --inodes"), text);
    assert_eq!(run("--inodes").options.measure, Measure::Inodes);
    assert_eq!(run("-A").options.measure, Measure::Apparent);
}

#[test]
fn bad_sizes_end_the_reading_at_once_and_without_a_hint() {
    assert_eq!(fatal("-B0 --foo"), "du: invalid -B argument '0'\n");
    assert_eq!(fatal("--block=1x"), "du: invalid suffix in --block-size argument '1x'\n");
    assert_eq!(fatal("--block-size 99Y"), "du: --block-size argument '99Y' too large\n");
    assert_eq!(fatal("-t -0"), "du: invalid --threshold argument '-0'\n");
    assert_eq!(fatal("-t x"), "du: invalid -t argument 'x'\n");
    assert_eq!(fatal("--th=5x"), "du: invalid suffix in --threshold argument '5x'\n");
    assert_eq!(fatal("-d x -B0"), "du: invalid maximum depth 'x'\ndu: invalid -B argument '0'\n");
}

#[test]
fn thresholds_may_be_negative() {
    assert_eq!(run("-t -4K").options.threshold, Some(Threshold::AtMost(4096)));
    assert_eq!(run("--threshold=0").options.threshold, Some(Threshold::AtLeast(0)));
}

const TIME_WORDS: &str = "Valid arguments are:\n  - 'atime', 'access', 'use'\n  - 'ctime', 'status'\n";
const TIME_STYLES: &str = "Valid arguments are:\n  - full-iso\n  - long-iso\n  - iso\n  \
     - +FORMAT (e.g., +%H:%M) for a 'date'-style format\n";

#[test]
fn times() {
    assert_eq!(run("").options.time, None);
    assert_eq!(run("--time").options.time, Some(TimeField::Mtime));
    assert_eq!(run("--time=us").options.time, Some(TimeField::Atime));
    assert_eq!(run("--time=ctime --time").options.time, Some(TimeField::Mtime));
    assert_eq!(usage("--time=bad"), format!("du: invalid argument 'bad' for '--time'\n{TIME_WORDS}"));
    assert_eq!(usage("--time="), format!("du: ambiguous argument '' for '--time'\n{TIME_WORDS}"));
}

#[test]
fn a_time_style_matters_only_with_times() {
    run("--time-style=bad");
    run("TIME_STYLE=bad");
    assert_eq!(
        usage("--time --time-style=bad"),
        format!("du: invalid argument 'bad' for 'time style'\n{TIME_STYLES}")
    );
    assert_eq!(
        usage("TIME_STYLE= --time"),
        format!("du: ambiguous argument '' for 'time style'\n{TIME_STYLES}")
    );
    run("TIME_STYLE=bad --time --time-style=iso");
}

#[test]
fn time_style_in_the_environment_has_its_own_rules() {
    let epoch = |line: &str| {
        let mut out = Vec::new();
        run(line).format.time_style.write(0, 0, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(epoch("TZ=UTC TIME_STYLE=locale --time"), "1970-01-01 00:00");
    assert_eq!(epoch("TZ=UTC TIME_STYLE=posix-iso --time"), "1970-01-01");
    assert_eq!(epoch("TZ=UTC TIME_STYLE=+%d --time --time-style=+%Y"), "1970");
    assert_eq!(epoch("TZ=XYZ-2 TIME_STYLE=+%H%Z --time"), "02XYZ");
    usage("--time --time-style=locale");
    usage("--time --time-style=posix-iso");
}

#[test]
fn operands_in_a_file_exclude_others() {
    assert_eq!(run("--files0-from=x").operands, OperandSource::Files0From("x".into()));
    assert_eq!(
        usage("--files0-from=x it's z"),
        "du: extra operand 'it\\'s'\nfile operands cannot be combined with --files0-from\n"
    );
}

#[test]
fn pattern_files_are_read_and_their_faults_do_not_end_the_reading() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("patterns");
    std::fs::write(&path, "*.o\n").unwrap();
    let path = path.display();
    assert!(!run(&format!("-X {path}")).options.exclude.is_empty());
    assert!(!run("--exclude x").options.exclude.is_empty());
    assert_eq!(
        usage(&format!("-X {path}.not -q")),
        format!("du: {path}.not: No such file or directory\ndu: invalid option -- 'q'\n")
    );
    assert_eq!(usage("-X ."), "du: .: Is a directory\n");
    assert_eq!(usage("-X a:b"), "du: 'a:b': No such file or directory\n");
}

#[test]
fn every_misuse_is_told_before_the_hint() {
    assert_eq!(usage("-yz"), "du: invalid option -- 'y'\ndu: invalid option -- 'z'\n");
    assert_eq!(usage("--tree"), "du: unrecognized option '--tree'\n");
    assert_eq!(usage("--all=x"), "du: option '--all' doesn't allow an argument\n");
    assert_eq!(usage("--max-depth"), "du: option '--max-depth' requires an argument\n");
    assert_eq!(usage("-d"), "du: option requires an argument -- 'd'\n");
    assert_eq!(
        usage("--s"),
        "du: option '--s' is ambiguous; possibilities: '--si' '--separate-dirs' '--summarize'\n"
    );
    assert_eq!(
        usage("--t"),
        "du: option '--t' is ambiguous; possibilities: '--total' '--threshold' '--time' '--time-style'\n"
    );
    assert_eq!(usage("-q --max-depth=x -as"), "du: invalid option -- 'q'\ndu: invalid maximum depth 'x'\n");
}

#[test]
fn help_and_version_win_over_what_comes_later_not_over_what_came_before() {
    assert!(matches!(read(Scope::Original, "--help -q").action, DuAction::Inform(Information::Help)));
    assert!(matches!(read(Scope::Original, "-as --vers -q").action, DuAction::Inform(Information::Version)));
    let outcome = read(Scope::Original, "-q --help");
    assert!(matches!(outcome.action, DuAction::Inform(Information::Help)));
    assert_eq!(outcome.stderr, b"du: invalid option -- 'q'\n");
    assert_eq!(fatal("-B0 --help"), "du: invalid -B argument '0'\n");
}

#[test]
fn checks_come_in_gnus_order() {
    assert_eq!(
        usage("-s -d0 --inodes -A --time --time-style=x --files0-from=y z"),
        format!(
            "du: warning: summarizing is the same as using --max-depth=0\n\
             du: warning: options --apparent-size and -b are ineffective with --inodes\n\
             du: invalid argument 'x' for 'time style'\n{TIME_STYLES}"
        )
    );
    assert_eq!(usage("-s -d1 --inodes -A"), "du: warning: summarizing conflicts with --max-depth=1\n");
}

#[test]
fn messages_begin_with_the_name_the_program_was_called_by() {
    let invocation = Invocation { name: b"/x/du".to_vec(), scope: Scope::Original, charset: Charset::Utf8 };
    let outcome = parse(&invocation, ["-q", "-dx"].map(OsString::from).into_iter(), &|_| None);
    let text = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(
        text,
        "/x/du: invalid option -- 'q'\n/x/du: invalid maximum depth ‘x’\n\
         Try '/x/du --help' for more information.\n"
    );
}

#[test]
fn additions_are_read() {
    let extra = run_full("--io=uring=64 --threads 3 --verbose --json --color=never --progress").extra;
    assert_eq!(extra.model, Model::Uring(Some(64)));
    assert_eq!(extra.threads.map(|count| count.get()), Some(3));
    assert!(extra.verbose && extra.json);
    assert_eq!((extra.color, extra.progress), (ShowWhen::Never, ShowWhen::Always));
    assert_eq!(run_full("--progress=never").extra.progress, ShowWhen::Never);
    assert_eq!(run_full("--by=ext").extra.view, ViewKind::By(GroupProperty::Extension));
    assert_eq!(run_full("--tree --tree").extra.view, ViewKind::Tree);
    assert!(matches!(run_full("--top=3 --top 5").extra.view, ViewKind::Top(count) if count.get() == 5));
}

#[test]
fn without_additions_nothing_shows_on_a_terminal_either() {
    let extra = run("").extra;
    assert_eq!(
        (extra.progress, extra.color, extra.view),
        (ShowWhen::Never, ShowWhen::Never, ViewKind::Lines)
    );
    let extra = run_full("").extra;
    assert_eq!((extra.progress, extra.color, extra.model), (ShowWhen::Auto, ShowWhen::Auto, Model::Auto));
}

#[test]
fn bad_values_of_additions_are_told_with_the_good_ones() {
    let message = |line: &str| failure_as(Scope::Full, line, true);
    assert_eq!(
        message("--io=fast"),
        "fathom du: invalid argument 'fast' for '--io'\nValid arguments are:\n  - 'sync'\n  \
         - 'threads[=N]'\n  \
         - 'async-seq'\n  - 'async-par'\n  - 'uring[=DEPTH]'\n  - 'auto'\n\
         N and DEPTH are numbers from 1 to 4096\n"
    );
    let threads = "Valid arguments are:\n  - a number from 1 to 4096\n";
    for bad in ["0", "99999999999", "x"] {
        assert_eq!(
            message(&format!("--threads {bad}")),
            format!("fathom du: invalid argument '{bad}' for '--threads'\n{threads}")
        );
    }
    assert_eq!(
        message("--by="),
        "fathom du: ambiguous argument '' for '--by'\nValid arguments are:\n  - 'ext'\n  - 'user'\n  \
         - 'group'\n  - 'age'\n  - 'type'\n"
    );
    assert_eq!(message("--tree --by=ext"), "fathom du: cannot combine '--tree' and '--by'\n");
}

#[test]
fn additions_change_no_abbreviation() {
    let args = run_full("--by");
    assert_eq!((args.extra.view, args.options.measure), (ViewKind::Lines, Measure::Apparent));
    assert!(run_full("--to").options.total);
    assert_eq!(
        failure_as(Scope::Full, "--t", true),
        "fathom du: option '--t' is ambiguous; possibilities: '--total' '--threshold' '--time' \
         '--time-style'\n"
    );
    assert!(matches!(read(Scope::Full, "--ver").action, DuAction::Inform(Information::Version)));
    assert!(run_full("--verb").extra.verbose);
}
