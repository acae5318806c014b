//! Features at the two ends of a link, around its other features: the meters of a
//! circuit breaker, and bleaching of the ECN field. A variant of its own, so that
//! links with neither do not pay for them.

use crate::aqm::ClassState;
use crate::breaker::Breaker;
use crate::config::Config;
use crate::features::Features;
use crate::link::Core;
use crate::{DropReason, Packet};
use knee_units::Time;

pub(crate) struct Ends<P> {
    pub features: Features<P>,
    breaker: Option<Breaker>,
    bleaches: bool,
}

impl<P: Packet> Ends<P> {
    /// Whether a link has one of these features.
    pub fn are_in(config: &Config) -> bool {
        config.circuit_breaker.is_some() || config.ecn_bleached
    }

    pub fn new(config: &Config, features: Features<P>) -> Ends<P> {
        let breaker = config.circuit_breaker.map(Breaker::new);
        Ends { features, breaker, bleaches: config.ecn_bleached }
    }

    #[inline(never)]
    pub fn send(
        &mut self,
        core: &mut Core<P>,
        now: Time,
        packet: P,
    ) -> Result<(), (DropReason, P)> {
        // The packet is counted already, and belongs to the interval under way now.
        core.counters.entered_packets -= 1;
        self.read_meters(core, now);
        core.counters.entered_packets += 1;
        if self.breaker.as_ref().is_some_and(Breaker::is_tripped) {
            core.counters.count(DropReason::Breaker);
            return Err((DropReason::Breaker, packet));
        }
        self.features.send(core, now, packet)
    }

    #[inline(never)]
    pub fn poll(&mut self, core: &mut Core<P>, now: Time) -> Option<P> {
        self.read_meters(core, now);
        let mut packet = self.features.poll(core, now)?;
        if self.bleaches {
            packet.clear_ecn();
        }
        Some(packet)
    }

    /// See [`Features::held`].
    pub fn held(&mut self, core: &mut Core<P>, now: Time) -> (u64, u64) {
        self.read_meters(core, now);
        self.features.held(core, now)
    }

    /// See [`Features::classes`].
    pub fn classes(&mut self, core: &mut Core<P>, now: Time) -> Vec<ClassState> {
        self.read_meters(core, now);
        self.features.classes(core, now)
    }

    /// Closes the intervals that ended before `now`, each with the counters at its end.
    fn read_meters(&mut self, core: &mut Core<P>, now: Time) {
        let Some(breaker) = &mut self.breaker else { return };
        while let Some(end) = breaker.ended(now) {
            self.features.settle(core, end);
            breaker.end(&core.counters);
        }
    }
}
