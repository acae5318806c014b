//! Random scenarios as text, for tests of general properties.
//!
//! A scenario consists of islands that share nothing: each has its own links, paths and flows, with
//! names that begin with its prefix. A test can combine islands, omit one or reorder all tables.

mod draw;
mod flows;
mod links;
mod storm;

use draw::Draw;

/// A link and a path over it with the same name, the same delay in both directions, and additional
/// lines for the link.
pub fn link_and_path(name: &str, rate: &str, delay: &str, more: &str) -> String {
    format!(
        "[link.{name}]\nrate = \"{rate}\"\ndelay = \"{delay}\"\n{more}\n\
         [path.{name}]\nforward = [\"{name}\"]\nreverse_delay = \"{delay}\"\n"
    )
}

/// A scenario, in parts of its text.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name, duration, seed and other lines before the tables.
    pub head: String,
    /// Independent islands.
    pub islands: Vec<Island>,
}

/// Links, paths and flows, independent of other islands.
#[derive(Clone, Debug, Default)]
pub struct Island {
    /// Tables, each with its header: a link, a path or a group of flows.
    pub tables: Vec<String>,
    /// Files named in the tables: name and contents.
    pub files: Vec<(String, String)>,
}

/// A scenario of one to three islands, determined by the seed; in every third scenario a further
/// one has a short path to which much happens at once.
#[must_use]
pub fn random(seed: u64) -> Scenario {
    let mut draw = Draw::new(seed);
    let duration_ms = draw.between(1000, 4000);
    let islands = draw.weighted(&[(5, 1), (2, 2), (1, 3)]);
    let names = ["a", "b", "c"].iter().take(islands);
    let head = head(seed, duration_ms, &mut draw);
    let calm = names.map(|name| Island::draw(name, duration_ms, &mut draw));
    let mut islands: Vec<Island> = calm.collect();
    if draw.one_in(3) {
        islands.push(storm::island("s", duration_ms, &mut draw));
    }
    Scenario { head, islands }
}

fn head(seed: u64, duration_ms: u32, draw: &mut Draw) -> String {
    let interval_ms = draw.of(&[10, 50, 100, 333]);
    let mut head = format!(
        "name = \"random {seed}\"\nduration = \"{duration_ms} ms\"\nseed = {seed}\n\
         sample_interval = \"{interval_ms} ms\"\n"
    );
    if draw.one_in(4) {
        head += &format!("start_jitter = \"{} ms\"\n", draw.between(1, 60));
    }
    head
}

impl Scenario {
    /// The text of the scenario.
    #[must_use]
    pub fn text(&self) -> String {
        let tables = self.islands.iter().flat_map(|island| &island.tables);
        tables.fold(self.head.clone(), |text, table| text + "\n" + table)
    }

    /// The text with its tables in random order.
    #[must_use]
    pub fn shuffled(&self, seed: u64) -> String {
        let mut draw = Draw::new(seed);
        let mut tables: Vec<&String> =
            self.islands.iter().flat_map(|island| &island.tables).collect();
        for end in (1..tables.len()).rev() {
            let other = draw.between(0, end as u32);
            tables.swap(end, other as usize);
        }
        tables.into_iter().fold(self.head.clone(), |text, table| text + "\n" + table)
    }

    /// The files that the text names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self.islands.iter().flat_map(|island| &island.files);
        files.map(|(name, text)| (name.as_str(), text.as_bytes()))
    }

    /// Duration, milliseconds of simulated time.
    ///
    /// # Panics
    ///
    /// If the head was not written by [`random`].
    #[must_use]
    pub fn duration_ms(&self) -> u32 {
        let (_, rest) = self.head.split_once("duration = \"").expect("the head has a duration");
        let (number, _) = rest.split_once(" ms").expect("it is in milliseconds");
        number.parse().expect("it is a number")
    }
}

impl Island {
    /// An island whose names begin with `prefix`, for a run of `duration_ms` of simulated time,
    /// determined by the seed.
    #[must_use]
    pub fn random(prefix: &str, duration_ms: u32, seed: u64) -> Island {
        Island::draw(prefix, duration_ms, &mut Draw::new(seed))
    }

    fn draw(prefix: &str, duration_ms: u32, draw: &mut Draw) -> Island {
        let mut island = Island::default();
        let links = draw.weighted(&[(2, 1), (4, 2), (3, 3), (1, 5)]) as u32;
        let paths = draw.weighted(&[(3, 1), (5, 2), (3, 3), (1, 5), (1, 8)]) as u32;
        // Each path has a link with a rate, since nothing else limits a sender.
        let limited: Vec<bool> = (0..links).map(|link| link == 0 || !draw.one_in(6)).collect();
        let ways: Vec<links::RandomPath> =
            (0..paths).map(|_| links::RandomPath::draw(&limited, draw)).collect();
        for link in 0..links {
            let used = ways.iter().any(|way| way.leads_over(link));
            let kind = links::Kind { limited: limited[link as usize], used };
            links::link(&mut island, &format!("{prefix}-l{link}"), &kind, duration_ms, draw);
        }
        for (path, way) in ways.iter().enumerate() {
            island.tables.push(links::path(prefix, path, way, duration_ms, draw));
        }
        for flow in 0..draw.between(1, 4) {
            flows::flow(&mut island, prefix, flow, paths, duration_ms, draw);
        }
        island
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_scenario() {
        assert_eq!(random(7).text(), random(7).text());
        assert_ne!(random(7).text(), random(8).text());
    }

    /// Every feature of a scenario occurs.
    #[test]
    fn nothing_is_left_out() {
        let texts: Vec<String> = (0..400).map(|seed| random(seed).text()).collect();
        let words = [
            "mix = {",
            "page = {",
            "dash = {",
            "bursts = {",
            "file = \"",
            "paths = [",
            "absent = [",
            "down = [",
            "codel",
            "fq-codel",
            "pie",
            "dualpi2",
            "red",
            "threshold",
            "ecn = true",
            "trace = ",
            "policer",
            "jitter = {",
            "amount = [",
            "hold = [",
            "acks = ",
            "ack_bytes",
            "ack_frequency",
            "device = ",
            "loss = [",
            "reorder = true",
            "every = ",
            "good_to_bad",
            "super_packets",
            "loss = { file",
            "BDP",
            "packets\"",
            "rate = [",
            "delay = [",
            "receive_window",
            "backup",
            "reverse = [",
            "multiplexed",
            "count = ",
            "log = ",
            "shape = ",
            "stop = ",
            "-p7\"",
            "amount = \"400 ms\"",
            "loss = \"90 %\"",
            "loss = \"95 %\"",
        ];
        for word in words {
            let with = texts.iter().filter(|text| text.contains(word)).count();
            assert!(with >= 4, "{word} in {with} of 400 scenarios");
        }
    }

    #[test]
    fn another_order_has_the_same_tables() {
        let scenario = random(3);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        let shuffled = scenario.shuffled(1);
        assert_ne!(shuffled, scenario.text());
        assert_eq!(sorted(&shuffled), sorted(&scenario.text()));
    }
}
