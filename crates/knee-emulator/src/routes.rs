//! Routes of packets from device to device.

/// Next step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into a link, by its index.
    Link(usize),
    /// Out of a device, by its index.
    Device(usize),
}

/// Routes of the packets from each device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    pub(crate) steps: Vec<Step>,
    /// First step of the packets from each device.
    pub(crate) entries: Vec<u32>,
}

impl Routes {
    /// Adds the route for the next device, starting with the first: its packets pass through these
    /// links, by index, to the device with that index.
    pub fn add(&mut self, links: &[usize], device: usize) {
        self.entries.push(self.steps.len() as u32);
        self.steps.extend(links.iter().map(|link| Step::Link(*link)));
        self.steps.push(Step::Device(device));
    }

    /// Returns the links just before each of so many links on some route.
    pub(crate) fn before(&self, links: usize) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); links];
        for pair in self.steps.windows(2) {
            if let [Step::Link(first), Step::Link(link)] = *pair
                && !before[link].contains(&first)
            {
                before[link].push(first);
            }
        }
        before
    }
}
