//! The man pages and completion scripts that the program prints are well-formed: mandoc, groff and
//! each shell accept them.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use fathom_io::{Model, Use};
use tempfile::TempDir;

const SHELLS: [&str; 4] = ["bash", "fish", "powershell", "zsh"];

/// Returns the names of all man pages.
fn pages() -> Vec<String> {
    let pages = String::from_utf8(fathom(&["man"])).expect("names are text");
    pages.lines().map(str::to_owned).collect()
}

/// Returns the commands that a help lists.
fn commands(words: &[&str]) -> Vec<String> {
    let help = String::from_utf8(fathom(words)).expect("the help is text");
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    names
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_command_with_options_of_its_own_has_a_page() {
    let own = commands(&["--help"]).into_iter();
    let below = ["bench-advise", "bench-run", "bench-compare"].map(str::to_owned);
    let mut expected: Vec<_> = own.chain(below).map(|name| format!("fathom-{name}")).collect();
    expected.push("fathom".to_owned());
    expected.sort();
    let mut pages = pages();
    pages.sort();
    assert_eq!(pages, expected);
    assert_eq!(commands(&["bench", "--help"])[..4], ["advise", "run", "compare", "write"]);
}

fn fathom<W: AsRef<OsStr> + Debug>(words: &[W]) -> Vec<u8> {
    let program = env::var_os("FATHOM_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_fathom").into());
    let output = Command::new(program).args(words).output().expect("the program runs");
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

/// Returns the text that the program prints for `words`.
fn printed(words: [&str; 2]) -> String {
    String::from_utf8(fathom(&words)).expect("the document is text")
}

/// Writes the completion script for `shell` to a file of a new directory.
fn script(shell: &str) -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let file = temp.path().join(shell);
    fs::write(&file, fathom(&["completions", shell])).expect("the directory is writable");
    (temp, file)
}

/// Runs a program that checks a document. Returns `None` and prints a skip message if it is not
/// installed.
fn checker(program: &str, words: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(words).output();
    if output.is_err() {
        println!("skipped: {program} is not installed");
    }
    output.ok()
}

#[test]
fn models_are_in_the_pages_and_completions_of_the_commands_that_take_them() {
    let walk = |model: &Model| model.has(Use::Metadata);
    let serve = |model: &Model| model.has(Use::Serve);
    let all: fn(&Model) -> bool = |_| true;
    for (page, takes) in [
        ("du", walk as fn(&Model) -> bool),
        ("list", walk),
        ("scan", walk),
        ("serve", serve),
        ("bench", all),
        ("io", all),
    ] {
        let page = printed(["man", &format!("fathom-{page}")]);
        for model in Model::ALL {
            let entry = format!(".TP\n\\fB{}\\fR", model.name().replace('-', "\\-"));
            assert_eq!(page.contains(&entry), takes(&model), "{model}");
        }
    }
    for shell in SHELLS {
        let script = printed(["completions", shell]);
        for wanted in [Use::Metadata, Use::Serve] {
            let words: Vec<_> = Model::with(wanted).map(Model::name).collect();
            let is_listed = match shell {
                "powershell" => words.iter().all(|word| script.contains(&format!("\n--io={word}\t"))),
                _ => script.contains(&words.join(" ")),
            };
            assert!(is_listed, "{shell}: {wanted:?}");
        }
    }
}

#[test]
fn man_pages_are_valid_roff() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    for page in pages() {
        let file = temp.path().join(&page);
        fs::write(&file, fathom(&["man", &page])).expect("the directory is writable");
        let file = file.to_str().expect("temporary paths are text");
        for (program, words) in [
            ("mandoc", ["-T", "lint", "-W", "warning", file]),
            ("groff", ["-man", "-ww", "-z", "-Tutf8", file]),
        ] {
            let Some(output) = checker(program, &words) else { return };
            // The pages have no date: their version changes, not the day.
            let found = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let found: Vec<_> = found.lines().filter(|line| !line.contains("missing date")).collect();
            assert!(found.is_empty(), "{program} {page}: {found:?}");
        }
    }
}

#[test]
fn bash_completes() {
    let (_temp, script) = script("bash");
    let script = script.to_str().expect("temporary paths are text");
    // Sets the variables that readline sets for a line, then prints the completions.
    let ask = r#"
        source "$1"
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=($2)
        [[ $2 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _fathom && echo "${COMPREPLY[*]}"
    "#;
    for (line, offered) in [
        (
            "fathom ",
            "du explore list scan top report diff history grew query export import merge rm serve bench io --help --version",
        ),
        ("fathom d", "du diff"),
        ("fathom du --ti", "--time --time= --time-style="),
        ("fathom du --time=a", "atime access"),
        ("fathom du --time ", ""),
        ("fathom du --io a", "async-seq async-par auto"),
        ("fathom du --io=s", "sync"),
        ("fathom du --by=t", "type"),
        ("fathom du -d ", ""),
        ("fathom du -- --ti", ""),
        ("fathom query --format j", "json jsonl"),
        ("fathom io --j", "--json"),
        ("fathom serve --symlinks n", "never"),
        ("fathom bench ad", "advise"),
        ("fathom bench ra", "random-read random-write"),
        ("fathom bench advise --q", "--quick"),
        ("fathom bench advise ra", ""),
        ("fathom bench write --q", ""),
        ("fathom bench run --output n", "null"),
    ] {
        let words = ["-c", ask, "bash", script, line];
        let Some(output) = checker("bash", &words) else { return };
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), offered, "{line}: {output:?}");
    }
}

#[test]
fn fish_completes() {
    let (_temp, script) = script("fish");
    let script = script.to_str().expect("temporary paths are text");
    for (line, offered) in [
        ("fathom di", "diff"),
        ("fathom du --time-", "--time-style"),
        ("fathom du --time=u", "--time=use"),
        ("fathom du --io sy", "sync"),
        ("fathom du --by=t", "--by=type"),
        // Its value may only follow `=`: the next word is an operand.
        ("fathom du --by ty", ""),
        ("fathom io --j", "--json"),
        ("fathom bench ad", "advise"),
        ("fathom bench advise --qu", "--quick"),
        ("fathom bench write --qu", ""),
        ("fathom bench run --output nu", "null"),
    ] {
        let Some(output) = checker("fish", &["-c", "source $argv[1]; complete -C $argv[2]", script, line])
        else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let words: Vec<_> = text.lines().filter_map(|line| line.split('\t').next()).collect();
        let offered: Vec<_> = [offered].into_iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(words, offered, "{line}: {output:?}");
    }
}

#[test]
fn zsh_loads_its_script() {
    let (_temp, script) = script("zsh");
    let script = script.to_str().expect("temporary paths are text");
    let load = "autoload -U compinit && compinit -u -D && source $1 && [[ $_comps[fathom] == _fathom ]]";
    let Some(output) = checker("zsh", &["-f", "-c", load, "zsh", script]) else { return };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// PowerShell itself is in no archive of Debian, PyPI or npm: its grammar reads the script.
#[test]
fn powershell_reads_its_script() {
    let (_temp, script) = script("powershell");
    let script = script.to_str().expect("temporary paths are text");
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-env").join("bin/python3");
    let parse = "\
import pathlib, sys, tree_sitter, tree_sitter_powershell
language = tree_sitter.Language(tree_sitter_powershell.language())
root = tree_sitter.Parser(language).parse(pathlib.Path(sys.argv[1]).read_bytes()).root_node
sys.exit(f'the script has a syntax error: {root}' if root.has_error else 0)";
    let Some(output) = checker(&python.to_string_lossy(), &["-c", parse, script]) else { return };
    assert!(output.status.success(), "{output:?}");
}
