//! Rules for the files of this checkout: dependencies between crates, places of `unsafe`, lengths
//! of functions, comments and names, links of documents. Each rule is a function from a tree of
//! files to its breaches, and is tested on a made-up tree.

mod circles;
mod leaks;
mod manifests;
mod markdown;
mod mask;
mod messages;
mod orphans;
mod sources;
mod tally;
mod tree;
mod words;

use std::process::Command;

use tree::Tree;

/// Panics with one breach a line.
#[track_caller]
fn assert_none(breaches: Vec<String>) {
    assert!(breaches.is_empty(), "{} found:\n{}", breaches.len(), breaches.join("\n"));
}

#[test]
fn dependencies_between_crates_follow_the_design() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ask = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output =
        Command::new(cargo).args(ask).current_dir(tree::top()).output().expect("cargo runs this test");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    assert!(metadata["packages"].as_array().is_some_and(|packages| packages.len() > 1));
    assert_none(manifests::new_arrows(&metadata));
}

#[test]
fn every_dependency_has_its_reason() {
    assert_none(manifests::unexplained_dependencies(&Tree::checkout()));
}

#[test]
fn every_declared_dependency_is_used() {
    assert_none(manifests::unused_dependencies(&Tree::checkout()));
}

#[test]
fn every_crate_takes_the_lints() {
    assert_none(manifests::without_lints(&Tree::checkout()));
}

#[test]
fn lock_files_name_one_registry() {
    assert_none(manifests::other_sources(&Tree::checkout()));
}

#[test]
fn builds_that_share_a_directory_have_the_same_versions() {
    assert_none(manifests::other_versions(&Tree::checkout()));
}

#[test]
fn unsafe_stays_in_its_places() {
    assert_none(sources::stray_unsafe(&Tree::checkout()));
}

#[test]
fn functions_stay_short() {
    assert_none(sources::long_functions(&Tree::checkout()));
}

#[test]
fn parameters_are_not_taken_apart_in_signatures() {
    assert_none(sources::tuple_parameters(&Tree::checkout()));
}

#[test]
fn no_unfinished_work() {
    assert_none(sources::unfinished(&Tree::checkout()));
}

#[test]
fn no_test_reads_the_tier_of_a_run() {
    assert_none(sources::tier_readers(&Tree::checkout()));
}

#[test]
fn libraries_neither_print_nor_read_the_environment() {
    assert_none(sources::programs_own(&Tree::checkout()));
}

#[test]
fn comments_are_narrow() {
    assert_none(words::wide_comments(&Tree::checkout()));
}

#[test]
fn sentences_have_subjects() {
    assert_none(words::riddles(&Tree::checkout()));
}

#[test]
fn headings_and_fences_have_lines_of_their_own() {
    assert_none(words::broken_markdown(&Tree::checkout()));
}

#[test]
fn nouns_are_repeated_before_of() {
    assert_none(words::replaced_nouns(&Tree::checkout()));
}

#[test]
fn messages_say_what_was_expected() {
    assert_none(messages::habits(&Tree::checkout()));
}

#[test]
fn strong_orderings_have_reasons() {
    assert_none(words::silent_orderings(&Tree::checkout()));
}

#[test]
fn types_of_a_crate_have_names_of_their_own() {
    assert_none(words::shared_names(&Tree::checkout()));
}

#[test]
fn every_module_says_what_it_owns() {
    assert_none(sources::headless(&Tree::checkout()));
}

#[test]
fn every_source_file_is_compiled() {
    assert_none(orphans::orphans(&Tree::checkout()));
}

#[test]
fn no_file_at_the_top_is_stray() {
    assert_none(orphans::stray_at_top(&Tree::checkout()));
}

#[test]
fn circles_of_modules_do_not_grow() {
    assert_none(circles::changed_circles(&Tree::checkout()));
}

#[test]
fn links_lead_somewhere() {
    assert_none(markdown::dead_links(&Tree::checkout()));
}

#[test]
fn documents_name_targets_that_make_has() {
    assert_none(markdown::unknown_make_targets(&Tree::checkout()));
}

#[test]
fn the_change_log_has_a_place_for_the_next_change() {
    assert_none(markdown::no_unreleased(&Tree::checkout()));
}

#[test]
fn no_paths_of_one_machine() {
    assert_none(leaks::machine_paths(&Tree::checkout(), &tree::top()));
}

#[test]
fn no_hosts_of_registries() {
    assert_none(leaks::registry_hosts(&Tree::checkout()));
}
