//! Experiments on several hosts, from blocks made by hand.

use knee_policy::{
    Block, BlockFile, GroupBlock, Judged, Policy, PolicyError, Stopped, Sums, Timeline, judge,
    recorded_blocks,
};
use knee_steer::{Design, Guarded, Treatment, Verdict};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

fn timeline(triples: u64) -> Timeline {
    let block = Duration::from_secs(600);
    Timeline { block, burn_in: block / 10, calibration: 4, triples }
}

fn order(design: &Design, timeline: &Timeline, number: u64) -> Treatment {
    let before = 2 * timeline.calibration;
    match number.checked_sub(before) {
        Some(since) => design.order("web", since / 3)[(since % 3) as usize],
        None => Treatment::Control,
    }
}

/// A host's blocks: `count` connections and their mean, by number and treatment.
fn host(
    timeline: &Timeline,
    design: &Design,
    each: impl Fn(u64, Treatment) -> (u64, f64),
) -> Vec<Block> {
    let all = 2 * timeline.calibration + 3 * timeline.triples;
    let block = |number| {
        let treatment = order(design, timeline, number);
        let (count, mean) = each(number, treatment);
        let sums = Sums { count, unfinished: 0, ln_bps: count as f64 * mean };
        let mut group = GroupBlock { parts: [500, 500], ..GroupBlock::default() };
        group.classes[0] = match treatment {
            Treatment::Control => [sums, Sums::default()],
            Treatment::Test => [Sums::default(), sums],
            Treatment::Half => [sums; 2],
        };
        Block { number, groups: vec![group], reports: 1000, ..Block::default() }
    };
    (0..all).map(block).collect()
}

fn judged(hosts: &[Vec<Block>], timeline: &Timeline, design: &Design) -> Judged {
    let hosts: Vec<&[Block]> = hosts.iter().map(Vec::as_slice).collect();
    let mut judged = judge(&hosts, timeline, design, &["web".to_string()], &[]).unwrap();
    assert_eq!(judged.len(), 1);
    judged.remove(0)
}

/// Noise of no simple pattern, -0.5 to 0.5.
fn noise(seed: u64, number: u64) -> f64 {
    let mixed = (seed * 1_000_003 + number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) as f64 / u64::MAX as f64 - 0.5
}

/// A near host of 100 connections gains 10 %, a far one of 300 gains 30 %: 25 % on the site. How
/// many connections there are in the blocks of a triple changes nothing, though it would change the
/// mean over all connections by far more than the effect.
#[test]
fn hosts_count_by_what_they_had_before() {
    let (timeline, design) = (timeline(6), Design::new(7));
    let site = |busy: &dyn Fn(u64) -> u64| {
        let host = |count: u64, level: f64, gain: f64| {
            host(&timeline, &design, |number, treatment| {
                let times = if number < 8 { 1 } else { busy(number) };
                let gained = if treatment == Treatment::Test { gain } else { 0.0 };
                (count * times, level + gained)
            })
        };
        vec![host(100, 16.0, 0.1), host(300, 12.0, 0.3)]
    };
    for busy in [&(|_| 1_u64) as &dyn Fn(u64) -> u64, &|number| 1 + number % 3 * 10] {
        let mut hosts = site(busy);
        let total = judged(&hosts, &timeline, &design).trial.total().unwrap();
        assert!((total.mean - 0.25).abs() < 1e-12, "{total:?}");
        // A host that came after the pairs has no part; one that missed a triple lacks there:
        // five triples with 25 %, one with the near host's 10 %.
        hosts.push(host(&timeline, &design, |_, _| (100_000, 10.0)).split_off(8));
        hosts[1].retain(|block| !(11..14).contains(&block.number));
        let whole = judged(&hosts, &timeline, &design);
        let total = whole.trial.total().unwrap();
        assert!((total.mean - (5.0 * 0.25 + 0.1) / 6.0).abs() < 1e-12, "{total:?}");
        assert_eq!((whole.connections, whole.left_out), (400.0, 0));
        // The same if a block of that triple is void.
        let mut hosts = site(busy);
        hosts[1][12].void = Some("late".to_string());
        let void = judged(&hosts, &timeline, &design).trial.total().unwrap();
        assert_eq!(void, total);
    }
}

/// Five hosts that all see the same noise are one bet in each triple, not five: of 1,000 experiments
/// without an effect at most 5 % and two standard errors show one. A bet for each would show 71 %.
#[test]
fn hosts_that_vary_together_are_one_bet() {
    let timeline = timeline(24);
    let seen = (0..1000).filter(|seed| {
        let design = Design::new(*seed);
        let one = host(&timeline, &design, |number, _| (50, 15.0 + noise(*seed, number)));
        let verdict = judged(&vec![one; 5], &timeline, &design).trial.verdict().0;
        matches!(verdict, Verdict::More | Verdict::Less)
    });
    let seen = seen.count();
    assert!((1..=64).contains(&seen), "{seen}");
}

/// Hosts that vary by themselves see together what none of them sees alone.
#[test]
fn a_site_sees_more_than_its_hosts() {
    let (timeline, design) = (timeline(16), Design::new(3));
    let host = |index: u64| {
        host(&timeline, &design, move |number, treatment| {
            let gained = if treatment == Treatment::Test { 0.1 } else { 0.0 };
            (50, 15.0 + gained + noise(100 + index, number))
        })
    };
    let hosts: Vec<Vec<Block>> = (0..40).map(host).collect();
    let found = |hosts: &[Vec<Block>]| judged(hosts, &timeline, &design).trial.verdict().0;
    assert_eq!(found(&hosts), Verdict::More);
    let alone = hosts.chunks(1).filter(|one| found(one) != Verdict::Undecided).count();
    assert!(alone <= 8, "{alone}");
}

#[test]
fn each_host_is_checked() {
    let (timeline, design) = (timeline(6), Design::new(7));
    let half =
        (8..11).find(|at| order(&design, &timeline, *at) == Treatment::Half).unwrap() as usize;
    let hosts = |change: &dyn Fn(usize, &mut Block)| {
        let one = host(&timeline, &design, |number, _| (50, 15.0 + noise(1, number)));
        let mut hosts = vec![one; 4];
        for (index, host) in hosts.iter_mut().enumerate() {
            change(index, &mut host[half]);
        }
        judged(&hosts, &timeline, &design)
    };
    let parts = |of: [[u64; 2]; 4]| {
        hosts(&|index, block| block.groups[0].parts = of[index]).trial.verdict().0
    };
    // The same clients on each host: 60 more of 1,000 are 1.9 deviations, once, not four times.
    assert_eq!(parts([[530, 470]; 4]), Verdict::Undecided);
    assert_eq!(parts([[500, 500], [500, 500], [600, 400], [500, 500]]), Verdict::UnlikeHalves);
    // Lost records on one host: 10 of 1,010, and 11 of 1,011.
    let lost = |each| hosts(&|index, block| block.lost = if index == 2 { each } else { 0 });
    assert_eq!(lost(10).trial.verdict().0, Verdict::Undecided);
    assert_eq!(lost(11).trial.verdict().0, Verdict::RecordsLost);
    let stopped = hosts(&|index, block| {
        block.groups[0].stopped = (index == 2).then(|| "harm".to_string());
    });
    let at = Stopped { why: "harm".to_string(), triple: 1, host: 2 };
    assert_eq!((stopped.stopped, stopped.trial.total()), (Some(at.clone()), None));
    // Also if that host went away before the end of the triple.
    let mut hosts = vec![host(&timeline, &design, |number, _| (50, 15.0 + noise(1, number))); 3];
    hosts[2][8].groups[0].stopped = Some("harm".to_string());
    hosts[2].truncate(9);
    assert_eq!(judged(&hosts, &timeline, &design).stopped, Some(at));
}

/// What a host without pairs has lost, or how its halves are, says nothing; but the harm that it has
/// seen does.
#[test]
fn a_late_host_only_tells_of_harm() {
    let (timeline, design) = (timeline(6), Design::new(7));
    let one = host(&timeline, &design, |number, _| (50, 15.0 + noise(1, number)));
    let with = |change: &dyn Fn(&mut Block)| {
        let mut late = one[8..].to_vec();
        late.iter_mut().for_each(change);
        judged(&[one.clone(), late], &timeline, &design)
    };
    let unlike = with(&|block| {
        block.lost = 500;
        block.groups[0].parts = [900, 100];
    });
    assert_eq!(unlike.trial.verdict().0, Verdict::Undecided);
    let stopped = with(&|block| {
        block.groups[0].stopped = (block.number == 12).then(|| "harm".to_string());
    });
    assert_eq!(stopped.stopped.map(|one| (one.triple, one.host)), Some((2, 1)));
}

/// If all hosts were late, two pairs are enough, once the triples have begun.
#[test]
fn pairs_that_all_have_missed() {
    let (timeline, design) = (timeline(6), Design::new(7));
    let late = |from: usize, until: usize| {
        let one = host(&timeline, &design, |number, _| (50, 15.0 + noise(1, number)));
        let blocks = one[from..until].to_vec();
        judge(&[&blocks, &blocks], &timeline, &design, &["web".to_string()], &[]).is_some()
    };
    assert!(late(4, 26) && late(2, 26));
    assert!(!late(6, 26), "one pair");
    assert!(!late(4, 8), "before the first triple");
    assert!(!late(0, 6) && late(0, 8));
}

fn policy(stage: &str) -> Policy {
    let text = format!(
        "name = \"edge\"\n{stage}\n[[group]]\nname = \"web\"\nprefixes = [\"192.0.2.0/24\"]\n\
         controller = \"bbr\"\ncontrol = \"cubic\"\n"
    );
    Policy::parse(&text).unwrap()
}

/// The files of a site's hosts are read as they were written, with gaps; a host's file has none. A
/// file of another experiment is named.
#[test]
fn files_of_hosts_belong_together() {
    let folder = tempfile::tempdir().unwrap();
    let site = policy("stage = \"site\"\nbegins = 2026-01-31T18:00:00Z");
    let later = policy("stage = \"site\"\nbegins = 2026-01-31T19:00:00Z");
    let (alone, timeline) = (policy(""), timeline(6));
    let blocks = host(&timeline, &Design::new(1), |number, _| (50, 15.0 + noise(2, number)));
    let write = |name: &str, policy: &Policy, timeline: &Timeline, from: usize| -> PathBuf {
        let path = folder.path().join(name);
        let (mut file, _) = BlockFile::open(&path, policy, timeline).unwrap();
        blocks[from..].iter().for_each(|block| file.push(block).unwrap());
        path
    };
    let a = write("a", &site, &timeline, 0);
    let b = write("b", &site, &timeline, 14);
    let read = recorded_blocks(&[a.clone(), b.clone()]).unwrap();
    assert_eq!(read.hosts, [blocks.clone(), blocks[14..].to_vec()]);
    assert_eq!((read.timeline, read.policy.begins_unix), (timeline, site.begins_unix));
    let [read, written] = [&read.policy.groups[0], &site.groups[0]];
    assert_eq!((&read.prefixes, &read.control), (&written.prefixes, &written.control));
    // More triples than were planned are the same experiment.
    let more = Timeline { triples: 9, ..timeline };
    let (mut file, _) = BlockFile::open(&b, &site, &more).unwrap();
    file.push(&Block { number: 34, ..blocks[25].clone() }).unwrap();
    drop(file);
    assert_eq!(recorded_blocks(&[a.clone(), b.clone()]).unwrap().timeline, more);
    fs::write(
        &b,
        fs::read_to_string(&b)
            .unwrap()
            .lines()
            .take(13)
            .fold(String::new(), |all, line| all + line + "\n"),
    )
    .unwrap();
    // A site's host goes on after the blocks that it has missed.
    let (_, before) = BlockFile::open(&b, &site, &timeline).unwrap();
    assert_eq!(before, blocks[14..]);

    let refused = |paths: &[&PathBuf], wrong: &PathBuf| {
        let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).clone()).collect();
        match recorded_blocks(&paths) {
            Err(PolicyError::OtherExperiment { path }) => assert_eq!(&path, wrong),
            other => panic!("{other:?}"),
        }
    };
    let c = write("c", &later, &timeline, 0);
    refused(&[&a, &c], &c);
    // Other guards and another start are another experiment, and both are read as written.
    let mut lenient = site.clone();
    lenient.accepts = vec![Guarded::Delay];
    let g = write("lenient", &lenient, &timeline, 0);
    refused(&[&a, &g], &g);
    assert_eq!(recorded_blocks(std::slice::from_ref(&g)).unwrap().policy.accepts, lenient.accepts);
    let mut wider = site.clone();
    (wider.groups[0].initial_window, wider.groups[0].paces) = (Some(32), true);
    wider.groups[0].ecn = true;
    let h = write("wider", &wider, &timeline, 0);
    refused(&[&a, &h], &h);
    let read = recorded_blocks(std::slice::from_ref(&h)).unwrap().policy;
    assert_eq!(read.groups[0].arm(), wider.groups[0].arm());
    let longer = Timeline { block: timeline.block * 2, ..timeline };
    let d = write("d", &site, &longer, 0);
    refused(&[&a, &b, &d], &d);
    let [one, two] = ["e", "f"].map(|name| write(name, &alone, &timeline, 0));
    assert_eq!(recorded_blocks(std::slice::from_ref(&one)).unwrap().hosts[0], blocks);
    refused(&[&one, &two], &two);
    let gaps = write("g", &alone, &timeline, 14);
    refused(&[&gaps], &gaps);
    // Numbers that nothing wrote.
    for (part, wrong) in [
        ("\"triples\":6", "\"triples\":6000000000"),
        ("\"calibration\":4", "\"calibration\":18446744073709551615"),
        ("{\"number\":25,", "{\"number\":18446744073709551615,"),
        ("{\"number\":25,", "{\"number\":24,"),
        ("{\"number\":25,", "{\"number\":3000000,"),
        ("edge", "ed\u{0}ge\n"),
    ] {
        let path = folder.path().join("wrong");
        let text = fs::read_to_string(&a).unwrap();
        assert!(text.contains(part));
        fs::write(&path, text.replacen(part, wrong, 1)).unwrap();
        refused(&[&path], &path);
    }
    let missing = folder.path().join("missing");
    assert!(matches!(recorded_blocks(&[missing]), Err(PolicyError::Records { .. })));
}
