//! Links whose rate, delay and loss come from a table over time.

use crate::random::read;
use knee_sim::Control;
use knee_verify::Rule;

const DRIVE: &str = "t,rate,rtt,loss\n0,40,60,0\n0.5,12,20,1\n1,0,200,0\n1.5,30,80,0\n2,5,45,2\n";

/// The packet log of a drive obeys the rules that hold in any network; packets overtake each other
/// when the delay falls only where they may. No more is delivered than the table allows: the mean of
/// its five rows.
#[test]
fn a_drive_obeys_the_rules_of_any_network() {
    for reorder in [false, true] {
        let of =
            |value: &str| format!("{{ table = \"drive.csv\", time = \"t s\", value = \"{value}\"");
        let text = format!(
            "duration = \"10 s\"\n[link.cell]\nrate = {} }}\nloss = {} }}\n\
             delay = {}, scale = 0.5, reorder = {reorder} }}\nbuffer = \"300 packets\"\n\
             [path.main]\nforward = [\"cell\"]\nreverse_delay = \"10 ms\"\n\
             [[flow]]\ncc = \"bbr\"\n[[flow]]\nname = \"other\"\ncc = \"cubic\"\n",
            of("rate Mbit/s"),
            of("loss %"),
            of("rtt ms"),
        );
        let scenario = read(&text, &[("drive.csv", DRIVE.as_bytes())]);
        let mut log = Vec::new();
        let records = knee_sim::run_logged(&scenario, &Control::default(), &mut log).unwrap();
        let report = knee_verify::check(log.as_slice()).unwrap();
        assert!(report.violations.is_empty(), "{:#?}", &report.violations[..1]);
        let delivered: u64 = records.flows.iter().map(|flow| flow.delivered_bytes).sum();
        let allowed = (40.0 + 12.0 + 0.0 + 30.0 + 5.0) / 5.0 * 1e6 * 10.0 / 8.0;
        assert!((delivered as f64) < allowed && delivered as f64 > 0.3 * allowed, "{delivered}");
        // By the rules of a link that keeps order, only the other one is at fault.
        let strict = String::from_utf8(log).unwrap().replacen(",reorder=1,delay_reorder=1", "", 1);
        let report = knee_verify::check(strict.as_bytes()).unwrap();
        let overtaken = report.violations.iter().any(|found| found.rule == Rule::Fifo);
        assert_eq!(overtaken, reorder);
    }
}
