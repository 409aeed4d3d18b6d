//! Runs one command line with GNU du and with each form of fathom, in the same directory and
//! environment, and compares the bytes of both streams and the exit status.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use super::fuse::{FuseServer, ScriptedFs};
use super::outcome::{Outcome, RunningProgram, finish};
use super::program::{Program, forms, gnu_description};
use super::tree::Tree;
use super::{release, skip};

/// Number of comparisons that may be repeated because the tree changed meanwhile.
const TRIES_MAX: usize = 8;
/// Drops the capabilities that exempt root from permission checks (capabilities(7)).
const DROP_RIGHTS: &str = "setpriv --bounding-set=-dac_override,-dac_read_search";

/// A command line of du, with its environment, standard input and surrounding shell commands.
#[derive(Clone)]
pub(crate) struct Case<'t> {
    tree: &'t Tree,
    words: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    prelude: String,
    redirect: String,
    unprivileged: bool,
    own_mounts: bool,
    script: Option<ScriptedFs>,
}

/// Returns `du` with `words`, split at spaces, to run in `tree`.
pub(crate) fn du<'t>(tree: &'t Tree, words: &str) -> Case<'t> {
    Case {
        tree,
        words: words.split_whitespace().map(OsString::from).collect(),
        env: Vec::new(),
        stdin: Vec::new(),
        prelude: String::new(),
        redirect: String::new(),
        unprivileged: false,
        own_mounts: false,
        script: None,
    }
}

/// Asserts that every form of fathom does what GNU du does for `words`. Returns GNU du's outcome.
#[track_caller]
pub(crate) fn compare(tree: &Tree, words: &str) -> Outcome {
    du(tree, words).compare()
}

/// Asserts that every form of fathom does what GNU du does for each of `lines`.
#[track_caller]
pub(crate) fn compare_all(tree: &Tree, lines: &[&str]) {
    for words in lines {
        du(tree, words).compare();
    }
}

/// Asserts that fathom called as `du` does what GNU du does for each of `lines`.
#[track_caller]
pub(crate) fn compare_all_as_du(tree: &Tree, lines: &[&str]) {
    for words in lines {
        du(tree, words).compare_as_du();
    }
}

impl Case<'_> {
    /// Adds one argument, unchanged.
    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// Adds arguments, unchanged.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable. By default the environment holds `PATH`, `LC_ALL` and `TZ`
    /// only.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Sets the standard input, which is empty by default.
    pub(crate) fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = bytes.as_ref().to_vec();
        self
    }

    /// Adds shell commands to run before the program, in the tree's directory.
    pub(crate) fn after(mut self, commands: &str) -> Self {
        self.prelude.push_str(commands);
        self.prelude.push('\n');
        self
    }

    /// Sets a redirection, in shell syntax.
    pub(crate) fn redirect(mut self, words: &str) -> Self {
        self.redirect = words.to_string();
        self
    }

    /// Drops root's exemption from permission checks, if the test runs as root.
    pub(crate) fn unprivileged(mut self) -> Self {
        self.unprivileged = true;
        self
    }

    /// Runs in a mount namespace of its own, so that the commands of [`Case::after`] may mount.
    pub(crate) fn own_mounts(mut self) -> Self {
        self.own_mounts = true;
        self
    }

    /// Mounts the FUSE file system of `script` at `mnt`. The device is passed as standard input.
    pub(crate) fn mounting(self, script: &ScriptedFs) -> Self {
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";
        let mut case = self.own_mounts().after(&format!("mount -i -t fuse none mnt -o {options}"));
        case.redirect.push_str(" </dev/null");
        case.script = Some(script.clone());
        case
    }

    /// Asserts that the forms of fathom do what GNU du does. Returns GNU du's outcome.
    #[track_caller]
    pub(crate) fn compare(&self) -> Outcome {
        let mut expected = self.run(Program::Gnu);
        for program in forms() {
            expected = self.agree(program, expected);
        }
        expected
    }

    /// Asserts that fathom called as `du` does what GNU du does, for cases that no I/O model
    /// affects.
    #[track_caller]
    pub(crate) fn compare_as_du(&self) -> Outcome {
        self.agree(Program::AsDu, self.run(Program::Gnu))
    }

    /// Asserts that one form of fathom has the outcome `expected` of GNU du. Returns GNU du's last
    /// outcome.
    #[track_caller]
    pub(crate) fn agree(&self, program: Program, mut expected: Outcome) -> Outcome {
        if let Some(difference) = self.difference(program, &mut expected) {
            panic!("{program:?} differs from {}.\n{difference}\n{}", gnu_description(), self.describe());
        }
        expected
    }

    /// Returns the difference between one form of fathom and the outcome `expected` of GNU du. The
    /// tree may change during the comparison: a difference counts only if a second run of GNU du
    /// has the first run's outcome.
    pub(crate) fn difference(&self, program: Program, expected: &mut Outcome) -> Option<String> {
        if let Some(change) = release::change_since(&self.words, &self.env, expected) {
            skip(format_args!("this GNU du is older than {change}"));
            return None;
        }
        for _ in 0..TRIES_MAX {
            let difference = expected.difference(&self.run(program))?;
            let again = self.run(Program::Gnu);
            if again == *expected {
                return Some(difference);
            }
            *expected = again;
        }
        Some("GNU du itself never does the same twice".to_string())
    }

    /// Runs the program until it ends.
    pub(crate) fn run(&self, program: Program) -> Outcome {
        let mut command = self.command(program);
        let server = self.script.as_ref().map(|script| FuseServer::start(script, &mut command));
        let outcome = finish(&mut command, &self.stdin);
        drop(command);
        drop(server);
        self.rewrite_stderr(program, outcome)
    }

    /// Runs the program, passes the running child to `act`, and then collects the rest of its
    /// output.
    pub(crate) fn watch<T>(&self, program: Program, act: impl FnOnce(&mut Child) -> T) -> (T, Outcome) {
        let mut command = self.command(program);
        let server = self.script.as_ref().map(|script| FuseServer::start(script, &mut command));
        let mut running = RunningProgram::start(&mut command);
        drop(command);
        let seen = act(&mut running.child);
        let outcome = running.reap();
        drop(server);
        (seen, self.rewrite_stderr(program, outcome))
    }

    fn rewrite_stderr(&self, program: Program, mut outcome: Outcome) -> Outcome {
        outcome.stderr = program.rewrite_as_gnu(outcome.stderr);
        if self.redirect.contains("2>&1") {
            outcome.stdout = program.rewrite_as_gnu(outcome.stdout);
        }
        outcome
    }

    fn command(&self, program: Program) -> Command {
        let mut command = match self.shell_text(program) {
            Some(text) => self.shell(&text),
            None => {
                let mut command = Command::new(program.bin().join(program.name()));
                command.arg0(program.name());
                command
            }
        };
        let path = format!("{}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", program.bin().display());
        command.args(program.leading()).args(&self.words).current_dir(self.tree.path());
        command.env_clear().env("PATH", path).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let stdin = if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn shell(&self, text: &str) -> Command {
        let mut words = vec!["sh", "-c", text, "sh"];
        if self.own_mounts {
            words.splice(0..0, ["unshare", "-m"]);
        }
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }

    fn shell_text(&self, program: Program) -> Option<String> {
        let drop_rights = self.unprivileged && rustix::process::geteuid().is_root();
        let direct = self.prelude.is_empty() && self.redirect.is_empty() && !self.own_mounts && !drop_rights;
        let rights = if drop_rights { DROP_RIGHTS } else { "" };
        let (prelude, name, redirect) = (&self.prelude, program.name(), &self.redirect);
        (!direct).then(|| format!("set -e\n{prelude}exec {rights} {name} \"$@\" {redirect}"))
    }

    /// Returns a line of a shell that runs the GNU du of this test in its tree.
    fn repeat_line(&self, env: &str, words: &str) -> String {
        let (place, gnu) = (self.tree.path().display(), Program::Gnu.bin().join("du"));
        let stdin = match &self.stdin[..] {
            [] => String::new(),
            bytes => format!("printf %b '{}' | ", bytes.escape_ascii()),
        };
        format!("cd '{place}' && {stdin}LC_ALL=C.UTF-8 TZ=UTC {env}'{}' {words}", gnu.display())
    }

    /// Returns the command and the tree's listing, for a person who repeats the case.
    pub(crate) fn describe(&self) -> String {
        let quoted = |word: &OsString| format!("'{}'", word.as_encoded_bytes().escape_ascii());
        let words: Vec<String> = self.words.iter().map(quoted).collect();
        let env: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{}={} ", name.display(), quoted(value))).collect();
        let stdin = (!self.stdin.is_empty()).then(|| format!("\nstdin: {}", self.stdin.escape_ascii()));
        let shell = self.shell_text(Program::Gnu).map(|text| format!("\nshell: {text}")).unwrap_or_default();
        let line = format!("{}du {}", env.concat(), words.join(" "));
        let repeat = match self.tree.is_kept() {
            true => self.repeat_line(&env.concat(), &words.join(" ")),
            false => "FATHOM_KEEP=1 keeps the tree, and gives a line to paste here".to_owned(),
        };
        format!(
            "command: {line}{}{shell}\nrepeat: {repeat}\ntree (inode, blocks, size, links, mode, name):\n{}",
            stdin.unwrap_or_default(),
            self.tree.listing()
        )
    }
}

/// Whether this process may create a mount namespace and mount in it.
pub(crate) fn mounts_work() -> bool {
    static WORK: OnceLock<bool> = OnceLock::new();
    *WORK.get_or_init(|| {
        let tried = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
        tried.is_ok_and(|output| output.status.success())
    })
}
