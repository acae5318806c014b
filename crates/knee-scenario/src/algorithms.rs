//! Algorithms that a scenario can select by name.

/// The controllers and schedulers that a scenario can name: Knee's own, and those that a program
/// registers. Reading a scenario ([`parse_with`]) and running it need the same value.
///
/// [`parse_with`]: crate::parse_with
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    /// Congestion controllers.
    pub controllers: knee_cc::Registry,
    /// Multipath schedulers.
    pub schedulers: knee_sched::Registry,
}

impl Algorithms {
    /// Returns Knee's own algorithms.
    pub fn built_in() -> &'static Algorithms {
        static BUILT_IN: Algorithms = Algorithms {
            controllers: knee_cc::Registry::built_in(),
            schedulers: knee_sched::Registry::built_in(),
        };
        &BUILT_IN
    }
}
