//! Faults during an experiment: its verdict is invalid, a block is void and its triple left out, or
//! it goes on, but no fault looks like an effect.

use knee_policy::{
    Actuator, Applied, Block, Choice, Experiment, GroupBlock, Journal, Judged, Plan, Policy,
    PolicyError, Renewed, Sums, Timeline, judge,
};
use knee_steer::{Design, Treatment, Verdict};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The shortest block in which the process may be silent for 30 s, as in one of 20 min.
const BLOCK: Duration = Duration::from_secs(120);
const SECOND: Duration = Duration::from_secs(1);

fn timeline(calibration: u64, triples: u64) -> Timeline {
    Timeline { block: BLOCK, burn_in: BLOCK / 10, calibration, triples }
}

fn policy() -> Policy {
    let text = "name = \"test\"\nactuator = \"bpf\"\n[[group]]\nname = \"web\"\n\
                prefixes = [\"192.0.2.0/24\"]\ncontroller = \"reno\"\ncontrol = \"cubic\"\n";
    Policy::parse(text).unwrap()
}

/// A kernel that answers as told.
#[derive(Default)]
struct Kernel {
    renewed: Renewed,
    refuses: bool,
    choices: u32,
}

impl Actuator for Kernel {
    fn apply(&mut self, _: &Plan, _: &mut Journal) -> Result<Applied, PolicyError> {
        Ok(Applied::default())
    }

    fn choose(&mut self, _: Vec<Choice>) -> Result<(), PolicyError> {
        self.choices += 1;
        let (problem, advice) = ("no such controller".to_string(), String::new());
        if self.refuses { Err(PolicyError::Programs { problem, advice }) } else { Ok(()) }
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        Ok(std::mem::take(&mut self.renewed))
    }

    fn stop(&mut self) {}
}

/// Blocks that end when a process looks at these times, with the reasons why they are void.
fn blocks_at(times: &[Duration], kernel: &mut Kernel) -> Vec<(u64, Option<String>)> {
    let mut experiment = Experiment::begin(&policy(), timeline(0, 2), Vec::new(), &[], 0).unwrap();
    let mut blocks = Vec::new();
    for now in times {
        let step = experiment.step(*now, kernel).unwrap();
        blocks.extend(step.block.map(|block| (block.number, block.void)));
    }
    blocks
}

/// Times of a process that looks every 20 s, into the third block.
fn regular() -> Vec<Duration> {
    (0..=15).map(|look| look * 20 * SECOND).collect()
}

/// Over one connection in a thousand that was refused its controller, by a locked route or because
/// the controller's module is gone, makes a block void.
#[test]
fn refused_controllers_make_a_block_void() {
    for (refused, is_void) in [(1, false), (2, true)] {
        let renewed = Renewed { given: 1500, refused, ..Renewed::default() };
        let blocks = blocks_at(&regular(), &mut Kernel { renewed, ..Kernel::default() });
        let [(0, first), (1, None)] = blocks.as_slice() else { panic!("{blocks:?}") };
        assert_eq!(first.is_some(), is_void, "{first:?}");
        assert!(first.as_ref().is_none_or(|why| why.contains("refused 2 of 1502")), "{first:?}");
    }
}

/// Where controllers are read back from open connections, only a handful of others counts.
#[test]
fn a_few_others_among_open_connections_say_nothing() {
    for (given, refused, is_void) in [(10, 4, false), (10, 5, true), (6000, 5, false)] {
        let mut experiment =
            Experiment::begin(&policy(), timeline(0, 2), Vec::new(), &[], 0).unwrap();
        experiment.read_back();
        let mut kernel = Kernel::default();
        experiment.step(Duration::ZERO, &mut kernel).unwrap();
        experiment.renewed(given, refused);
        let mut steps = (1..=6).map(|look| experiment.step(look * 20 * SECOND, &mut kernel));
        let block = steps.find_map(|step| step.unwrap().block).unwrap();
        assert_eq!(block.void.is_some(), is_void, "{:?}", block.void);
        assert!(block.void.is_none_or(|why| why.contains("5 of 15 open connections")));
    }
}

/// A block in which clients are excluded is void, and the next one is not.
#[test]
fn excluding_clients_makes_a_block_void() {
    let mut experiment = Experiment::begin(&policy(), timeline(0, 2), Vec::new(), &[], 0).unwrap();
    let (mut kernel, mut blocks) = (Kernel::default(), Vec::new());
    for now in regular() {
        blocks.extend(experiment.step(now, &mut kernel).unwrap().block);
        if now == 20 * SECOND {
            experiment.exclude(vec!["192.0.2.7/32".parse().unwrap()], "a route has changed");
        }
    }
    let voids: Vec<Option<&str>> = blocks.iter().map(|block| block.void.as_deref()).collect();
    assert_eq!(voids, [Some("a route has changed"), None]);
}

/// What a connection has sent before the first block is not of that block, and what it sends later is
/// under a controller that it had before. One that begins in the block counts.
#[test]
fn connections_from_before_do_not_count() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(place) = server.local_addr().unwrap() else { panic!() };
    let connection = |from: Ipv4Addr| {
        let near = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
        bind(near.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0))).unwrap();
        connect(near.as_raw_fd(), &SockaddrIn::from(place)).unwrap();
        (TcpStream::from(near), server.accept().unwrap().0)
    };
    let send = |(near, far): &mut (TcpStream, TcpStream), bytes: usize| {
        std::thread::scope(|scope| {
            scope.spawn(|| far.write_all(&vec![0; bytes]).unwrap());
            near.read_exact(&mut vec![0; bytes]).unwrap();
        });
    };
    let text = "name = \"test\"\n[[group]]\nname = \"web\"\nprefixes = [\"127.0.77.0/24\"]\n\
                controller = \"reno\"\ncontrol = \"cubic\"\n";
    let policy = Policy::parse(text).unwrap();
    let mut before = connection(Ipv4Addr::new(127, 0, 77, 1));
    send(&mut before, 5_000_000);
    let mut experiment = Experiment::begin(&policy, timeline(0, 2), Vec::new(), &[], 0).unwrap();
    let (mut kernel, mut blocks, mut within) = (Kernel::default(), Vec::new(), None);
    for now in regular() {
        blocks.extend(experiment.step(now, &mut kernel).unwrap().block);
        send(&mut before, 1_000_000);
        let within = within.get_or_insert_with(|| connection(Ipv4Addr::new(127, 0, 77, 2)));
        if blocks.is_empty() {
            send(within, 10_000);
        }
    }
    let sent: Vec<u64> = blocks.iter().map(|block| block.groups[0].bytes[1]).collect();
    // Until the last look within the block.
    assert!((50_000..100_000).contains(&sent[0]) && sent[1] == 0, "{sent:?}");
}

/// A controller that the kernel lacks ends the experiment, after which everything is reverted.
#[test]
fn a_kernel_that_refuses_ends_it() {
    let mut experiment = Experiment::begin(&policy(), timeline(0, 2), Vec::new(), &[], 0).unwrap();
    let mut kernel = Kernel { refuses: true, ..Kernel::default() };
    let error = experiment.step(Duration::ZERO, &mut kernel).unwrap_err();
    assert!(error.to_string().contains("no such controller"), "{error}");
}

/// A process that was stopped, as by SIGSTOP or a host without a processor to spare.
#[test]
fn what_a_process_missed_is_void() {
    // Within a block, for longer than 30 s.
    let gap = |from: u32, to: u32| {
        let is_missed = move |at: &Duration| *at > from * SECOND && *at < to * SECOND;
        regular().into_iter().filter(move |at| !is_missed(at)).collect::<Vec<_>>()
    };
    let void = |times: &[Duration]| blocks_at(times, &mut Kernel::default());
    assert_eq!(void(&gap(20, 40)), [(0, None), (1, None)]);
    let blocks = void(&gap(20, 80));
    let [(0, Some(why)), (1, None)] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(why.contains("reported nothing for 60 s"), "{why}");
    // Over the end of a block: the first was cut off, the second began late.
    let blocks = void(&gap(100, 140));
    let [(0, Some(_)), (1, Some(why))] = blocks.as_slice() else { panic!("{blocks:?}") };
    assert!(why.contains("20.0 s late"), "{why}");
    // A whole block.
    let blocks = void(&gap(100, 260));
    assert!(blocks.iter().all(|(_, why)| why.is_some()), "{blocks:?}");
}

/// The verdict over blocks in which B has no effect, but for what `change` makes of them.
fn judged(change: impl Fn(u64, Treatment, &mut Block)) -> Judged {
    let (timeline, design, triples) = (timeline(4, 24), Design::new(7), 24);
    let calibration = (0..8).map(|_| Treatment::Control);
    let tried = (0..triples).flat_map(|triple| design.order("web", triple));
    let mut blocks = Vec::new();
    for (number, treatment) in (0..).zip(calibration.chain(tried)) {
        // Noise of 2 %, of no simple pattern.
        let noise = (number * 89 % 144) as f64 / 144.0 * 0.07;
        let sums = Sums { count: 100, unfinished: 0, ln_bps: 100.0 * (15.0 + noise) };
        let mut group = GroupBlock::default();
        group.classes[0] = match treatment {
            Treatment::Half => [sums; 2],
            Treatment::Control => [sums, Sums::default()],
            Treatment::Test => [Sums::default(), sums],
        };
        let mut block = Block { number, groups: vec![group], reports: 1000, ..Block::default() };
        change(number, treatment, &mut block);
        blocks.push(block);
    }
    let mut judged = judge(&[&blocks], &timeline, &design, &["web".to_string()], &[]).unwrap();
    assert_eq!(judged.len(), 1);
    judged.remove(0)
}

/// 3 % of the reports of B are lost, most of them from busy times, so its rates are wrong. The
/// verdict is invalid, not an effect, which it would be without the losses.
#[test]
fn lost_records_invalidate() {
    let lose = |lost: u64| {
        judged(|_, treatment, block| {
            if treatment == Treatment::Test {
                block.groups[0].classes[0][1].ln_bps += 100.0 * 0.2;
                block.lost = lost;
            }
        })
    };
    assert_eq!(judged(|_, _, _| {}).trial.verdict().0, Verdict::Undecided);
    assert_eq!(lose(0).trial.verdict().0, Verdict::More);
    assert_eq!(lose(9).trial.verdict().0, Verdict::More);
    assert_eq!(lose(31).trial.verdict().0, Verdict::RecordsLost);
}

/// Void blocks whose figures are wrong leave no effect, and their triples are counted as left out.
#[test]
fn void_blocks_say_nothing() {
    let judged = judged(|number, treatment, block| {
        if treatment == Treatment::Test && number % 2 == 0 {
            block.groups[0].classes[0][1].ln_bps += 100.0 * 3.0;
            block.void = Some("it began 100 s late".to_string());
        }
    });
    assert_eq!(judged.trial.verdict().0, Verdict::Undecided);
    assert!((6..=18).contains(&judged.left_out), "{}", judged.left_out);
    assert!(judged.trial.total().is_none_or(|total| total.mean.abs() < 0.1));
}

/// A host of a site that has had nothing under A yet cannot tell harm by B, so it stays under A until
/// it has; one that went away and has its earlier blocks knows at once.
#[test]
fn a_late_host_begins_under_a() {
    let timeline = timeline(2, 40);
    let design = Design::new(1);
    // The first triple that begins with B.
    let triple = (0..40).find(|triple| design.order("web", *triple)[0] == Treatment::Test);
    let first = 4 + 3 * triple.unwrap();
    let text = "name = \"test\"\nstage = \"site\"\nbegins = 2026-01-31T18:00:00Z\n[[group]]\n\
                name = \"web\"\nprefixes = [\"192.0.2.0/24\"]\ncontroller = \"reno\"\n\
                control = \"cubic\"\n";
    let site = Policy::parse(text).unwrap();
    let arms = |policy: &Policy, before: &[Block]| {
        let begun = Experiment::begin(policy, timeline, Vec::new(), before, first);
        let mut experiment = begun.unwrap();
        experiment.step(Duration::ZERO, &mut Kernel::default()).unwrap();
        experiment.assigned().1[0].arms[0].clone()
    };
    let earlier = |bytes, void: Option<&str>| {
        let groups = vec![GroupBlock { bytes, ..GroupBlock::default() }];
        [Block { groups, void: void.map(str::to_string), ..Block::default() }]
    };
    assert_eq!(arms(&site, &[]), "A");
    assert_eq!(arms(&site, &earlier([0, 0], None)), "A");
    assert_eq!(arms(&site, &earlier([10, 1000], Some("late"))), "A");
    assert_eq!(arms(&site, &earlier([10, 1000], None)), "B");
    // Alone it has pairs, and its triples are its own.
    assert_eq!(arms(&policy(), &[]), "B");
}
