//! The question before a removal, on a terminal, and the words for sums.

use fathom_remove::RemovalSummary;
use fathom_text::human::BlockSize;

use super::NAME;
use crate::shared::output::write_stderr;

/// Asks whether to remove what a dry run has counted. To confirm the removal of directories, the
/// number of files must be typed.
pub(crate) fn is_confirmed(plan: &RemovalSummary) -> bool {
    write_stderr(question(plan).as_bytes());
    let mut answer = String::new();
    // An answer that cannot be read is no.
    let _ = std::io::stdin().read_line(&mut answer);
    is_yes(plan, answer.trim())
}

fn question(plan: &RemovalSummary) -> String {
    let amount = amount(plan);
    if needs_number(plan) {
        format!("{NAME}: remove {amount}? Type the number of files to confirm: ")
    } else {
        format!("{NAME}: remove {amount}? [y/N] ")
    }
}

fn needs_number(plan: &RemovalSummary) -> bool {
    plan.directories > 0 && plan.files > 0
}

fn is_yes(plan: &RemovalSummary, answer: &str) -> bool {
    if needs_number(plan) {
        answer.parse() == Ok(plan.files)
    } else {
        matches!(answer, "y" | "Y" | "yes" | "Yes" | "YES")
    }
}

/// Returns the numbers of files and directories, as in "3 files and 1 directory".
pub(crate) fn counts(summary: &RemovalSummary) -> String {
    let RemovalSummary { files, directories, .. } = summary;
    let count =
        |number: &u64, one: &str, many: &str| format!("{number} {}", if *number == 1 { one } else { many });
    let files = count(files, "file", "files");
    match directories {
        0 => files,
        directories => format!("{files} and {}", count(directories, "directory", "directories")),
    }
}

/// Returns the counts with the bytes.
pub(crate) fn amount(summary: &RemovalSummary) -> String {
    let (allocated, freed) = (human(summary.allocated), human(summary.freed));
    format!("{} ({allocated} allocated, {freed} would be free)", counts(summary))
}

/// Returns the counts with the bytes, none of which would be free.
pub(crate) fn amount_kept(summary: &RemovalSummary) -> String {
    format!("{} ({} allocated)", counts(summary), human(summary.allocated))
}

fn human(bytes: u64) -> String {
    let mut text = Vec::new();
    BlockSize::HUMAN.write(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(files: u64, directories: u64) -> RemovalSummary {
        RemovalSummary { files, directories, allocated: 8192, freed: 4096, ..RemovalSummary::default() }
    }

    #[test]
    fn directories_need_the_number_of_files_and_files_a_yes() {
        assert_eq!(
            question(&plan(12, 1)),
            "fathom rm: remove 12 files and 1 directory (8.0K allocated, 4.0K would be free)? Type the number of files to confirm: "
        );
        assert_eq!(
            question(&plan(1, 0)),
            "fathom rm: remove 1 file (8.0K allocated, 4.0K would be free)? [y/N] "
        );
        let yes = |plan: &RemovalSummary| ["12", "y", "", "1", "12 files"].map(|answer| is_yes(plan, answer));
        assert_eq!(yes(&plan(12, 3)), [true, false, false, false, false]);
        assert_eq!(yes(&plan(1, 0)), [false, true, false, false, false]);
        assert_eq!(yes(&plan(0, 2)), [false, true, false, false, false], "there is no number to type");
    }
}
