//! Advice over paths that the test knows and the advice does not.

use knee_advise::{Reason, Verdict};
use knee_lab::record::ConnectionRecord;
use knee_lab::{
    AdviseError, AdviseSettings, Advised, Candidates, Error, Job, Lab, Observed, ObservedGroup,
    ScenarioText,
};
use std::collections::BTreeMap;

/// 20 Mbit/s, 40 ms, half a BDP of buffer, a load of 0.4.
const PATH: &str = "name = \"path\"\nseed = 5\nduration = \"350 s\"\n\
    [link.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"0.5 BDP\"\n\
    [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"20 ms\"\n\
    [[flow]]\nname = \"own\"\ncc = \"cubic\"\nworkload = { mix = { count = 700, \
    arrival_interval = \"480 ms\", sizes = { median = \"150 kB\", sigma = 1.7, max = \"20 MB\" } } }\n";

fn rows(lab: &Lab, cc: &str) -> Vec<ConnectionRecord> {
    let text = ScenarioText::new("path.toml", &PATH.replace("cubic", cc));
    let scenario = text.scenario(&[]).unwrap();
    let ground = lab.grounds.get("sim").unwrap();
    lab.run(&Job::new(&scenario, ground)).unwrap().records.connections
}

fn group(rows: &[ConnectionRecord]) -> ObservedGroup {
    let mut observed = Observed::default();
    observed.add(rows);
    observed.groups().remove(0)
}

fn advise(lab: &Lab, group: &ObservedGroup, candidates: &[&str]) -> Advised {
    let candidates = Candidates(candidates.iter().map(|name| name.to_string()).collect());
    let settings = AdviseSettings { candidates, simulations: 60, seed: 1 };
    lab.advise(group, &settings).unwrap().unwrap()
}

/// Mean gain of large connections, measured on the path itself.
fn truth(lab: &Lab) -> f64 {
    let speeds = ["cubic", "bbr"].map(|cc| -> BTreeMap<u64, f64> {
        let large = rows(lab, cc).into_iter().filter(|row| row.size_bytes >= Some(3_000_000));
        let speed = |row: ConnectionRecord| {
            Some((row.connection, row.size_bytes? as f64 / row.completion_ns? as f64))
        };
        large.filter_map(speed).collect()
    });
    let both = speeds[0].iter().filter_map(|(number, a)| Some((speeds[1].get(number)? / a).ln()));
    let both: Vec<f64> = both.collect();
    both.iter().sum::<f64>() / both.len() as f64
}

/// The search recovers the hidden path, and its prediction for BBR matches a measurement, with any
/// number of threads.
#[test]
#[ignore = "takes long: .ci/night random"]
fn a_hidden_path_is_found_and_the_gain_foretold() {
    let mut lab = Lab::default();
    let group = group(&rows(&lab, "cubic"));
    let advised = advise(&lab, &group, &["bbr", "cubic"]);
    let best = advised.fits[0];
    assert!(best.misfit < 1.0, "{best:?}");
    assert!((best.path.rate_bps / 20e6 - 1.0).abs() < 0.15, "{best:?}");
    assert!((best.path.rtt_s - 0.04).abs() < 0.004, "{best:?}");
    let large = advised.classes[1].prediction.unwrap();
    let truth = truth(&lab);
    assert!((large.gain.mean - truth).abs() < 0.2, "{large:?} for {truth}");
    assert!(large.gain.low < truth && truth < large.gain.high, "{large:?} for {truth}");
    // The controller in use gains nothing over itself.
    for same in &advised.classes[2..] {
        assert_eq!(same.prediction.unwrap().gain.mean, 0.0);
        assert_eq!(same.verdict, Verdict::Unclear);
    }
    lab.parallel = Some(1);
    let again = advise(&lab, &group, &["bbr", "cubic"]);
    assert_eq!(format!("{again:?}"), format!("{advised:?}"));
}

/// A queue that grows with the transfer size, and large transfers that are slow without loss: no
/// path of the model behaves like that.
#[test]
fn what_no_path_explains_gets_no_advice() {
    let lab = Lab::default();
    let mut group = group(&rows(&lab, "cubic"));
    for one in &mut group.connections {
        one.retransmitted_bytes = if one.bytes < 1_000_000 { one.sent_bytes / 3 } else { 0 };
        if one.bytes >= 1_000_000 {
            one.busy_s *= 30.0;
        }
    }
    let advised = advise(&lab, &group, &["bbr"]);
    for class in &advised.classes {
        assert!(matches!(class.verdict, Verdict::NoAdvice(Reason::Misfit(_))), "{class:?}");
    }
}

#[test]
fn without_enough_to_go_by_it_says_so() {
    let lab = Lab::default();
    let mut few = group(&rows(&lab, "cubic"));
    let mut strange = few.clone();
    few.connections.truncate(150);
    strange.in_use = "homegrown".to_string();
    for (group, reason) in [(few, Reason::TooFew(150)), (strange, Reason::Unknown)] {
        let advised = advise(&lab, &group, &["bbr"]);
        assert!(advised.fits.is_empty());
        assert_eq!(advised.classes[0].verdict, Verdict::NoAdvice(reason));
    }
    let mut rare = group(&rows(&lab, "cubic"));
    rare.span_s = 86_400.0;
    let advised = advise(&lab, &rare, &["bbr"]);
    assert_eq!(advised.classes[0].verdict, Verdict::NoAdvice(Reason::TooRare));
    let empty = tempfile::tempdir().unwrap();
    let error = Observed::default().read(empty.path()).unwrap_err();
    assert!(matches!(error, Error::Advise(AdviseError::NoFiles(_))), "{error}");
}
