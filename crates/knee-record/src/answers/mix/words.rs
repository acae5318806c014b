//! A row of the answer, in words.

use super::super::{change, judged, per_cent, range};
use super::{MANY_CUT_OFF, MixClass, MixPair};
use crate::{Unit, count};
use knee_units::statistics::{Better, Judgement, Paired, PairedScale};

impl MixClass {
    /// Returns the words for a smaller and a larger value of the measure compared.
    pub(super) fn words(&self) -> [&'static str; 2] {
        match self.throughput {
            true => ["less throughput", "more throughput"],
            false => ["less time", "longer"],
        }
    }

    /// Returns the difference, `takes 25 % less time` or `30 % more throughput`, with its interval.
    pub(super) fn by(&self) -> Option<(String, Option<String>)> {
        let (by, range) = change(&self.compared, self.words())?;
        Some((if self.throughput { by } else { format!("takes {by}") }, range))
    }

    pub(super) fn better(&self) -> Better {
        if self.throughput { Better::More } else { Better::Less }
    }

    /// Returns the effect on completion time or throughput alone.
    pub(super) fn by_value(&self) -> Judgement {
        judged(&self.compared, self.better())
    }

    /// Returns the side that finishes clearly more: better if the one under test does.
    pub(super) fn more(&self) -> Judgement {
        let more = |finished| judged(finished, Better::More);
        self.finished.as_ref().map_or(Judgement::Undecided, more)
    }

    /// Returns whether the side that finishes clearly more has the worse values.
    pub(super) fn contradicts(&self) -> bool {
        let (by_value, more) = (self.by_value(), self.more());
        by_value.differs() && more.differs() && by_value != more
    }

    /// Returns how many transfers were cut off, if they are many or one side clearly finishes more.
    pub(super) fn cut_off_words(&self, MixPair { test, control, .. }: &MixPair) -> String {
        let [ours, theirs] = self.cut_off.map(count);
        let most = self.cut_off.into_iter().max().unwrap_or(0) as f64;
        let many = most >= MANY_CUT_OFF * (self.transfers as f64 + most);
        if self.finished.is_none() && !many {
            return String::new();
        }
        let sizes = &self.sizes;
        let of = match self.by() {
            Some((by, _)) if self.contradicts() => {
                let has = if self.throughput { "has " } else { "" };
                format!("It cannot be told for {sizes}: {test} {has}{by}, but")
            }
            _ => format!("For {sizes},"),
        };
        let counts = match self.on_one_side {
            0 => "only those that finish on both sides count",
            _ => "where one is cut off that finishes on the other side, the time until then counts",
        };
        format!(
            " {of} the end of the run cuts off {ours} transfers under {test} and {theirs} under \
             {control}; {counts}."
        )
    }

    /// Returns the size range with the change and its interval.
    pub(super) fn in_words(&self) -> String {
        match self.by() {
            _ if self.effect == Judgement::Undecided => match range(&self.compared, self.words()) {
                Some(range) => format!("{} ({range})", self.sizes),
                None => self.sizes.clone(),
            },
            _ if !self.effect.differs() => self.sizes.clone(),
            _ if !self.by_value().differs() => {
                let number = if self.effect == Judgement::Better { "more" } else { "fewer" };
                format!("{} ({number} transfers finish)", self.sizes)
            }
            Some((by, Some(range))) => format!("{} ({by}, {range})", self.sizes),
            Some((by, None)) => format!("{} ({by})", self.sizes),
            None => self.sizes.clone(),
        }
    }

    /// Returns the unit of the means.
    pub fn unit(&self) -> Unit {
        if self.throughput { Unit::BitsPerSecond } else { Unit::Seconds }
    }

    /// Returns the ratio with its interval, formatted for tables.
    pub fn ratio(&self) -> String {
        ratio(&self.compared)
    }

    /// Returns the ratio between the two halves of one run, formatted for tables.
    pub fn split_ratio(&self) -> String {
        self.split.as_ref().map_or_else(|| "–".to_string(), ratio)
    }
}

fn ratio(compared: &Paired) -> String {
    let estimate = compared.estimate.filter(|_| compared.scale == PairedScale::Ratio);
    let ends = compared.low.zip(compared.high);
    match (estimate, ends) {
        (Some(ratio), Some((low, high))) if high - low > 1e-9 => {
            format!("{ratio:.2} ({low:.2} to {high:.2})")
        }
        (Some(ratio), _) => format!("{ratio:.2}"),
        _ => "–".to_string(),
    }
}

impl MixClass {
    /// Number of transfers compared.
    pub fn number(&self) -> u64 {
        self.transfers + self.on_one_side
    }

    /// Returns the number of transfers: `1204`, or `1204, cut off 3 / 5`.
    pub fn counted(&self) -> String {
        match self.cut_off {
            [0, 0] => count(self.number()),
            [ours, theirs] => {
                let [ours, theirs] = [ours, theirs].map(count);
                format!("{}, cut off {ours} / {theirs}", count(self.number()))
            }
        }
    }

    /// Returns the share of bytes retransmitted under test and under control, in per cent.
    pub fn again(&self) -> String {
        let [ours, theirs] = self.retransmitted.map(per_cent_fine);
        format!("{ours} / {theirs} %")
    }
}

fn per_cent_fine(part: f64) -> String {
    let value = part * 100.0;
    if value < 0.995 { format!("{value:.2}") } else { per_cent(value) }
}
