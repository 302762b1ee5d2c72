//! Repeats the requests and cases of an audit trail with the code of the server.

use serde_json::{Value, from_value, json};
use tokio::sync::watch;

use super::app::{App, Phase};
use super::audit::Told;
use super::case::words;
use super::completion;
use super::error::{ApiError, Code};
use super::models::{Loaded, Served};
use super::options::ServeOptions;
use super::response::events::finish;
use super::{embeddings, rerank};
use crate::audit::kept::Kept;
use crate::data::{Item, Note};
use crate::diagnosis::Failure;
use crate::experiment::case::{self, CaseOptions};
use crate::record::{CallKey, ItemText};

/// Repeats lines one by one, and says where the output differs; `by_prefill`: the engines are told which tokens were logged.
///
/// # Errors
/// A runtime or a thread that cannot be started. A line that cannot be repeated counts as a difference.
pub fn replay(loaded: Loaded, lines: &[Kept], by_prefill: bool) -> Result<Vec<String>, Failure> {
    let (_phase, phase) = watch::channel(Phase::Serving);
    let (_keys, keys) = watch::channel(None);
    let app = App::new(ServeOptions::alone(), phase, keys)?;
    app.begin(Served::new(loaded, &app.metrics)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let repeat = |kept: &Kept| {
        let now = match kept.line.text("event") {
            "request" => runtime.block_on(request(&app, kept, by_prefill)),
            _ => one_case(&app, kept, by_prefill),
        };
        Some(format!("line {}: {}", kept.line.seq, difference(kept, now)?))
    };
    Ok(lines.iter().filter_map(repeat).collect())
}

/// How the output, of which the fingerprint is told, differs from what was kept; `None` if it has the same bytes.
fn difference(kept: &Kept, now: Result<(Value, String), ApiError>) -> Option<String> {
    let there = kept.line.text("fingerprint");
    match now {
        Ok((_, here)) if there != here => Some(format!(
            "it was answered by {there}, and what is loaded is {here}: other weights, settings, version or kind of device"
        )),
        Ok((output, _)) if output == kept.texts["output"] => None,
        Ok(_) => Some("the text is another one".to_owned()),
        Err(error) => Some(error.message),
    }
}

async fn request(app: &App, kept: &Kept, by_prefill: bool) -> Result<(Value, String), ApiError> {
    let mut body = kept.texts["input"].clone();
    if let Some(numbers) = numbers(app, kept.texts["path"].as_str(), &body).await? {
        return Ok(numbers);
    }
    let seed = kept.texts["seed"].as_u64().ok_or_else(|| lacking("seed"))?;
    let fields = body.as_object_mut().ok_or_else(|| lacking("body"))?;
    for name in ["stream", "stream_options"] {
        fields.shift_remove(name);
    }
    // Seeds from 2⁶³ on are negative in JSON.
    fields.insert("seed".to_owned(), (seed as i64).into());
    let bytes = body.to_string();
    let begin = match kept.texts["path"].as_str() {
        Some(completion::TEXT) => completion::begin_completion,
        _ => completion::begin_chat,
    };
    let expected = match by_prefill {
        true => tokens_of(&kept.texts["output"]),
        false => Vec::new(),
    };
    let mut answer = begin(app, bytes.as_bytes(), None, expected)?.answering;
    finish(app, &mut answer).await?;
    Ok((answer.outputs(), answer.about().fingerprint))
}

/// What an encoder or a reranker gives; `None`: it was asked for by another path.
async fn numbers(
    app: &App,
    path: Option<&str>,
    body: &Value,
) -> Result<Option<(Value, String)>, ApiError> {
    let bytes = body.to_string();
    let mut encoding = match path {
        Some(embeddings::PATH) => embeddings::begin(app, bytes.as_bytes(), None)?.encoding,
        Some(rerank::PATH) => rerank::begin(app, bytes.as_bytes(), None)?.encoding,
        _ => return Ok(None),
    };
    let numbers = encoding.compute(app).await?;
    let output = match path {
        Some(embeddings::PATH) => embeddings::output(&numbers),
        _ => rerank::output(&numbers),
    };
    Ok(Some((output, encoding.model.fingerprint.clone())))
}

/// The tokens of each choice; none of one that has not ended.
fn tokens_of(output: &Value) -> Vec<Vec<u32>> {
    let choices = output.as_array().into_iter().flatten();
    choices.map(|choice| from_value(choice["tokens"].clone()).unwrap_or_default()).collect()
}

fn one_case(app: &App, kept: &Kept, by_prefill: bool) -> Result<(Value, String), ApiError> {
    let name = kept.line.text("system");
    let missing = || ApiError::new(Code::ModelNotFound, format!("{name} is not loaded"));
    let system = app.served()?.system(name).ok_or_else(missing)?;
    let number = |name: &str| kept.line.number(name).ok_or_else(|| lacking(name));
    let (seed, run) = (number("seed")?, number("run")? as u32);
    // An earlier version kept no tokens of cases: theirs are computed one after another.
    let said = Some(&kept.texts["tokens"]).filter(|_| by_prefill).cloned();
    let said: Option<Vec<(CallKey, Vec<u32>)>> = said.and_then(|said| from_value(said).ok());
    let expected = said.into_iter().flatten().collect();
    let options = CaseOptions { seed, run, expected, ..CaseOptions::default() };
    let item = item(&kept.texts["input"])?;
    // A check's dataset and item are named after its file, a server's items after their text.
    let (dataset, item) = match (kept.texts["dataset"].as_str(), item) {
        (Some(dataset), Item::Note(note)) => {
            let id = kept.texts["input"]["item"].as_str().ok_or_else(|| lacking("item"))?;
            (dataset, Item::Note(Note { id: id.to_owned(), ..note }))
        }
        (_, item) => (case::DATASET, item),
    };
    let worked = system.seated.work(dataset, &item, options, |_| {})?;
    Ok((words::outcome(&item, &worked), system.fingerprint.clone()))
}

fn item(text: &Value) -> Result<Item, ApiError> {
    let text: ItemText = from_value(text.clone()).map_err(|_| lacking("item"))?;
    let item = match text {
        ItemText::Note(note) => case::note(&note.text, Some(note.language)),
        ItemText::Question(question) => {
            case::question(&question.question, &json!(question.options))
        }
    };
    item.map_err(|error| ApiError::new(Code::InvalidValue, error.to_string()))
}

fn lacking(what: &str) -> ApiError {
    ApiError::new(Code::MissingParameter, format!("the trail does not keep its {what}"))
}
