//! Random trees and random command lines: GNU du and fathom must agree on each.
//!
//! A failure names the seed of its tree.

#![cfg(target_os = "linux")]

mod command;
mod forest;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::outcome::ProgramEnd;
use crate::support::program::{ENGINES, Program, gnu_description};
use crate::support::random::Random;
use command::CommandLine;
use forest::RandomTree;

/// Number of random trees.
const TREES: usize = 300;
/// Number of command lines for each tree.
const LINES_PER_TREE: usize = 20;

#[test]
fn random_trees_measure_the_same() {
    let seeds = Mutex::new(fathom_cases::seeds(TREES));
    let tried = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while failure.lock().expect("no holder panics").is_none() {
                    let Some(seed) = seeds.lock().expect("no holder panics").next() else { return };
                    tried.fetch_add(LINES_PER_TREE, Ordering::Relaxed);
                    if let Some(report) = try_tree(seed) {
                        failure.lock().expect("no holder panics").get_or_insert((seed, report));
                    }
                }
            });
        }
    });
    println!("{} command lines", tried.into_inner());
    if let Some((seed, report)) = failure.into_inner().expect("no holder panics") {
        panic!("{}\n{report}", fathom_cases::repeat(seed));
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
        Some(format!("{program:?} differs from {}.\n{difference}\n{case}", gnu_description()))
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
