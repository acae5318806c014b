//! What a scenario may choose by name.

/// The controllers and schedulers that a scenario may name: those of Knee, and
/// those that a program registers. Reading a scenario ([`parse_with`]) and
/// running it take the same.
///
/// [`parse_with`]: crate::parse_with
#[derive(Clone, Debug, Default)]
pub struct Algorithms {
    /// Congestion controllers.
    pub controllers: knee_cc::Registry,
    /// Schedulers of several paths.
    pub schedulers: knee_sched::Registry,
}

impl Algorithms {
    /// Those of Knee.
    pub fn built_in() -> &'static Algorithms {
        static BUILT_IN: Algorithms = Algorithms {
            controllers: knee_cc::Registry::built_in(),
            schedulers: knee_sched::Registry::built_in(),
        };
        &BUILT_IN
    }
}
