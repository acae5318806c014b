//! What each object of a page waited for, from the requests that a browser recorded.
//!
//! 1. What follows from a redirection waits for it.
//! 2. Otherwise it waits for what asked for it, if the file says so; and for the last script or style
//!    sheet that arrived between that and its request: it may have been executed or applied only then,
//!    or what asked for it may have waited for it, as a deferred script does for those before it.
//! 3. Otherwise it waits for the last object that had arrived before it was requested.
//!
//! The time between the two is the browser's, and stays as it was, whatever the path. So does the
//! time that the server took: from the request to the first byte, without a round trip. Of several
//! objects under way at the same time that also contains the time that one waits for another on the
//! link; so there it is at most the median of the objects of the origin, as Lantern has it
//! (`lib/lantern` of Lighthouse).
//!
//! Not modelled: names (DNS), handshakes of TLS, and what can be used of an object before all of it is
//! there, such as the head of an HTML document.

use super::fetch::{Fetch, Recorded, is_target, name, origin};
use super::{LoadedObject, LoadedPage, Origin};
use crate::access::Protocol;
use knee_units::Time;
use std::collections::BTreeMap;

const AFTER_LOAD: &str = "begun after the load event";
/// A redirection may be recorded as over this long after the request that follows from it.
const REDIRECT_SLACK_NS: i128 = 50_000_000;

/// Returns the page of the recorded requests.
pub(super) fn page(mut recorded: Recorded) -> LoadedPage {
    let mut fetches = std::mem::take(&mut recorded.fetches);
    fetches.sort_by_key(|fetch| fetch.begun_ns);
    let begin = fetches.first().map_or(0, |first| first.begun_ns);
    let loaded_ns = recorded.loaded_ns.filter(|loaded| *loaded > begin);
    let within = |fetch: &Fetch| loaded_ns.is_none_or(|loaded| fetch.begun_ns <= loaded);
    for _ in fetches.iter().filter(|fetch| !within(fetch)) {
        recorded.leave_out(AFTER_LOAD);
    }
    fetches.retain(within);
    let (origins, of) = origins(&fetches);
    let server = server_ns(&fetches, &of, origins.len());
    let after = dependencies(&fetches);
    let object = |(number, fetch): (usize, &Fetch)| {
        let known = after[number].iter().map(|before| fetches[*before].ended_ns).max();
        let known = known.unwrap_or(begin);
        LoadedObject {
            name: name(&fetch.url),
            bytes: fetch.bytes.max(1),
            origin: of[number],
            after: after[number].clone(),
            delay: time((fetch.begun_ns - known).max(0) + server[number]),
        }
    };
    LoadedPage {
        format: recorded.format,
        objects: fetches.iter().enumerate().map(object).collect(),
        unpacked: fetches.iter().filter(|fetch| fetch.is_unpacked).count(),
        load: loaded_ns.map(|loaded| time(loaded - begin)),
        left_out: recorded.left_out,
        origins,
    }
}

fn time(ns: i128) -> Time {
    Time::from_nanos(u64::try_from(ns).unwrap_or(0))
}

/// Returns the origins, in the order in which they were used, and that of each fetch.
fn origins(fetches: &[Fetch]) -> (Vec<Origin>, Vec<usize>) {
    let mut places = BTreeMap::new();
    let mut counts: Vec<(String, BTreeMap<u8, usize>)> = Vec::new();
    let mut of = Vec::new();
    for fetch in fetches {
        let name = origin(&fetch.url).to_ascii_lowercase();
        let place = *places.entry(name.clone()).or_insert_with(|| {
            counts.push((name, BTreeMap::new()));
            counts.len() - 1
        });
        of.push(place);
        if fetch.protocol != Protocol::Unknown {
            *counts[place].1.entry(fetch.protocol as u8).or_default() += 1;
        }
    }
    let all = [Protocol::Http1, Protocol::Http2, Protocol::Http3];
    let most = |counts: &BTreeMap<u8, usize>| {
        let count = |protocol: &Protocol| counts.get(&(*protocol as u8)).copied().unwrap_or(0);
        all.into_iter().max_by_key(count).filter(|most| count(most) > 0).unwrap_or_default()
    };
    let origin = |(name, counts)| Origin { name, protocol: most(&counts) };
    (counts.into_iter().map(origin).collect(), of)
}

/// Returns how long the server took for each.
fn server_ns(fetches: &[Fetch], of: &[usize], origins: usize) -> Vec<i128> {
    let least = |times: &mut dyn Iterator<Item = i128>| times.min();
    let all = least(&mut fetches.iter().filter_map(|fetch| fetch.waited_ns)).unwrap_or(0);
    // Without a handshake, the shortest wait of the page is one round trip.
    let mut round_trip = vec![None; origins];
    for (fetch, &place) in fetches.iter().zip(of) {
        let known = [round_trip[place], fetch.round_trip_ns];
        round_trip[place] = least(&mut known.into_iter().flatten());
    }
    let own: Vec<i128> = fetches
        .iter()
        .zip(of)
        .map(|(fetch, &place)| {
            (fetch.waited_ns.unwrap_or(0) - round_trip[place].unwrap_or(all)).max(0)
        })
        .collect();
    let mut waits = vec![Vec::new(); origins];
    for (own, &place) in own.iter().zip(of) {
        waits[place].push(*own);
    }
    let medians: Vec<i128> = waits
        .into_iter()
        .map(|mut waits: Vec<i128>| {
            waits.sort_unstable();
            waits.get(waits.len().saturating_sub(1) / 2).copied().unwrap_or(0)
        })
        .collect();
    let alone = alone(fetches);
    let one = |number: usize| match alone[number] {
        true => own[number],
        false => own[number].min(medians[of[number]]),
    };
    (0..fetches.len()).map(one).collect()
}

/// Returns of each fetch whether none other was under way when it began; they are in order of time.
fn alone(fetches: &[Fetch]) -> Vec<bool> {
    let mut ended = i128::MIN;
    let alone = fetches.iter().enumerate().map(|(number, fetch)| {
        let next = fetches.get(number + 1);
        let before = ended <= fetch.begun_ns;
        ended = ended.max(fetch.ended_ns);
        before && next.is_none_or(|next| next.begun_ns > fetch.begun_ns)
    });
    alone.collect()
}

/// Returns what each waits for: what began before it.
fn dependencies(fetches: &[Fetch]) -> Vec<Vec<usize>> {
    let mut by_url: BTreeMap<&str, usize> = BTreeMap::new();
    // The fetches, and those of scripts and style sheets, by their ends.
    let mut ended: BTreeMap<i128, usize> = BTreeMap::new();
    let mut blocking: BTreeMap<i128, usize> = BTreeMap::new();
    let mut redirections: Vec<usize> = Vec::new();
    let mut after = Vec::with_capacity(fetches.len());
    for (number, fetch) in fetches.iter().enumerate() {
        let follows = |before: &usize| {
            let before = &fetches[*before];
            before.ended_ns <= fetch.begun_ns + REDIRECT_SLACK_NS
                && before.redirects_to.as_ref().is_some_and(|to| is_target(to, &fetch.url))
        };
        let last = |ended: &BTreeMap<i128, usize>| {
            ended.range(..=fetch.begun_ns).next_back().map(|(_, number)| *number)
        };
        let initiator = fetch.initiator.as_deref().and_then(|url| by_url.get(url).copied());
        let waits_for = match (redirections.iter().rposition(follows), initiator) {
            (Some(place), _) => vec![redirections.remove(place)],
            (None, None) => last(&ended).into_iter().collect(),
            (None, Some(initiator)) => {
                let known_ns = fetches[initiator].ended_ns;
                let since = |before: &usize| fetches[*before].ended_ns > known_ns;
                [initiator].into_iter().chain(last(&blocking).filter(since)).collect()
            }
        };
        after.push(waits_for);
        by_url.insert(&fetch.url, number);
        ended.insert(fetch.ended_ns, number);
        if fetch.blocks {
            blocking.insert(fetch.ended_ns, number);
        }
        if fetch.redirects_to.is_some() {
            redirections.push(number);
        }
    }
    after
}
