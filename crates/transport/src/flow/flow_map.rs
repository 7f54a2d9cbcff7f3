//! The flows of one direction, by the id in their packets and by the id that the programs use.

use crate::wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};

/// Flows by their present id: their own, or that of their last successor. The program keeps using the first.
#[derive(Debug)]
pub(crate) struct FlowMap<F> {
    flows: BTreeMap<FlowId, F>,
    /// The present id of each flow that continues as another, by its first id. Other flows have their first.
    present: BTreeMap<FlowId, FlowId>,
    /// All ids that began as another's, which are none of the program's.
    successors: BTreeSet<FlowId>,
}

impl<F> FlowMap<F> {
    pub(crate) const fn new() -> Self {
        Self { flows: BTreeMap::new(), present: BTreeMap::new(), successors: BTreeSet::new() }
    }

    /// Adds a flow under its first id.
    pub(crate) fn insert(&mut self, first: FlowId, flow: F) {
        self.flows.insert(first, flow);
    }

    /// Returns the flow whose packets carry this id.
    pub(crate) fn get(&self, id: FlowId) -> Option<&F> {
        self.flows.get(&id)
    }

    /// Returns the flow whose packets carry this id.
    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut F> {
        self.flows.get_mut(&id)
    }

    /// Returns the current id of the flow that began as `first`, if it exists.
    fn id_of(&self, first: FlowId) -> Option<FlowId> {
        // Hardly a connection has any.
        if self.successors.is_empty() {
            return Some(first);
        }
        match self.present.get(&first) {
            Some(present) => Some(*present),
            None => (!self.successors.contains(&first)).then_some(first),
        }
    }

    /// Returns the id in the packets of the flow that began as `first`.
    pub(crate) fn current_id(&self, first: FlowId) -> Option<FlowId> {
        self.id_of(first).filter(|id| self.flows.contains_key(id))
    }

    /// Returns the flow that began as `first`.
    pub(crate) fn named(&self, first: FlowId) -> Option<&F> {
        self.flows.get(&self.id_of(first)?)
    }

    /// Returns the flow that began as `first`.
    pub(crate) fn named_mut(&mut self, first: FlowId) -> Option<&mut F> {
        self.flows.get_mut(&self.id_of(first)?)
    }

    /// Continues the flow that began as `first` as `successor`.
    pub(crate) fn succeed(&mut self, first: FlowId, successor: FlowId) {
        let Some(flow) = self.id_of(first).and_then(|id| self.flows.remove(&id)) else { return };
        self.flows.insert(successor, flow);
        self.present.insert(first, successor);
        self.successors.insert(successor);
    }

    /// Removes the flow that began as `first`.
    pub(crate) fn remove(&mut self, first: FlowId) -> Option<F> {
        let id = self.id_of(first)?;
        self.present.remove(&first);
        self.flows.remove(&id)
    }

    /// Iterates over the flows by ascending id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowId, &F)> {
        self.flows.iter().map(|(id, flow)| (*id, flow))
    }

    /// Iterates over the flows by ascending id.
    pub(crate) fn values(&self) -> impl Iterator<Item = &F> {
        self.flows.values()
    }

    /// Iterates over the flows by ascending id.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.flows.values_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_keeps_its_first_id_for_the_program() {
        let mut flows = FlowMap::new();
        flows.insert(FlowId(1), 'a');
        flows.insert(FlowId(2), 'b');
        flows.succeed(FlowId(1), FlowId(3));
        flows.succeed(FlowId(1), FlowId(4));
        flows.succeed(FlowId(9), FlowId(5));
        let by_id = |flows: &FlowMap<char>| (1..6).map(|id| flows.get(FlowId(id)).copied()).collect::<Vec<_>>();
        assert_eq!(by_id(&flows), [None, Some('b'), None, Some('a'), None]);
        let named: Vec<_> = (1..6).map(|id| flows.named(FlowId(id)).copied()).collect();
        assert_eq!(named, [Some('a'), Some('b'), None, None, None], "a successor's id is none of the program's");
        assert_eq!((flows.current_id(FlowId(1)), flows.current_id(FlowId(4))), (Some(FlowId(4)), None));
        assert_eq!(flows.remove(FlowId(4)), None);
        assert_eq!((flows.remove(FlowId(1)), flows.remove(FlowId(1))), (Some('a'), None));
        assert_eq!(by_id(&flows), [None, Some('b'), None, None, None]);
    }
}
