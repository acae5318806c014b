//! Results of tools, made from a simulated transfer over a hidden path.

use knee_advise::Known;
use knee_lab::{
    Candidates, Experiment, ExperimentSettings, FitSettings, Lab, MeasuredFit, SIMULATOR,
    ScenarioText, TransferAdvice,
};
use knee_record::{FlowSample, read_run};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const PATH: &str = "name = \"hidden\"\nduration = \"10 s\"\nsample_interval = \"500 ms\"\n\
    [link.wire]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"150 kB\"\n\
    [path.main]\nforward = [\"wire\"]\nreverse_delay = \"20 ms\"\n\
    [[flow]]\nname = \"bulk\"\ncc = \"cubic\"\n";

/// What iperf3 -J would have written at the sender of the run's flow.
fn iperf3(run: &Path) -> String {
    let saved = read_run(run).unwrap();
    let view = knee_record::RunView::new(&saved.records, knee_units::Time::ZERO);
    let samples: Vec<FlowSample> = view.flows[0].samples.iter().collect();
    let mut before = FlowSample::default();
    let mut intervals = Vec::new();
    for after in samples.into_iter().filter(|sample| sample.time_ns > 0) {
        let [start, end] = [before, after].map(|sample| sample.time_ns as f64 / 1e9);
        let again = (after.retransmitted_bytes - before.retransmitted_bytes) / 1448;
        intervals.push(format!(
            "{{\"streams\":[{{\"rtt\":{}}}],\"sum\":{{\"start\":{start},\"end\":{end},\"seconds\":{},\
             \"bytes\":{},\"retransmits\":{again},\"omitted\":false}}}}",
            after.srtt_ns / 1000,
            end - start,
            after.delivered_bytes - before.delivered_bytes,
        ));
        before = after;
    }
    format!(
        "{{\"start\":{{\"timestamp\":{{\"timesecs\":1700000100}},\"tcp_mss_default\":1448,\
         \"test_start\":{{\"protocol\":\"TCP\",\"num_streams\":1}}}},\"intervals\":[{}],\
         \"end\":{{\"sender_tcp_congestion\":\"cubic\"}}}}",
        intervals.join(",")
    )
}

/// Answers from this second on, each after 40 ms and up to 50 us more.
fn ping(begun: u64, count: u64, lost: u64) -> String {
    let mut text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n".to_string();
    for number in lost..count {
        let (second, late) = (begun + number / 10, number % 6);
        writeln!(
            text,
            "[{second}.{}00000] 64 bytes from 192.0.2.1: icmp_seq={} ttl=64 time=40.0{late} ms",
            number % 10,
            number + 1
        )
        .unwrap();
    }
    text + &format!("\n{count} packets transmitted, {} received\n", count - lost)
}

struct Site {
    folder: tempfile::TempDir,
    lab: Lab,
}

impl Site {
    fn new() -> Site {
        Site { folder: tempfile::tempdir().unwrap(), lab: Lab::default() }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, text: &str) -> PathBuf {
        let run = self.folder.path().join("run");
        let settings = ExperimentSettings {
            alternatives: false,
            ..ExperimentSettings::on(self.lab.grounds.get(SIMULATOR).unwrap())
        };
        let text = ScenarioText::new("hidden.toml", text);
        self.lab.claim(&run, [&run], true).unwrap();
        let mut experiments = vec![Experiment::new(text, settings, run.clone()).unwrap()];
        self.lab.carry_out(&mut experiments).unwrap();
        run
    }

    fn fit(&self, files: &[PathBuf]) -> MeasuredFit {
        self.lab.fit_files(files, &FitSettings { simulations: 150, seed: 7 }).unwrap().unwrap()
    }
}

/// A transfer that fills the queue, and a ping before it: everything is known.
#[test]
fn a_transfer_and_a_ping_before_it_tell_the_path() {
    let site = Site::new();
    let tcp = site.file("tcp.json", &iperf3(&site.run(PATH)));
    let idle = site.file("ping.txt", &ping(1_700_000_000, 100, 0));
    let found = site.fit(&[idle, tcp]);
    let near = |best: f64, truth: f64, within: f64| (best / truth).ln().abs() < within;
    let MeasuredFit { rate, rtt, buffer, compared, .. } = &found;
    assert!(compared.as_ref().unwrap().misfit < 1.5, "{compared:?}");
    assert!(near(rate.figure.best, 20e6, 0.05), "{rate:?}");
    assert!(near(rtt.figure.best, 0.04, 0.03), "{rtt:?}");
    assert!(near(buffer.figure.best, 150e3, 0.3), "{buffer:?}");
    for estimate in [rate, rtt, buffer] {
        assert_eq!(estimate.figure.known, Known::Closely, "{estimate:?}");
    }
    assert_eq!(found.loss.figure.known, Known::AtMost, "{:?}", found.loss);
    let out = site.folder.path().join("out");
    site.lab.claim(&out, [&out], false).unwrap();
    let written = site.lab.keep_measured_fit(&found, &out).unwrap();
    assert!(fs::read_to_string(written).unwrap().contains("cc = \"cubic\""));
}

/// A ping alone knows nothing of rate and buffer, and an upper bound of a loss that it did not see.
#[test]
fn what_a_ping_cannot_tell_is_unknown() {
    let site = Site::new();
    let found = site.fit(&[site.file("ping.txt", &ping(1_700_000_000, 100, 0))]);
    let known = |estimate: &knee_lab::Estimate| estimate.figure.known;
    assert_eq!((known(&found.rate), known(&found.buffer)), (Known::Unknown, Known::Unknown));
    assert_eq!((known(&found.rtt), known(&found.loss)), (Known::Closely, Known::AtMost));
    assert_eq!(found.rtt.figure.best, 0.04);
    // 95 % of RTTs that are spread evenly over 50 us.
    assert_eq!((found.jitter.figure.best * 1e6).round(), 50.0);
    let unknown = ["rate: unknown", "random loss: unknown", "buffer: unknown"];
    assert_eq!(found.assumed.len(), 3, "{:?}", found.assumed);
    assert!(found.assumed.iter().zip(unknown).all(|(line, start)| line.starts_with(start)));

    let found = site.fit(&[site.file("lossy.txt", &ping(1_700_000_000, 5000, 100))]);
    assert_eq!((known(&found.loss), found.loss.figure.best), (Known::Closely, 0.02));
    let found = site.fit(&[site.file("short.txt", &ping(1_700_000_000, 2, 0))]);
    assert_eq!((known(&found.rtt), known(&found.jitter)), (Known::AtMost, Known::Unknown));
}

/// Packets that were under way with a transfer say nothing of an idle path; nor do they where it is
/// not known when they were.
#[test]
fn packets_beside_a_transfer_are_not_those_of_an_idle_path() {
    let site = Site::new();
    let limited = "{\"start\":{\"timestamp\":{\"timesecs\":1700000100},\"test_start\":{\"protocol\":\
        \"TCP\",\"num_streams\":1,\"target_bitrate\":5000000}},\"intervals\":[{\"streams\":[{}],\"sum\":\
        {\"seconds\":10,\"bytes\":5000000}}],\"end\":{}}";
    let tcp = site.file("tcp.json", limited);
    let beside = site.file("beside.txt", &ping(1_700_000_101, 50, 10));
    let found = site.fit(&[tcp.clone(), beside]);
    assert_eq!(found.rtt.figure.known, Known::AtMost);
    assert_eq!(found.loss.figure.known, Known::Unknown, "{:?}", found.loss);
    // 5 MB in 10 s, in packets of 1500 B with 1448 B of payload each; 5 % may have come later.
    assert_eq!(found.rate.figure.known, Known::AtLeast);
    assert_eq!(
        (found.rate.figure.low / 1e4).round(),
        (0.95 * 4e6_f64 * 1500.0 / 1448.0 / 1e4).round()
    );
    let undated = ping(1, 50, 0).replace("[1.", "").replace("[2.", "").replace("[3.", "");
    let undated: String = undated
        .lines()
        .map(|line| line.split_once("] ").map_or(line, |(_, rest)| rest).to_string() + "\n")
        .collect();
    let found = site.fit(&[tcp, site.file("undated.txt", &undated)]);
    assert_eq!(found.rtt.figure.known, Known::AtMost);
}

/// A queue that is never empty costs CUBIC nothing but time, and BBR keeps it short. Loss that no
/// queue makes costs CUBIC most of the rate: the transfer alone cannot tell a slow link from it, and
/// datagrams can. Of a path whose rate nobody knows nothing is said.
#[test]
fn advice_follows_from_the_path_behind_the_files() {
    let site = Site::new();
    let settings = FitSettings { simulations: 150, seed: 7 };
    let bbr = |_: &str| Candidates(vec!["bbr".to_owned()]);
    let advise =
        |files: &[PathBuf]| site.lab.advise_files(files, &settings, &bbr).unwrap().unwrap();
    let idle = site.file("ping.txt", &ping(1_700_000_000, 100, 0));
    let of = |text: &str| advise(&[idle.clone(), site.file("tcp.json", &iperf3(&site.run(text)))]);

    let clean = of(PATH);
    let found = &clean.candidates[0];
    assert_eq!((clean.in_use.as_str(), &clean.obstacle), ("cubic", &None));
    assert_eq!(found.advice(), TransferAdvice::Alike, "{found:?}");
    assert!(found.rtt_s[1] < 0.8 * found.rtt_s[0] && found.rtt_s[1] > 0.04, "{found:?}");

    let lossy = PATH.replace("buffer =", "loss = \"1 %\"\nbuffer =");
    let transfer = site.file("tcp.json", &iperf3(&site.run(&lossy)));
    let found = advise(&[idle.clone(), transfer.clone()]);
    assert_eq!(found.candidates[0].advice(), TransferAdvice::Open, "{found:?}");
    // 18 Mbit/s of datagrams, of which 1 % is lost.
    let datagrams = "{\"start\":{\"test_start\":{\"protocol\":\"UDP\",\"num_streams\":1,\"blksize\":1400,\
        \"target_bitrate\":18000000}},\"intervals\":[],\"end\":{\"sum\":{\"seconds\":10,\
        \"bytes\":22500000,\"jitter_ms\":0.1,\"lost_packets\":160,\"packets\":16071}}}";
    let found = advise(&[idle.clone(), transfer, site.file("udp.json", datagrams)]);
    let bbr = &found.candidates[0];
    assert_eq!(bbr.advice(), TransferAdvice::Try, "{found:?}");
    assert!(bbr.speed[1] > 1.5, "{bbr:?}");

    let unknown = advise(&[idle]);
    assert!(
        unknown.obstacle.is_some_and(|why| why.contains("rate")) && unknown.candidates.is_empty()
    );
}

#[test]
fn files_of_another_kind_are_named() {
    let site = Site::new();
    let settings = FitSettings { simulations: 50, seed: 7 };
    let file = site.file("x.csv", "a,b\n1,2\n");
    let error = site.lab.fit_files(&[file], &settings).unwrap_err().to_string();
    assert!(error.contains("x.csv: line 1: it is in no format that is known here"), "{error}");
    let none = site.folder.path().join("none.txt");
    let error = site.lab.fit_files(&[none], &settings).unwrap_err().to_string();
    assert!(error.contains("none.txt: cannot be read: "), "{error}");
}
