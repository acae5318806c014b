//! The default page: 53 objects, 2.3 MB.
//!
//! Counts and weights are those of the median desktop home page in the HTTP Archive (Web Almanac
//! 2024, chapter "Page Weight"): 18 KB of HTML, 78 KB in 7 style sheets, 131 KB in 4 fonts, 613 KB
//! in 23 scripts, 1054 KB in 20 images. That page has 2 HTML documents and 56 objects; here one
//! document and two scripts are left out, and all weights are scaled to a total of 2.3 MB.
//!
//! Within a type the sizes are the quantiles (i - 1/2)/n of a log-normal distribution. Its shape
//! follows from the mean above and the median of one answer (Web Almanac 2022, same chapter: style
//! sheet 2 KB, script 4 KB, image 7 KB, font 20 KB): sigma² = 2 ln(mean / median), which gives
//! 1.85, 1.95, 2.01 and 0.99. The quantiles are interleaved, so that large objects come between
//! small ones; nothing is random.
//!
//! The Archive does not record dependencies; they follow the usual course: style sheets and most
//! scripts are in the HTML, fonts in the style sheets, the other scripts are loaded by scripts, and
//! images are requested when the page has a layout or a script adds them.

use crate::PageObject;

const HTML: u64 = 21_858;

const STYLE_SHEETS: [u64; 7] = [4_078, 61_639, 2_069, 17_687, 940, 8_037, 270];

const FONTS: [u64; 4] = [39_301, 20_871, 9_137, 89_772];

/// Scripts in the HTML.
const SCRIPTS: [u64; 14] = [
    7_368, 73_321, 2_129, 15_032, 156, 4_608, 34_431, 1_120, 9_302, 127_848, 2_798, 19_404, 425,
    5_836,
];

/// Scripts that the first script loads.
const LATE_SCRIPTS: [u64; 7] = [48_487, 1_577, 11_782, 348_928, 3_611, 25_501, 740];

/// Images that wait for the layout.
const IMAGES: [u64; 15] = [
    13_932, 123_922, 2_692, 17_961, 221_564, 3_696, 23_300, 630_450, 4_936, 30_569, 239, 6_475,
    40_826, 681, 8_400,
];

/// Images that the second script adds.
const LATE_IMAGES: [u64; 5] = [56_042, 1_217, 10_829, 80_328, 1_878];

/// Returns the objects of the default page, the HTML first. The top of this file gives the sources
/// of its figures.
pub fn default_page() -> Vec<PageObject> {
    let html = PageObject { name: "index.html".into(), bytes: HTML, ..PageObject::default() };
    let mut objects = vec![html];
    let mut add = |kind: &str, from: usize, sizes: &[u64], after: &[usize]| {
        let first = objects.len();
        objects.extend(sizes.iter().enumerate().map(|(index, &bytes)| {
            let name = format!("{kind}-{}", from + index);
            PageObject { name, bytes, after: after.to_vec(), ..PageObject::default() }
        }));
        (first..objects.len()).collect::<Vec<_>>()
    };
    let style_sheets = add("style", 1, &STYLE_SHEETS, &[0]);
    let scripts = add("script", 1, &SCRIPTS, &[0]);
    add("font", 1, &FONTS, &style_sheets);
    add("script", 1 + SCRIPTS.len(), &LATE_SCRIPTS, &scripts[..1]);
    add("image", 1, &IMAGES, &style_sheets);
    add("image", 1 + IMAGES.len(), &LATE_IMAGES, &scripts[1..2]);
    objects
}
