//! `sbom/models.cdx.json`: the models and data of a bundle as components of CycloneDX 1.6, with their sums and licences.

use serde_json::{Value, json};

use super::contents::{Contents, Item};
use crate::bundle::BundleError;
use crate::bundle::manifest::{Component, ComponentKind, Manifest};
use crate::bundle::path::BundlePath;

const FILE: &str = "sbom/models.cdx.json";

/// Adds the list of everything that is no program.
pub fn add(contents: &mut Contents, manifest: &Manifest) -> Result<(), BundleError> {
    let others =
        manifest.components.iter().filter(|component| component.kind != ComponentKind::Program);
    let components: Vec<Value> = others.map(|component| one(component, contents)).collect();
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": manifest.created_at,
            "tools": {"components": [{"type": "application", "name": "wardround", "version": env!("CARGO_PKG_VERSION")}]},
            "component": {"type": "application", "bom-ref": format!("bundle:{}", manifest.name), "name": manifest.name, "version": manifest.version},
        },
        "components": components,
    });
    let text = serde_json::to_string_pretty(&sbom).map_err(std::io::Error::from)? + "\n";
    contents.add_text(FILE, &text, None)
}

fn one(component: &Component, contents: &Contents) -> Value {
    let kind = match component.kind {
        ComponentKind::Data => "data",
        _ => "machine-learning-model",
    };
    let is_own =
        |(_, item): &(&BundlePath, &Item)| item.component.as_ref() == Some(&component.name);
    let files: Vec<Value> =
        contents.items.iter().filter(is_own).map(|(path, item)| file(path, item)).collect();
    let mut one = json!({
        "type": kind,
        "bom-ref": component.name,
        "name": component.name,
        "licenses": [{"license": {"name": component.licence}}],
        "components": files,
    });
    if let Some(revision) = &component.revision {
        one["version"] = json!(revision);
    }
    if let Some(url) = &component.licence_url {
        one["licenses"][0]["license"]["url"] = json!(url);
    }
    if let Some(repository) = &component.repository {
        let url = match component.kind {
            ComponentKind::Data => repository.clone(),
            _ => format!("https://huggingface.co/{repository}"),
        };
        one["externalReferences"] = json!([{"type": "distribution", "url": url}]);
    }
    one
}

fn file(path: &BundlePath, item: &Item) -> Value {
    json!({
        "type": "file",
        "name": path,
        "hashes": [{"alg": "SHA-256", "content": item.summed.sha256}],
    })
}
