//! Pages whose loading times can be computed by hand, and the default page compared with the
//! figures that it is based on.

use crate::common::{Link, application};
use knee_units::Time;
use knee_workload::{
    Action, Application, Http, Object, Page, PageObject, Workload, check_dependencies, default_page,
};
use proptest::collection::vec;
use proptest::prelude::*;

const BROWSER: Http = Http::Version1 { connections: 6 };

fn object(name: &str, bytes: u64, after: &[usize]) -> PageObject {
    PageObject { name: name.into(), bytes, after: after.to_vec(), ..PageObject::default() }
}

fn page(objects: &[PageObject], http: Http) -> Box<dyn Application> {
    application(&Workload::Page(Page { objects: objects.to_vec(), origins: vec![http] }))
}

/// A byte takes a microsecond, a request 100 ms.
fn link() -> Link {
    Link::new(1_000_000, Time::from_millis(100), 700)
}

fn load(objects: &[PageObject], http: Http) -> (Time, Vec<Object>, Link) {
    let (mut page, mut link) = (page(objects, http), link());
    let time = link.run(&mut *page);
    (time, page.objects().to_vec(), link)
}

fn milliseconds(time: Time) -> f64 {
    time.as_millis_f64()
}

/// Each object waits for the one before it: three requests, six thousand bytes.
#[test]
fn a_chain_takes_a_request_for_each_link_of_it() {
    let chain = [object("a", 1000, &[]), object("b", 2000, &[0]), object("c", 3000, &[1])];
    for http in [BROWSER, Http::Multiplexed] {
        let (time, objects, link) = load(&chain, http);
        assert_eq!(time, Time::from_millis(306));
        assert_eq!(link.opened, 1, "a second connection is never needed");
        let requested: Vec<f64> = objects.iter().map(|o| milliseconds(o.requested)).collect();
        assert_eq!(requested, [0.0, 101.0, 203.0]);
        // 700 bytes of the object come first.
        let first: Vec<f64> =
            objects.iter().map(|o| milliseconds(o.first_byte.expect("arrived"))).collect();
        assert_eq!(first, [100.7, 201.7, 303.7]);
    }
}

fn fan() -> Vec<PageObject> {
    let mut objects = vec![object("root", 1000, &[])];
    objects.extend((1..=10).map(|number| object(&format!("leaf-{number}"), 10_000, &[0])));
    objects
}

/// The root arrives after 101 ms. Ten leaves of 10 ms then take one request together, or one each.
#[test]
fn a_fan_over_one_connection() {
    let (time, objects, link) = load(&fan(), Http::Multiplexed);
    assert_eq!(time, Time::from_millis(101 + 100 + 10 * 10));
    assert_eq!((link.opened, &link.closed[..]), (1, &[0][..]));
    assert!(objects[1..].iter().all(|leaf| leaf.requested == Time::from_millis(101)));

    let (time, ..) = load(&fan(), Http::Version1 { connections: 1 });
    assert_eq!(time, Time::from_millis(101 + 10 * (100 + 10)));
}

/// Six leaves are requested at 101 ms and arrive from 211 to 261 ms; each makes room for one more,
/// of which the first, requested at 211 ms, arrives after a pause at 321 ms, and the fourth and
/// last at 351 ms.
#[test]
fn a_fan_over_six_connections() {
    let (time, objects, link) = load(&fan(), BROWSER);
    assert_eq!(time, Time::from_millis(351));
    assert_eq!((link.opened, link.closed.len()), (6, 6));
    let requested: Vec<f64> = objects[1..].iter().map(|o| milliseconds(o.requested)).collect();
    assert_eq!(requested, [101.0, 101.0, 101.0, 101.0, 101.0, 101.0, 211.0, 221.0, 231.0, 241.0]);
    let connections: Vec<u32> = objects.iter().map(|object| object.connection).collect();
    assert_eq!(connections, [0, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3]);
}

/// The root arrives at 101 ms. Of two leaves, one is requested 30 ms later, at 131, and arrives at
/// 241; the other 150 ms later, at 251, and arrives at 361. A third waits for nothing but its own
/// 200 ms, and arrives at 310.
#[test]
fn delays_pass_before_a_request() {
    let late = |name: &str, after: &[usize], ms| PageObject {
        delay: Time::from_millis(ms),
        ..object(name, 10_000, after)
    };
    let objects = [
        object("root", 1000, &[]),
        late("soon", &[0], 30),
        late("later", &[0], 150),
        late("alone", &[], 200),
    ];
    for http in [BROWSER, Http::Multiplexed] {
        let (time, loaded, _) = load(&objects, http);
        let times = |time: fn(&Object) -> Time| loaded.iter().map(time).map(milliseconds).collect();
        let requested: Vec<f64> = times(|object| object.requested);
        assert_eq!(requested, [0.0, 131.0, 251.0, 200.0], "{http:?}");
        let completed: Vec<f64> = times(|object| object.completed.expect("arrived"));
        assert_eq!(completed, [101.0, 241.0, 361.0, 310.0], "{http:?}");
        assert_eq!(time, Time::from_millis(361));
    }
    let mut stopped = page(&objects, BROWSER);
    while stopped.poll(Time::ZERO).is_some() {}
    stopped.stop(Time::ZERO);
    assert_eq!(stopped.timer(), Time::MAX, "it requests nothing more");
}

/// Two objects of an origin with one connection go one after the other; that does not keep those of
/// another origin, which has a connection of its own for all.
#[test]
fn each_origin_has_its_own_connections() {
    let of = |name: &str, origin| PageObject { origin, ..object(name, 10_000, &[]) };
    let objects = [of("a1", 0), of("a2", 0), of("b1", 1), of("b2", 1)];
    let origins = vec![Http::Version1 { connections: 1 }, Http::Multiplexed];
    let mut page = application(&Workload::Page(Page { objects: objects.to_vec(), origins }));
    let mut link = link();
    let time = link.run(&mut *page);
    assert_eq!((link.opened, link.closed.len()), (2, 2));
    let loaded = page.objects();
    let connections: Vec<u32> = loaded.iter().map(|object| object.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1]);
    // All but a2 are requested at once, and arrive one after another; a2 follows a1, at 110 ms.
    let requested: Vec<f64> = loaded.iter().map(|object| milliseconds(object.requested)).collect();
    assert_eq!(requested, [0.0, 110.0, 0.0, 0.0]);
    assert_eq!(time, Time::from_millis(220));
}

#[test]
fn a_page_told_to_stop_waits_for_what_it_asked_for() {
    let mut page = page(&fan(), BROWSER);
    while page.poll(Time::ZERO).is_some() {}
    page.stop(Time::ZERO);
    assert_eq!(page.poll(Time::ZERO), Some(Action::Close { connection: 0 }));
    assert!(!page.is_complete());
    page.on_delivered(Time::from_millis(1), 0, 1000);
    assert!(page.is_complete() && page.poll(Time::from_millis(1)).is_none());
    assert_eq!(page.objects().len(), 1);
}

/// Standard normal quantile of `1 - 1/(2n)`, from a table.
fn quantile(n: usize) -> f64 {
    match n {
        4 => 1.150_35,
        7 => 1.465_23,
        20 => 1.959_96,
        21 => 1.980_75,
        _ => panic!("{n} is not in the table"),
    }
}

/// Figures of the Web Almanac: weight and requests of the median home page (2024), median of one
/// answer (2022); the weights are scaled to 2.3 MB.
#[test]
fn the_default_page_is_made_of_published_figures() {
    let objects = default_page();
    assert_eq!(objects.len(), 53);
    assert_eq!(objects.iter().map(|object| object.bytes).sum::<u64>(), 2_300_000);
    let scale = 2_300_000.0 / (18.0 + 78.0 + 131.0 + 613.0 + 1054.0);
    for (kind, count, weight_kb, requests, median_kb) in [
        ("style", 7, 78.0, 7.0, 2.0_f64),
        ("font", 4, 131.0, 4.0, 20.0),
        ("script", 21, 613.0, 23.0, 4.0),
        ("image", 20, 1054.0, 20.0, 7.0),
    ] {
        let ours = objects.iter().filter(|object| object.name.starts_with(kind));
        let mut sizes: Vec<f64> = ours.map(|object| object.bytes as f64).collect();
        sizes.sort_by(f64::total_cmp);
        assert_eq!(sizes.len(), count, "{kind}");
        assert!((sizes.iter().sum::<f64>() / (weight_kb * scale) - 1.0).abs() < 0.001, "{kind}");
        // Quantiles of a log-normal are symmetric about its median, and the outermost ones are 2 z
        // sigma apart.
        let product = |index: usize| sizes[index] * sizes[count - 1 - index];
        for index in 1..count / 2 {
            assert!((product(index) / product(0) - 1.0).abs() < 0.01, "{kind} {index}");
        }
        let sigma = (sizes[count - 1] / sizes[0]).ln() / (2.0 * quantile(count));
        let expected = (2.0 * (weight_kb / requests / median_kb).ln()).sqrt();
        assert!((sigma / expected - 1.0).abs() < 0.002, "{kind}: {sigma} against {expected}");
    }
    assert_eq!(check_dependencies(&objects), Ok(()));
}

/// A real page of 53 objects and 2.3 MB took 3.9 s over 5 Mbit/s, with HTTP/1.1 and HTTP/2 alike.
/// Its round-trip time is unknown; 40 ms are assumed.
#[test]
fn the_default_page_loads_as_a_real_one_does() {
    for http in [BROWSER, Http::Multiplexed] {
        let mut page = page(&default_page(), http);
        let time = Link::new(625_000 * 1448 / 1500, Time::from_millis(40), 1448).run(&mut *page);
        assert!((3.7..4.1).contains(&time.as_secs_f64()), "{http:?}: {time}");
    }
}

/// A graph of objects, each of which waits for some before it.
fn graph() -> impl Strategy<Value = Vec<PageObject>> {
    vec((1_u64..5000, vec(any::<prop::sample::Index>(), 0..3)), 1..40).prop_map(|rows| {
        let rows = rows.into_iter().enumerate();
        rows.map(|(place, (bytes, after))| {
            let after = if place == 0 { vec![] } else { after };
            let after: Vec<usize> = after.iter().map(|index| index.index(place)).collect();
            object(&format!("o{place}"), bytes, &after)
        })
        .collect()
    })
}

/// Polls until nothing is left, and records the requests.
fn book(page: &mut dyn Application, now: Time, owed: &mut Vec<u64>, asked: &mut Vec<String>) {
    while let Some(action) = page.poll(now) {
        match action {
            Action::Open { .. } => owed.push(0),
            Action::Request { connection, bytes } => {
                owed[connection as usize] += bytes;
                let new = page.objects().iter().find(|object| !asked.contains(&object.name));
                asked.push(new.expect("a request is for a new object").name.clone());
            }
            _ => {}
        }
    }
}

/// Delivers in chunks as drawn until nothing is owed. Returns how many bytes each connection had
/// delivered when each object was complete, and the names in the order of the requests.
fn deliver(
    page: &mut dyn Application,
    draws: &[(prop::sample::Index, u64)],
) -> (Vec<(String, u32, u64)>, Vec<String>) {
    let mut asked = Vec::new();
    let (mut owed, mut delivered) = (Vec::new(), [0_u64; 8]);
    let (mut completions, mut now) = (Vec::new(), Time::ZERO);
    book(page, now, &mut owed, &mut asked);
    for (index, most) in draws.iter().cycle() {
        let able: Vec<usize> = (0..owed.len()).filter(|&number| owed[number] > 0).collect();
        if able.is_empty() {
            break;
        }
        let connection = able[index.index(able.len())];
        let bytes = owed[connection].min(*most);
        owed[connection] -= bytes;
        delivered[connection] += bytes;
        now += Time::from_nanos(1);
        page.on_delivered(now, connection as u32, bytes);
        for object in page.objects().iter().filter(|object| object.completed == Some(now)) {
            completions.push((object.name.clone(), object.connection, delivered[connection]));
        }
        book(page, now, &mut owed, &mut asked);
    }
    (completions, asked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However deliveries are split and mixed, an object is complete with the delivery that brings
    /// the last of the bytes requested on its connection up to it, exactly once, and after
    /// everything that it waits for.
    #[test]
    fn bytes_are_attributed_in_the_order_of_requests(
        objects in graph(),
        connections in 0_u32..7,
        draws in vec((any::<prop::sample::Index>(), 1_u64..9000), 1..30),
    ) {
        let http = match connections {
            0 => Http::Multiplexed,
            connections => Http::Version1 { connections },
        };
        let mut page = page(&objects, http);
        let (completions, asked) = deliver(&mut *page, &draws);
        prop_assert!(page.is_complete());
        prop_assert_eq!(completions.len(), objects.len());
        let most = draws.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let loaded = page.objects();
        for number in 0..8 {
            let find = |name: &String| loaded.iter().find(|object| object.name == *name);
            let own: Vec<&Object> =
                asked.iter().filter_map(find).filter(|o| o.connection == number).collect();
            prop_assert!(own.is_sorted_by_key(|object| object.completed));
            let mut due = 0;
            for object in own {
                due += object.bytes;
                let (.., at) = completions.iter().find(|(name, ..)| *name == object.name)
                    .expect("each completes");
                prop_assert!((due..due + most).contains(at), "{} at {at}, due at {due}", object.name);
            }
        }
        for (object, loaded) in objects.iter().zip(loaded) {
            prop_assert_eq!(&object.name, &loaded.name);
            for &needed in &object.after {
                prop_assert!(loaded.requested >= page.objects()[needed].completed.expect("arrived"));
            }
        }
    }

    /// Over one connection the order of requests, and so that of the answers, does not depend on
    /// how deliveries are split.
    #[test]
    fn cutting_does_not_change_the_order(
        objects in graph(),
        draws in vec((any::<prop::sample::Index>(), 1_u64..9000), 1..30),
    ) {
        let asked = |draws: &[_]| {
            let mut page = page(&objects, Http::Multiplexed);
            deliver(&mut *page, draws).1
        };
        let whole = asked(&[(draws[0].0, u64::MAX)]);
        prop_assert_eq!(whole.len(), objects.len());
        prop_assert_eq!(asked(&draws), whole);
    }
}
