//! Rules for Rust sources: `unsafe` only in two directories and with a reason, short functions, no
//! macros of unfinished work, no printing in libraries, a head for every module.

use crate::mask::{code_only, line_of, name_after, tokens};
use crate::tree::Tree;

/// The directories that may contain `unsafe`. The playground's program is no part of fathom.
const UNSAFE_PLACES: [&str; 3] = ["crates/io/src/sys/", "crates/io/src/uring/", "playground/rust/"];
/// Upper bound of the lines from `fn` to the closing brace of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// Upper bound of the functions that take a parameter apart in their signature: a struct with named
/// fields, or two parameters, can be called without looking the order up.
const TUPLE_PARAMETERS_MAX: usize = 10;
/// Macros that mark unfinished work.
const UNFINISHED: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Finds each `unsafe` outside these directories, and each unsafe block or impl without a SAFETY
/// comment before its statement.
pub(crate) fn stray_unsafe(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, source) in tree.texts(".rs") {
        let code = code_only(source);
        for at in tokens(&code, "unsafe") {
            let line = line_of(source, at);
            let next = code[at + "unsafe".len()..].trim_start();
            if !UNSAFE_PLACES.iter().any(|place| file.starts_with(place)) {
                problems.push(format!("{file}:{line}: unsafe outside {}", UNSAFE_PLACES.join(" and ")));
            } else if (next.starts_with('{') || next.starts_with("impl")) && !has_safety(source, &code, line)
            {
                problems.push(format!("{file}:{line}: unsafe without a SAFETY comment"));
            }
        }
    }
    problems
}

/// Whether a comment between the end of the previous statement and `line` contains SAFETY.
fn has_safety(source: &str, code: &str, line: usize) -> bool {
    let lines: Vec<(&str, &str)> = source.lines().zip(code.lines()).take(line).collect();
    let mut upwards = lines.iter().rev();
    let own = upwards.next().is_some_and(|(text, _)| text.contains("SAFETY:"));
    let same_statement = |(_, code): &&(&str, &str)| !code.trim_end().ends_with([';', '{', '}', ',']);
    own || upwards.take_while(same_statement).any(|(text, _)| text.contains("SAFETY:"))
}

/// Finds functions that are too long.
pub(crate) fn long_functions(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, source) in tree.texts(".rs") {
        let code = code_only(source);
        for at in tokens(&code, "fn") {
            let Some(name) = name_after(&code, at + "fn".len()) else { continue };
            let Some(end) = body_end(&code, at) else { continue };
            let (first, last) = (line_of(&code, at), line_of(&code, end));
            if last - first + 1 > FUNCTION_LINES_MAX {
                problems.push(format!("{file}:{first}: {name} has {} lines", last - first + 1));
            }
        }
    }
    problems
}

/// Returns the offset of the closing brace of the function at `at`; `None` for a declaration
/// without a body.
fn body_end(code: &str, at: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0, 0);
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' if braces == 1 => return Some(offset),
            b'}' => braces -= 1,
            _ => {}
        }
    }
    None
}

/// Finds functions of libraries and programs that take a tuple as a parameter and name its parts in
/// the signature, if there are more than the bound.
pub(crate) fn tuple_parameters(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let is_tested = |file: &str| file.contains("/src/") && !file.ends_with("/tests.rs");
    for (file, source) in tree.texts(".rs").filter(|(file, _)| is_tested(file)) {
        let code = code_only(source);
        let end = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
        for at in tokens(&code[..end], "fn") {
            let Some(name) = name_after(&code, at + "fn".len()) else { continue };
            if takes_tuple(&code[at..]) {
                found.push(format!("{file}:{}: {name}", line_of(&code, at)));
            }
        }
    }
    if found.len() > TUPLE_PARAMETERS_MAX { found } else { Vec::new() }
}

/// Returns whether a parameter of the function at the beginning of `code` is a tuple pattern. The
/// pattern of the unit type, which has no parts, is none.
fn takes_tuple(code: &str) -> bool {
    let Some(body) = code.find(['{', ';']) else { return false };
    let signature: String = code[..body].split_whitespace().collect();
    let Some((_, parameters)) = signature.split_once('(') else { return false };
    let begins = |parameter: &str| parameter.starts_with('(') && !parameter.starts_with("()");
    let is_pattern = |parameter: &str| {
        parameter.find(')').is_some_and(|end| parameter[end..].trim_start_matches(')').starts_with(':'))
    };
    let starts = parameters.match_indices(',').map(|(at, _)| &parameters[at + 1..]);
    std::iter::once(parameters).chain(starts).any(|parameter| begins(parameter) && is_pattern(parameter))
}

/// Finds macros that mark unfinished work.
pub(crate) fn unfinished(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, source) in tree.texts(".rs") {
        let code = code_only(source);
        for word in UNFINISHED {
            let called = |at: &usize| code[at + word.len()..].starts_with('!');
            let found = tokens(&code, word).filter(called);
            problems.extend(found.map(|at| format!("{file}:{}: {word}!", line_of(source, at))));
        }
    }
    problems
}

/// Calls that only the program may make: printing, exiting, reading arguments and the environment.
const PROGRAM_ONLY_CALLS: [&str; 9] = [
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "env::args",
    "env::args_os",
    "env::var",
    "env::var_os",
    "process::exit",
];

/// The crate that tests ask for the tier of a run.
const CASES: &str = "crates/cases/";
/// The environment variable that has the tier.
const TIER: &str = "\"FATHOM_TESTS\"";

/// Finds sources that read the tier themselves.
pub(crate) fn tier_readers(tree: &Tree) -> Vec<String> {
    let others = tree.texts(".rs").filter(|(file, _)| !file.starts_with(CASES) && !file.contains("/tidy/"));
    let readers = others.filter(|(_, source)| source.contains(TIER));
    readers.map(|(file, _)| format!("{file}: reads the tier of a test run")).collect()
}

/// Finds such calls in libraries, outside their tests.
pub(crate) fn programs_own(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let is_other = |file: &str| {
        file.starts_with("crates/cli/") || file.starts_with(CASES) || file.ends_with("/tests.rs")
    };
    let libraries = |file: &str| file.starts_with("crates/") && !is_other(file) && file.contains("/src/");
    for (file, source) in tree.texts(".rs").filter(|(file, _)| libraries(file)) {
        let code = code_only(source);
        let code = &code[..code.find("#[cfg(test)]\nmod ").unwrap_or(code.len())];
        for call in PROGRAM_ONLY_CALLS {
            problems.extend(
                tokens(code, call).map(|at| format!("{file}:{}: {call} in a library", line_of(source, at))),
            );
        }
    }
    problems
}

/// Finds modules without a doc comment at their beginning. Attributes of the crate may precede it.
pub(crate) fn headless(tree: &Tree) -> Vec<String> {
    let first = |source: &str| {
        source.lines().find(|line| !line.is_empty() && !line.starts_with("#![")).map(String::from)
    };
    let has_head = |source: &str| first(source).is_some_and(|line| line.starts_with("//! "));
    let files = tree.texts(".rs").filter(|(_, source)| !has_head(source));
    files.map(|(file, _)| format!("{file}: no //! at its head")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_taken_apart_in_a_signature_is_found() {
        assert!(takes_tuple("fn f(&self, (x, y): (u16, u16)) {}"));
        assert!(takes_tuple("fn f((x, (y, z)): Ends) -> u8;"));
        assert!(!takes_tuple("fn f(&self, (): &mut (), at: (u64, u64), g: impl Fn((u8, u8))) {}"));
        assert!(!takes_tuple("fn f<F: Fn(u8)>(read: F) where F: Fn(u8) {}"));
    }

    #[test]
    fn unsafe_outside_its_places_is_found() {
        let tree = Tree::of(&[("crates/io/src/lib.rs", "// unsafe\nfn f() {\n    unsafe { g() }\n}")]);
        assert_eq!(
            stray_unsafe(&tree),
            [
                "crates/io/src/lib.rs:3: unsafe outside crates/io/src/sys/ and crates/io/src/uring/ and playground/rust/"
            ]
        );
    }

    #[test]
    fn unsafe_needs_its_own_safety_comment() {
        let with_reason = "// SAFETY: proof.\nlet a =\n    unsafe { g() };\n";
        let without_reason = "let b = unsafe { g() };\n";
        let tree = Tree::of(&[("crates/io/src/sys/linux.rs", &[with_reason, without_reason].concat())]);
        assert_eq!(stray_unsafe(&tree), ["crates/io/src/sys/linux.rs:4: unsafe without a SAFETY comment"]);
    }

    #[test]
    fn the_word_in_strings_and_lint_names_is_no_unsafe() {
        let tree = Tree::of(&[("src/lib.rs", "#![deny(unsafe_code)]\nconst A: &str = \"unsafe { }\";")]);
        assert_eq!(stray_unsafe(&tree), [""; 0]);
    }

    #[test]
    fn a_function_may_have_70_lines_and_not_71() {
        let of = |lines: usize| {
            format!("trait T {{ fn d(&self); }}\nfn f(a: [u8; 2]) {{{}}}", "\n".repeat(lines - 1))
        };
        assert_eq!(long_functions(&Tree::of(&[("a.rs", &of(70))])), [""; 0]);
        assert_eq!(long_functions(&Tree::of(&[("a.rs", &of(71))])), ["a.rs:2: f has 71 lines"]);
    }

    #[test]
    fn unfinished_work_is_found() {
        let source = format!("fn f() {{ {}!(); }} // {}!\nfn todo() {{}}", UNFINISHED[1], UNFINISHED[0]);
        assert_eq!(unfinished(&Tree::of(&[("a.rs", &source)])), ["a.rs:1: todo!"]);
    }

    #[test]
    fn a_library_that_prints_or_reads_the_environment_is_found() {
        let source = "fn f() { println!(\"x\"); std::env::var(\"X\"); writeln!(x) }\n#[cfg(test)]\nmod tests { fn f() { println!() } }";
        let files = ["crates/du/src/a.rs", "crates/du/src/a/tests.rs", "crates/cli/src/a.rs"];
        let tree = Tree::of(&files.map(|file| (file, source)));
        let expected =
            ["crates/du/src/a.rs:1: println! in a library", "crates/du/src/a.rs:1: env::var in a library"];
        assert_eq!(programs_own(&tree), expected);
    }

    #[test]
    fn a_module_without_a_head_is_found() {
        let tree = Tree::of(&[("a.rs", "#![no_main]\n//! Owns a.\n"), ("b.rs", "/// A.\nfn a() {}")]);
        assert_eq!(headless(&tree), ["b.rs: no //! at its head"]);
    }
}
