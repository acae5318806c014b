//! Equal senders that share a link in lockstep.

use crate::model::{Flow, Link, Scenario};
use knee_link::{Aqm, Buffer, Loss, RateModel};
use knee_units::Time;
use knee_workload::Workload;

impl Scenario {
    /// Returns the name of a link that equal senders share in lockstep: two flows of one controller
    /// start at once on one path, nothing on it is random, and its queue drops what does not fit.
    /// Whose packets are dropped then depends on their phase alone (Floyd and Jacobson, "On Traffic
    /// Phase Effects in Packet-Switched Gateways", 1992).
    pub fn lockstep(&self) -> Option<&str> {
        let plain = |flow: &&Flow| {
            let alone = flow.paths.len() == 1 && flow.workload == Workload::Bulk;
            alone && flow.send_jitter == Time::ZERO
        };
        let mut flows = self.flows.iter().filter(plain);
        while let Some(one) = flows.next() {
            let link = flows.clone().any(|other| equal(one, other));
            if let Some(link) = link.then(|| self.dropping(one.paths[0])).flatten() {
                return Some(link);
            }
        }
        None
    }

    /// Returns the first link of a path that drops what does not fit in its queue, if nothing on
    /// the path is random.
    fn dropping(&self, path: usize) -> Option<&str> {
        let mut links = self.paths[path].forward.iter().map(|link| &self.links[*link]);
        let random =
            |Link { config, .. }: &Link| config.delay.jitter.is_some() || config.loss != Loss::None;
        let drops = |Link { config, .. }: &&Link| {
            config.aqm == Aqm::DropTail
                && config.buffer != Buffer::Unlimited
                && config.rate != RateModel::Unlimited
        };
        match links.clone().any(random) {
            true => None,
            false => links.find(drops).map(|link| link.name.as_str()),
        }
    }
}

fn equal(one: &Flow, other: &Flow) -> bool {
    (one.start, &one.paths, &one.controller, &one.transport)
        == (other.start, &other.paths, &other.controller, &other.transport)
}
