//! The remaining runs.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::plan::{LinkCase, LinkPlan};
use crate::results::Record;

/// The remaining runs of a plan, in order.
///
/// Warm-ups come first: for each peer its shortest cases, whose results are discarded. The others are shuffled by the
/// plan's seed, so that slow changes on the machine affect all peers alike; a resumed run keeps the order.
#[derive(Clone, Debug)]
pub struct Agenda {
    warm_ups: VecDeque<Task>,
    cases: VecDeque<Task>,
    settled: usize,
    total: usize,
    /// Seconds that runs took, and their caps.
    took: f64,
    allowed: f64,
}

/// One run to be made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) case: LinkCase,
    /// From 1.
    pub(super) attempt: u32,
    pub(super) is_warm_up: bool,
}

impl Agenda {
    /// Creates the agenda of a plan's cases that no record settles and whose label contains `only`. With `stale`,
    /// records of another build do not settle a case.
    pub fn new(plan: &LinkPlan, records: &[Record], only: Option<&str>, stale: bool) -> Self {
        let wanted = |case: &LinkCase| only.is_none_or(|only| case.label().contains(only));
        let mut by_id: HashMap<&str, Vec<&Record>> = HashMap::new();
        for record in records {
            by_id.entry(&record.id).or_default().push(record);
        }
        let mut cases: Vec<LinkCase> = plan.cases().into_iter().filter(wanted).collect();
        let total = cases.len();
        let floors = floors(plan);
        let settled = |case: &LinkCase| {
            let is_done = |record: &&Record| record.settles(case) && (!stale || !record.is_stale());
            by_id.get(case.id().as_str()).is_some_and(|records| records.iter().any(is_done))
        };
        cases.retain(|case| !settled(case));
        let warm_ups = warm_ups(plan, &cases, &floors);
        cases.sort_by_cached_key(|case| place(plan.shuffle, &case.id()));
        let task = |case| Task { case, attempt: 1, is_warm_up: false };
        Self {
            settled: total - cases.len(),
            total,
            warm_ups,
            cases: cases.into_iter().map(task).collect(),
            took: 0.0,
            allowed: 0.0,
        }
    }

    /// Iterates over the cases to run, in order, without warm-ups.
    pub fn cases(&self) -> impl Iterator<Item = &LinkCase> {
        self.cases.iter().map(|task| &task.case)
    }

    /// Iterates over the warm-ups, which come first.
    pub fn warm_ups(&self) -> impl Iterator<Item = &LinkCase> {
        self.warm_ups.iter().map(|task| &task.case)
    }

    /// Returns the number of cases that need no further run, and of all requested ones.
    pub fn settled_of_total(&self) -> (usize, usize) {
        (self.settled, self.total)
    }

    /// Returns whether no run is left to start.
    pub fn is_empty(&self) -> bool {
        self.warm_ups.is_empty() && self.cases.is_empty()
    }

    /// Returns the next warm-up, or the next case if those may start.
    pub(super) fn next(&mut self, cases_may_start: bool) -> Option<Task> {
        self.warm_ups.pop_front().or_else(|| if cases_may_start { self.cases.pop_front() } else { None })
    }

    /// Records how long a run took.
    pub(super) fn took(&mut self, task: &Task, seconds: f64) {
        self.took += seconds;
        self.allowed += task.case.cap_seconds;
    }

    /// Queues a case to be run again, after the others.
    pub(super) fn requeue(&mut self, task: Task) {
        self.cases.push_back(task);
    }

    /// Removes a peer's cases.
    pub(super) fn remove_peer(&mut self, peer: &str) {
        let other = |task: &Task| task.case.peer != peer;
        self.warm_ups.retain(other);
        self.cases.retain(other);
    }

    /// Returns the number of remaining runs, and the seconds that they take one after the other at the same share of
    /// their caps as the runs so far; `None` before the first.
    pub(super) fn left(&self) -> (usize, Option<f64>) {
        let tasks = self.warm_ups.iter().chain(&self.cases);
        let allowed: f64 = tasks.map(|task| task.case.cap_seconds).sum();
        (self.warm_ups.len() + self.cases.len(), (self.allowed > 0.0).then(|| allowed * self.took / self.allowed))
    }
}

/// Returns a position that depends only on the seed and the case.
fn place(seed: u64, id: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(id.as_bytes());
    hasher.finalize().into()
}

/// Returns the least seconds of each case, by its id.
pub(super) fn floors(plan: &LinkPlan) -> HashMap<String, f64> {
    let mut floors = HashMap::new();
    for sweep in &plan.sweeps {
        for point in &sweep.points {
            let floor = plan.least(point);
            for peer in &sweep.peers {
                floors.extend(plan.cases_at(sweep, point, peer).map(|case| (case.id(), floor)));
            }
        }
    }
    floors
}

/// Returns the plan's number of warm-ups for each peer: its cases, the shortest first, repeated if there are fewer.
fn warm_ups(plan: &LinkPlan, cases: &[LinkCase], floors: &HashMap<String, f64>) -> VecDeque<Task> {
    let mut of_peers: BTreeMap<&str, Vec<&LinkCase>> = BTreeMap::new();
    for case in cases {
        of_peers.entry(&case.peer).or_default().push(case);
    }
    let mut warm_ups = VecDeque::new();
    for of_peer in of_peers.values_mut() {
        of_peer.sort_by(|a, b| floors[&a.id()].total_cmp(&floors[&b.id()]));
        let shortest = of_peer.iter().cycle().take(plan.warm_up as usize);
        warm_ups.extend(shortest.map(|case| Task { case: (*case).clone(), attempt: 1, is_warm_up: true }));
    }
    warm_ups
}
