//! The axis of ratios, which extends as far below one as above it.

/// Ends of the axis, each with its marks above one.
const SCALES: [(f64, &[f64]); 6] = [
    (1.06, &[1.02, 1.05]),
    (1.25, &[1.1, 1.2]),
    (2.2, &[1.25, 1.5, 2.0]),
    (5.5, &[1.5, 2.0, 3.0, 5.0]),
    (12.0, &[2.0, 5.0, 10.0]),
    (50.0, &[3.0, 10.0, 30.0]),
];

/// Returns the smallest end of at least `least` that includes the ratio `farthest` (at least one),
/// with its marks; beyond the largest end in the list, powers of ten.
pub(crate) fn ratio_scale(farthest: f64, least: f64) -> (f64, Vec<f64>) {
    let holds = |(end, _): &&(f64, &[f64])| *end >= least && farthest <= *end;
    if let Some((end, marks)) = SCALES.iter().find(holds) {
        return (*end, marks.to_vec());
    }
    let decades = farthest.log10().ceil().clamp(2.0, 9.0) as i32;
    // Keep labels apart.
    let step = if decades > 4 { 2 } else { 1 };
    let marks = (1..=decades).filter(|power| power % step == 0).map(|power| 10f64.powi(power));
    (10f64.powi(decades) * 1.2, marks.collect())
}
