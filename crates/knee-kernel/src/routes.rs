//! The links that a run needs and the way of each packet through them.

use knee_scenario::{Link, Reverse, Scenario};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a link, by its index.
    Link(usize),
    /// Out of a device, by its index.
    Device(usize),
}

/// Links and routes. The scenario's links come first; behind them stands a
/// pure delay for each path whose way back is one.
#[derive(Debug, Default)]
pub struct Routes {
    pub links: Vec<Link>,
    pub steps: Vec<Step>,
    /// Where the packets that a device sends begin: path p has the devices
    /// 2p at the sender and 2p + 1 at the receiver.
    pub entries: Vec<u32>,
}

impl Routes {
    pub fn new(scenario: &Scenario) -> Routes {
        let mut routes = Routes { links: scenario.links.clone(), ..Routes::default() };
        for (index, path) in scenario.paths.iter().enumerate() {
            routes.add(&path.forward, 2 * index + 1);
            match &path.reverse {
                Reverse::Links(links) => routes.add(links, 2 * index),
                Reverse::Delay(delay) => {
                    routes.links.push(Link::reverse_delay(&path.name, *delay));
                    routes.add(&[routes.links.len() - 1], 2 * index);
                }
            }
        }
        routes
    }

    fn add(&mut self, links: &[usize], device: usize) {
        self.entries.push(self.steps.len() as u32);
        self.steps.extend(links.iter().map(|link| Step::Link(*link)));
        self.steps.push(Step::Device(device));
    }
}
