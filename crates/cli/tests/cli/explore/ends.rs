//! The ends of a session: signals, panics, job control. The terminal is restored by each.

use rustix::process::Signal;

use crate::explore::tmux::Tmux;
use crate::support::{Tree, skip};

fn start() -> Option<Tmux> {
    Tmux::start(Tree::parse("d/a/b/c/x 5000, d/f 90000"))
}

#[test]
fn a_signal_ends_the_session_with_its_number() {
    let Some(tmux) = start() else { return };
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        tmux.explore("fathom explore d", 2);
        tmux.signal(signal);
        tmux.ended(status);
    }
    tmux.explore("fathom explore d", 2);
    tmux.keys(&["C-c"]);
    tmux.ended(130);
}

#[test]
fn an_interrupted_transfer_leaves_no_temporary_directory() {
    let Some(tmux) = start() else { return };
    // It sends the signal and no archive, and does not end by itself.
    tmux.line(r"mkdir tmp; printf '#!/bin/sh\nkill -TERM $PPID\nexec sleep 1000\n' >ssh; chmod +x ssh");
    let explore = "TMPDIR=$PWD/tmp fathom explore --ssh ./ssh --remote nas:/srv";
    tmux.line(&format!(r#"clear; {explore}; echo "ended with $? and $(ls tmp | wc -l) left""#));
    tmux.wait_for("ended with 143 and 0 left");
}

#[test]
fn a_signal_after_the_archive_ends_the_transfer() {
    if !cfg!(debug_assertions) {
        return skip("needs a build with debug assertions, which has points to send signals at");
    }
    let Some(tmux) = start() else { return };
    // It closes its output, and does not end by itself.
    let script = r"#!/bin/sh\ncat made.tar\nexec >&-\nexec sleep 1000\n";
    tmux.line(&format!("mkdir tmp; fathom scan -o - d >made.tar; printf '{script}' >ssh; chmod +x ssh"));
    let explore = "fathom explore --ssh ./ssh --remote nas:/srv";
    let explore = format!("TMPDIR=$PWD/tmp FATHOM_FAULT=explore-wait:1:TERM {explore}");
    tmux.line(&format!(r#"clear; {explore}; echo "ended with $? and $(ls tmp | wc -l) left""#));
    tmux.wait_for("ended with 143 and 0 left");
}

#[test]
fn a_signal_between_the_transfer_and_the_session_ends_the_session() {
    if !cfg!(debug_assertions) {
        return skip("needs a build with debug assertions, which has points to send signals at");
    }
    let Some(tmux) = start() else { return };
    let script = r"#!/bin/sh\nexec cat made.tar\n";
    tmux.line(&format!("mkdir tmp; fathom scan -o - d >made.tar; printf '{script}' >ssh; chmod +x ssh"));
    let explore = "fathom explore --ssh ./ssh --remote nas:/srv";
    let explore = format!("TMPDIR=$PWD/tmp FATHOM_FAULT=explore-fetched:1:TERM {explore}");
    tmux.line(&format!(r#"clear; {explore}; echo "ended with $? and $(ls tmp | wc -l) left""#));
    tmux.wait_for("ended with 143 and 0 left");
}

#[test]
fn a_panic_restores_the_terminal_and_is_printed_after_that() {
    if !cfg!(debug_assertions) {
        return skip("needs a build with debug assertions, which has points to panic at");
    }
    let Some(tmux) = start() else { return };
    // In the thread of the terminal, while it draws; and in the thread of the source.
    for point in ["explore-frame:4", "explore-query:3"] {
        tmux.start_explore(&format!("FATHOM_FAULT={point}:PANIC fathom explore d"));
        // A key for each further frame and query; those that come after the end are for the shell.
        tmux.keys(&["Right", "Left", "Right", "Left"]);
        let screen = tmux.ended(2);
        let name = point.split(':').next().unwrap();
        // Lines of the terminal may break the message anywhere.
        let text: String = screen.lines().collect();
        assert!(text.contains(&format!("injected at '{name}'")), "{screen}");
    }
}

#[test]
fn the_session_can_be_suspended_and_continued() {
    let Some(tmux) = start() else { return };
    // A command of its own: a shell goes on with the rest of a line when its job is stopped.
    tmux.line("m=$(stty -g); fathom explore d");
    tmux.wait_for("in 2 items");
    for suspend in [&|tmux: &Tmux| tmux.keys(&["C-z"]) as (), &|tmux: &Tmux| tmux.signal(Signal::TSTP)]
        as [&dyn Fn(&Tmux); 2]
    {
        suspend(&tmux);
        tmux.wait("the prompt", |screen| !screen.contains(" tree\n") && screen.trim_end().ends_with('$'));
        tmux.line(r#"clear; [ "$(stty -g)" = "$m" ] && echo "is restored""#);
        tmux.wait("the modes", |screen| screen.lines().any(|line| line == "is restored"));
        tmux.resize(60, 20);
        tmux.line("clear; fg");
        let screen = tmux.wait_for("in 2 items");
        assert!(screen.starts_with(" d ") && screen.lines().count() == 20, "{screen}");
        // Keys are read, one by one, without an echo.
        tmux.text("n");
        tmux.wait_for("by name");
        tmux.text("s");
        tmux.wait_for("by disk usage");
    }
    tmux.text("q");
    tmux.wait("the prompt", |screen| !screen.contains(" tree\n") && screen.trim_end().ends_with('$'));
    tmux.line(r#"clear; [ "$(stty -g)" = "$m" ] && echo "is restored""#);
    tmux.wait("the modes", |screen| screen.lines().any(|line| line == "is restored"));
}

#[test]
fn a_program_of_the_explorer_is_suspended_with_it() {
    let Some(tmux) = start() else { return };
    tmux.line(r"printf '#!/bin/sh\necho it runs; read line; echo $line >line\n' >program; chmod +x program");
    tmux.line("SHELL=$PWD/program fathom explore d");
    tmux.wait_for_items(2);
    tmux.text("b");
    // A prompt stands before it if the line was typed before the shell read it.
    tmux.wait("the program", |screen| screen.lines().any(|line| line.ends_with("it runs")));
    tmux.keys(&["C-z"]);
    tmux.wait("the prompt", |screen| screen.trim_end().ends_with('$'));
    tmux.line("clear; fg");
    tmux.wait("the job", |screen| screen.contains("explore d"));
    tmux.line("typed");
    // The explorer is not suspended once more.
    tmux.wait_for_items(2);
    assert_eq!(std::fs::read_to_string(tmux.tree.at("d/line")).unwrap(), "typed\n");
    tmux.text("n");
    tmux.wait_for("by name");
    tmux.text("q");
    tmux.wait("the prompt", |screen| !screen.contains(" tree\n") && screen.trim_end().ends_with('$'));
}

#[test]
fn a_session_without_a_shell_is_not_stopped() {
    let tree = Tree::parse("d/a/b/c/x 5000, d/f 90000");
    let Some(tmux) = Tmux::start_with(tree, "fathom explore d") else { return };
    tmux.wait_for_items(2);
    tmux.keys(&["C-z"]);
    tmux.wait_for("no shell to return to");
    tmux.text("n");
    tmux.wait_for("by name");
}
