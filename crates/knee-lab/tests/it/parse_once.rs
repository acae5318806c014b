//! A scenario and the files that it names are read once, however many seeds it runs with. The kernel
//! counts what this thread reads.

use knee_lab::{
    Experiment, ExperimentSettings, Lab, Rank, RankSettings, RehearseSettings, ScenarioText, Sweep,
    SweepSettings, Train, TrainSettings,
};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that this thread has read from files so far.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// A folder with a scenario, an access log of 20,000 sizes and a trace of 20 s.
struct Files {
    folder: tempfile::TempDir,
    bytes: u64,
}

impl Files {
    /// `flows` is the rest of the scenario, which has the path "a".
    fn new(flows: &str) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let log = (0..20_000).fold(String::new(), |mut log, line| {
            writeln!(log, "{}", 1000 + line % 977).unwrap();
            log
        });
        let trace: String = (1..=20_000).map(|ms| format!("{ms}\n")).collect();
        let text = format!(
            "duration = \"5 s\"\n\
             [link.a]\nrate = {{ trace = \"a.trace\", offset = \"random\" }}\ndelay = \"5 ms\"\n\
             buffer = \"50 kB\"\n\
             [path.a]\nforward = [\"a\"]\nreverse_delay = \"5 ms\"\n{flows}"
        );
        let all = [("a.toml", text), ("a.log", log), ("a.trace", trace)];
        let bytes = all.iter().map(|(_, text)| text.len() as u64).sum();
        all.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        Files { folder, bytes }
    }

    fn mixes() -> Files {
        let mix = |cc: &str| {
            format!(
                "[[flow]]\nname = \"{cc}\"\npath = \"a\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
                 process = \"p\", arrival_interval = \"100 ms\", sizes = {{ log = \"a.log\" }} }} }}\n"
            )
        };
        Files::new(&(mix("cubic") + &mix("reno")))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.toml")
    }

    /// What `work` makes of the scenario; it reads less than the files have twice.
    fn read_once<T>(&self, work: impl FnOnce(ScenarioText, &Path) -> T) -> T {
        let before = bytes_read();
        let made = work(ScenarioText::read(&self.path()).unwrap(), self.folder.path());
        let read = bytes_read() - before;
        assert!((self.bytes..2 * self.bytes).contains(&read), "{read} of {} B", self.bytes);
        made
    }
}

#[test]
fn repeats_of_a_run_are_parsed_once() {
    let lab = Lab::default();
    Files::mixes().read_once(|text, folder| {
        let on = lab.grounds.get("sim").unwrap();
        let settings = ExperimentSettings { repeat: Some(20), ..ExperimentSettings::on(on) };
        let experiment = Experiment::new(text, settings, folder.join("out")).unwrap();
        let seeds: Vec<u64> = experiment.jobs().map(|job| job.scenario.seed).collect();
        assert_eq!(seeds, (1..=20).collect::<Vec<u64>>());
        // The offset in the trace is drawn anew for each seed.
        let links: Vec<_> = experiment.jobs().map(|job| &job.scenario.links).collect();
        assert!(links.windows(2).all(|pair| pair[0] != pair[1]));
    });
}

#[test]
fn points_and_repeats_of_a_sweep_are_parsed_once() {
    let lab = Lab::default();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let files = Files::mixes();
    let runs = one.install(|| {
        files.read_once(|text, _| {
            let vary = vec!["link.a.delay=5 ms,10 ms,20 ms".parse().unwrap()];
            let on = lab.grounds.get("sim").unwrap();
            let settings = SweepSettings { repeat: Some(10), ..SweepSettings::on(on, vary) };
            Sweep::new(text, settings).unwrap().runs.len()
        })
    });
    assert_eq!(runs, 30);
}

#[test]
fn candidates_and_repeats_of_a_ranking_are_parsed_once() {
    let flow = "[[flow]]\nname = \"main\"\npath = \"a\"\ncc = \"cubic\"\nworkload = { mix = { \
                arrival_interval = \"100 ms\", sizes = { log = \"a.log\" } } }\n";
    let lab = Lab::default();
    Files::new(flow).read_once(|text, _| {
        let settings = RankSettings {
            candidates: "reno,bbr,vegas".parse().unwrap(),
            repeat: 10,
            ..RankSettings::on(lab.grounds.get("sim").unwrap())
        };
        let rank = Rank::new(&[text], &settings).unwrap();
        assert!(rank.runs.len() >= 60, "{}", rank.runs.len());
        rank.runs.iter().for_each(|run| assert_eq!(rank.scenario(run).seed, run.seed));
    });
}

#[test]
fn alternatives_and_seeds_of_an_answer_are_parsed_once() {
    let lab = Lab::default();
    let answers = Files::mixes().read_once(|text, _| lab.answer(&text, &[], 10).unwrap());
    assert_eq!(answers.unwrap().seeds.len(), 10);
}

#[test]
fn blocks_of_a_rehearsal_are_parsed_once() {
    let lab = Lab::default();
    let settings = RehearseSettings {
        on: "sim".to_string(),
        in_use: None,
        set: Vec::new(),
        seed: None,
        triples: 2,
        calibration: 2,
        truth: 2,
        accepts: Vec::new(),
    };
    Files::mixes().read_once(|text, _| lab.rehearse(&[text], &settings).unwrap().unwrap());
}

#[test]
fn seeds_of_a_training_are_parsed_once() {
    let flow = "[[flow]]\npath = \"a\"\ncc = \"remycc\"\nworkload = { mix = { \
                arrival_interval = \"100 ms\", sizes = { log = \"a.log\" } } }\n";
    Files::new(flow).read_once(|text, _| {
        Train::new(&[text], TrainSettings { seeds: 20, ..TrainSettings::default() }).unwrap()
    });
}

/// Every seed runs with the files as they were when the experiment began.
#[test]
fn a_file_that_changes_later_changes_no_seed() {
    let files = Files::mixes();
    let text = ScenarioText::read(&files.path()).unwrap();
    let seed = |seed: &str| text.scenario(&[format!("seed={seed}").parse().unwrap()]).unwrap();
    let first = seed("1");
    fs::write(files.folder.path().join("a.log"), "1000\n").unwrap();
    assert_eq!(seed("1"), first);
    assert_eq!(seed("2").files, first.files);
    let anew = ScenarioText::read(&files.path()).unwrap().scenario(&[]).unwrap();
    assert_ne!(anew.files, first.files);
}
