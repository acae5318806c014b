//! Stages before the queue: loss, then the policer.

use crate::DropReason;
use crate::config::Config;
use crate::loss::LossProcess;
use crate::policer::TokenBucket;
use knee_units::Time;
use rand_chacha::ChaCha8Rng;

pub(crate) struct Gate {
    /// The link's random stream, for all its draws.
    pub rng: ChaCha8Rng,
    loss: LossProcess,
    policer: Option<TokenBucket>,
}

impl Gate {
    pub fn new(config: &Config, rng: ChaCha8Rng) -> Gate {
        let policer = config.policer.map(TokenBucket::new);
        Gate { rng, loss: LossProcess::new(&config.loss), policer }
    }

    /// Returns why a packet of a sender does not reach the queue; `None` if it does.
    #[inline(always)]
    pub fn refuses(&mut self, now: Time, size: u32, sender: u64) -> Option<DropReason> {
        if self.loss.loses(now, size, sender, &mut self.rng) {
            return Some(DropReason::Loss);
        }
        let admitted = self.policer.as_mut().is_none_or(|bucket| bucket.takes(now, size));
        (!admitted).then_some(DropReason::Policer)
    }
}
