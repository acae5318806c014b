//! `knee advise` as a process, and its policy as `knee steer` reads it.

use crate::common::{complaint, expect};
use knee_advise::{Class, Gain, Prediction, RuleOfThumb, Verdict};
use knee_lab::{Advised, AdvisedClass, Seen, advised_policy};
use knee_policy::{Policy, Stage};
use std::fs;

fn class(candidate: &str, verdict: Verdict, low: f64) -> AdvisedClass {
    let gain = Gain { mean: low + 0.1, low, high: low + 0.2 };
    AdvisedClass {
        candidate: candidate.to_string(),
        class: Class::Large,
        connections: 500,
        bytes_share: 0.5,
        rule: Some(RuleOfThumb::Try),
        operators: Some(RuleOfThumb::Keep),
        retransmitted_now: Some(0.012),
        spread: None,
        prediction: Some(Prediction { gain, retransmitted: [0.01, 0.02], unfinished: [0.0; 2] }),
        verdict,
    }
}

fn group(name: &str, prefixes: &[&str], port: Option<u16>, classes: Vec<AdvisedClass>) -> Advised {
    Advised {
        name: name.to_string(),
        in_use: "bbr3".to_string(),
        in_kernel: "bbr3".to_string(),
        prefixes: prefixes.iter().map(|net| net.parse().unwrap()).collect(),
        port,
        connections: 1000,
        seen: Seen::default(),
        misfitting: Vec::new(),
        fits: Vec::new(),
        classes,
    }
}

/// The best experiment of each group comes first and is the group's only one; names are the
/// kernel's, and nothing that a group is called escapes its place.
#[test]
fn the_policy_is_one_that_steer_reads() {
    let strange = "far\"\n[[group]]\nname = \"x";
    let advised = [
        group("a run's", &[], None, vec![class("cubic", Verdict::Try, 0.9)]),
        group(
            strange,
            &["198.51.100.0/24", "2001:db8:5::/48"],
            None,
            vec![class("cubic", Verdict::Try, 0.1), class("bbr3", Verdict::Try, 0.2)],
        ),
        // Within another group, on all ports.
        group("in it", &["198.51.100.64/26"], None, vec![class("cubic", Verdict::Try, 0.05)]),
        group("kept", &["192.0.2.0/24"], Some(443), vec![class("cubic", Verdict::Keep, -0.5)]),
        group("near", &["203.0.113.0/24"], Some(443), vec![class("copa", Verdict::Try, 0.3)]),
    ];
    let policy = Policy::parse(&advised_policy(&advised).unwrap()).unwrap();
    assert_eq!(policy.stage, Stage::Observe);
    let told: Vec<_> = policy
        .groups
        .iter()
        .map(|group| {
            let prefixes: Vec<String> = group.prefixes.iter().map(ToString::to_string).collect();
            let control = group.control.clone().unwrap();
            (&*group.name, prefixes.join(" "), &*group.ports, &*group.controller, control)
        })
        .collect();
    let control = || "bbr3".to_string();
    assert_eq!(
        told,
        [
            ("near", "203.0.113.0/24".to_string(), &[443][..], "knee_copa", control()),
            (strange, "198.51.100.0/24 2001:db8:5::/48".to_string(), &[], "knee_bbr3", control()),
        ]
    );
    assert_eq!(advised_policy(&advised[..1]), None);
    assert_eq!(advised_policy(&advised[3..4]), None);
}

/// A page comes with `--out`, which replaces nothing unless it is told to; connections of a run make
/// no policy.
#[test]
fn a_page_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = crate::common::SMALL.replacen(
        "cc = \"bbr\"\n",
        "cc = \"bbr\"\nworkload = { mix = { arrival_interval = \"50 ms\", sizes = { median = \
         \"20 kB\", sigma = 1.0, max = \"100 kB\" } } }\n",
        1,
    );
    fs::write(folder.join("few.toml"), text).unwrap();
    expect(folder, "run few.toml --out few", 0);
    let said = expect(folder, "advise few --out advice", 0);
    assert!(said.contains("report   advice/report.html") && !said.contains("policy  "), "{said}");
    let page = fs::read_to_string(folder.join("advice/report.html")).unwrap();
    assert!(!page.contains("half and half"));
    for part in
        ["No experiment promises a gain.", "fewer than 200 connections", "There is no policy"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!folder.join("advice/advised.toml").exists());
    assert!(complaint(folder, "advise few --out advice", 2).contains("--force"));
    let none = expect(folder, "advise few --candidates bbr", 0);
    assert!(none.contains("bbr: bbr is in use, and no other candidate was named"), "{none}");
    // Where two controllers share a path, page and terminal say what that shows.
    let both = fs::read_to_string(folder.join("few.toml")).unwrap();
    let (before, flow) = both.split_once("[[flow]]").unwrap();
    let flow = flow.split_once("[[flow]]").unwrap().0;
    let other = flow.replace("\"bbr\"", "\"cubic\"");
    fs::write(folder.join("both.toml"), format!("{before}[[flow]]{flow}[[flow]]{other}")).unwrap();
    expect(folder, "run both.toml --out both --no-alternatives", 0);
    let said = expect(folder, "advise both --out both-advice", 0);
    let page = fs::read_to_string(folder.join("both-advice/report.html")).unwrap();
    for told in [said, page] {
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("In both two controllers share a path, half and half: "), "{told}");
    }
    // A policy of earlier advice does not outlive it.
    fs::write(folder.join("advice/advised.toml"), "name = \"earlier\"").unwrap();
    expect(folder, "advise few --out advice --force", 0);
    assert!(!folder.join("advice/advised.toml").exists());
}
