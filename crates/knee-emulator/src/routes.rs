//! The way of each packet from device to device.

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into a link, by its index.
    Link(usize),
    /// Out of a device, by its index.
    Device(usize),
}

/// A route for what each device sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    pub(crate) steps: Vec<Step>,
    /// Where the packets that a device sends begin.
    pub(crate) entries: Vec<u32>,
}

impl Routes {
    /// What the next device sends, the first at the first call, goes through
    /// these links, by their index, to the device of that index.
    pub fn add(&mut self, links: &[usize], device: usize) {
        self.entries.push(self.steps.len() as u32);
        self.steps.extend(links.iter().map(|link| Step::Link(*link)));
        self.steps.push(Step::Device(device));
    }
}
