//! Shocks: what happens for a few seconds to a path of 20 Mbit/s that one flow has used for ten
//! seconds. Afterwards the path is as good as before, and half of it must be in use soon.

use std::iter;

/// Round-trip times, ms: from a building to a country.
pub const RTTS_MS: [u32; 6] = [1, 2, 5, 10, 20, 40];

/// Begin of each shock, seconds.
const BEGINS_S: u32 = 10;

/// A shock.
#[derive(Clone, Debug)]
pub struct Shock {
    /// Its name.
    pub name: &'static str,
    /// When it is over, seconds.
    pub ends_s: u32,
    /// Whether the path stays as it is and the application pauses; it goes on when the second
    /// object is requested.
    pub pauses: bool,
    /// Lines of the link that carries the data, `{delay}` stands for its delay.
    forward: String,
    /// Additional lines of the link that carries the ACKs.
    back: String,
    /// Further link of the path, with its table.
    further: String,
    /// Additional line of the flow.
    flow: &'static str,
}

impl Shock {
    /// One that changes lines of the link that carries the data.
    fn of(name: &'static str, ends_s: u32, lines: &str) -> Shock {
        let rate = if lines.contains("rate = ") { "" } else { "rate = \"20 Mbit/s\"\n" };
        let delay = if lines.contains("delay = ") { "" } else { "delay = \"{delay} us\"\n" };
        Shock {
            name,
            ends_s,
            pauses: false,
            forward: format!("{rate}{delay}{lines}"),
            back: String::new(),
            further: String::new(),
            flow: "",
        }
    }

    /// Text of the scenario, which ends `after_s` seconds after the shock.
    #[must_use]
    pub fn text(&self, cc: &str, rtt_ms: u32, after_s: u32, seed: u64) -> String {
        let delay_us = rtt_ms * 500;
        let further = if self.further.is_empty() { "" } else { ", \"further\"" };
        format!(
            "name = \"{} with {cc} at {rtt_ms} ms\"\nduration = \"{} s\"\nseed = {seed}\n\
             [link.wire]\n{}\n{}[link.back]\ndelay = \"{delay_us} us\"\n{}\n\
             [path.main]\nforward = [\"wire\"{further}]\nreverse = [\"back\"]\n\
             [[flow]]\nname = \"f\"\ncc = \"{cc}\"\n{}\n",
            self.name,
            self.ends_s + after_s,
            self.forward.replace("{delay}", &delay_us.to_string()),
            self.further,
            self.back,
            self.flow,
        )
    }
}

/// All shocks.
#[must_use]
pub fn shocks() -> Vec<Shock> {
    let steps = |key: &str, before: &str, meanwhile: &str, ends_s: u32| {
        format!(
            "{key} = [{{ at = \"0 s\", {key} = \"{before}\" }}, \
             {{ at = \"{BEGINS_S} s\", {key} = \"{meanwhile}\" }}, \
             {{ at = \"{ends_s} s\", {key} = \"{before}\" }}]\n"
        )
    };
    let span =
        |from: u32, until: u32| format!("{{ from = \"{from} ms\", until = \"{until} ms\" }}");
    let loss = |percent: u32, ends_s: u32| steps("loss", "0 %", &format!("{percent} %"), ends_s);
    let late =
        format!("[link.wire.jitter]\nreorder = true\n{}", steps("amount", "0 ms", "100 ms", 15));
    // ACKs arrive together every 100 ms.
    let batches = iter::successors(Some(10_000), |from| Some(from + 100));
    let batches = batches.take_while(|from| *from < 15_000).map(|from| span(from, from + 99));
    let batches = batches.collect::<Vec<_>>().join(", ");
    vec![
        Shock::of("outage", 15, &format!("down = [{}]\n", span(10_000, 15_000))),
        Shock::of("loss of 30 %", 13, &loss(30, 13)),
        Shock::of("loss of 90 %", 15, &loss(90, 15)),
        Shock::of("hold", 12, &format!("hold = [{}]\n", span(10_000, 12_000))),
        Shock::of("slow link", 15, &steps("rate", "20 Mbit/s", "200 kbit/s", 15)),
        Shock::of("long route", 15, &steps("delay", "{delay} us", "100 ms", 15)),
        // In a queue of ten segments.
        Shock::of(
            "reordering",
            15,
            &format!("buffer = \"10 packets\"\n{}{late}", steps("loss", "0 %", "1 %", 15)),
        ),
        Shock {
            back: format!("{}hold = [{batches}]\n", loss(80, 15)),
            ..Shock::of("lost and batched ACKs", 15, "")
        },
        // The link becomes faster, and a policer limits it to the rate that it had.
        Shock {
            further: "[link.further]\npolicer = { rate = \"20 Mbit/s\", burst = \"30 kB\" }\n"
                .into(),
            ..Shock::of(
                "policer",
                15,
                "rate = [{ at = \"0 s\", rate = \"20 Mbit/s\" }, \
                 { at = \"15 s\", rate = \"100 Mbit/s\" }]\n",
            )
        },
        // The link carries the first 25 MB in ten seconds; then the application pauses for five.
        Shock {
            pauses: true,
            flow: "workload = { bursts = { size = \"25 MB\", pause = \"5 s\", count = 2 } }",
            ..Shock::of("idle application", 15, "")
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ten_shocks_at_six_round_trip_times() {
        let texts = shocks()
            .into_iter()
            .flat_map(|shock| RTTS_MS.map(|rtt_ms| shock.text("reno", rtt_ms, 40, 1)));
        let texts: BTreeSet<String> = texts.collect();
        assert_eq!(texts.len(), 60);
        assert!(texts.iter().all(|text| !text.contains("{delay}")));
    }
}
