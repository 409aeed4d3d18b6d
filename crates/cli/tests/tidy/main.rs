//! The rules of this checkout, as tests over its files: arrows between crates, places of `unsafe`, sizes of
//! functions, links of documents. Each rule is a function from a tree to its breaches, proved on a made-up tree.

mod leaks;
mod manifests;
mod markdown;
mod mask;
mod orphans;
mod sources;
mod tally;
mod tree;

use std::process::Command;

use tree::Tree;

/// Fails with one breach a line.
#[track_caller]
fn none(breaches: Vec<String>) {
    assert!(breaches.is_empty(), "{} found:\n{}", breaches.len(), breaches.join("\n"));
}

#[test]
fn arrows_between_crates_are_the_designs() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ask = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output =
        Command::new(cargo).args(ask).current_dir(tree::top()).output().expect("cargo runs this test");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    assert!(metadata["packages"].as_array().is_some_and(|packages| packages.len() > 1));
    none(manifests::new_arrows(&metadata));
}

#[test]
fn every_dependency_has_its_reason() {
    none(manifests::unexplained_dependencies(&Tree::checkout()));
}

#[test]
fn every_declared_dependency_is_used() {
    none(manifests::unused_dependencies(&Tree::checkout()));
}

#[test]
fn every_crate_takes_the_lints() {
    none(manifests::without_lints(&Tree::checkout()));
}

#[test]
fn lock_files_name_one_registry() {
    none(manifests::other_sources(&Tree::checkout()));
}

#[test]
fn unsafe_stays_in_its_places() {
    none(sources::stray_unsafe(&Tree::checkout()));
}

#[test]
fn functions_stay_short() {
    none(sources::long_functions(&Tree::checkout()));
}

#[test]
fn no_unfinished_work() {
    none(sources::unfinished(&Tree::checkout()));
}

#[test]
fn libraries_neither_print_nor_look_around() {
    none(sources::programs_own(&Tree::checkout()));
}

#[test]
fn every_module_says_what_it_owns() {
    none(sources::headless(&Tree::checkout()));
}

#[test]
fn every_source_file_is_compiled() {
    none(orphans::orphans(&Tree::checkout()));
}

#[test]
fn links_lead_somewhere() {
    none(markdown::dead_links(&Tree::checkout()));
}

#[test]
fn documents_name_targets_that_make_has() {
    none(markdown::unknown_make_targets(&Tree::checkout()));
}

#[test]
fn the_change_log_has_a_place_for_the_next_change() {
    none(markdown::no_unreleased(&Tree::checkout()));
}

#[test]
fn no_paths_of_one_machine() {
    none(leaks::machine_paths(&Tree::checkout(), &tree::top()));
}

#[test]
fn no_hosts_of_registries() {
    none(leaks::registry_hosts(&Tree::checkout()));
}
