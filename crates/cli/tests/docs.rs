//! The man pages and completions in `docs/` are those that the program prints, and their consumers
//! (man, bash, fish, zsh) accept them. `UPDATE_DOCS=1` regenerates them.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

use fathom_io::{Model, Use};

const SCRIPTS: [(&str, &str); 3] = [("bash", "fathom.bash"), ("fish", "fathom.fish"), ("zsh", "_fathom")];

/// Returns the path of `docs/`. Regenerates the files first if `UPDATE_DOCS` is set.
fn docs() -> &'static Path {
    static DOCS: OnceLock<PathBuf> = OnceLock::new();
    DOCS.get_or_init(|| {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        if env::var_os("UPDATE_DOCS").is_some() {
            for (file, words) in made() {
                let file = docs.join(file);
                fs::create_dir_all(file.parent().expect("docs/ is above")).expect("docs/ is writable");
                fs::write(file, fathom(&words)).expect("docs/ is writable");
            }
        }
        docs
    })
}

/// Returns the names of all man pages: that of `fathom`, and those of the commands that it lists.
fn pages() -> Vec<String> {
    let help = String::from_utf8(fathom(&["--help"])).expect("the help is text");
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let own = names.filter(|name| !name.is_empty()).map(|name| format!("fathom-{name}"));
    std::iter::once("fathom".to_owned()).chain(own).collect()
}

/// Returns each generated file below `docs/`, and the arguments that print it.
fn made() -> Vec<(String, [String; 2])> {
    let pages = pages().into_iter().map(|page| (format!("man/{page}.1"), ["man".to_owned(), page]));
    let script = |shell: &str| ["completions".to_owned(), shell.to_owned()];
    let scripts = SCRIPTS.iter().map(|(shell, file)| (format!("completions/{file}"), script(shell)));
    pages.chain(scripts).collect()
}

fn fathom<W: AsRef<OsStr> + Debug>(words: &[W]) -> Vec<u8> {
    let program = env::var_os("FATHOM_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_fathom").into());
    let output = Command::new(program).args(words).output().expect("the program runs");
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

#[test]
fn all_files_are_current() {
    for (file, words) in made() {
        let kept = fs::read(docs().join(&file)).unwrap_or_default();
        assert!(kept == fathom(&words), "docs/{file} is not current: UPDATE_DOCS=1 cargo test --test docs");
    }
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
    let text = |file: &str| fs::read_to_string(docs().join(file)).expect("the file is there");
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
        let page = text(&format!("man/fathom-{page}.1"));
        for model in Model::ALL {
            let entry = format!(".TP\n\\fB{}\\fR", model.name().replace('-', "\\-"));
            assert_eq!(page.contains(&entry), takes(&model), "{model}");
        }
    }
    for (_, file) in SCRIPTS {
        let script = text(&format!("completions/{file}"));
        for wanted in [Use::Metadata, Use::Serve] {
            let words: Vec<_> = Model::with(wanted).map(Model::name).collect();
            assert!(script.contains(&words.join(" ")), "{file}: {wanted:?}");
        }
    }
}

#[test]
fn man_pages_are_valid_roff() {
    for page in pages() {
        let file = docs().join(format!("man/{page}.1"));
        let words = ["-man", "-ww", "-z", "-Tutf8", file.to_str().expect("the checkout's path is text")];
        let Some(output) = checker("groff", &words) else { return };
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn bash_completes() {
    let script = docs().join("completions/fathom.bash");
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
            "du explore list scan top diff history grew query export import merge rm serve bench io --help --version",
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
    ] {
        let words = ["-c", ask, "bash", script.to_str().expect("the checkout's path is text"), line];
        let Some(output) = checker("bash", &words) else { return };
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), offered, "{line}: {output:?}");
    }
}

#[test]
fn fish_completes() {
    let script = docs().join("completions/fathom.fish");
    for (line, offered) in [
        ("fathom di", "diff"),
        ("fathom du --time-", "--time-style"),
        ("fathom du --time=u", "--time=use"),
        ("fathom du --io sy", "sync"),
        ("fathom io --j", "--json"),
    ] {
        let script = script.to_str().expect("the checkout's path is text");
        let Some(output) = checker("fish", &["-c", "source $argv[1]; complete -C $argv[2]", script, line])
        else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let words: Vec<_> = text.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(words, [offered], "{line}: {output:?}");
    }
}

#[test]
fn zsh_reads_its_script() {
    let script = docs().join("completions/_fathom");
    let Some(output) = checker("zsh", &["-n", script.to_str().expect("the checkout's path is text")]) else {
        return;
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
