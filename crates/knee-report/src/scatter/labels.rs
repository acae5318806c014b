//! Places names beside dots without overlaps.

/// Height of a line of text, and approximate width of a letter, in the drawing's units.
const LINE: f64 = 12.0;
const LETTER: f64 = 6.9;
/// Distance of a name from its dot.
const APART: f64 = 8.0;
/// Space that a dot takes on each side.
const DOT: f64 = 4.5;

/// Place of a name: the start of its baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Label {
    pub x: f64,
    pub y: f64,
    /// Whether it is so far from its dot that a line must connect them.
    pub leads: bool,
}

type Box = [f64; 4];

/// Places names within `frame` (left, top, right, bottom), in order of importance; `None` if there
/// is no room.
pub(super) fn place(dots: &[(f64, f64)], names: &[&str], frame: Box) -> Vec<Option<Label>> {
    let mut taken: Vec<Box> =
        dots.iter().map(|(x, y)| [x - DOT, y - DOT, x + DOT, y + DOT]).collect();
    let one = |((x, y), name): (&(f64, f64), &&str)| {
        let width = LETTER * name.chars().count() as f64;
        let free = tries(*x, *y, width).find_map(|label| {
            let spot = [label.x, label.y - LINE + 2.0, label.x + width, label.y + 2.0];
            let inside = spot[0] >= frame[0]
                && spot[1] >= frame[1]
                && spot[2] <= frame[2]
                && spot[3] <= frame[3];
            (inside && !taken.iter().any(|other| overlap(*other, spot))).then_some((label, spot))
        });
        let (label, spot) = free?;
        taken.push(spot);
        Some(label)
    };
    dots.iter().zip(names).map(one).collect()
}

/// Tries right, left, above, below, then in wider rings.
fn tries(x: f64, y: f64, width: f64) -> impl Iterator<Item = Label> {
    (0..6).flat_map(move |ring| {
        let far = f64::from(ring) * 14.0;
        let leads = ring > 0;
        let (right, left) = (x + APART + 0.7 * far, x - APART - 0.7 * far - width);
        let (middle, base) = (x - width / 2.0, y + 4.0);
        let (up, down) = (y - APART - far, y + APART + 8.0 + far);
        [(right, base), (left, base), (right, up), (right, down), (left, up), (left, down)]
            .into_iter()
            .chain([(middle, up), (middle, down)])
            .map(move |(x, y)| Label { x, y, leads })
    })
}

fn overlap(a: Box, b: Box) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten dots at one place: no two names overlap, and each is inside.
    #[test]
    fn names_never_cover_each_other() {
        let names = ["bbr"; 10];
        let dots = [(300.0, 200.0); 10];
        let frame = [50.0, 20.0, 700.0, 400.0];
        let placed: Vec<Label> = place(&dots, &names, frame).into_iter().flatten().collect();
        assert!(placed.len() >= 8, "{placed:?}");
        for (at, a) in placed.iter().enumerate() {
            for b in &placed[..at] {
                let apart = (a.x - b.x).abs() >= 3.0 * LETTER || (a.y - b.y).abs() >= LINE;
                assert!(apart, "{a:?} {b:?}");
            }
        }
        assert_eq!(place(&[(5.0, 5.0)], &["too long for it"], [0.0, 0.0, 20.0, 20.0]), [None]);
    }
}
