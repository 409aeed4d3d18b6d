//! Random trees and random command lines: GNU du and fathom must agree on each.
//!
//! `FATHOM_CASES=N` sets the number of command lines. A failure names the seed of its tree;
//! `FATHOM_SEED=N FATHOM_CASES=1` generates that tree and its command lines again. Without a seed,
//! every run generates the same trees.

#![cfg(target_os = "linux")]

mod command;
mod forest;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::support::outcome::ProgramEnd;
use crate::support::program::{ENGINES, Program};
use crate::support::random::Random;
use command::CommandLine;
use forest::RandomTree;

/// Number of command lines for each tree.
const LINES_PER_TREE: u64 = 20;
/// Default number of command lines.
const CASES: u64 = 6000;

#[test]
fn random_trees_measure_the_same() {
    let trees = number("FATHOM_CASES", CASES).div_ceil(LINES_PER_TREE);
    let first = number("FATHOM_SEED", 1);
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while failure.lock().expect("no holder panics").is_none() {
                    let tree = next.fetch_add(1, Ordering::Relaxed);
                    if tree >= trees {
                        return;
                    }
                    if let Some(report) = try_tree(first + tree) {
                        failure.lock().expect("no holder panics").get_or_insert(report);
                    }
                }
            });
        }
    });
    let tried = next.load(Ordering::Relaxed).min(trees) * LINES_PER_TREE;
    println!("{tried} command lines on trees {first} to {}", first + trees - 1);
    if let Some(report) = failure.into_inner().expect("no holder panics") {
        panic!("{report}");
    }
}

/// Generates the tree of `seed` and tries its command lines. Describes the first failure.
fn try_tree(seed: u64) -> Option<String> {
    let mut random = Random::new(seed);
    let forest = RandomTree::grow(&mut random);
    (0..LINES_PER_TREE).find_map(|_| {
        let line = CommandLine::draw(&mut random, &forest);
        let program = draw_program(&mut random);
        let difference = differs(&forest, &line, program)?;
        let (line, difference) = shortest(&forest, line, program, difference);
        let case = line.case(&forest.tree).describe();
        Some(format!(
            "FATHOM_SEED={seed} FATHOM_CASES=1\n{program:?} differs from GNU du.\n{case}\n{difference}"
        ))
    })
}

fn draw_program(random: &mut Random) -> Program {
    let engine = ENGINES[random.below(ENGINES.len())];
    if random.chance(40) || !engine.is_allowed() { Program::AsDu } else { engine }
}

fn differs(forest: &RandomTree, line: &CommandLine, program: Program) -> Option<String> {
    let case = line.case(&forest.tree);
    let mut expected = case.run(Program::Gnu);
    if expected.end == ProgramEnd::TimedOut {
        return Some("GNU du itself does not end".to_string());
    }
    case.difference(program, &mut expected)
}

/// Removes each part of the command line that the difference does not need.
fn shortest(
    forest: &RandomTree,
    mut line: CommandLine,
    program: Program,
    mut difference: String,
) -> (CommandLine, String) {
    let mut index = 0;
    while index < line.len() {
        let shorter = line.without(index);
        match differs(forest, &shorter, program) {
            Some(still) => (line, difference) = (shorter, still),
            None => index += 1,
        }
    }
    (line, difference)
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")),
        Err(_) => default,
    }
}
