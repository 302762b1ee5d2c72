//! Licences that travel: the text as it was accepted, the line that goes with copies, and who accepted it; of gated models always.

use serde::Serialize;

use super::contents::Contents;
use super::{Request, time};
use crate::bundle::BundleError;
use crate::bundle::manifest::licence_path;
use crate::diagnosis::Failure;
use crate::hub::installed::Acceptance;
use crate::hub::{Card, sha256_file};

/// The program's own.
const OWN: [(&str, &str); 2] = [
    ("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE")),
    ("LICENSE-MIT", include_str!("../../../LICENSE-MIT")),
];

/// Adds the texts that are given; refuses gated models without one, or that nobody accepted.
pub fn add(contents: &mut Contents, request: &Request) -> Result<(), Failure> {
    for (name, text) in OWN {
        contents.add_text(&format!("licences/{name}"), text, None)?;
    }
    refuse_unknown(contents, request)?;
    let mut components = std::mem::take(&mut contents.components);
    for component in &mut components {
        let name = component.name.clone();
        let card = Card::find(&name);
        let Some(path) = request.licences.get(&name) else {
            if component.gated {
                let (licence, url) =
                    (component.licence.clone(), component.licence_url.clone().unwrap_or_default());
                return Err(BundleError::NoLicenceText { model: name, licence, url }.into());
            }
            continue;
        };
        let found = sha256_file(path)?;
        if let Some(expected) =
            card.and_then(|card| card.licence.sha256.clone()).filter(|sum| *sum != found)
        {
            return Err(BundleError::OtherLicence {
                model: name,
                path: path.clone(),
                expected,
                found,
            }
            .into());
        }
        contents.add_file(&licence_path(&name), path, Some(&name))?;
        component.licence_sha256 = Some(found.clone());
        if let Some(notice) = card.and_then(|card| card.licence.notice.as_ref()) {
            contents.add_text(
                &format!("licences/{name}/NOTICE"),
                &format!("{notice}\n"),
                Some(&name),
            )?;
        }
        if component.gated {
            let who = request.accepted_by.clone().ok_or_else(|| BundleError::NotAcceptedBy {
                model: name.clone(),
                licence: component.licence.clone(),
            })?;
            component.accepted = Some(who.clone());
            let text = toml(&Acceptance {
                model: name.clone(),
                licence: component.licence.clone(),
                licence_sha256: found,
                accepted_by: who,
                accepted_at: humantime::format_rfc3339_seconds(time(request.epoch)).to_string(),
                how: "--accepted-by".to_owned(),
            })?;
            contents.add_text(&format!("licences/{name}/acceptance.toml"), &text, Some(&name))?;
        }
    }
    contents.components = components;
    Ok(())
}

fn refuse_unknown(contents: &Contents, request: &Request) -> Result<(), Failure> {
    let is_there = |name: &&String| contents.components.iter().any(|own| own.name == **name);
    match request.licences.keys().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(
            format!("--licence {name}=…: the bundle has no component of this name"),
            "name a model as the bundle's folder of it is called",
        )),
    }
}

fn toml(value: &impl Serialize) -> Result<String, std::io::Error> {
    toml::to_string_pretty(value).map_err(std::io::Error::other)
}
