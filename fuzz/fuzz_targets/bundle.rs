//! Datagrams of a bundle: any input is accepted or refused; the bundle holds no more than its
//! windows, and can still communicate.

#![no_main]

use bytes::BytesMut;
use knee_bundle::{Bundle, BundleSettings, Limits};
use knee_multipath::sched::{Path, Selection};
use knee_units::Time;
use libfuzzer_sys::fuzz_target;

const WINDOW: u64 = 1 << 16;
const LIMITS: Limits = Limits { window: WINDOW, stream_window: WINDOW, streams: 4 };

fuzz_target!(|data: &[u8]| {
    let settings = BundleSettings {
        is_server: true,
        datagram: 1200,
        limits: LIMITS,
        buffer: WINDOW,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    let Ok(scheduler) = knee_multipath::sched::build(&Selection::named("minrtt")) else { return };
    let mut bundle = Bundle::new(settings, LIMITS, scheduler);
    (0..2).for_each(|path| bundle.on_path_up(path));
    let path = Path { ready: true, window: WINDOW, ..Path::default() };
    let (mut now, mut out) = (Time::ZERO, BytesMut::new());
    // Before each datagram, its path and its length, in a byte each.
    let mut rest = data;
    while let [head, len, more @ ..] = rest {
        let (bytes, next) = more.split_at(usize::from(*len).min(more.len()));
        rest = next;
        now = now + Time::from_micros(u64::from(*head) * 100);
        if bundle.on_datagram(now, usize::from(head & 1), bytes).is_err() {
            return;
        }
        while bundle.poll_event().is_some() {}
        assert!(bundle.held() <= WINDOW);
        bundle.on_timer(now, &[path; 2]);
        let mut sent = 0;
        while bundle.poll_datagram(now, &[path; 2], &[1200; 2], &mut out).is_some() {
            assert!(out.len() <= 1200);
            sent += 1;
            assert!(sent < 100, "it does not end");
        }
    }
});
