//! The flows of one direction, by the id in their packets and by the id that the programs use.

use crate::wire::FlowId;
use std::collections::BTreeMap;

/// Flows by their present id: their own, or that of their last successor. The program keeps using the first.
#[derive(Debug)]
pub(crate) struct FlowMap<F> {
    flows: BTreeMap<FlowId, F>,
    /// The present id of each flow, by its first id.
    present: BTreeMap<FlowId, FlowId>,
}

impl<F> FlowMap<F> {
    pub(crate) const fn new() -> Self {
        Self { flows: BTreeMap::new(), present: BTreeMap::new() }
    }

    /// Adds a flow under its first id.
    pub(crate) fn insert(&mut self, first: FlowId, flow: F) {
        self.present.insert(first, first);
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

    /// Returns the id in the packets of the flow that began as `first`.
    pub(crate) fn present_id(&self, first: FlowId) -> Option<FlowId> {
        self.present.get(&first).copied()
    }

    /// Returns the flow that began as `first`.
    pub(crate) fn named(&self, first: FlowId) -> Option<&F> {
        self.flows.get(self.present.get(&first)?)
    }

    /// Returns the flow that began as `first`.
    pub(crate) fn named_mut(&mut self, first: FlowId) -> Option<&mut F> {
        self.flows.get_mut(self.present.get(&first)?)
    }

    /// Continues the flow that began as `first` as `successor`.
    pub(crate) fn succeed(&mut self, first: FlowId, successor: FlowId) {
        let Some(present) = self.present.get_mut(&first) else { return };
        let before = std::mem::replace(present, successor);
        if let Some(flow) = self.flows.remove(&before) {
            self.flows.insert(successor, flow);
        }
    }

    /// Removes the flow that began as `first`.
    pub(crate) fn remove(&mut self, first: FlowId) -> Option<F> {
        self.flows.remove(&self.present.remove(&first)?)
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
        assert_eq!((flows.present_id(FlowId(1)), flows.present_id(FlowId(4))), (Some(FlowId(4)), None));
        assert_eq!(flows.remove(FlowId(4)), None);
        assert_eq!((flows.remove(FlowId(1)), flows.remove(FlowId(1))), (Some('a'), None));
        assert_eq!(by_id(&flows), [None, Some('b'), None, None, None]);
    }
}
