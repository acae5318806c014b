//! What blocks made by hand demand.

use super::*;
use knee_policy::{GroupBlock, Sums, Times};
use knee_steer::{Design, Treatment};

const TRIPLES: u64 = 12;

fn policy(stage: &str) -> Policy {
    let group = |name: &str, net: &str| {
        format!(
            "[[group]]\nname = \"{name}\"\nprefixes = [\"{net}\"]\ncontroller = \"bbr\"\n\
             control = \"cubic\"\n"
        )
    };
    let groups = group("web", "192.0.2.0/25") + &group("api", "192.0.2.128/25");
    let text = format!("name = \"edge\"\nseed = 7\n{stage}\n{groups}");
    Policy::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Results of a group: a hundred connections, of which ten have this RTT.
fn results(number: u64, rtt_ms: f64) -> GroupBlock {
    let mut times = Times { rtt_min_us: Some(20_000), ..Times::default() };
    for at in 0..100 {
        let ms = if at < 90 { 30.0 } else { rtt_ms };
        times.rtt_us.add(1e3 * ms * (1.0 + 1e-4 * f64::from(at)));
    }
    let mut group = GroupBlock { times, bytes: [1_000, 1_000_000], ..GroupBlock::default() };
    let noise = 0.1 * (number % 2) as f64;
    group.classes[0] = [Sums { count: 100, unfinished: 0, ln_bps: 100.0 * (15.0 + noise) }; 2];
    group
}

/// The first twelve triples, in which B has these RTTs in the tail of each group.
fn blocks(policy: &Policy, timeline: &Timeline, rtt_ms: [f64; 2]) -> Vec<Block> {
    let design = Design::new(policy.seed);
    let all = 2 * timeline.calibration + 3 * timeline.triples;
    let block = |number: u64| {
        let groups = policy.groups.iter().zip(rtt_ms).map(|(group, bad_ms)| {
            let is_test = match timeline.slot(number) {
                Some(Slot::Triple { triple, place }) => {
                    design.order(&group.name, triple)[place] == Treatment::Test
                }
                _ => false,
            };
            let usual_ms = 60.0 + (number % 2) as f64;
            results(number, if is_test { bad_ms } else { usual_ms })
        });
        Block { number, groups: groups.collect(), reports: 100, ..Block::default() }
    };
    (0..all).map(block).collect()
}

/// A guard that one class has fired stops all classes of its group, and the report says so of each,
/// also of one with too few triples to show any harm itself.
#[test]
fn a_guard_stops_all_classes() {
    let block = Duration::from_secs(600);
    let timeline = Timeline { block, burn_in: block / 10, calibration: 4, triples: TRIPLES + 1 };
    let policy = policy("");
    let mut blocks = blocks(&policy, &timeline, [90.0, 60.0]);
    let first = 8 + 3 * TRIPLES as usize;
    for block in &mut blocks[..14] {
        for group in &mut block.groups {
            group.classes[1] = group.classes[0];
        }
    }
    let told = |blocks: &[Block]| {
        report::document(&policy, &timeline, &[blocks]).text(crate::screen::layout())
    };
    blocks[first].groups[0].stopped = Some("harm".to_string());
    let text = told(&blocks);
    assert!(text.contains("stopped") && !text.contains("at once"), "{text}");
    // Before a guard is certain, only a block in which B was stopped at once ends it.
    blocks[14].groups[0].stopped = Some("harm".to_string());
    let text = told(&blocks);
    assert_eq!(text.matches("stopped at once").count(), 2, "{text}");
}

/// The tables of each stage keep their bytes.
#[test]
fn stages_print_the_same() {
    let block = Duration::from_secs(600);
    let timeline = Timeline { block, burn_in: block / 10, calibration: 4, triples: TRIPLES };
    let mut text = String::new();
    for stage in ["stage = \"observe\"", "stage = \"canary\"", ""] {
        let policy = policy(stage);
        let blocks = blocks(&policy, &timeline, [60.0, 90.0]);
        let document = report::document(&policy, &timeline, &[&blocks]).then(report::hosts(
            &timeline,
            &["host-a".into()],
            &[&blocks],
        ));
        text += &format!("{}\n{}\n", document.markdown(false), document.markdown(true));
    }
    crate::golden::compare("stages.txt", &text);
}
