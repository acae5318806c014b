//! What a file is for: whoever gives it to the wrong command learns which one takes it.

use crate::json;
use crate::{ping, ss, unpack};

/// What a file is, and what takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// What it is, with an article.
    pub what: &'static str,
    /// What to do with it; `FILE` stands for its name.
    pub advice: &'static str,
}

impl Purpose {
    /// Returns whether it is what a tool measured.
    pub fn is_measured(&self) -> bool {
        self.advice == FIT
    }
}

/// Returns what a file is, if it is one that Knee reads for something else than a table or an access
/// log: what a tool measured, a page that a browser loaded, the manifest of a video, a recorded path.
pub fn purpose(bytes: &[u8]) -> Option<Purpose> {
    let start = unpack::text_start(bytes).ok()?;
    let (what, advice) = match start.first()? {
        b'{' => of_keys(&json::keys(bytes).ok()?.0)?,
        b'<' => ("XML, such as the manifest of a video", VIDEO),
        b'#' if start.starts_with(b"#EXTM3U") => ("a playlist of HLS", VIDEO),
        _ if ping::is_ping(&start) => ("what ping printed", FIT),
        _ if ss::is_ss(&start) => ("what ss printed", FIT),
        _ => return None,
    };
    Some(Purpose { what, advice })
}

const FIT: &str = "find the path behind it with knee fit FILE";
const PAGE: &str = "load the page over other paths with workload = { page = { objects = \"FILE\" } } in a \
                    scenario";
const VIDEO: &str =
    "play the video with workload = { dash = { manifest = \"FILE\" } } in a scenario";
const RATE: &str = "take it as a link with rate = { table = \"FILE\" } in a scenario";

fn of_keys(keys: &[String]) -> Option<(&'static str, &'static str)> {
    let has = |name: &str| keys.iter().any(|key| key == name);
    Some(match () {
        () if has("intervals") && has("start") => ("a result of iperf3", FIT),
        () if has("round_trips") => ("a result of irtt", FIT),
        () if has("x_values") && has("results") => ("a result of flent", FIT),
        () if has("Download") || has("Upload") || has("UUID") => ("a result of NDT7", FIT),
        () if has("log") => ("a HAR", PAGE),
        () if has("traceEvents") => ("a trace of a browser", PAGE),
        () if matches!(keys, [key] if key.ends_with("Config")) => ("a trace of netem-trace", RATE),
        () => return None,
    })
}
