//! The words for numbers of entries.

/// Returns the numbers of files and directories in words; no directories are not mentioned.
///
/// ```
/// use fathom_text::counts::files_and_directories;
///
/// assert_eq!(files_and_directories(2, 1), "2 files and 1 directory");
/// assert_eq!(files_and_directories(1, 0), "1 file");
/// ```
#[must_use]
pub fn files_and_directories(files: u64, directories: u64) -> String {
    let count =
        |number: u64, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let files = count(files, "file", "files");
    match directories {
        0 => files,
        directories => format!("{files} and {}", count(directories, "directory", "directories")),
    }
}
