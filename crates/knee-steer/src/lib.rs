//! Experiments with congestion controllers that are not misled by flows which gain at their
//! neighbours' expense.
//!
//! In a split test half the connections get the new controller, and it looks better because it
//! takes from the other half; with all of them under it nothing is gained (Spang et al., IMC 2021).
//! So whole blocks of time are compared: a triple consists of a block under the controller in use
//! (A), one under the controller on trial (B), and one half and half, in an order drawn from a
//! seed. The effect is B minus A. The half-and-half block shows what a split test would have found,
//! and what connections that kept A lost.
//!
//! - [`Design`] draws orders and halves.
//! - [`Evidence`] says, after every triple, whether there is an effect.
//! - [`ConfidenceSequence`] says how large it is.
//! - [`Covariate`] removes noise that was known beforehand.
//! - [`Guards`], [`HardStop`] and [`Alarm`] end what does harm.
//! - [`smallest_effect`] says what an experiment can see.
//! - [`Assignment`] says which connections get what, and [`Arms`] finds the arm of one.
//! - [`Trial`] puts them together into a [`Verdict`].
//!
//! What this crate never does: measure, wait, read a clock, touch a host, or use randomness other
//! than the given seed.

mod alarm;
mod assignment;
mod confidence;
mod covariate;
mod design;
mod evidence;
mod guard;
mod power;
mod trial;

pub use alarm::{Alarm, Harm, Window};
pub use assignment::{
    ASSIGNMENT_SCHEMA, Arms, Assigned, AssignedGroup, AssignedPlace, Assignment, HELD_OUT, KEPT,
    TREATED,
};
pub use confidence::{ConfidenceSequence, SHOWN_FROM};
pub use covariate::Covariate;
pub use design::{
    Design, Treatment, block_length, burn_in, in_half, is_second, sample_ratio_is_off, trial_size,
    triples_needed,
};
pub use evidence::Evidence;
pub use guard::{Costs, GUARD_LEVEL, Guard, Guarded, Guards, HardStop, Worse};
pub use power::smallest_effect;
pub use trial::{Cells, Effect, Trial, TrialSettings, Verdict};
