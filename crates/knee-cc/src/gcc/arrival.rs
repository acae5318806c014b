//! Groups of packets, and the filter for the variation of their delay (sections 5.1
//! to 5.3).

use knee_units::Time;

/// Packets sent within it are one group, and so are those that arrive within it as a
/// burst (`burst_time`, section 5.6).
pub(super) const BURST_TIME: Time = Time::from_millis(5);

/// Minimum time between two compared groups, and the time to which a variation is
/// normalised, in ms. The draft's constants assume a call of 30 frames a second, each one
/// group or a few. Here full-sized packets leave evenly, 4 to 170 a second: without this, a
/// slow flow would see in one step what a fast flow sees in 40, and would yield to it.
const PICTURE_MS: f64 = 1000.0 / 30.0;

/// Two groups that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variation {
    /// Inter-group delay variation d(i), in ms per frame interval.
    pub(super) delay_ms: f64,
    /// Time between their departures T(i) - T(i-1), in ms.
    pub(super) departure_ms: f64,
    /// Time between their arrivals t(i) - t(i-1), in ms.
    pub(super) arrival_ms: f64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_departure: Time,
    /// Departure and arrival of its last packet (section 5.1).
    departure: Time,
    arrival: Time,
}

/// Sorts packets into groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// The group compared last.
    previous: Option<Group>,
    current: Option<Group>,
}

impl Groups {
    /// Takes a packet. If it completes a group, returns the group's variation against an
    /// earlier one that is at least a frame interval old.
    pub(super) fn take(&mut self, departure: Time, arrival: Time) -> Option<Variation> {
        let packet = Group { first_departure: departure, departure, arrival };
        let Some(current) = &mut self.current else {
            self.current = Some(packet);
            return None;
        };
        // Section 5.1: what arrives out of order is ignored.
        if departure < current.departure || arrival < current.arrival {
            return None;
        }
        let sent_with_it = departure - current.first_departure <= BURST_TIME;
        let between = arrival - current.arrival;
        let burst = between < BURST_TIME && between < departure - current.departure;
        // Section 5.2.
        if sent_with_it || burst {
            (current.departure, current.arrival) = (departure, arrival);
            return None;
        }
        let complete = std::mem::replace(current, packet);
        let previous = *self.previous.get_or_insert(complete);
        let arrival_ms = (complete.arrival - previous.arrival).as_millis_f64();
        let departure_ms = (complete.departure - previous.departure).as_millis_f64();
        if departure_ms < PICTURE_MS {
            return None;
        }
        self.previous = Some(complete);
        let delay_ms = (arrival_ms - departure_ms) * PICTURE_MS / departure_ms;
        Some(Variation { delay_ms, departure_ms, arrival_ms })
    }
}

/// Variance of the state noise, q, in ms^2 (section 5.6).
const STATE_NOISE: f64 = 1e-3;
/// Variance of the estimate's error at the start, e(0), in ms^2 (section 5.6).
const FIRST_ERROR: f64 = 0.1;
/// Initial variance of the measurement noise, in ms^2. The draft gives none; libwebrtc uses
/// this value (`overuse_estimator`, 2016).
const FIRST_NOISE: f64 = 50.0;
/// Least variance of the measurement noise, in ms^2 (section 5.3).
const LEAST_NOISE: f64 = 1.0;
/// chi, from 0.001 to 0.1 in the draft: the geometric mean of the two.
const CHI: f64 = 0.01;
/// Standard deviations beyond which a residual is an outlier (section 5.3).
const OUTLIER: f64 = 3.0;
/// Number of groups over which the highest rate is taken, K. The draft gives no number;
/// libwebrtc uses this one.
const RATE_GROUPS: usize = 60;

/// The Kalman filter of section 5.3.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Estimate of the variation's mean, m, in ms.
    mean: f64,
    /// Variance of its error, e.
    error: f64,
    /// Variance of the measurement noise, var_v.
    noise: f64,
    /// Times between departures of the last groups, in ms.
    spacings: [f32; RATE_GROUPS],
    next: usize,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            mean: 0.0,
            error: FIRST_ERROR,
            noise: FIRST_NOISE,
            spacings: [f32::INFINITY; RATE_GROUPS],
            next: 0,
        }
    }
}

impl Filter {
    /// Takes d(i); returns m(i), in ms.
    pub(super) fn update(&mut self, variation: &Variation) -> f64 {
        self.spacings[self.next] = variation.departure_ms as f32;
        self.next = (self.next + 1) % RATE_GROUPS;
        let residual = variation.delay_ms - self.mean;
        let limit = OUTLIER * self.noise.sqrt();
        let within = residual.clamp(-limit, limit);
        // 1 / f_max is the shortest time between groups.
        let shortest = f64::from(self.spacings.iter().copied().fold(f32::INFINITY, f32::min));
        let alpha = (1.0 - CHI).powf(30.0 / 1000.0 * shortest);
        self.noise = (alpha * self.noise + (1.0 - alpha) * within * within).max(LEAST_NOISE);
        let error = self.error + STATE_NOISE;
        let gain = error / (self.noise + error);
        self.mean += residual * gain;
        self.error = (1.0 - gain) * error;
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Time {
        Time::from_secs_f64(ms / 1000.0)
    }

    /// Two packets within 5 ms are one group, of the last one's times; 43 ms between
    /// arrivals and 40 between departures are 3 ms, of which a picture's time has 2.5.
    #[test]
    fn groups_are_compared_by_their_last_packets() {
        let mut groups = Groups::default();
        assert_eq!(groups.take(ms(0.0), ms(20.0)), None);
        assert_eq!(groups.take(ms(4.0), ms(25.0)), None);
        assert_eq!(groups.take(ms(44.0), ms(68.0)), None, "nothing is before it");
        let found = groups.take(ms(84.0), ms(112.0)).unwrap();
        assert!((found.delay_ms - 2.5).abs() < 1e-9, "{found:?}");
        assert!((found.departure_ms - 40.0).abs() < 1e-9, "{found:?}");
        assert!((found.arrival_ms - 43.0).abs() < 1e-9, "{found:?}");
    }

    /// The same queue, which grows by a twentieth of the time, is the same variation for
    /// packets 6 ms apart and 240 ms apart: 1.67 ms in a picture's time.
    #[test]
    fn a_slow_flow_sees_what_a_fast_one_sees() {
        for spacing in [6.0, 40.0, 240.0] {
            let mut groups = Groups::default();
            let mut found = Vec::new();
            for number in 0..100 {
                let departure = f64::from(number) * spacing;
                found.extend(groups.take(ms(departure), ms(departure * 1.05 + 20.0)));
            }
            assert!(found.len() > 10, "{spacing}");
            let right = |one: &Variation| (one.delay_ms - 5.0 / 3.0).abs() < 1e-3;
            assert!(found.iter().all(right), "{spacing}: {found:?}");
        }
    }

    /// Section 5.2: after an outage packets arrive at once; they are one group.
    #[test]
    fn what_arrives_as_a_burst_is_one_group() {
        let mut groups = Groups::default();
        for (departure, arrival) in [(0.0, 20.0), (10.0, 30.0), (20.0, 300.0)] {
            groups.take(ms(departure), ms(arrival));
        }
        for late in 3..12 {
            let late = f64::from(late);
            assert_eq!(groups.take(ms(late * 10.0), ms(300.0 + late)), None, "{late}");
        }
        // The whole burst against the first packet.
        let found = groups.take(ms(320.0), ms(340.0)).unwrap();
        assert!((found.departure_ms - 110.0).abs() < 1e-9, "{found:?}");
        assert!((found.arrival_ms - 291.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_arrives_out_of_order_is_ignored() {
        let mut groups = Groups::default();
        groups.take(ms(0.0), ms(20.0));
        groups.take(ms(20.0), ms(40.0));
        assert_eq!(groups.take(ms(10.0), ms(41.0)), None);
        assert_eq!(groups.take(ms(40.0), ms(60.0)), None);
        let found = groups.take(ms(60.0), ms(80.0)).unwrap();
        assert!(found.delay_ms.abs() < 1e-9, "{found:?}");
    }

    /// One step by hand, spacing 10 ms, d = 2 ms: alpha = 0.99^0.3 = 0.996989, var =
    /// 0.996989 x 50 + 0.003011 x 4 = 49.861; k = 0.101 / 49.962 = 0.00202154.
    #[test]
    fn a_step_of_the_filter_is_that_of_the_draft() {
        let mut filter = Filter::default();
        let step = Variation { delay_ms: 2.0, departure_ms: 10.0, arrival_ms: 12.0 };
        let mean = filter.update(&step);
        assert!((filter.noise - 49.861).abs() < 1e-3, "{}", filter.noise);
        assert!((mean - 2.0 * 0.002_021_54).abs() < 1e-7, "{mean}");
        assert!((filter.error - 0.101 * (1.0 - 0.002_021_54)).abs() < 1e-7, "{}", filter.error);
    }

    /// A residual of 1 s counts as three standard deviations for the noise:
    /// 0.996989 x 50 + 0.003011 x 9 x 50 = 51.204.
    #[test]
    fn an_outlier_hardly_widens_the_noise() {
        let mut filter = Filter::default();
        let step = Variation { delay_ms: 1000.0, departure_ms: 10.0, arrival_ms: 1010.0 };
        filter.update(&step);
        assert!((filter.noise - 51.204).abs() < 1e-2, "{}", filter.noise);
    }

    /// A queue that grows by half a millisecond in each group is what the filter finds,
    /// whatever it has seen before.
    #[test]
    fn the_filter_converges_to_the_mean() {
        let mut filter = Filter::default();
        let step = |delay_ms: f64| Variation { delay_ms, departure_ms: 10.0, arrival_ms: 10.0 };
        for number in 0..2000 {
            let noise = if number % 2 == 0 { 1.0 } else { -1.0 };
            filter.update(&step(0.5 + noise));
        }
        assert!((filter.mean - 0.5).abs() < 0.05, "{}", filter.mean);
    }
}
