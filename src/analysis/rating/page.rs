//! `rate.html`: the page on which a rater rates. It works from disk, asks for nothing, keeps its state in the browser and
//! exports it; what it shows is in the sheet, which names no run.

use minijinja::context;
use minijinja::value::Value;

use super::sheet::Sheet;
use crate::report::content_policy::content_policy;
use crate::report::{ReportError, STYLE, environment};

/// The page's name in the folder that is exported.
pub const FILE: &str = "rate.html";

const TEMPLATE: &str = include_str!("rate.html");
const OWN_STYLE: &str = include_str!("rate.css");
const SCRIPT: &str = include_str!("rate.js");

/// Equal sheets give equal bytes.
///
/// # Errors
/// The template cannot be filled in, which the tests rule out.
pub fn render(sheet: &Sheet) -> Result<String, ReportError> {
    let context = context! {
        kind => sheet.kind,
        count => sheet.entries.len(),
        gold => sheet.shows_gold(),
        synthetic => sheet.synthetic,
        policy => Value::from_safe_string(content_policy(SCRIPT)),
        style => Value::from_safe_string(format!("{STYLE}\n{OWN_STYLE}")),
        data => Value::from_safe_string(sheet.json()?),
        script => Value::from_safe_string(SCRIPT.into()),
    };
    let environment = environment()?;
    Ok(environment
        .template_from_named_str(FILE, TEMPLATE)?
        .render(context)?)
}
