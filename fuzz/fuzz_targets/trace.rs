//! Trace files: reading any input gives a trace, or a message with a place and a remedy; and a link
//! over any trace keeps its invariants.

#![no_main]

use knee_link::{Aqm, Buffer, Config, Delay, Link, Loss, Packet, RateModel, Steps, Trace};
use knee_units::{Ecn, Time};
use libfuzzer_sys::fuzz_target;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::Arc;

struct Sized(u32);

impl Packet for Sized {
    fn size(&self) -> u32 {
        self.0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }
    fn mark(&mut self) {}
    fn clear_ecn(&mut self) {}
    fn flow_hash(&self) -> u64 {
        0
    }
}

fn link(trace: Trace) -> Link<Sized> {
    let base = Steps(vec![(Time::ZERO, Time::ZERO)]);
    let config = Config {
        rate: RateModel::Trace(Arc::new(trace)),
        delay: Delay::steady(base),
        buffer: Buffer::Unlimited,
        aqm: Aqm::DropTail,
        device: None,
        loss: Loss::None,
        policer: None,
        down: vec![],
        hold: vec![],
        circuit_breaker: None,
        ecn_bleached: false,
        pause: None,
        pausable: false,
    };
    Link::new(config, ChaCha8Rng::seed_from_u64(0))
}

fn drive(link: &mut Link<Sized>) {
    for number in 0..50_u32 {
        let now = Time::from_micros(u64::from(number) * 2_700);
        assert!(link.send(now, Sized(40 + number * 67)).is_ok(), "the buffer has no limit");
    }
    let (mut last, mut delivered) = (Time::ZERO, 0);
    while link.next_time() != Time::MAX {
        let now = link.next_time();
        assert!(now >= last, "time runs back");
        last = now;
        delivered += u64::from(link.poll(now).expect("a drop-tail link delivers").0);
        assert!(delivered <= link.queue(now).capacity_bytes, "more than the trace allows");
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Trace::read("fuzz", text) {
        Ok(trace) => {
            assert!(trace.opportunities_ms.is_sorted());
            assert!(trace.opportunities_ms.last().is_some_and(|last| *last > 0));
            drive(&mut link(trace));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n') && message.len() < 300, "{message}");
        }
    }
});
