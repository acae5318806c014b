//! Transfers that wait for others: a client's answer behind a fetch between sites.

use knee_record::{FlowRecord, Records, TransferRecord};
use knee_scenario::{Embedded, Override, Source, parse};
use knee_sim::Control;
use std::collections::BTreeMap;

fn run(text: &str, set: &[(&str, &str)]) -> Records {
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    let set: Vec<Override> = set.iter().map(|(key, value)| Override::new(key, value)).collect();
    let scenario = parse(text, &source, &set).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    knee_sim::run(&scenario, &Control::default()).unwrap()
}

/// A path between sites and one to a client, which share nothing.
const NETWORK: &str = r#"
duration = "20 s"
seed = 4

[link.between]
rate = "10 Mbit/s"
delay = "15 ms"
buffer = "2 BDP"

[link.client]
rate = "50 Mbit/s"
delay = "25 ms"
buffer = "2 BDP"

[path.between]
forward = ["between"]
reverse_delay = "15 ms"

[path.client]
forward = ["client"]
reverse_delay = "25 ms"
"#;

fn files(answer: &str) -> String {
    format!(
        "{NETWORK}\n[[flow]]\nname = \"fetch\"\npath = \"between\"\ncc = \"reno\"\n\
         workload = {{ file = \"1 MB\" }}\n\n[[flow]]\nname = \"answer\"\npath = \"client\"\n\
         cc = \"cubic\"\n{answer}\nworkload = {{ file = \"1448 B\" }}\n"
    )
}

fn flow<'r>(records: &'r Records, name: &str) -> &'r FlowRecord {
    records.flows.iter().find(|flow| flow.name == name).unwrap()
}

/// One segment is sent when the fetch is acknowledged, over a connection opened long before: it
/// takes one round trip more, to the nanosecond.
#[test]
fn a_file_is_sent_when_the_other_is_acknowledged() {
    let records = run(&files("after = \"fetch\""), &[]);
    let (fetch, answer) = (flow(&records, "fetch"), flow(&records, "answer"));
    let fetched = fetch.completion_ns.unwrap();
    assert!(fetched > 800_000_000, "1 MB over 10 Mbit/s: {fetched} ns");
    assert_eq!(answer.completion_ns, Some(fetched + answer.base_rtt_ns));
    // Without a cause to wait it takes the handshake's round trip and its own.
    let alone = run(&files(""), &[]);
    let alone = flow(&alone, "answer").completion_ns.unwrap();
    assert!(alone < 2 * answer.base_rtt_ns && alone > answer.base_rtt_ns, "{alone} ns");
    // Requested after the fetch, it does not wait.
    let late = run(&files("after = \"fetch\"\nstart = \"5 s\""), &[]);
    assert_eq!(flow(&late, "answer").completion_ns, Some(alone));
}

fn mixes(answer: &str) -> String {
    format!(
        "{NETWORK}\n[[flow]]\nname = \"fetch\"\npath = \"between\"\ncc = \"cubic\"\n\
         workload = {{ mix = {{ arrival_interval = \"200 ms\", sizes = {{ median = \"50 kB\", \
         sigma = 1.0, max = \"1 MB\" }} }} }}\n{answer}"
    )
}

const ANSWERS: &str = "\n[[flow]]\nname = \"answer\"\npath = \"client\"\ncc = \"bbr\"\n\
                       after = \"fetch\"\nworkload = { mix = { sizes = \"30 kB\" } }\n";

/// A third mix behind the second.
const THIRD: &str = "\n[[flow]]\nname = \"third\"\npath = \"client\"\ncc = \"cubic\"\n\
                     after = \"answer\"\nworkload = { mix = { sizes = \"3 kB\" } }\n";

fn transfers(records: &Records, name: &str) -> BTreeMap<u32, TransferRecord> {
    let index = records.flows.iter().position(|flow| flow.name == name).unwrap() as u32;
    let of = records.transfers.iter().filter(|transfer| transfer.flow == index);
    of.map(|transfer| (transfer.number, *transfer)).collect()
}

/// Transfer by transfer: they arrive together; the answer takes at least the fetch and a round trip
/// of its own; its size does not depend on when the fetch ends.
#[test]
fn a_mix_waits_transfer_by_transfer() {
    let records = run(&mixes(&format!("{ANSWERS}{THIRD}")), &[]);
    let [fetches, answers, thirds] =
        ["fetch", "answer", "third"].map(|name| transfers(&records, name));
    assert!(fetches.len() > 60, "{}", fetches.len());
    for (first, then) in [(&fetches, &answers), (&answers, &thirds)] {
        assert_eq!(first.len(), then.len());
        let mut waited = 0;
        for (number, first) in first {
            let then = &then[number];
            assert_eq!(then.start_ns, first.start_ns, "{number}");
            let Some(took) = then.completion_ns else { continue };
            let before = first.completion_ns.expect("no answer is sent before its fetch is done");
            assert!(took >= before + 50_000_000, "{number}: {took} ns after {before} ns");
            waited += 1;
        }
        assert!(waited > 50, "{waited} have ended");
    }
    // The links are apart, so the fetches are as they are alone.
    let alone = run(&mixes(""), &[]);
    assert_eq!(transfers(&alone, "fetch"), fetches);
    // The same seed gives the same run.
    assert_eq!(run(&mixes(&format!("{ANSWERS}{THIRD}")), &[]).transfers, records.transfers);
}

/// Where fetches never end, neither do their answers, and both are counted, with their sizes.
#[test]
fn an_unfinished_fetch_leaves_its_answer_unfinished() {
    let down = ("link.between.down", "[{ from = \"8 s\", until = \"19999 ms\" }]");
    let records = run(&mixes(ANSWERS), &[down]);
    let (fetches, answers) = (transfers(&records, "fetch"), transfers(&records, "answer"));
    let (mut unfinished, mut finished) = (0, 0);
    for (number, fetch) in &fetches {
        let answer = &answers[number];
        assert_eq!(answer.size_bytes, 30_000);
        match fetch.completion_ns {
            Some(_) => finished += 1,
            None => {
                unfinished += 1;
                assert_eq!((answer.completion_ns, answer.delivered_bytes), (None, 0), "{number}");
            }
        }
    }
    assert_eq!(fetches.len(), answers.len());
    assert!(unfinished > 30 && finished > 20, "{finished} of {} end", fetches.len());
    // A mix that is stopped counts as it did, and its answers wait for ever.
    let records = run(&mixes(ANSWERS), &[("flow.fetch.stop", "5 s")]);
    let (fetches, answers) = (transfers(&records, "fetch"), transfers(&records, "answer"));
    assert_eq!(fetches.len(), answers.len());
    for (number, fetch) in fetches.iter().filter(|(_, fetch)| fetch.completion_ns.is_none()) {
        assert_eq!(answers[number].completion_ns, None, "{number}: {fetch:?}");
    }
}
