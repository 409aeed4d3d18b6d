//! The queue of jobs: round-robin between clients, with a limit of running jobs for each resource.

use std::collections::{HashMap, VecDeque};

use super::{PoolJob, Resource};

/// Waiting jobs by client, and the number of running jobs by resource.
#[derive(Debug, Default)]
pub(super) struct JobQueue {
    /// Waiting jobs by client. No queue is empty.
    queues: HashMap<u64, VecDeque<PoolJob>>,
    /// Clients with waiting jobs, in round-robin order.
    clients: VecDeque<u64>,
    /// Running jobs by resource.
    running: HashMap<Resource, usize>,
}

impl JobQueue {
    pub(super) fn push(&mut self, client: u64, job: PoolJob) {
        let queue = self.queues.entry(client).or_default();
        if queue.is_empty() {
            self.clients.push_back(client);
        }
        queue.push_back(job);
    }

    /// Takes the first job whose resource has fewer than `limit` running jobs, and moves its client
    /// to the back.
    pub(super) fn next(&mut self, limit: impl Fn(Resource) -> usize) -> Option<PoolJob> {
        let may = |on| self.running.get(&on).copied().unwrap_or(0) < limit(on);
        let can = |client: &u64| self.queues.get(client)?.front().map(|job| may(job.on));
        let at = self.clients.iter().position(|client| can(client) == Some(true))?;
        let client = self.clients.remove(at)?;
        let queue = self.queues.get_mut(&client)?;
        let job = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&client);
        } else {
            self.clients.push_back(client);
        }
        *self.running.entry(job.on).or_default() += 1;
        Some(job)
    }

    pub(super) fn done(&mut self, on: Resource) {
        let running = self.running.entry(on).or_default();
        *running = running.saturating_sub(1);
        if *running == 0 {
            self.running.remove(&on);
        }
    }

    /// Removes and returns all waiting jobs.
    pub(super) fn take_all(&mut self) -> HashMap<u64, VecDeque<PoolJob>> {
        self.clients.clear();
        std::mem::take(&mut self.queues)
    }
}
