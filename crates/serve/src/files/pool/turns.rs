//! What is next: clients take turns, and no device takes all threads.

use std::collections::{HashMap, VecDeque};

use super::{Job, Resource};

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// By client; none is empty.
    queues: HashMap<u64, VecDeque<Job>>,
    /// Clients with something in their queue, in the order of their turns.
    turns: VecDeque<u64>,
    at_work: HashMap<Resource, usize>,
}

impl Turns {
    pub(super) fn push(&mut self, client: u64, job: Job) {
        let queue = self.queues.entry(client).or_default();
        if queue.is_empty() {
            self.turns.push_back(client);
        }
        queue.push_back(job);
    }

    /// The next job of which there are fewer than `limit` at work; its client's turn is over.
    pub(super) fn next(&mut self, limit: impl Fn(Resource) -> usize) -> Option<Job> {
        let may = |on| self.at_work.get(&on).copied().unwrap_or(0) < limit(on);
        let can = |client: &u64| self.queues.get(client)?.front().map(|job| may(job.on));
        let at = self.turns.iter().position(|client| can(client) == Some(true))?;
        let client = self.turns.remove(at)?;
        let queue = self.queues.get_mut(&client)?;
        let job = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        *self.at_work.entry(job.on).or_default() += 1;
        Some(job)
    }

    pub(super) fn done(&mut self, on: Resource) {
        let at_work = self.at_work.entry(on).or_default();
        *at_work = at_work.saturating_sub(1);
        if *at_work == 0 {
            self.at_work.remove(&on);
        }
    }

    /// Everything that nobody has begun.
    pub(super) fn take_all(&mut self) -> HashMap<u64, VecDeque<Job>> {
        self.turns.clear();
        std::mem::take(&mut self.queues)
    }
}
