//! Links of a run, and the route of each packet through them.

use knee_emulator::Routes;
use knee_link::Config;
use knee_scenario::{Link, Reverse, Scenario, link_stream};
use rand_chacha::ChaCha8Rng;

/// Links with their random streams, and a route for each device: for path p the sender's is 2p, the
/// receiver's 2p + 1. The scenario's links come first, followed by a pure delay for each path that
/// has one as its reverse path.
pub fn links_and_routes(scenario: &Scenario) -> (Vec<(Config, ChaCha8Rng)>, Routes) {
    let (mut links, mut routes) = (scenario.links.clone(), Routes::default());
    for (index, path) in scenario.paths.iter().enumerate() {
        routes.add(&path.forward, 2 * index + 1);
        match &path.reverse {
            Reverse::Links(back) => routes.add(back, 2 * index),
            Reverse::Delay(delay) => {
                links.push(Link::reverse_delay(&path.name, *delay));
                routes.add(&[links.len() - 1], 2 * index);
            }
        }
    }
    let streamed = |link: Link| {
        let stream = link_stream(scenario.seed, &link.name);
        (link.config, stream)
    };
    (links.into_iter().map(streamed).collect(), routes)
}

/// Names of the links of [`links_and_routes`], in their order.
pub fn link_names(scenario: &Scenario) -> Vec<String> {
    let back = scenario.paths.iter().filter_map(|path| match &path.reverse {
        Reverse::Links(_) => None,
        Reverse::Delay(delay) => Some(Link::reverse_delay(&path.name, *delay).name),
    });
    scenario.links.iter().map(|link| link.name.clone()).chain(back).collect()
}
