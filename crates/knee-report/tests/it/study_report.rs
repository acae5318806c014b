//! The report of studies.

use crate::common::dom::{Element, parse};
use crate::common::{Dumbbell, claim, dumbbell, opened, summary};
use knee_record::{ClaimOutcome, Outcome, Records, Summary};
use knee_report::{RunPage, StudyPage, study_report};
use knee_scenario::{Measure, Statistic};

/// Returns a study's claims, as the study's command evaluates them.
fn outcomes(records: &Records) -> Vec<ClaimOutcome> {
    let claims = vec![
        claim("A3", "two flows share fairly", Measure::Jain, 1.0),
        claim("A3", "their RTT stays between 70 and 90 ms", Measure::Rtt(Statistic::P50), 0.09),
        claim("A6", "throughput collapses after PROBE_RTT", Measure::Goodput, 1e6),
    ];
    let mut outcomes = summary("", records, claims).claims;
    for outcome in &mut outcomes {
        outcome.of = format!("plain/{}", outcome.of);
    }
    outcomes[2].recorded = outcomes[2].outcome;
    outcomes[2].agrees = true;
    outcomes[2].finding =
        Some("The collapse comes from the rate sampler of ns-3.35, not from BBR.".to_string());
    outcomes
}

fn run<'a>(name: &'a str, summary: &'a Summary, records: &'a Records) -> RunPage<'a> {
    let command = "knee run studies/improved-bbr/plain.toml --seed 1";
    RunPage { name, summary, records, lead: None, logs: &[], scenario: "name = \"x\"\n", command }
}

fn report() -> (String, Vec<ClaimOutcome>) {
    let two = dumbbell(Dumbbell { seconds: 30, ..Dumbbell::default() });
    let five = dumbbell(Dumbbell { seconds: 30, flows: 5, ..Dumbbell::default() });
    let two_summary = summary("Two plain BBR flows", &two, Vec::new());
    let five_summary = summary("Five plain BBR flows", &five, Vec::new());
    let claims = outcomes(&two);
    let studies = [
        StudyPage {
            name: "improved-bbr",
            title: "Improved BBR",
            source: "A study of 2022 with ns-3.35",
            about: "Five changes to BBR, tried on a dumbbell of 10 Mbit/s and 60 ms.",
            conclusion: "",
            lead: None,
            claims: &claims,
            on_kernel: vec![Some(&claims[0])],
            runs: vec![run("plain", &two_summary, &two), run("five", &five_summary, &five)],
            command: "knee reproduce improved-bbr",
        },
        StudyPage {
            name: "model <only>",
            title: "",
            source: "",
            about: "",
            conclusion: "",
            lead: None,
            claims: &claims[..1],
            on_kernel: Vec::new(),
            runs: Vec::new(),
            command: "",
        },
    ];
    (study_report(&studies, "knee reproduce").unwrap(), claims)
}

/// When the report is opened, only the overview becomes elements.
#[test]
fn pages_wait_until_they_are_opened() {
    let (html, claims) = report();
    let elements = parse(&html);
    let pages: Vec<&str> = elements
        .iter()
        .filter(|e| e.name == "section" && e.attribute("class") == "page")
        .map(|e| e.attribute("id"))
        .collect();
    assert_eq!(pages, ["overview"]);
    assert!(elements.iter().all(|e| e.name != "svg"), "charts come with their pages");
    // The finding is shown beside the claim that fails.
    let failed = claims.iter().find(|claim| claim.finding.is_some()).unwrap();
    let row = elements.iter().find(|e| e.name == "li" && e.text.contains(&failed.says)).unwrap();
    assert!(row.text.contains("not from BBR"), "{}", row.text);
    let held = elements.iter().filter(|e| e.attribute("class") == "held").count();
    assert_eq!(held, 2 + 2, "two studies, two runs");
    assert!(parse(&opened(&html)).len() > 4 * elements.len());
}

#[test]
fn the_overview_has_every_claim_and_each_study_a_page() {
    let (html, claims) = report();
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("studies.html");
    std::fs::write(path, &html).unwrap();
    let elements = parse(&opened(&html));
    let overview = elements.iter().find(|e| e.attribute("id") == "overview").unwrap();
    for claim in &claims {
        assert!(overview.text.contains(&claim.says), "{}", claim.says);
        assert!(overview.text.contains(&claim.measured_text));
        assert!(overview.text.contains(&claim.outcome.to_string()));
    }
    // The only claim that was also tested on the kernel.
    let there = format!("kernel: {}", claims[0].outcome);
    assert_eq!(overview.text.matches("kernel:").count(), 1);
    assert!(overview.text.contains(&there), "{there}");
    let pages = elements.iter().filter(|e| e.attribute("class") == "page").count();
    assert_eq!(pages, 1 + 2 + 2, "overview, two studies, two runs");
    let held = claims.iter().filter(|claim| claim.outcome == Outcome::Holds).count();
    let tally = elements.iter().find(|e| e.attribute("class") == "tally").unwrap();
    assert!(tally.text.contains(&format!("{} hold", held + 1)), "{}", tally.text);
}

/// Every link within the report has a target, and no address occurs twice.
#[test]
fn links_lead_somewhere() {
    let elements = parse(&opened(&report().0));
    let ids: Vec<&str> =
        elements.iter().map(|e| e.attribute("id")).filter(|id| !id.is_empty()).collect();
    let mut distinct = ids.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len());
    let links: Vec<&Element> = elements.iter().filter(|e| e.name == "a").collect();
    assert!(links.len() > 10);
    for link in links {
        let target = link.attribute("href").strip_prefix('#').expect("a link within the page");
        assert!(ids.contains(&target), "{target}");
    }
}

#[test]
fn a_claim_leads_to_the_run_it_speaks_of() {
    let elements = parse(&opened(&report().0));
    let link = elements.iter().find(|e| e.name == "a" && e.text == "plain/bbr").unwrap();
    let target = &link.attribute("href")[1..];
    let page = elements.iter().find(|e| e.attribute("id") == target).unwrap();
    assert!(page.text.contains("Two plain BBR flows"));
    assert!(page.text.contains("two flows share fairly"), "the claim stands there, too");
    assert!(
        elements
            .iter()
            .any(|e| e.attribute("class") == "finding" && e.text.contains("not from BBR"))
    );
}

#[test]
fn no_studies_say_so() {
    let html = study_report(&[], "knee reproduce").unwrap();
    assert!(html.contains("This report has no studies."));
    parse(&html);
}
