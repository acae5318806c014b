//! Schedulers, by themselves.

mod by_delay;
mod by_place;
mod by_share;
mod common;
mod in_order;
mod just_in_time;
mod properties;
mod record;
mod registry;
