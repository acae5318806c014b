//! Dependencies between the objects of a page.

use crate::PageObject;
use std::fmt;

/// A cycle of objects, each of which waits for the next and the last for the first, so that none of
/// them would ever be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Their indexes in the page.
    pub objects: Vec<usize>,
    /// Their names.
    pub names: Vec<String>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, others @ ..] = &self.names[..] else { return Ok(()) };
        write!(f, "\"{first}\" waits for ")?;
        for name in others {
            write!(f, "\"{name}\", which waits for ")?;
        }
        let itself = if others.is_empty() { "itself" } else { "the first" };
        write!(f, "{itself}; take one name out of what one of them comes after")
    }
}

impl std::error::Error for Cycle {}

/// Checks that every object is eventually requested.
///
/// # Errors
///
/// A cycle of objects that wait for each other.
///
/// # Panics
///
/// If an object waits for one that the page does not have.
pub fn check_dependencies(objects: &[PageObject]) -> Result<(), Cycle> {
    let stuck = never_known(objects);
    let Some(start) = stuck.iter().position(|stuck| *stuck) else { return Ok(()) };
    // Each stuck object waits for a stuck one, so a walk along them must return to an object that
    // it has visited.
    let mut walk = Vec::new();
    let mut place = start;
    while !walk.contains(&place) {
        walk.push(place);
        let next = objects[place].after.iter().copied().find(|&needed| stuck[needed]);
        place = next.expect("a stuck object waits for a stuck one");
    }
    let objects_of_cycle = walk.split_off(walk.iter().position(|&seen| seen == place).unwrap_or(0));
    let names = objects_of_cycle.iter().map(|&place| objects[place].name.clone()).collect();
    Err(Cycle { objects: objects_of_cycle, names })
}

/// Kahn's algorithm: returns what is left when everything that can arrive has arrived.
fn never_known(objects: &[PageObject]) -> Vec<bool> {
    let mut dependants = vec![Vec::new(); objects.len()];
    for (place, object) in objects.iter().enumerate() {
        for &needed in &object.after {
            dependants[needed].push(place);
        }
    }
    let mut missing: Vec<usize> = objects.iter().map(|object| object.after.len()).collect();
    let mut known: Vec<usize> = (0..objects.len()).filter(|&place| missing[place] == 0).collect();
    while let Some(place) = known.pop() {
        for &dependant in &dependants[place] {
            missing[dependant] -= 1;
            if missing[dependant] == 0 {
                known.push(dependant);
            }
        }
    }
    missing.into_iter().map(|missing| missing > 0).collect()
}
