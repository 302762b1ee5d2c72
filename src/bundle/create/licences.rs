//! Licences that travel: the text as it was accepted, what the model may be used for, the line that goes with copies, and who accepted it;
//! of gated models always.

use std::path::{Path, PathBuf};

use super::Request;
use super::contents::Contents;
use crate::bundle::BundleError;
use crate::bundle::manifest::{Component, licence_path, policy_path};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::hub::installed::Acceptance;
use crate::hub::{Card, sha256_file};

/// The program's own.
const OWN: [(&str, &str); 2] =
    [("LICENSE-APACHE", APACHE), ("LICENSE-MIT", include_str!("../../../LICENSE-MIT"))];
const APACHE: &str = include_str!("../../../LICENSE-APACHE");
/// As cards call the licence whose text is the same wherever it is.
const APACHE_NAME: &str = "Apache License 2.0";

/// Adds the texts that are given; refuses gated models without them, or that nobody accepted.
pub fn add(contents: &mut Contents, request: &Request) -> Result<(), Failure> {
    for (name, text) in OWN {
        contents.add_text(&format!("licences/{name}"), text, None)?;
    }
    refuse_unknown(contents, &request.licences, "--licence")?;
    refuse_unknown(contents, &request.policies, "--policy")?;
    let mut components = std::mem::take(&mut contents.components);
    for component in &mut components {
        match text_of(&request.licences, &component.name) {
            Some(text) => add_given(contents, component, text, request)?,
            None if component.gated => {
                return Err(BundleError::NoLicenceText {
                    model: component.name.clone(),
                    licence: component.licence.clone(),
                    url: component.licence_url.clone().unwrap_or_default(),
                }
                .into());
            }
            None if component.licence == APACHE_NAME => {
                let name = &component.name;
                contents.add_text(&licence_path(name), APACHE, Some(name))?;
                component.licence_sha256 = Some(sha256(APACHE));
            }
            None => {}
        }
        add_policy(contents, component, request)?;
    }
    contents.components = components;
    Ok(())
}

/// Adds the text that was given, the line that goes with copies, and of gated models who accepted it.
fn add_given(
    contents: &mut Contents,
    component: &mut Component,
    text: &Path,
    request: &Request,
) -> Result<(), Failure> {
    let name = component.name.clone();
    let licence = Card::find(&name).map(|card| &card.licence);
    let found = sha256_file(text)?;
    let expected = licence.and_then(|licence| licence.sha256.clone());
    if let Some(expected) = expected.filter(|sum| *sum != found) {
        let path = text.to_owned();
        return Err(BundleError::OtherLicence { model: name, path, expected, found }.into());
    }
    contents.add_file(&licence_path(&name), text, Some(&name))?;
    component.licence_sha256 = Some(found.clone());
    if let Some(notice) = licence.and_then(|licence| licence.notice.as_ref()) {
        let path = format!("licences/{name}/NOTICE");
        contents.add_text(&path, &format!("{notice}\n"), Some(&name))?;
    }
    if component.gated {
        let who = request.accepted_by.clone().ok_or_else(|| BundleError::NotAcceptedBy {
            model: name.clone(),
            licence: component.licence.clone(),
        })?;
        component.accepted = Some(who.clone());
        let acceptance = Acceptance {
            model: name.clone(),
            licence: component.licence.clone(),
            licence_sha256: found,
            accepted_by: who,
            accepted_at: humantime::format_rfc3339_seconds(request.time).to_string(),
            how: "--accepted-by".to_owned(),
        };
        let text = toml::to_string_pretty(&acceptance).map_err(std::io::Error::other)?;
        contents.add_text(&format!("licences/{name}/acceptance.toml"), &text, Some(&name))?;
    }
    Ok(())
}

/// Adds the text that says what a component may be used for; a gated one whose card knows of such a text does not go without.
fn add_policy(
    contents: &mut Contents,
    component: &Component,
    request: &Request,
) -> Result<(), Failure> {
    let name = &component.name;
    let url = Card::find(name).and_then(|card| card.licence.policy.clone());
    match (text_of(&request.policies, name), url) {
        (Some(text), _) => Ok(contents.add_file(&policy_path(name), text, Some(name))?),
        (None, Some(url)) if component.gated => {
            Err(BundleError::NoPolicyText { model: name.clone(), url }.into())
        }
        _ => Ok(()),
    }
}

fn text_of<'a>(texts: &'a [(String, PathBuf)], component: &str) -> Option<&'a PathBuf> {
    texts.iter().find(|(name, _)| name == component).map(|(_, text)| text)
}

fn refuse_unknown(
    contents: &Contents,
    texts: &[(String, PathBuf)],
    flag: &str,
) -> Result<(), Failure> {
    let is_there = |name: &&String| contents.components.iter().any(|own| own.name == **name);
    match texts.iter().map(|(name, _)| name).find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(
            format!("{flag} {name}=…: the bundle has no component of this name"),
            "name a model as the bundle's folder of it is called",
        )),
    }
}
