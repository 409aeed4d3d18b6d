//! docs/disk-full.md as it is written, on a filesystem without a free byte: the root, the home
//! directory and the directory for temporary files are on it.

use crate::explore::tmux::Tmux;
use crate::support::commands::program;
use crate::support::{Tree, needs_mounts};

const GUIDE: &str = include_str!("../../../../../docs/disk-full.md");

/// Makes a filesystem of 64 MiB, fills it, and runs a shell with it as its root. The programs of
/// the machine are mounted in it.
const SETUP: &str = r#"set -e
mount -t tmpfs -o size=64m none disk
cd disk
mkdir -p usr proc dev opt tmp mnt/inventories srv/app var/log ann/.cache/builds ann/old-project
for dir in bin lib lib64; do
    if [ -L /$dir ]; then cp -P /$dir $dir; elif [ -d /$dir ]; then mkdir $dir; mount --bind /$dir $dir; fi
done
mount --bind /usr usr; mount --bind /proc proc; mount --bind /dev dev
touch opt/fathom; mount --bind "$1" opt/fathom
mount -t tmpfs -o size=64m none mnt/inventories
head -c 12m /dev/zero >srv/app/old.log; head -c 11m /dev/zero >srv/app/new.log; head -c 1m /dev/zero >srv/app/older.log
touch -d '200 days ago' srv/app/old.log srv/app/older.log
for number in 1 2 3 4 5 6 7 8 9; do head -c 300k /dev/zero >ann/.cache/builds/$number; done
head -c 1m /dev/zero >ann/old-project/notes
head -c 3m /dev/zero >var/log/deleted.log
exec 9<var/log/deleted.log; sleep 600 <&9 >/dev/null 2>&1 & echo $! >tmp/pid; exec 9<&-
rm var/log/deleted.log
head -c 100m /dev/zero >fill 2>/dev/null || true
exec chroot . /usr/bin/env -i TERM="$TERM" LC_ALL=C.UTF-8 PS1='full$ ' PATH=/opt:/usr/bin:/bin HOME=/ann TMPDIR=/tmp /bin/sh
"#;

/// Returns the commands of the guide, without their comments.
fn commands() -> Vec<&'static str> {
    let blocks = GUIDE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("fathom "));
    lines.map(|line| line.split("  # ").next().unwrap().trim_end()).collect()
}

/// Runs a command, answers its question, if it has one, and waits for its exit status.
fn run(tmux: &Tmux, command: &str, number: usize) -> String {
    tmux.line("clear");
    tmux.wait("an empty screen", |screen| screen.trim() == "full$");
    tmux.line(&format!("{command}; echo status $? of {number}"));
    if command.contains("fathom rm") && !command.contains("--dry-run") && !command.contains("--trash") {
        tmux.wait_for("[y/N]");
        tmux.line("y");
    }
    let end = format!(" of {number}\n");
    let is_end = |line: &str| line.starts_with("status ") && !line.contains('$');
    tmux.wait(command, |screen| screen.contains(&end) && screen.lines().any(is_end))
}

#[test]
fn the_guide_frees_a_full_disk() {
    if !needs_mounts() {
        return;
    }
    let tree = Tree::parse("disk/");
    tree.holding("setup.sh", SETUP);
    let Some(tmux) = Tmux::start(tree) else { return };
    let [explore, commands @ ..] = &commands()[..] else { panic!("no commands") };
    assert_eq!((*explore, commands.len()), ("fathom explore -x /", 9));
    tmux.line(&format!("clear; unshare -m sh setup.sh '{}'", program().display()));
    // Nothing is typed into a shell outside.
    tmux.wait("the shell on the full disk", |screen| screen.trim() == "full$");

    // Look, and choose by a rule.
    tmux.line(explore);
    tmux.wait_for(" items, by disk usage, filesystem 64M, 0 free, 3.0M deleted but");
    tmux.text("i");
    let screen = tmux.wait_for("in deleted files that are still open:");
    assert!(
        screen.contains("disk      64M, 64M used, 0 free") && screen.contains("/var/log/deleted.log"),
        "{screen}"
    );
    tmux.keys(&["Escape"]);
    assert!(GUIDE.contains("`/` filters: `*.log age>90d size>10M`"));
    tmux.text("2");
    tmux.wait_for("largest files");
    tmux.text("/*.log age>90d size>10M");
    tmux.keys(&["Enter"]);
    tmux.wait_for("12M in 1 matching files");
    tmux.text("+");
    tmux.wait_for("1 marked");
    tmux.text("d");
    let screen = tmux.wait_for("Remove? (y, n)");
    assert!(screen.contains("12M on disk, frees 12M") && screen.contains("12M /srv/app/old.log"), "{screen}");
    tmux.text("y");
    tmux.wait_for("removed 1 file, 12M; 12M free now");
    tmux.text("q");
    let screen = tmux.wait_for("fathom explore: removed 1 file, 12M; log: ");
    assert!(screen.contains("/ann/.local/state/fathom/remov"), "{screen}");

    // The same disk, full again.
    tmux.line(
        "head -c 100m /dev/zero >>/fill; clear; [ $(df --output=avail / | tail -n 1) = 0 ] && echo full",
    );
    tmux.wait("the full disk", |screen| screen.starts_with("full\nfull$"));
    for (number, command) in commands.iter().enumerate() {
        // The alert needs a second inventory.
        let command = match command.starts_with("fathom grew") {
            true => format!("{} >/dev/null; {command}", commands[number - 1]),
            false => (*command).to_owned(),
        };
        let screen = run(&tmux, &command, number);
        assert!(screen.contains(&format!("status 0 of {number}\n")), "{command}:\n{screen}");
    }
    let gone = "ls /ann/.cache/builds /ann/old-project /srv/app/older.log 2>&1 | grep -c 'No such file'";
    let screen = run(&tmux, gone, 100);
    assert!(screen.contains("\n3\n"), "{screen}");
    let screen = run(&tmux, "ls /srv/app /ann/.local/share/Trash/files; wc -l <removed.jsonl", 101);
    assert!(
        screen.contains("new.log\n") && screen.contains("old-project\n") && screen.contains("\n1\n"),
        "{screen}"
    );
    run(&tmux, "kill $(cat /tmp/pid)", 102);
}
