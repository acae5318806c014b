//! Requests with pauses in between, on a ground whose times can be computed by hand.

use crate::common::{Link, application};
use knee_units::Time;
use knee_workload::{Bursts, Workload};

fn bursts(count: Option<u64>) -> Workload {
    Workload::Bursts(Bursts { size_bytes: 50_000, pause: Time::from_millis(300), count })
}

/// A request takes 20 ms, its answer 50 ms at 1 MB/s; five of them and the four pauses between them
/// take 1.55 s, over one connection, closed at the end.
#[test]
fn requests_wait_for_the_answer_and_the_pause() {
    let mut link = Link::new(1_000_000, Time::from_millis(20), 1_400);
    let mut asking = application(&bursts(Some(5)));
    assert_eq!(link.run(&mut *asking).as_nanos() / 1_000_000, 5 * 70 + 4 * 300);
    assert_eq!((link.opened, link.closed.as_slice()), (1, [0].as_slice()));
    assert_eq!(link.asked[&0], [50_000; 5]);
    let begun: Vec<u64> =
        asking.objects().iter().map(|one| one.requested.as_nanos() / 1_000_000).collect();
    assert_eq!(begun, [0, 370, 740, 1110, 1480]);
    assert!(asking.objects().iter().all(|one| one.first_byte < one.completed));
    let properties = bursts(Some(5)).properties();
    assert_eq!((properties.ends, properties.bytes), (true, Some(250_000)));
}

/// Without a count only `stop` ends it; stopped in a pause, it sends no further request.
#[test]
fn it_ends_when_it_is_told_to() {
    let workload = bursts(None);
    assert!(!workload.properties().ends);
    let mut asking = application(&workload);
    let now = Time::ZERO;
    assert!(asking.poll(now).is_some() && asking.poll(now).is_some());
    asking.on_delivered(Time::from_millis(10), 0, 50_000);
    assert_eq!(asking.timer(), Time::from_millis(310));
    assert!(!asking.is_complete());
    asking.stop(Time::from_millis(100));
    assert!(asking.is_complete());
    assert_eq!(asking.timer(), Time::MAX);
}
