//! `README.html`: what the bundle is, how the tools of the host check it first, and how it is installed; opens from disk.

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::ASKED_FOR;
use super::contents::Contents;
use crate::bundle::manifest::{Component, Manifest};
use crate::bundle::{BundleError, README};
use crate::hub::Card;
use crate::report::environment;

const TEMPLATE: &str = include_str!("readme.html");

/// A component as the page shows it.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    component: &'a Component,
    megabytes: String,
    notice: Option<&'a str>,
}

/// Adds the page.
///
/// # Errors
/// A template that cannot be filled in.
pub fn add(contents: &mut Contents, manifest: &Manifest) -> Result<(), BundleError> {
    let text = render(contents, manifest).map_err(std::io::Error::other)?;
    contents.add_text(README, &text, None)
}

fn render(contents: &Contents, manifest: &Manifest) -> Result<String, minijinja::Error> {
    let rows: Vec<Row> =
        manifest.components.iter().map(|component| row(contents, component)).collect();
    let shown: Vec<String> =
        manifest.components.iter().filter_map(|own| own.shown.clone()).collect();
    let gated: Vec<&Component> = manifest.components.iter().filter(|own| own.gated).collect();
    let accept: String = gated.iter().map(|own| format!(" --accept {}", own.name)).collect();
    let lists: Vec<&str> =
        ASKED_FOR.into_iter().filter(|path| manifest.file(path).is_some()).collect();
    let bytes: u64 = contents.items.values().map(|item| item.summed.size_bytes).sum();
    environment()?.render_named_str(
        README,
        TEMPLATE,
        context! {
            manifest => Value::from(Serde(manifest)),
            rows => Value::from(Serde(&rows)),
            // What a manifest leaves out where there is none.
            previous => manifest.previous.as_ref().map(|previous| previous.manifest_sha256.clone()),
            glibc => manifest.requires.glibc.clone(),
            kernel => manifest.requires.kernel.clone(),
            driver => manifest.requires.driver.clone(),
            lists,
            has_unknown => manifest.components.iter().any(|own| !own.sums_known),
            shown,
            gated => Value::from(Serde(&gated)),
            accept,
            megabytes => megabytes(bytes),
            has_synthetic => contents.items.keys().any(|path| path.as_str().ends_with(crate::synth::MARKER)),
        },
    )
}

fn row<'a>(contents: &'a Contents, component: &'a Component) -> Row<'a> {
    let own =
        contents.items.values().filter(|item| item.component.as_ref() == Some(&component.name));
    let bytes: u64 = own.map(|item| item.summed.size_bytes).sum();
    let card = Card::find(&component.name).filter(|_| component.gated);
    Row {
        component,
        megabytes: megabytes(bytes),
        notice: card.and_then(|card| card.licence.notice.as_deref()),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
