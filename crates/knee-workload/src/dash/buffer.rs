//! The player's buffer and the clock of playback that drains it.

use knee_units::Time;

/// Media that has arrived and is not played. Playback runs whenever there is
/// some (dash.js waits for 0.3 s; a segment is longer) and stands still
/// otherwise, from the start of the application on.
#[derive(Default)]
pub(crate) struct Buffer {
    level: Time,
    /// When the level was true.
    at: Time,
    /// Since when playback waits, if the level is zero.
    empty_since: Time,
}

impl Buffer {
    /// Media in it now.
    pub fn level(&mut self, now: Time) -> Time {
        let elapsed = now.saturating_sub(self.at);
        if elapsed >= self.level && self.level > Time::ZERO {
            self.empty_since = self.at + self.level;
        }
        self.level = self.level.saturating_sub(elapsed);
        self.at = now;
        self.level
    }

    /// Media arrives; the answer is how long playback waited for it.
    pub fn add(&mut self, now: Time, media: Time) -> Time {
        let empty = self.level(now) == Time::ZERO;
        self.level += media;
        if empty { now.saturating_sub(self.empty_since) } else { Time::ZERO }
    }

    /// When the level is down to `wanted`, if nothing arrives.
    pub fn time_of(&self, wanted: Time) -> Time {
        self.at.saturating_add(self.level.saturating_sub(wanted))
    }
}
