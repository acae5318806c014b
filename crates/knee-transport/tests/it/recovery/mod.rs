//! Loss recovery compared with its sources: scripts similar to packetdrill, one
//! file for each source, that define segment by segment what arrives and what
//! must be sent when. [`sender`] explains how to read one.
//!
//! The expectations are derived from the text of the source, not from the
//! behaviour of the code. Where Linux departs from an RFC the simulator follows
//! Linux, and the script says so.

pub mod controller;
mod mended_faults;
pub mod notation;
mod receiver;
mod sender;

mod rfc2018_rfc2883_receiver;
mod rfc2883_dsack;
mod rfc3522_eifel;
mod rfc5681_growth;
mod rfc5682_frto;
mod rfc6298_rto;
mod rfc6675_sack;
mod rfc6937_prr;
mod rfc8985_rack;
mod rfc8985_reordering;
mod rfc8985_tlp;
mod rfc9002_period;
