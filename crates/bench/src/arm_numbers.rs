//! Numbers of threads and operations for the arms of a run, as the user lists them.

use crate::Workload;

/// Lists of numbers. An arm is made for each combination that its method has; an empty list stands
/// for 1 alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmNumbers {
    /// Threads, with one partition each.
    pub threads: Vec<u32>,
    /// Operations each thread keeps in flight.
    pub depths: Vec<u32>,
    /// Operations that a ring submits at once.
    pub batches: Vec<u32>,
    /// Messages that may wait for the consumer of a gatherer.
    pub backlogs: Vec<u32>,
    /// Whether rings poll for completions instead of sleeping.
    pub spins: bool,
}

impl ArmNumbers {
    /// Returns whether the user lists anything.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the numbers of threads.
    pub(crate) fn threads(&self) -> impl Iterator<Item = u32> + use<> {
        or_one(&self.threads).into_iter()
    }

    /// Returns the backlogs.
    pub(crate) fn backlogs(&self) -> impl Iterator<Item = u32> + use<> {
        or_one(&self.backlogs).into_iter()
    }

    /// Returns the depths.
    pub(crate) fn depths(&self) -> impl Iterator<Item = u32> + use<> {
        or_one(&self.depths).into_iter()
    }

    /// Returns the combinations of threads, depth and batch of a ring. A batch has no more
    /// operations than may be in flight.
    pub(crate) fn of_rings(&self) -> Vec<(u32, u32, u32)> {
        let batches = or_one(&self.batches);
        let pairs = self.threads().flat_map(|threads| self.depths().map(move |depth| (threads, depth)));
        let all =
            pairs.flat_map(|(threads, depth)| batches.iter().map(move |batch| (threads, depth, *batch)));
        let mut distinct = Vec::new();
        for (threads, depth, batch) in all {
            let ring = (threads, depth, batch.min(depth));
            if !distinct.contains(&ring) {
                distinct.push(ring);
            }
        }
        distinct
    }

    /// Returns the numbers that rings have in `workload`. Walks submit and wait in ways of their
    /// own, and small files are read by one ring.
    pub(crate) fn of_rings_for(&self, workload: Workload) -> Self {
        let (of_tree, of_small_files) = (workload.is_of_tree(), workload.is_of_small_files());
        let mut numbers = self.clone();
        if of_tree || of_small_files {
            (numbers.batches, numbers.spins) = (Vec::new(), false);
        }
        if of_small_files {
            numbers.threads = Vec::new();
        }
        numbers
    }
}

/// Returns `numbers` without repetitions, in their order.
fn or_one(numbers: &[u32]) -> Vec<u32> {
    let mut found = Vec::new();
    for number in numbers {
        if !found.contains(number) {
            found.push(*number);
        }
    }
    if found.is_empty() { vec![1] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_the_numbers_that_their_workload_uses() {
        let lists = (vec![1, 8], vec![4], vec![1, 4]);
        let (threads, depths, batches) = lists;
        let numbers = ArmNumbers { threads, depths, batches, spins: true, ..ArmNumbers::default() };
        let rings = |workload| {
            let numbers = numbers.of_rings_for(workload);
            (numbers.of_rings(), numbers.spins)
        };
        assert_eq!(rings(Workload::Read).0.len(), 4);
        assert_eq!(rings(Workload::Walk), (vec![(1, 4, 1), (8, 4, 1)], false));
        assert_eq!(rings(Workload::SmallFiles), (vec![(1, 4, 1)], false));
    }

    #[test]
    fn combinations_are_distinct_and_batches_fit() {
        let numbers = ArmNumbers {
            threads: vec![1, 8, 1],
            depths: vec![1, 32],
            batches: vec![1, 128],
            ..ArmNumbers::default()
        };
        let expected = [(1, 1, 1), (1, 32, 1), (1, 32, 32), (8, 1, 1), (8, 32, 1), (8, 32, 32)];
        assert_eq!(numbers.of_rings(), expected);
        assert_eq!(ArmNumbers::default().of_rings(), [(1, 1, 1)]);
        let clamped = ArmNumbers { depths: vec![8], batches: vec![64, 1, 32], ..ArmNumbers::default() };
        assert_eq!(clamped.of_rings(), [(1, 8, 8), (1, 8, 1)]);
        assert!(numbers.is_given() && !ArmNumbers::default().is_given());
    }
}
