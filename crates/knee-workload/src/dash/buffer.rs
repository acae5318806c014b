//! The player's buffer and the clock of playback that drains it.

use knee_units::Time;

/// Media that has arrived and is not played yet. From the start of the application on, playback
/// runs whenever there is media (dash.js waits for 0.3 s; a segment is longer) and stalls
/// otherwise.
#[derive(Default)]
pub(crate) struct Buffer {
    level: Time,
    /// Time to which `level` refers.
    at: Time,
    /// When playback stalled, if the level is zero.
    empty_since: Time,
}

impl Buffer {
    /// Returns the media in the buffer now.
    pub fn level(&mut self, now: Time) -> Time {
        let elapsed = now.saturating_sub(self.at);
        if elapsed >= self.level && self.level > Time::ZERO {
            self.empty_since = self.at + self.level;
        }
        self.level = self.level.saturating_sub(elapsed);
        self.at = now;
        self.level
    }

    /// Adds media that arrived. Returns how long playback waited for it.
    pub fn add(&mut self, now: Time, media: Time) -> Time {
        let empty = self.level(now) == Time::ZERO;
        self.level += media;
        if empty { now.saturating_sub(self.empty_since) } else { Time::ZERO }
    }

    /// Returns when the level is down to `wanted`, if nothing arrives.
    pub fn time_of(&self, wanted: Time) -> Time {
        self.at.saturating_add(self.level.saturating_sub(wanted))
    }
}
