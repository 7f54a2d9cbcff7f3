//! Plans of the peer's objects, in whatever order they come.

use super::{Incoming, Violation};
use crate::wire::{FlowId, Plan};
use std::collections::BTreeMap;

/// Plans kept that overtook their flow's announcement or another plan: those that a sender makes within a few round trips.
const MAX_EARLY_PLANS: usize = 256;

/// Plans that wait, by flow and number.
#[derive(Debug, Default)]
pub(super) struct EarlyPlans(BTreeMap<(FlowId, u8), Plan>);

impl Incoming {
    pub(in super::super) fn on_plan(&mut self, plan: Plan) -> Result<(), Violation> {
        let flow = plan.flow;
        if self.closed.contains_key(&flow) {
            return Ok(());
        }
        // What went before it may be lost, and comes again; this one may not.
        let room = self.early_plans.0.len() < MAX_EARLY_PLANS;
        let next = self.flows.get(&flow).map(|flow| flow.plan_count());
        if next.is_none_or(|next| usize::from(plan.number) > next) {
            // Where there is no room, the sender is at fault: no plan is worth that much.
            let known = self.early_plans.0.get(&(flow, plan.number));
            let fits = known.map_or(room, |known| *known == plan);
            self.early_plans.0.insert((flow, plan.number), plan);
            return fits.then_some(()).ok_or(Violation("impossible plan"));
        }
        self.add_plan(plan)?;
        self.replay_plans(flow)
    }

    /// Plans of a flow that waited for what came before them.
    pub(super) fn replay_plans(&mut self, flow: FlowId) -> Result<(), Violation> {
        while let Some(number) = self.flows.get(&flow).and_then(|known| u8::try_from(known.plan_count()).ok())
            && let Some(plan) = self.early_plans.0.remove(&(flow, number))
        {
            self.add_plan(plan)?;
        }
        Ok(())
    }

    fn add_plan(&mut self, plan: Plan) -> Result<(), Violation> {
        let Some(flow) = self.flows.get_mut(&plan.flow) else { return Ok(()) };
        flow.add_plan(plan, self.limits).map_err(|_| Violation("impossible plan"))?;
        self.credit.expect_blocks(plan.k);
        self.replay_early(plan.flow);
        Ok(())
    }

    /// Plans of a flow that is over are wanted no more.
    pub(super) fn forget_plans(&mut self, flow: FlowId) {
        self.early_plans.0.retain(|(of, _), _| *of != flow);
    }
}
