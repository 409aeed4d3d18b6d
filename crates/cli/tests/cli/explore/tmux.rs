//! A shell in a terminal of tmux, with a server of its own.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::program::Program;
use crate::support::{Tree, needs_tool};

/// Only so that a broken build ends.
const LIMIT: Duration = Duration::from_secs(60);
/// The time between two looks at the screen.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A terminal with a shell in the directory of a tree. `fathom` is in its `PATH`.
pub(crate) struct Tmux {
    pub(crate) tree: Tree,
    socket: PathBuf,
}

impl Tmux {
    /// Starts a terminal of 80 columns and 24 lines. `None` if there is no tmux, which is printed.
    pub(crate) fn start(tree: Tree) -> Option<Tmux> {
        let this = Self::start_with(tree, "sh")?;
        this.wait("the prompt", |screen| screen.starts_with('$'));
        Some(this)
    }

    /// Starts a terminal that runs a command instead of a shell.
    pub(crate) fn start_with(tree: Tree, program: &str) -> Option<Tmux> {
        if !needs_tool("tmux") {
            return None;
        }
        // Beside the tree, so that it is no part of it.
        let socket = tree.path().with_file_name("tmux");
        let this = Tmux { tree, socket };
        let path = std::env::join_paths(
            std::iter::once(Program::AsDu.bin())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut command = this.command(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            &format!("exec {program}"),
        ]);
        // The trash and the log of removals are beside the tree.
        command.env("HOME", this.tree.path().with_file_name("home"));
        command.env_remove("XDG_DATA_HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        command.current_dir(this.tree.path()).env("PATH", path.unwrap()).env("PS1", "$ ");
        command
            .env("LC_ALL", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env_remove("TMUX")
            .env_remove("ENV")
            .env_remove("RUST_BACKTRACE");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(this)
    }

    fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(words);
        command
    }

    fn tmux<S: AsRef<OsStr>>(&self, words: &[S]) -> Output {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// Types a text.
    pub(crate) fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Presses keys with these names: `Enter`, `C-z`.
    pub(crate) fn keys(&self, names: &[&str]) {
        self.tmux(&[&["send-keys", "--"], names].concat());
    }

    /// Types a line for the shell.
    pub(crate) fn line(&self, line: &str) {
        self.text(line);
        self.keys(&["Enter"]);
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Returns the title that programs have given to the terminal.
    pub(crate) fn title(&self) -> String {
        String::from_utf8(self.tmux(&["display-message", "-p", "#{pane_title}"]).stdout).unwrap()
    }

    /// Returns the lines of the screen.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Waits until the screen fulfils a condition, and returns it.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if condition(&screen) {
                return screen;
            }
            assert!(start.elapsed() < LIMIT, "{what} did not come:\n{screen}");
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the screen contains a text.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Starts `fathom explore` with these words, and waits until a tree of so many items is walked.
    #[track_caller]
    pub(crate) fn explore(&self, words: &str, items: u32) -> String {
        self.start_explore(words);
        self.wait_for_items(items)
    }

    /// Waits until a directory of so many items is shown, and nothing is walked any more.
    #[track_caller]
    pub(crate) fn wait_for_items(&self, items: u32) -> String {
        let items = format!(" in {items} items");
        self.wait(&items, |screen| screen.contains(&items) && !screen.contains("walking:"))
    }

    /// Starts `fathom explore` with these words. At its end, the shell writes the status, and
    /// compares the modes of the terminal with those before.
    pub(crate) fn start_explore(&self, words: &str) {
        // A number for each start, so that the screen of an earlier one is not taken for this
        // one's.
        static STARTS: AtomicU32 = AtomicU32::new(0);
        let number = STARTS.fetch_add(1, Ordering::Relaxed);
        // Keys that an earlier session has not read are a line of their own.
        self.keys(&["Enter"]);
        self.line(&format!("clear; echo as before {number}; m=$(stty -g)"));
        let cleared = format!("as before {number}\n$");
        self.wait("the cleared screen", |screen| screen.starts_with(&cleared));
        self.line(&format!(
            "{words}; s=$?; [ \"$(stty -g)\" = \"$m\" ] && echo \"restored, status $s.\" || echo \"changed, status $s.\""
        ));
    }

    /// Waits for the end of `fathom explore`, and checks its exit status and the terminal.
    #[track_caller]
    pub(crate) fn ended(&self, status: u8) -> String {
        // The command line has `$s` in place of the number.
        let has_ended = |screen: &str| {
            let mut rests = screen.split(", status ").skip(1);
            rests.any(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        };
        let screen = self.wait("the end", has_ended);
        assert!(screen.contains(&format!("restored, status {status}.")), "{screen}");
        // The text before the session is on the screen again.
        assert!(screen.contains("as before"), "{screen}");
        screen
    }

    /// Returns the process that runs in the foreground of the shell, once there is one.
    fn child(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout;
        let shell = String::from_utf8(shell).unwrap();
        let shell = shell.trim();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let child =
            children.split_whitespace().next().unwrap_or_else(|| panic!("no child: {}", self.screen()));
        Pid::from_raw(child.parse().unwrap()).unwrap()
    }

    /// Sends a signal to `fathom explore`.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.child(), signal).unwrap();
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
