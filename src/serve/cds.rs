//! CDS Hooks 2.0: a service that checks the note of a patient whose order is being signed, and answers with a card.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Value, json};

use super::app::App;
use super::body::{Sent, WHOLE};
use super::case::{Ask, fhir};
use super::check::{Chosen, note_of, worked};
use super::error::{ApiError, Code};
use super::guard::Asking;
use super::request::fields::{Fields, required};
use crate::analysis::notes::{self, Finding};
use crate::data::ItemKind;
use crate::record::ItemLine;

const HOOK: &str = "order-sign";

/// `GET /cds-services`: the service, if a system for notes is served.
pub async fn services(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    let services = match app.served()?.system_for(ItemKind::Notes, None) {
        Err(_) => json!([]),
        Ok(_) => json!([{
            "hook": HOOK,
            "id": "check-note",
            "title": "Check a note",
            "description": "Looks for a medical error in the patient's latest note. Decision support under evaluation, not for care.",
            "prefetch": {"note": "DocumentReference?patient={{context.patientId}}&status=current&_sort=-date&_count=1"},
        }]),
    };
    Ok(Json(json!({"services": services})))
}

/// `POST /cds-services/check-note`.
pub async fn check_note(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent<WHOLE>,
) -> Result<Json<Value>, ApiError> {
    app.served()?;
    let reading = app.clone();
    let (ask, _) = sent.parse_json(move |bytes| read(&reading, &bytes)).await?;
    let ask = Ask { who, ..ask };
    let outcome = worked(&app, &ask, caller.as_ref()).await?;
    let worked = Result::as_ref(&outcome).map_err(ApiError::clone)?;
    let ItemLine::Note(line) = &worked.line else {
        return Err(ApiError::new(Code::Internal, "the outcome is not of a note"));
    };
    let finding = Finding::of(line, &worked.calls, &worked.searches);
    let system = &ask.system;
    let card = notes::card(&finding, worked.decision.as_ref(), system.is_synthetic, &system.id);
    Ok(Json(json!({"cards": [card]})))
}

/// The note in the prefetched document. The context, and what else a client sends of itself, is not looked at.
fn read(app: &App, bytes: &Bytes) -> Result<Ask, ApiError> {
    let mut fields = Fields::parse(bytes)?;
    let hook = required(fields.text("hook")?, "hook")?;
    if hook != HOOK {
        return Err(ApiError::invalid("hook", format!("this service is for the hook {HOOK}")));
    }
    required(fields.text("hookInstance")?, "hookInstance")?;
    let note = fields.inner("prefetch")?.and_then(|mut found| found.shift_remove("note"));
    let note = note.filter(|note| !note.is_null()).ok_or_else(|| {
        let message = "prefetch has no `note`, a DocumentReference or a Bundle with one: nothing is fetched from fhirServer";
        ApiError::new(Code::PrefetchMissing, message)
    })?;
    note_of(app, &fhir::note(note.to_string().as_bytes())?, Chosen::default())
}
