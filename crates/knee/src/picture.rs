//! Formats of a picture that a command writes.

use crate::failure::Failure;
use clap::ValueEnum;
use std::path::Path;

/// Format of a picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Picture {
    /// Scalable Vector Graphics
    Svg,
    /// Portable Document Format, with the host's fonts
    Pdf,
    /// Portable Network Graphics
    Png,
}

impl Picture {
    /// Returns the extension of such a file.
    pub fn ending(self) -> &'static str {
        match self {
            Picture::Svg => "svg",
            Picture::Pdf => "pdf",
            Picture::Png => "png",
        }
    }

    /// Returns the format that the name of a file says.
    pub fn of_file(path: &Path) -> Result<Picture, Failure> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let says = |format: &&Picture| ending.as_deref() == Some(format.ending());
        Picture::value_variants().iter().find(says).copied().ok_or_else(|| {
            let what = format!("{} does not end in .svg, .pdf or .png", path.display());
            Failure::Usage(what, "change the name".to_string())
        })
    }

    /// Encodes a picture drawn as SVG.
    pub fn encode(self, svg: String) -> Result<Vec<u8>, Failure> {
        match self {
            Picture::Svg => Ok(svg.into_bytes()),
            Picture::Pdf => pdf(&svg),
            Picture::Png => png(&svg),
        }
    }
}

/// Converts a picture to a PDF, with the host's fonts.
#[cfg(feature = "pdf")]
fn pdf(svg: &str) -> Result<Vec<u8>, Failure> {
    use svg2pdf::{ConversionOptions, PageOptions, usvg};
    let internal = |what: String| Failure::Internal(format!("cannot write the PDF: {what}"));
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let family = fonts.faces().find_map(|face| Some(face.families.first()?.0.clone()));
    fonts.set_sans_serif_family(family.ok_or_else(|| no_fonts("PDF"))?);
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| internal(error.to_string()))?;
    // Its pixels are those of CSS, 96 to an inch.
    let page = PageOptions { dpi: 96.0 };
    svg2pdf::to_pdf(&tree, ConversionOptions::default(), page)
        .map_err(|error| internal(error.to_string()))
}

#[cfg(not(feature = "pdf"))]
fn pdf(_: &str) -> Result<Vec<u8>, Failure> {
    let what = "this program was built without PDF".to_string();
    let advice = format!("write an SVG, or: {}", crate::build::with("pdf"));
    Err(Failure::Usage(what, advice))
}

#[cfg(any(feature = "pdf", feature = "png"))]
fn no_fonts(format: &str) -> Failure {
    let what = format!("this host has no fonts to write a {format} with");
    Failure::Host(what, "install some, or write an SVG".to_string())
}

/// Renders a picture to pixels, with the host's fonts.
#[cfg(feature = "png")]
fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    use resvg::{tiny_skia, usvg};
    let internal = |what: String| Failure::Internal(format!("cannot draw the picture: {what}"));
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let family = fonts.faces().find_map(|face| Some(face.families.first()?.0.clone()));
    // Fallback if none of the style's font families exists.
    fonts.set_sans_serif_family(family.ok_or_else(|| no_fonts("PNG"))?);
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| internal(error.to_string()))?;
    let size = tree.size().to_int_size();
    let pixels = tiny_skia::Pixmap::new(size.width(), size.height());
    let mut pixels = pixels.ok_or_else(|| internal("it has no size".to_string()))?;
    resvg::render(&tree, tiny_skia::Transform::default(), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| internal(error.to_string()))
}

#[cfg(not(feature = "png"))]
fn png(_: &str) -> Result<Vec<u8>, Failure> {
    let what = "this program was built without PNG".to_string();
    let advice = format!("write an SVG, or: {}", crate::build::with("png"));
    Err(Failure::Usage(what, advice))
}
