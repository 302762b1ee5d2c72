//! The served encoders and rerankers. Each has a thread, which computes what waits for it a step at a time: callers take turns at the steps,
//! and texts of several requests share one, of which no bit of a vector depends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde_json::json;
use tokio::sync::oneshot;

use super::error::{ApiError, Code};
use super::models::{Kind, ModelEntry, name_of};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::{
    Encoder, EncoderError, EncoderIdentity, EncoderOptions, Reranker, Sequence, Side, output_of,
};
use crate::engine::Rotation;

/// What turns texts into numbers.
pub enum Reader {
    Encoder(Box<Encoder>),
    Reranker(Box<Reranker>),
}

/// A loaded encoder or reranker.
pub struct ServedEncoder {
    pub id: String,
    pub reader: Arc<Reader>,
    pub identity: EncoderIdentity,
    /// Models with equal fingerprints answer equal requests with equal bytes.
    pub fingerprint: String,
    /// The name of its directory.
    root: Option<String>,
    pub is_synthetic: bool,
    /// The notice that its licence requires wherever the model is used.
    pub notice: Option<&'static str>,
    /// The most tokens that are computed in one go, but for a longer text.
    pub step_tokens: usize,
    jobs: Sender<Job>,
}

/// How texts are computed; of no meaning for a reranker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    pub side: Side,
    /// Numbers of a vector.
    pub dims: usize,
}

/// Texts of one request that are computed in one go.
pub struct Job {
    pub caller: u64,
    pub asked: Asked,
    pub texts: Vec<Sequence>,
    /// The field that the texts came in, and the place of the first among them.
    pub field: &'static str,
    pub first: usize,
    /// Numbers of each text.
    pub reply: oneshot::Sender<Result<Vec<Vec<f32>>, ApiError>>,
}

impl Reader {
    pub fn kind(&self) -> Kind {
        match self {
            Reader::Encoder(_) => Kind::Encoder,
            Reader::Reranker(_) => Kind::Reranker,
        }
    }

    /// The most tokens of a document, special ones included.
    pub fn max_tokens(&self) -> usize {
        match self {
            Reader::Encoder(encoder) => encoder.max_tokens(),
            Reader::Reranker(reranker) => reranker.max_tokens(),
        }
    }

    fn compute(&self, asked: Asked, texts: &[Sequence]) -> Result<Vec<Vec<f32>>, EncoderError> {
        match self {
            Reader::Encoder(encoder) => encoder.embed_sequences(asked.side, texts, asked.dims),
            Reader::Reranker(reranker) => {
                Ok(reranker.score_sequences(texts)?.into_iter().map(|score| vec![score]).collect())
            }
        }
    }
}

impl ServedEncoder {
    /// Loads the model of a directory, and starts its thread.
    ///
    /// # Errors
    /// A file that is missing or damaged; a machine without room.
    pub fn open(id: String, options: &EncoderOptions) -> Result<ServedEncoder, Failure> {
        let output = output_of(&options.directory, options.known)?;
        let (reader, identity) = match output.is_some_and(|output| output.is_score()) {
            true => {
                (Reader::Reranker(Box::new(Reranker::open(options)?)), Reranker::identity(options)?)
            }
            false => {
                let encoder = Encoder::open(options)?;
                let identity = encoder.identity().clone();
                (Reader::Encoder(Box::new(encoder)), identity)
            }
        };
        let mut nameless = identity.clone();
        nameless.name.clear();
        let sum = sha256(format!("{} {}", json!(nameless), env!("CARGO_PKG_VERSION")));
        let reader = Arc::new(reader);
        let step_tokens = options.device.machine().prefill_rows();
        let (jobs, waiting) = unbounded();
        let owned = reader.clone();
        let work = move || compute_all(&owned, step_tokens, &waiting);
        std::thread::Builder::new().name("encoder".to_owned()).spawn(work)?;
        Ok(ServedEncoder {
            id,
            reader,
            identity,
            fingerprint: format!("wr_{}", &sum[..16]),
            root: name_of(&options.directory),
            is_synthetic: false,
            notice: None,
            step_tokens,
            jobs,
        })
    }

    /// Hands texts to the thread.
    pub fn submit(&self, job: Job) -> Result<(), ApiError> {
        self.jobs.send(job).map_err(|_| lost())
    }

    /// The entry in the list of models.
    pub fn entry(&self) -> ModelEntry {
        let ServedEncoder { id, reader, identity, root, .. } = self;
        let mut own = json!({
            "kind": reader.kind(),
            "output": identity.output,
            "document": identity.document,
            "weights_sha256": identity.weights_sha256,
            "tokenizer_sha256": identity.tokenizer_sha256,
            "dtype": identity.dtype,
            "quantisation": identity.quantisation,
            "device_kind": identity.device_kind,
            "fingerprint": self.fingerprint,
            "synthetic": self.is_synthetic,
            "notice": self.notice,
        });
        if let Reader::Encoder(encoder) = &**reader {
            own["dimensions"] = encoder.widths().into();
            own["normalised"] = identity.normalised.into();
            own["query"] = identity.query.as_str().into();
        }
        ModelEntry::new(id, root.clone(), Some(reader.max_tokens()), own)
    }
}

/// Until nobody can ask any more.
fn compute_all(reader: &Reader, step_tokens: usize, waiting: &Receiver<Job>) {
    let mut queue = Rotation::default();
    loop {
        if queue.is_empty() {
            let Ok(first) = waiting.recv() else { return };
            queue.push(first.caller, first);
        }
        waiting.try_iter().for_each(|job| queue.push(job.caller, job));
        // Of those whose clients are gone nothing is computed.
        queue.retain(|job: &Job| !job.reply.is_closed());
        let (mut tokens, mut batch) = (0, Vec::<Job>::new());
        while let Some(next) = queue.take(|next| match batch.first() {
            None => true,
            Some(first) => next.asked == first.asked && tokens + next.tokens() <= step_tokens,
        }) {
            tokens += next.tokens();
            batch.push(next);
        }
        answer(reader, batch);
    }
}

impl Job {
    fn tokens(&self) -> usize {
        self.texts.iter().map(|text| text.tokens().len()).sum()
    }
}

fn answer(reader: &Reader, mut batch: Vec<Job>) {
    let Some(asked) = batch.first().map(|job| job.asked) else { return };
    let counts: Vec<usize> = batch.iter().map(|job| job.texts.len()).collect();
    let own = batch.iter_mut().flat_map(|job| std::mem::take(&mut job.texts));
    let texts: Vec<Sequence> = own.collect();
    let whole = try_compute(reader, asked, &texts, ("", 0));
    let mut whole = whole.ok().map(Vec::into_iter);
    let mut rest = texts.as_slice();
    for (job, count) in batch.into_iter().zip(counts) {
        let (own, after) = rest.split_at(count);
        rest = after;
        let result = match &mut whole {
            Some(numbers) => Ok(numbers.take(count).collect()),
            // One that fails does not fail the others: each for itself.
            None => try_compute(reader, asked, own, (job.field, job.first)),
        };
        // Whoever asked may be gone.
        let _ = job.reply.send(result);
    }
}

/// The numbers of each text; `place` is that of the first one. After a panic the thread goes on: it changes nothing that the next one reads.
fn try_compute(
    reader: &Reader,
    asked: Asked,
    texts: &[Sequence],
    (field, first): (&str, usize),
) -> Result<Vec<Vec<f32>>, ApiError> {
    let computed = catch_unwind(AssertUnwindSafe(|| reader.compute(asked, texts)));
    computed.map_err(|_| lost())?.map_err(|error| match error {
        EncoderError::NotFinite { place, .. } => {
            let place = format!("{field}[{}]", first + place - 1);
            let problem = "the model computed numbers that are not finite (NaN or infinity) of";
            ApiError::of(Code::Internal, &place, format!("{problem} {place}"))
        }
        other => ApiError::new(Code::Internal, other.to_string()),
    })
}

pub fn lost() -> ApiError {
    ApiError::new(Code::Internal, "the request failed; the server goes on")
}
