//! `rate.html`: the page on which a clinician rates. It works from disk, loads nothing, keeps its state in the browser and exports it; what
//! it shows is in the sheet, which names no run.

use minijinja::context;
use minijinja::value::Serde;

use super::{ReportError, kit};
use crate::analysis::rating::sheet::Sheet;

/// The page's name in the folder that is exported.
pub const FILE: &str = "rate.html";

const PAGE: kit::Page = kit::Page {
    template: "rating.html",
    style: include_str!("rating/page.css"),
    script: include_str!("rating/page.js"),
};

/// Equal sheets give equal bytes.
///
/// # Errors
/// A template that cannot be filled in, which the tests rule out.
pub fn render(sheet: &Sheet) -> Result<String, ReportError> {
    PAGE.render(context! {
        kind => sheet.kind,
        count => sheet.entries.len(),
        synthetic => sheet.synthetic,
        data => Serde(sheet),
    })
}
