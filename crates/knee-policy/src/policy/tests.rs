//! Policies as text, right and wrong.

use super::*;

const GOOD: &str = r#"
name = "edge"
[[group]]
name = "eyeballs"
prefixes = ["203.0.113.0/24", "2001:db8::/32", "192.0.2.7"]
ports = [443]
controller = "bbr"
[[group]]
name = "sites"
prefixes = ["203.0.113.0/25"]
ports = [80]
controller = "cubic"
hold_out = "0%"
"#;

#[test]
fn a_policy_is_read() {
    let policy = Policy::parse(GOOD).unwrap();
    assert_eq!((policy.name.as_str(), policy.seed, policy.table), ("edge", 1, TABLE));
    assert_eq!(policy.stage, Stage::Host);
    let [eyeballs, sites] = policy.groups.as_slice() else { panic!("{policy:?}") };
    assert_eq!(eyeballs.prefixes[2].to_string(), "192.0.2.7/32");
    assert_eq!((eyeballs.hold_out, sites.hold_out), (0.05, 0.0));
    assert_eq!(&GOOD[sites.controller_span.clone()], "\"cubic\"");
}

/// Values of `date -u -d 2024-02-29T12:34:56Z +%s`.
#[test]
fn times_as_another_program_counts_them() {
    for (text, unix) in [
        ("2024-02-29T12:34:56Z", Some(1_709_210_096)),
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2000-03-01T00:00:00Z", Some(951_868_800)),
        ("2100-12-31T23:59:59Z", Some(4_133_980_799)),
        ("1969-12-31T23:59:59Z", None),
        ("2024-02-29T12:34:56+01:00", None),
        ("2024-02-29", None),
    ] {
        assert_eq!(unix_time(&text.parse().unwrap()), unix, "{text}");
    }
}

/// Each error is reported with its position and the correction.
#[test]
fn mistakes_are_named() {
    for (right, wrong, place, part, help) in [
        ("ports = [443]", "port = [443]", "port", "no key port", "did you mean ports?"),
        ("hold_out", "holdout", "holdout", "no key holdout", "did you mean hold_out?"),
        ("hold_out", "reserve", "reserve", "no key reserve", "one of name, prefixes"),
        ("ports = [443]", "ports = 443", "443", "ports is a list", "ports = [443]"),
        ("ports = [443]", "ports = [70000]", "70000", "65535", "ports = [443]"),
        ("ports = [443]", "ports = [\"a\"]", "\"a\"", "65535", "ports = [443]"),
        ("\"bbr\"", "true", "true", "controller cannot be true", "controller = \"bbr\""),
        (
            "name = \"edge\"",
            "name = \"edge\"\nstage = \"fleet\"",
            "\"fleet\"",
            "no word fleet",
            "one of observe, canary, host, site",
        ),
        ("ports = [443]", "ports = [443, 0]", "0", "0 is not a whole number", "[80, 443]"),
        ("ports = [443]", "ports = [443, 443]", "443", "443 is named twice", "[80, 443]"),
        ("ports = [443]", "ports = [-1]", "-1", "from 1 to 65535", "ports = [443]"),
        ("\n[[", "\nversion = -2\n[[", "-2", "from 0 to 9223372036854775807", "version = 2"),
        ("\n[[", "\nseed = 1.5\n[[", "1.5", "from 0 to 9223372036854775807", "seed = 1"),
        ("\n[[", "\ntable = -1\n[[", "-1", "from 256 to ", "table = 7222"),
        ("\n[[", "\ntable = 4294967296\n[[", "4294967296", "from 256 to ", "table = 7222"),
        ("ports = [80]", "ports = []", "\"203.0.113.0/25\"", "of eyeballs", "different ports"),
        ("203.0.113.0/24", "203.0.113.9/24", "\"203.0.113.9/24\"", "beyond", "203.0.113.0/24"),
        ("203.0.113.0/24", "there", "\"there\"", "not a valid prefix", "an address"),
        ("\"sites\"", "\"eyeballs\"", "\"eyeballs\"", "two groups", "its own name"),
        ("\"sites\"", "\"others\"", "\"others\"", "needs a name", "in no group"),
        ("\"0%\"", "\"60%\"", "\"60%\"", "not a valid share", "0% to 50%"),
        ("\"0%\"", "\"0.05\"", "\"0.05\"", "not a valid share", "\"5%\""),
        ("\"bbr\"", "\"b b\"", "\"b b\"", "not a valid name of a controller", "sysctl"),
        ("\"edge\"", "\"\"", "\"\"", "no name", "edge"),
        ("\"bbr\"", "\"bbr\"\ncontrol = \"bbr\"", "\"bbr\"", "with itself", "in use"),
        ("name = \"edge\"", "name = \"edge\"\ntable = 254", "254", "below 256", "7222"),
        (
            "name = \"edge\"",
            "name = \"edge\"\ntable = 4294967290",
            "4294967290",
            "none for",
            "7222",
        ),
        ("\n[[", "\nexpires = 2027-01-31\n[[", "2027-01-31", "not a time in UTC", "00:00Z"),
        ("\n[[", "\nopen_connections = true\n[[", "true", "cannot change", "\"bpf\""),
        ("\n[[", "\nstage = \"site\"\n[[", "\"site\"", "same first block", "begins = "),
        (
            "\n[[",
            "\nbegins = 2027-01-31T18:00:00Z\n[[",
            "2027-01-31T18:00:00Z",
            "stage site",
            "remove",
        ),
    ] {
        let text = GOOD.replacen(right, wrong, 1);
        assert_ne!(text, GOOD);
        let problems = Policy::parse(&text).unwrap_err();
        let [problem] = problems.as_slice() else { panic!("{wrong}: {problems:?}") };
        assert!(problem.message.contains(part), "{wrong}: {}", problem.message);
        assert!(problem.help.contains(help), "{wrong}: {}", problem.help);
        assert_eq!(&text[problem.span.clone()], place, "{wrong}");
    }
    let none = Policy::parse("name = \"a\"").unwrap_err();
    assert!(none[0].message.contains("no group"), "{none:?}");
    assert!(Policy::parse("name = ").unwrap_err()[0].span.start > 0);
}

/// The same controller may be tried with another start, which only BPF programs set.
#[test]
fn an_arm_may_have_another_start_alone() {
    let parse = |head: &str, keys: &str| {
        Policy::parse(&format!(
            "name = \"a\"\n{head}[[group]]\nname = \"b\"\nprefixes = [\"192.0.2.0/24\"]\n\
             controller = \"cubic\"\ncontrol = \"cubic\"\n{keys}"
        ))
    };
    let arm = |keys: &str| parse("", keys).unwrap().groups[0].arm().to_string();
    assert_eq!(arm("initial_window = 32"), "cubic, initial window 32");
    assert_eq!(arm("pacing = true\ninitial_window = 1"), "cubic, initial window 1, paced");
    assert_eq!(arm("ecn = true"), "cubic, with ECN");
    let routes = "actuator = \"route\"\n";
    for (head, keys, message, help) in [
        ("", "", "with itself", "initial_window = 32"),
        ("", "pacing = false", "with itself", "the controller in use"),
        ("", "initial_window = 0", "an initial window of 0", "1 to 1000"),
        ("", "initial_window = 1001", "an initial window of 1001", "1 to 1000"),
        ("", "initial_window = -1", "from 1 to 65535", "initial_window = 32"),
        (routes, "initial_window = 32", "routes set neither", "remove actuator"),
        (routes, "pacing = true", "routes set neither", "remove actuator"),
        (routes, "ecn = true", "routes set neither", "remove actuator"),
        ("", "mark = 7\necn = true", "before a connection has", "remove ecn"),
    ] {
        let problems = parse(head, keys).unwrap_err();
        let [problem] = problems.as_slice() else { panic!("{keys}: {problems:?}") };
        assert!(problem.message.contains(message), "{keys}: {}", problem.message);
        assert!(problem.help.contains(help), "{keys}: {}", problem.help);
    }
}

/// A group may have the connections of a mark or of a control group; those without belong to the
/// others, so the same clients may be in both.
#[test]
fn a_hint_tells_groups_of_the_same_clients_apart() {
    let parse = |head: &str, keys: &str| {
        Policy::parse(&format!(
            "name = \"a\"\n{head}[[group]]\nname = \"b\"\nprefixes = [\"192.0.2.0/24\"]\n\
             controller = \"bbr\"\n[[group]]\nname = \"c\"\ncontroller = \"bbr\"\n{keys}"
        ))
    };
    let group = |keys: &str| parse("", keys).unwrap().groups.remove(1);
    let all = |group: &PolicyGroup| group.prefixes.iter().map(IpNet::to_string).collect::<Vec<_>>();
    let marked = group("mark = 0x7fff");
    assert_eq!(
        (&marked.hint, all(&marked)),
        (&Some(Hint::Mark(32767)), vec!["0.0.0.0/0".into(), "::/0".into()])
    );
    let own = group("cgroup = \"/a.slice/b.service\"\nprefixes = [\"192.0.2.0/25\"]");
    assert_eq!(own.hint, Some(Hint::Cgroup("/a.slice/b.service".into())));
    assert_eq!(all(&own), ["192.0.2.0/25"]);
    let again = "mark = 7\n[[group]]\nname = \"d\"\nmark = 7\nports = [443]\ncontroller = \"bbr\"";
    let routes = "actuator = \"route\"\n";
    for (head, keys, message, help) in [
        ("", "", "c has no prefix", "prefixes = "),
        ("", "mark = 0", "without a mark", "1 to 4294967295"),
        ("", "mark = -1", "from 1 to 4294967295", "mark = 7"),
        ("", "mark = 4294967296", "from 1 to 4294967295", "mark = 7"),
        ("", "mark = \"7\"", "from 1 to 4294967295", "mark = 7"),
        ("", "mark = 7\ncgroup = \"/a\"", "not both", "two groups"),
        ("", "cgroup = \"a\"", "not the path of a control group", "/proc/PID/cgroup"),
        ("", "cgroup = \"/\"", "not the path of a control group", "/proc/PID/cgroup"),
        ("", "cgroup = \"/a/../b\"", "not the path of a control group", "/proc/PID/cgroup"),
        ("", "cgroup = 7", "cgroup cannot be 7", "cgroup = \"/system.slice"),
        (routes, "mark = 7", "routes see neither", "remove actuator"),
        (routes, "cgroup = \"/a\"", "routes see neither", "remove actuator"),
    ] {
        let problems = parse(head, keys).unwrap_err();
        let [problem] = problems.as_slice() else { panic!("{keys}: {problems:?}") };
        assert!(problem.message.contains(message), "{keys}: {}", problem.message);
        assert!(problem.help.contains(help), "{keys}: {}", problem.help);
    }
    let problems = parse("", again).unwrap_err();
    assert!(problems.iter().all(|problem| problem.message.contains("overlaps")), "{problems:?}");
}
