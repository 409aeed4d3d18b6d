//! The properties that most bytes of a set of entries have.

use std::collections::HashMap;
use std::hash::Hash;

use super::{KINDS_MAX, OutlineNode};
use crate::top::AGES;

/// The number of age groups, with the group of times in the future.
const AGE_GROUPS: usize = AGES.len() + 2;
/// The most pairs of a node and an owner that are counted.
const OWNERS_MAX: usize = 1 << 20;

/// The properties of an entry, or of most bytes of several entries. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryMix {
    /// The kind of its extension.
    pub kind: Option<u8>,
    /// The age group, an index into [`AGES`]; the index after the last one stands for older
    /// entries, and the next one for times in the future.
    pub age: Option<usize>,
    /// The owner.
    pub uid: Option<u32>,
    /// Whether files like `.gitignore` exclude it.
    pub ignored: Option<bool>,
}

/// The bytes of the entries without a node, by node and property.
pub(super) struct MixTable {
    kinds: Vec<[u64; KINDS_MAX]>,
    ages: Vec<[u64; AGE_GROUPS]>,
    /// Bytes that are not ignored, and bytes that are.
    ignored: Vec<[u64; 2]>,
    owners: HashMap<(usize, u32), u64>,
}

impl MixTable {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            kinds: vec![[0; KINDS_MAX]; nodes],
            ages: vec![[0; AGE_GROUPS]; nodes],
            ignored: vec![[0; 2]; nodes],
            owners: HashMap::new(),
        }
    }

    /// Counts an entry that the directory of a node has, or one below it. An empty entry counts as
    /// one byte.
    pub(super) fn add(&mut self, node: usize, mix: &EntryMix, bytes: u64) {
        let bytes = bytes.max(1);
        let count = |sums: &mut [u64], at: Option<usize>| {
            if let Some(sum) = at.and_then(|at| sums.get_mut(at)) {
                *sum = sum.saturating_add(bytes);
            }
        };
        count(&mut self.kinds[node], mix.kind.map(usize::from));
        count(&mut self.ages[node], mix.age);
        count(&mut self.ignored[node], mix.ignored.map(usize::from));
        if let Some(uid) = mix.uid {
            count_in(&mut self.owners, (node, uid), bytes);
        }
    }

    /// Sets the properties of the directories among `nodes`. The nodes in `cut`, which followed
    /// them, count as entries without a node.
    pub(super) fn set(mut self, nodes: &mut [OutlineNode], cut: &[OutlineNode]) {
        let kept = nodes.len();
        let mut homes: Vec<Option<usize>> = (0..kept).map(Some).collect();
        for node in cut {
            let home = node.parent.and_then(|parent| homes[parent]);
            if let (None, Some(home)) = (node.state, home) {
                self.add(home, &node.mix, node.sum.allocated);
            }
            homes.push(home);
        }
        self.merge(&homes, kept);
        let mut owners = vec![(0, None); kept];
        for ((node, uid), bytes) in self.owners {
            // The least of equal owners wins.
            if (bytes, std::cmp::Reverse(uid))
                > (owners[node].0, std::cmp::Reverse(owners[node].1.unwrap_or(u32::MAX)))
            {
                owners[node] = (bytes, Some(uid));
            }
        }
        for (at, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.state.is_some()) {
            let kind = most(&self.kinds[at]).and_then(|kind| u8::try_from(kind).ok());
            let ignored = most(&self.ignored[at]).map(|at| at == 1);
            node.mix = EntryMix { kind, age: most(&self.ages[at]), uid: owners[at].1, ignored };
        }
    }

    /// Moves the bytes of cut nodes to their homes.
    fn merge(&mut self, homes: &[Option<usize>], kept: usize) {
        for (at, home) in homes.iter().enumerate().skip(kept) {
            if let Some(home) = *home {
                let (kinds, ages, ignored) = (self.kinds[at], self.ages[at], self.ignored[at]);
                add_all(&mut self.kinds[home], &kinds);
                add_all(&mut self.ages[home], &ages);
                add_all(&mut self.ignored[home], &ignored);
            }
        }
        for ((node, uid), bytes) in std::mem::take(&mut self.owners) {
            if let Some(home) = homes[node] {
                count_in(&mut self.owners, (home, uid), bytes);
            }
        }
    }
}

/// Adds to a sum of a map of bounded size. A new key is not counted in a full map.
fn count_in<K: Eq + Hash>(map: &mut HashMap<K, u64>, key: K, bytes: u64) {
    if map.len() < OWNERS_MAX || map.contains_key(&key) {
        let sum = map.entry(key).or_default();
        *sum = sum.saturating_add(bytes);
    }
}

fn add_all(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// Returns the index of the greatest number, the first one of equal ones; `None` if all are 0.
fn most(sums: &[u64]) -> Option<usize> {
    let greatest = sums.iter().copied().max().filter(|sum| *sum > 0)?;
    sums.iter().position(|sum| *sum == greatest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::UsageSum;
    use fathom_inventory::store::DirState;

    fn node(parent: Option<usize>, is_dir: bool, mix: EntryMix, allocated: u64) -> OutlineNode {
        let sum = UsageSum { allocated, ..UsageSum::default() };
        let state = is_dir.then_some(DirState::Complete);
        OutlineNode { parent, name: Vec::new(), sum, dir_id: 1, state, mtime: None, mix }
    }

    #[test]
    fn cut_nodes_count_for_the_directory_above_them() {
        let mix = |kind, age, uid| {
            let ignored = Some(age == 2);
            EntryMix { kind: Some(kind), age: Some(age), uid: Some(uid), ignored }
        };
        let none = EntryMix::default();
        // Directory 0 has the directories 1 and 2, and 2 has the file 3. The last two are cut.
        let mut nodes = vec![node(None, true, none, 900), node(Some(0), true, none, 100)];
        let cut = [node(Some(0), true, none, 90), node(Some(2), false, mix(5, 1, 7), 60)];
        let mut mixes = MixTable::new(4);
        mixes.add(0, &mix(1, 0, 1), 50);
        mixes.add(2, &mix(4, 2, 1), 20);
        mixes.add(2, &mix(1, 2, 1), 5);
        mixes.set(&mut nodes, &cut);
        // By kind: 5 has 60 and 1 has 55. By owner: 1 has 75 and 7 has 60. 25 are ignored.
        assert_eq!(nodes[0].mix, mix(5, 1, 1));
        assert_eq!(nodes[1].mix, none);
    }
}
