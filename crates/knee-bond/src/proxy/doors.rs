//! How many connections applications may have: as many as there are file descriptors for them, of
//! which few may be without a request. Whoever connects and says nothing makes room for others.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::Instant;

/// Maximum number of connections that have not sent a request, with its password.
const WAITING_MAX: usize = 128;
/// File descriptors that are left to links, page, status and names.
const RESERVED: u64 = 112;
/// Wrong passwords from an address that are checked at once, and the time after which one more is.
const TRIES: f64 = 10.0;
const TRY: Duration = Duration::from_secs(1);
/// Maximum number of addresses that are remembered for their wrong passwords.
const ADDRESSES_MAX: usize = 1024;

/// Connections of applications.
#[derive(Debug)]
pub struct Doors {
    /// Maximum number of connections.
    most: usize,
    open: Cell<usize>,
    next: Cell<u64>,
    /// Those without a request, oldest first.
    waiting: RefCell<BTreeMap<u64, AbortHandle>>,
    brake: RefCell<Brake>,
}

impl Doors {
    /// Makes doors for a process that may have so many file descriptors.
    pub fn new(descriptors: u64) -> Doors {
        let most = descriptors.saturating_sub(RESERVED).max(1) as usize;
        let (open, next) = (Cell::new(0), Cell::new(0));
        Doors { most, open, next, waiting: RefCell::default(), brake: RefCell::default() }
    }

    /// Runs `work` for a new connection. If there are too many, the oldest one without a request
    /// ends; if all have one, the new one does.
    pub fn enter<F: Future<Output = ()> + 'static>(
        self: &Rc<Doors>,
        work: impl FnOnce(Place) -> F,
    ) {
        let is_full = self.open.get() >= self.most;
        let oldest = match is_full || self.waiting.borrow().len() >= WAITING_MAX {
            true => self.waiting.borrow_mut().pop_first(),
            false => None,
        };
        match oldest {
            Some((_, task)) => task.abort(),
            None if is_full => return,
            None => {}
        }
        let number = self.next.replace(self.next.get() + 1);
        self.open.set(self.open.get() + 1);
        let place = Place { doors: self.clone(), number };
        let task = spawn_local(work(place)).abort_handle();
        self.waiting.borrow_mut().insert(number, task);
    }

    /// Returns whether a password from this address may be checked now.
    pub fn may_check(&self, from: IpAddr) -> bool {
        self.brake.borrow_mut().may_check(from, Instant::now())
    }

    /// Notes a wrong password.
    pub fn note_wrong(&self, from: IpAddr) {
        self.brake.borrow_mut().note_wrong(from, Instant::now());
    }
}

/// Place of a connection, until it is dropped.
#[derive(Debug)]
pub struct Place {
    doors: Rc<Doors>,
    number: u64,
}

impl Place {
    /// Returns the doors.
    pub fn doors(&self) -> &Doors {
        &self.doors
    }

    /// Notes that the connection has sent a request that is served.
    pub fn has_asked(&self) {
        self.doors.waiting.borrow_mut().remove(&self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.has_asked();
        self.doors.open.set(self.doors.open.get() - 1);
    }
}

/// Checks that each address may still ask for: a bucket of tokens for each that was wrong.
#[derive(Debug, Default)]
struct Brake(BTreeMap<IpAddr, (f64, Instant)>);

impl Brake {
    fn may_check(&mut self, from: IpAddr, now: Instant) -> bool {
        let Some((tries, at)) = self.0.get_mut(&from) else { return true };
        let earned = now.duration_since(*at).as_secs_f64() / TRY.as_secs_f64();
        (*tries, *at) = ((*tries + earned).min(TRIES), now);
        *tries >= 1.0
    }

    fn note_wrong(&mut self, from: IpAddr, now: Instant) {
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&from) {
            let full = TRY.mul_f64(TRIES);
            self.0.retain(|_, (_, at)| now.duration_since(*at) < full);
            if self.0.len() >= ADDRESSES_MAX {
                self.0.pop_first();
            }
        }
        self.0.entry(from).or_insert((TRIES, now)).0 -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::task::{LocalSet, yield_now};

    /// Connections that say nothing take no place from those that ask, whether descriptors or
    /// connections without a request are few.
    #[tokio::test]
    async fn who_says_nothing_makes_room() {
        for descriptors in [256, 1 << 20] {
            let doors = Rc::new(Doors::new(descriptors));
            let served = Rc::new(Cell::new(0));
            let work = async {
                for _ in 0..1000 {
                    doors.enter(async |_place| std::future::pending().await);
                    yield_now().await;
                    assert!(doors.open.get() <= doors.most && doors.waiting.borrow().len() <= 128);
                }
                for _ in 0..100 {
                    let served = served.clone();
                    doors.enter(async move |place| {
                        place.has_asked();
                        served.set(served.get() + 1);
                        std::future::pending().await
                    });
                    yield_now().await;
                }
            };
            LocalSet::new().run_until(work).await;
            assert_eq!(served.get(), 100);
        }
    }

    /// A stranger has one try in a second after the first ten; others are not slowed down.
    #[test]
    fn wrong_passwords_are_slowed_down() {
        let (mut brake, began) = (Brake::default(), Instant::now());
        let [stranger, other] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(192, 0, 2, last)));
        let mut checked = 0;
        for millisecond in 0..60_000 {
            let now = began + Duration::from_millis(millisecond);
            if brake.may_check(stranger, now) {
                brake.note_wrong(stranger, now);
                checked += 1;
            }
            assert!(brake.may_check(other, now));
        }
        assert!((69..=70).contains(&checked), "{checked}");
    }

    /// Wrong passwords from however many addresses are remembered in bounded memory.
    #[test]
    fn the_brake_remembers_few_addresses() {
        let (mut brake, now) = (Brake::default(), Instant::now());
        for number in 0..10_000_u32 {
            brake.note_wrong(Ipv4Addr::from(number).into(), now);
        }
        assert_eq!(brake.0.len(), ADDRESSES_MAX);
    }
}
