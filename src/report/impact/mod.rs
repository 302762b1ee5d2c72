//! The page of an impact: what is another, each case that it changed, and at which call.

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::ReportError;
use super::kit;
use crate::experiment::impact::Impact;

const PAGE: kit::Page =
    kit::Page { template: "impact.html", style: include_str!("page.css"), script: "" };

/// The page.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(impact: &Impact) -> Result<String, ReportError> {
    PAGE.render(context! { impact => Value::from(Serde(impact)) })
}
