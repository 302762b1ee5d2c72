//! Licences that every recipient accepts anew: asked for before anything is written, kept in `ROOT/licences/accepted.jsonl`.

use super::{Consent, Question};
use crate::appended;
use crate::bundle::manifest::{Component, licence_path, policy_path};
use crate::bundle::path::BundlePath;
use crate::bundle::root::Root;
use crate::bundle::verify::Opened;
use crate::bundle::{BundleError, files};
use crate::diagnosis::Failure;
use crate::experiment::clock::utc_now;
use crate::experiment::whole_file;
use crate::hub::if_there;
use crate::hub::installed::{Acceptance, accepted, accepted_file};
use crate::outside;

/// Asks for every gated component whose licence was not accepted here in this very text. Gives what is to be recorded.
///
/// # Errors
/// A licence that is not accepted; a text that is not what its sum says.
pub fn gather(bundle: &Opened, root: &Root, consent: &Consent) -> Result<Vec<Acceptance>, Failure> {
    refuse_unknown(bundle, consent)?;
    let known = accepted(&accepted_file(&root.path))?;
    let mut new = Vec::new();
    for component in bundle.manifest.components.iter().filter(|component| component.gated) {
        let Some(sum) = &component.licence_sha256 else { continue };
        let is_it = |line: &Acceptance| line.model == component.name && line.licence_sha256 == *sum;
        if known.iter().any(is_it) {
            continue;
        }
        let how = ask(bundle, component, sum, consent)?;
        new.push(Acceptance {
            model: component.name.clone(),
            licence: component.licence.clone(),
            licence_sha256: sum.clone(),
            accepted_by: consent.who.clone(),
            accepted_at: utc_now(),
            how: how.to_owned(),
        });
    }
    Ok(new)
}

/// A mistyped name is no consent to anything.
fn refuse_unknown(bundle: &Opened, consent: &Consent) -> Result<(), Failure> {
    let is_there = |name: &String| bundle.manifest.components.iter().any(|own| own.name == *name);
    match consent.accepted.iter().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(
            format!("--accept {name}: the bundle has no component of this name"),
            "`wardround bundle ls DIR` lists them",
        )),
    }
}

/// How the licence was accepted.
fn ask(
    bundle: &Opened,
    component: &Component,
    sum: &str,
    consent: &Consent,
) -> Result<&'static str, Failure> {
    let path = BundlePath::parse(&licence_path(&component.name)).map_err(BundleError::from)?;
    let text = path.below(&bundle.directory);
    if files::sum(&text)?.sha256 != sum {
        let problems = vec![format!("changed  {path}")];
        return Err(BundleError::Wrong { directory: bundle.directory.clone(), problems }.into());
    }
    if consent.accepted.contains(&component.name) {
        return Ok("--accept");
    }
    let policy = policy_path(&component.name);
    let policy = bundle.manifest.file(&policy).map(|file| file.path.below(&bundle.directory));
    let question = Question { component, text: text.clone(), policy };
    match consent.ask {
        Some(ask) if ask(&question)? => Ok("terminal"),
        _ => Err(BundleError::NotAccepted {
            model: component.name.clone(),
            licence: component.licence.clone(),
            text,
        }
        .into()),
    }
}

/// Appends what was accepted, and makes it durable.
///
/// # Errors
/// A file that cannot be written.
pub fn record(root: &Root, acceptances: &[Acceptance]) -> Result<(), Failure> {
    if acceptances.is_empty() {
        return Ok(());
    }
    let path = accepted_file(&root.path);
    if let Some(folder) = path.parent() {
        files::make_folder(folder)?;
    }
    // What a power cut left behind the last whole line is left out, as it is when they are read.
    let kept = if_there(outside::file(&path))?.unwrap_or_default();
    let mut lines = appended::split(&kept).0.to_owned();
    for acceptance in acceptances {
        serde_json::to_writer(&mut lines, acceptance).map_err(std::io::Error::from)?;
        lines.push(b'\n');
    }
    // Whoever runs a model reads it.
    whole_file::write_public(&path, &lines)?;
    Ok(files::sync(&root.path)?)
}
