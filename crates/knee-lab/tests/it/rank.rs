//! Rankings with a known answer.

use knee_lab::record::{Judgement, RankEntry, RankSummary};
use knee_lab::{Candidates, Lab, Rank, RankSettings, Ranked, ScenarioText};
use std::fs;

/// A path with a BDP of 50 full packets (1500 B): 10 Mbit/s and 60 ms; `more` sets the buffer.
fn path(more: &str) -> String {
    format!(
        "name = \"Known\"\nduration = \"20 s\"\nwarmup = \"4 s\"\n\
         [link.a]\nrate = \"10 Mbit/s\"\ndelay = \"30 ms\"\n{more}\n\
         [path.a]\nforward = [\"a\"]\nreverse_delay = \"30 ms\"\n\
         [[flow]]\nname = \"main\"\ncc = \"cubic\"\npath = \"a\"\n"
    )
}

fn ranked(text: &str, cc: &str, against: &str, repeat: u64) -> Ranked {
    let lab = Lab::default();
    let settings = RankSettings {
        candidates: cc.parse::<Candidates>().unwrap(),
        rivals: against.parse::<Candidates>().unwrap(),
        repeat,
        ..RankSettings::on(lab.grounds.get("sim").unwrap())
    };
    let rank = Rank::new(&[ScenarioText::new("known.toml", text)], &settings).unwrap();
    let out = tempfile::tempdir().unwrap();
    let ranked = lab.rank(&rank, out.path()).unwrap();
    for file in ["rank.json", "rank.parquet", "report.html"] {
        assert!(fs::metadata(out.path().join(file)).unwrap().len() > 1000, "{file}");
    }
    ranked
}

fn entry<'s>(summary: &'s RankSummary, name: &str) -> &'s RankEntry {
    summary.entries.iter().find(|entry| entry.candidate == name).unwrap()
}

const HALF: &str = "{ name = \"fixed\", window = \"0.5 BDP\" }";
const ONE: &str = "{ name = \"fixed\", window = \"1 BDP\" }";
const THREE: &str = "{ name = \"fixed\", window = \"3 BDP\" }";
const TWO: &str = "{ name = \"fixed\", window = \"2 BDP\" }";

/// Kleinrock: below the knee power grows with the window, above it falls with the delay. Half a BDP
/// uses half the path at its base RTT; two BDP use all of it at twice the RTT: power 1/2 each, and
/// 1 at one BDP.
#[test]
fn a_window_of_one_bdp_is_best() {
    let text = path("buffer = \"4 BDP\"");
    let Ranked { summary, .. } = ranked(&text, &format!("{HALF},{THREE},{TWO},{ONE}"), "cubic", 2);
    let power = |name: &str| entry(&summary, name).power.unwrap().mean;
    assert_eq!(summary.entries[0].candidate, ONE, "{}", summary.says);
    // Windows and queues consist of whole packets, of which a BDP has 50.
    assert!((power(ONE) - 1.0).abs() < 0.06, "{}", power(ONE));
    assert!(!summary.seeds_matter, "nothing is random: two runs are certain");
    assert!((power(HALF) - 0.5).abs() < 0.03, "{}", power(HALF));
    assert!((power(TWO) - 0.5).abs() < 0.03, "{}", power(TWO));
    assert_eq!(summary.entries[0].word, Judgement::Better);
    assert_eq!(entry(&summary, TWO).word, Judgement::Worse);
    let stretch = |name: &str| entry(&summary, name).stretch.unwrap().mean;
    assert!((stretch(HALF) - 1.0).abs() < 0.03 && (stretch(TWO) - 2.0).abs() < 0.05);
    assert!((power(THREE) - 1.0 / 3.0).abs() < 0.03, "{}", power(THREE));
    assert!(!entry(&summary, THREE).on_front, "as much as with two at more delay");
    assert!(!entry(&summary, HALF).on_front, "half as much as with one at the same delay");
    assert!(entry(&summary, ONE).on_front);
    assert!(summary.says.contains("is best"), "{}", summary.says);
}

/// Windows that no seed changes differ with certainty, even if a third controller is random: equal
/// differences over the seeds are then no coincidence.
#[test]
fn what_no_seed_changes_differs_whatever_others_do() {
    let text = path("buffer = \"4 BDP\"");
    let candidates = format!("{ONE},{TWO},{THREE},{HALF},bbr");
    let Ranked { summary, .. } = ranked(&text, &candidates, "cubic", 3);
    assert!(summary.seeds_matter, "BBR draws the phase in which it begins");
    assert_eq!(summary.entries[0].candidate, ONE, "{}", summary.says);
    for name in [TWO, THREE, HALF] {
        assert_eq!(entry(&summary, name).word, Judgement::Worse, "{name}: {}", summary.says);
    }
}

/// Two fixed windows share a full queue in proportion to their size.
#[test]
fn fixed_windows_share_by_their_size() {
    let text = path("buffer = \"16 BDP\"");
    let Ranked { summary, .. } = ranked(&text, &format!("{ONE},{TWO}"), TWO, 1);
    let takes = |name: &str| entry(&summary, name).takes[0].unwrap().mean;
    assert!((takes(ONE) - 1.0 / 3.0).abs() < 0.02, "{}", takes(ONE));
    assert!((takes(TWO) - 0.5).abs() < 0.02, "{}", takes(TWO));
}

/// A controller with an explicit default is the same controller.
#[test]
fn one_controller_under_two_names_is_no_difference() {
    let twin = "{ name = \"cubic\", beta = 0.7 }";
    let text = path("buffer = \"1 BDP\"\nloss = \"0.05 %\"");
    let Ranked { summary, .. } = ranked(&text, &format!("cubic,{twin}"), "bbr", 6);
    assert!(summary.seeds_matter);
    assert!(summary.entries.iter().all(|entry| entry.word == Judgement::Alike));
    let fronts: Vec<bool> = summary.entries.iter().map(|entry| entry.on_front).collect();
    assert_eq!(fronts, [true, true]);
    assert!(summary.says.contains("Alike within 1 %: "), "{}", summary.says);
}

/// A window of three BDP leaves next to nothing to Reno, which is its worst figure; the file of that
/// case runs, and gives the same share.
#[test]
fn the_users_own_candidate_gets_the_first_sentence() {
    let lab = Lab::default();
    let text = path("buffer = \"4 BDP\"\nloss = \"0.01 %\"");
    let settings = RankSettings {
        candidates: format!("reno,{THREE},cubic,vegas").parse::<Candidates>().unwrap(),
        rivals: "reno".parse::<Candidates>().unwrap(),
        repeat: 2,
        ..RankSettings::on(lab.grounds.get("sim").unwrap())
    };
    let rank = Rank::new(&[ScenarioText::new("known.toml", &text)], &settings).unwrap();
    let out = tempfile::tempdir().unwrap();
    let Ranked { summary, .. } = lab.rank(&rank, out.path()).unwrap();
    assert!(summary.says.starts_with(&format!("{THREE} is number ")), "{}", summary.says);
    let worst = &summary.worst[0];
    assert!(summary.says.contains(&worst.words(&summary.ranking)), "{}", summary.says);
    assert_eq!((worst.candidate.as_str(), worst.factor > 1.1), (THREE, true), "{worst:?}");
    let file = out.path().join(worst.file.as_ref().unwrap());
    let scenario = ScenarioText::read(&file).unwrap().scenario(&[]).unwrap();
    let first = rank.runs.iter().find(|run| {
        let flows = rank.scenario(run).flows.len();
        run.candidate == 1 && flows == scenario.flows.len()
    });
    assert_eq!(scenario.seed, first.unwrap().seed);
    assert_eq!(scenario.flows[0], rank.scenario(first.unwrap()).flows[0]);
}

/// At 1 % random loss a loss-based controller is limited to MSS / RTT · 1.22 / sqrt(p), 2.4 Mbit/s
/// of 10 (Mathis et al. 1997); one that does not treat loss as congestion is not.
#[test]
fn bbr_wins_where_loss_is_random_and_reno_is_behind() {
    let text = path("buffer = \"4 BDP\"\nloss = \"1 %\"");
    let Ranked { summary, .. } = ranked(&text, "reno,bbr", "cubic", 5);
    assert_eq!(
        (&*summary.entries[0].candidate, summary.entries[0].word),
        ("bbr", Judgement::Better)
    );
    assert_eq!(entry(&summary, "reno").word, Judgement::Worse);
    let used = entry(&summary, "reno").used.unwrap().mean;
    assert!((0.12..0.36).contains(&used), "{used}");
}

/// One seed cannot identify a best controller.
#[test]
fn one_run_cannot_tell() {
    let Ranked { summary, .. } = ranked(&path("loss = \"0.1 %\""), "cubic,reno,bbr", "cubic", 1);
    assert!(summary.entries.iter().all(|entry| entry.word == Judgement::Undecided));
    assert!(summary.says.contains("--repeat"), "{}", summary.says);
}

#[test]
fn what_cannot_be_ranked_is_told() {
    let refused = |text: &str, cc: &str, flow: Option<&str>| {
        let lab = Lab::default();
        let settings = RankSettings {
            candidates: cc.parse::<Candidates>().unwrap(),
            flow: flow.map(str::to_string),
            ..RankSettings::on(lab.grounds.get("sim").unwrap())
        };
        Rank::new(&[ScenarioText::new("known.toml", text)], &settings).unwrap_err().to_string()
    };
    let text = path("");
    assert!(refused(&text, "cubci", None).contains("cubci"));
    assert!(refused(&text, "cubic", Some("other")).contains("no flow other"));
    let unlimited = text.replace("rate = \"10 Mbit/s\"\n", "");
    assert!(refused(&unlimited, "cubic", None).contains("rate"));
    let several = text.replace("path = \"a\"", "paths = [\"a\", \"a\"]");
    assert!(!refused(&several, "cubic", None).is_empty());
    assert!("cubic,cubic".parse::<Candidates>().is_err());
}
