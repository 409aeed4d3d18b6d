//! Tasks in traversal order. The first one is executed next. A task in execution keeps its place
//! until it is finished, so that the tasks of its output are inserted there. This module has no
//! workers and no limits.
//!
//! A root may be on another device than the tasks before it. So one root at a time may be taken out
//! of turn, and put back if it is not.
//!
//! Two rings link the same places: one has all places, the other only those with a waiting task.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::task::{Job, NOWHERE, Task};

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    before: usize,
    after: usize,
}

#[derive(Debug)]
struct TaskPlace<T> {
    all: Links,
    /// Valid while there is a task.
    waiting: Links,
    task: Option<Arc<Task<T>>>,
}

impl<T> Default for TaskPlace<T> {
    fn default() -> Self {
        Self { all: Links::default(), waiting: Links::default(), task: None }
    }
}

#[derive(Debug)]
pub(crate) struct WorkQueue<T> {
    places: Vec<TaskPlace<T>>,
    free: Vec<usize>,
    waiting: usize,
    /// The roots in order, with their places. Some of them may have been taken in their turn. No
    /// task is upgraded to look it up: its last reference would be dropped with the queue locked.
    roots: VecDeque<(usize, Weak<Task<T>>)>,
    /// The place of the root that was taken out of turn, until it is put back or finished.
    root_ahead: usize,
}

impl<T> WorkQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            places: vec![TaskPlace::default()],
            free: Vec::new(),
            waiting: 0,
            roots: VecDeque::new(),
            root_ahead: NOWHERE,
        }
    }

    /// Returns the number of waiting tasks.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Inserts a task in front of all others.
    pub(crate) fn push_front(&mut self, task: Arc<Task<T>>) {
        self.put_before(&[task], self.places[NOWHERE].all.after, None);
    }

    /// Inserts a task behind all others.
    pub(crate) fn push_back(&mut self, task: Arc<Task<T>>) {
        self.put_before(std::slice::from_ref(&task), NOWHERE, None);
        if matches!(task.job, Job::Root(_)) {
            self.forget_taken_roots();
            self.roots.push_back((task.place(), Arc::downgrade(&task)));
        }
    }

    /// Inserts tasks, given in order, before `place`. If `early` is an index, the last task keeps
    /// its place in the order, but is taken before the task with that index.
    pub(crate) fn put_before(&mut self, tasks: &[Arc<Task<T>>], place: usize, early: Option<usize>) {
        let next_waiting = self.next_waiting(place);
        for task in tasks {
            let new = self.free.pop().unwrap_or_else(|| {
                self.places.push(TaskPlace::default());
                self.places.len() - 1
            });
            task.set_place(new);
            self.places[new].task = Some(task.clone());
            self.link(new, place, |place| &mut place.all);
            self.link(new, next_waiting, |place| &mut place.waiting);
        }
        self.waiting += tasks.len();
        if let (Some(last), Some(early)) = (tasks.last(), early.and_then(|index| tasks.get(index))) {
            let (last, early) = (last.place(), early.place());
            if last != early {
                self.unlink(last, |place| &mut place.waiting);
                self.link(last, early, |place| &mut place.waiting);
            }
        }
    }

    /// Takes the first waiting task.
    pub(crate) fn take_first(&mut self) -> Option<Arc<Task<T>>> {
        self.take(self.places[NOWHERE].waiting.after)
    }

    /// Takes the first waiting root that was not taken before, unless another one was taken so and
    /// is neither put back nor finished.
    pub(crate) fn take_root(&mut self) -> Option<Arc<Task<T>>> {
        while self.root_ahead == NOWHERE {
            let (place, root) = self.roots.pop_front()?;
            if self.waits(place, root.as_ptr()) {
                self.root_ahead = place;
                return self.take(place);
            }
        }
        None
    }

    /// Whether the task at `place` was taken by [`WorkQueue::take_root`].
    pub(crate) fn is_root_ahead(&self, place: usize) -> bool {
        place == self.root_ahead
    }

    /// Lets a task that was taken wait again at its place.
    pub(crate) fn put_back(&mut self, task: Arc<Task<T>>) {
        let place = task.place();
        let next = self.next_waiting(self.places[place].all.after);
        self.places[place].task = Some(task);
        self.link(place, next, |place| &mut place.waiting);
        self.waiting += 1;
        self.forget_ahead(place);
    }

    fn forget_ahead(&mut self, place: usize) {
        if self.is_root_ahead(place) {
            self.root_ahead = NOWHERE;
        }
    }

    /// Returns the first place from `place` on that has a task.
    fn next_waiting(&self, mut place: usize) -> usize {
        while place != NOWHERE && self.places[place].task.is_none() {
            place = self.places[place].all.after;
        }
        place
    }

    /// Forgets the first roots up to one that waits.
    fn forget_taken_roots(&mut self) {
        while let Some((place, root)) = self.roots.front()
            && !self.waits(*place, root.as_ptr())
        {
            self.roots.pop_front();
        }
    }

    fn waits(&self, place: usize, task: *const Task<T>) -> bool {
        // The place of an executed task may belong to another task by now.
        self.places[place].task.as_ref().is_some_and(|there| Arc::as_ptr(there) == task)
    }

    /// Takes this task if it waits.
    pub(crate) fn take_one(&mut self, task: &Arc<Task<T>>) -> Option<Arc<Task<T>>> {
        if self.waits(task.place(), Arc::as_ptr(task)) { self.take(task.place()) } else { None }
    }

    fn take(&mut self, place: usize) -> Option<Arc<Task<T>>> {
        let task = self.places[place].task.take()?;
        self.unlink(place, |place| &mut place.waiting);
        self.waiting -= 1;
        Some(task)
    }

    /// Frees the place of a task that was taken.
    pub(crate) fn leave(&mut self, place: usize) {
        self.unlink(place, |place| &mut place.all);
        self.free.push(place);
        self.forget_ahead(place);
    }

    fn link(&mut self, new: usize, after: usize, ring: impl Fn(&mut TaskPlace<T>) -> &mut Links) {
        let before = ring(&mut self.places[after]).before;
        *ring(&mut self.places[new]) = Links { before, after };
        ring(&mut self.places[before]).after = new;
        ring(&mut self.places[after]).before = new;
    }

    fn unlink(&mut self, place: usize, ring: impl Fn(&mut TaskPlace<T>) -> &mut Links) {
        let Links { before, after } = *ring(&mut self.places[place]);
        ring(&mut self.places[before]).after = after;
        ring(&mut self.places[after]).before = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::task::Job;
    use fathom_io::Follow;

    fn task(name: usize) -> Arc<Task<()>> {
        Task::new(Job::Root(Arc::new(Node::root(c"r".to_owned(), name, Follow::No, std::sync::Weak::new()))))
    }

    fn name(task: &Task<()>) -> usize {
        task.job.node().root_index()
    }

    fn put(queue: &mut WorkQueue<()>, names: std::ops::Range<usize>, place: usize) {
        queue.put_before(&names.map(task).collect::<Vec<_>>(), place, None);
    }

    fn take(queue: &mut WorkQueue<()>) -> Arc<Task<()>> {
        queue.take_first().expect("one waits")
    }

    fn rest(queue: &mut WorkQueue<()>) -> Vec<usize> {
        std::iter::from_fn(|| queue.take_first()).map(|task| name(&task)).collect()
    }

    #[test]
    fn tasks_of_an_output_take_the_place_of_their_task() {
        let mut queue = WorkQueue::new();
        put(&mut queue, 1..5, NOWHERE);
        let (one, two, three) = (take(&mut queue), take(&mut queue), take(&mut queue));
        assert_eq!([name(&one), name(&two), name(&three)], [1, 2, 3]);
        put(&mut queue, 30..31, three.place());
        put(&mut queue, 10..12, one.place());
        put(&mut queue, 12..13, one.place());
        queue.leave(one.place());
        put(&mut queue, 20..21, two.place());
        queue.push_front(task(0));
        assert_eq!(queue.len(), 7);
        assert_eq!(rest(&mut queue), [0, 10, 11, 12, 20, 30, 4]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn one_task_is_taken_out_of_order() {
        let mut queue = WorkQueue::new();
        let tasks: Vec<_> = (0..4).map(task).collect();
        queue.put_before(&tasks, NOWHERE, None);
        assert!(queue.take_one(&task(2)).is_none(), "it was never put in");
        assert_eq!(queue.take_one(&tasks[2]).map(|task| name(&task)), Some(2));
        assert!(queue.take_one(&tasks[2]).is_none());
        put(&mut queue, 20..21, tasks[2].place());
        assert_eq!(rest(&mut queue), [0, 1, 20, 3]);
        queue.leave(tasks[2].place());
        let other = task(5);
        queue.push_back(other.clone());
        assert_eq!(other.place(), tasks[2].place());
        assert!(queue.take_one(&tasks[2]).is_none() && queue.take_one(&other).is_some());
    }

    #[test]
    fn the_last_task_may_be_taken_early_and_keeps_its_place() {
        let mut queue = WorkQueue::new();
        let tasks: Vec<_> = (0..5).map(task).collect();
        queue.put_before(&tasks, NOWHERE, Some(2));
        assert_eq!([0, 1, 4].map(|_| name(&take(&mut queue))), [0, 1, 4]);
        put(&mut queue, 40..42, tasks[4].place());
        assert_eq!(rest(&mut queue), [2, 3, 40, 41]);
        queue.put_before(&[task(7)], NOWHERE, Some(0));
        assert_eq!(rest(&mut queue), [7]);
    }

    #[test]
    fn one_root_at_a_time_is_taken_out_of_turn() {
        let mut queue = WorkQueue::new();
        (0..5).for_each(|name| queue.push_back(task(name)));
        let zero = take(&mut queue);
        let first = queue.take_root().expect("one waits");
        assert_eq!([name(&zero), name(&first)], [0, 1]);
        assert!(queue.take_root().is_none(), "the first is not finished");
        put(&mut queue, 10..12, first.place());
        assert_eq!([10, 11, 2].map(|_| name(&take(&mut queue))), [10, 11, 2], "the order is kept");
        queue.leave(zero.place());
        assert!(queue.take_root().is_none(), "another one is finished");
        queue.leave(first.place());
        let third = queue.take_root().expect("2 was taken in its turn");
        assert!(name(&third) == 3 && queue.is_root_ahead(third.place()));
        assert_eq!(queue.len(), 1);
        queue.put_back(third);
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.take_root().map(|root| name(&root)), Some(4), "none is taken so twice");
        assert_eq!(rest(&mut queue), [3]);
    }

    #[test]
    fn a_task_that_is_put_back_keeps_its_place() {
        for count in 1..5 {
            let mut queue = WorkQueue::new();
            (0..count).for_each(|name| queue.push_back(task(name)));
            let taken: Vec<_> = (0..count).map(|_| take(&mut queue)).collect();
            taken.iter().rev().step_by(2).for_each(|task| queue.put_back(task.clone()));
            taken.iter().rev().skip(1).step_by(2).for_each(|task| queue.put_back(task.clone()));
            assert_eq!(rest(&mut queue), (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn roots_that_were_taken_are_forgotten() {
        let mut queue = WorkQueue::new();
        for name in 0..100 {
            queue.push_back(task(name));
            let taken = take(&mut queue);
            queue.leave(taken.place());
            assert_eq!(queue.roots.len(), 1);
        }
        assert!(queue.take_root().is_none() && queue.roots.is_empty());
    }

    #[test]
    fn places_are_reused() {
        let mut queue = WorkQueue::new();
        for round in 0..100 {
            put(&mut queue, 0..3, NOWHERE);
            for expected in 0..3 {
                let taken = take(&mut queue);
                assert_eq!(name(&taken), expected, "round {round}");
                queue.leave(taken.place());
            }
        }
        assert_eq!((queue.places.len(), queue.free.len()), (4, 3));
    }
}
