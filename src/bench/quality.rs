//! What rounding does to a model: its logits in each format beside those of f32, over a text.

use clap::ValueEnum;
use rayon::prelude::*;
use serde::Serialize;

use super::model::Subject;
use crate::model::{Decoder, Scratch, WantedPrecision, WantedType};
use crate::ops::{
    Backend, Cpu, Machine, OpsError, PAGE, Quantisation, Rows, StepLimits, StoredType,
};

/// Our own sentences: medical prose, an exam question, a chat, code, Chinese, Arabic and German.
pub const TEXT: &str = include_str!("../../benches/quality.txt");

/// Rows whose logits are held at once, twice.
const ROWS: usize = 64;

/// One way to keep a model's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Weights, keys and values in f32, as what all else is compared with
    F32,
    /// Weights in bf16
    Bf16,
    /// Weights in q8_0
    #[value(name = "q8_0")]
    Q8_0,
    /// Weights in int8
    Int8,
    /// Weights in q4_k
    #[value(name = "q4_k")]
    Q4K,
    /// Weights in f32, keys and values in bf16
    KvBf16,
}

impl Format {
    /// As it is written on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// On a GPU keys and values are kept as it always keeps them.
    pub fn precision(self, machine: Machine) -> WantedPrecision {
        let (dtype, quantisation) = match self {
            Format::F32 | Format::KvBf16 => (StoredType::F32, Quantisation::None),
            Format::Bf16 => (StoredType::Bf16, Quantisation::None),
            Format::Q8_0 => (StoredType::Bf16, Quantisation::Q8_0),
            Format::Int8 => (StoredType::Bf16, Quantisation::Int8),
            Format::Q4K => (StoredType::Bf16, Quantisation::Q4K),
        };
        let kv = match (self, machine) {
            (Format::KvBf16, _) => WantedType::Exactly(StoredType::Bf16),
            (_, Machine::Cpu) => WantedType::Exactly(StoredType::F32),
            (_, Machine::Cuda | Machine::Metal) => WantedType::Auto,
        };
        WantedPrecision { dtype: WantedType::Exactly(dtype), quantisation, kv }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct QualityReport {
    pub results: Vec<Quality>,
    /// The model in f32.
    pub model: Subject,
    pub text: Text,
    /// Of f32.
    pub perplexity: f64,
    pub device_kind: String,
    pub version: &'static str,
}

/// What was read.
#[derive(Clone, Debug, Serialize)]
pub struct Text {
    pub name: String,
    /// Tokens a window, the one that begins a text included.
    pub window: usize,
    pub windows: usize,
    /// Positions that have a next token in their window.
    pub positions: usize,
}

/// A format beside f32.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quality {
    pub format: String,
    pub bytes_per_weight: f64,
    /// KL(f32 ‖ format), in nats.
    pub mean_divergence: f64,
    pub worst_divergence: f64,
    /// The share of positions with the same likeliest token.
    pub same_first: f64,
    pub perplexity: f64,
}

/// The sums over positions, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub positions: usize,
    divergence: f64,
    worst: f64,
    same_first: usize,
    surprise: f64,
    exact_surprise: f64,
}

/// Of one position.
#[derive(Clone, Copy, Debug)]
struct Compared {
    divergence: f64,
    has_same_first: bool,
    /// −ln of the next token's probability.
    surprise: f64,
    exact_surprise: f64,
}

impl Compared {
    /// From two rows of logits; `None` where they are no numbers.
    fn of(exact: &[f32], rounded: &[f32], next: u32) -> Option<Compared> {
        let (p, q) = (LogSum::of(exact)?, LogSum::of(rounded)?);
        let pairs = exact.iter().zip(rounded);
        let divergence: f64 = pairs
            .map(|(&exact, &rounded)| {
                let exact = p.logprob(exact);
                libm::exp(exact) * (exact - q.logprob(rounded))
            })
            .sum();
        Some(Compared {
            // Of equal rows and nearly equal ones sums may end a hair below zero.
            divergence: divergence.max(0.0),
            has_same_first: p.first == q.first,
            surprise: -q.logprob(*rounded.get(next as usize)?),
            exact_surprise: -p.logprob(*exact.get(next as usize)?),
        })
    }
}

/// ln Σ e^logit of a row, and its first highest logit.
struct LogSum {
    first: usize,
    sum: f64,
}

impl LogSum {
    fn of(row: &[f32]) -> Option<LogSum> {
        let mut first = 0;
        for (token, logit) in row.iter().enumerate() {
            if *logit > row[first] {
                first = token;
            }
        }
        let most = f64::from(*row.get(first)?);
        let sum: f64 = row.iter().map(|&logit| libm::exp(f64::from(logit) - most)).sum();
        let sum = most + libm::log(sum);
        sum.is_finite().then_some(LogSum { first, sum })
    }

    fn logprob(&self, logit: f32) -> f64 {
        f64::from(logit) - self.sum
    }
}

impl Sums {
    /// Adds positions: rows of `width` logits each, and the tokens that came after them. Gives whether all are numbers.
    #[must_use]
    pub fn add(&mut self, exact: &[f32], rounded: &[f32], width: usize, next: &[u32]) -> bool {
        let rows = exact.par_chunks(width).zip(rounded.par_chunks(width)).zip(next);
        let compared = rows.map(|((exact, rounded), &next)| Compared::of(exact, rounded, next));
        let compared: Option<Vec<Compared>> = compared.collect();
        for each in compared.iter().flatten() {
            self.positions += 1;
            self.divergence += each.divergence;
            self.worst = self.worst.max(each.divergence);
            self.same_first += usize::from(each.has_same_first);
            self.surprise += each.surprise;
            self.exact_surprise += each.exact_surprise;
        }
        compared.is_some()
    }

    pub fn quality(&self, format: Format, bytes_per_weight: f64) -> Quality {
        Quality {
            format: format.name(),
            bytes_per_weight,
            mean_divergence: self.mean(self.divergence),
            worst_divergence: self.worst,
            same_first: self.mean(self.same_first as f64),
            perplexity: libm::exp(self.mean(self.surprise)),
        }
    }

    /// Of f32.
    pub fn exact_perplexity(&self) -> f64 {
        libm::exp(self.mean(self.exact_surprise))
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.positions.max(1) as f64
    }
}

/// A decoder that reads windows, a chunk of rows at a time.
pub struct Reader<B: Backend> {
    decoder: Decoder<B>,
    ops: B,
    pages: B::Pages,
    table: Vec<u32>,
    scratch: Scratch<B>,
}

impl<B: Backend> Reader<B> {
    /// For windows of up to `window` tokens.
    ///
    /// # Errors
    /// When the machine has no room for their pages.
    pub fn new(ops: B, decoder: Decoder<B>, window: usize) -> Result<Reader<B>, OpsError> {
        let pages = window.div_ceil(PAGE);
        let limits = StepLimits { rows: ROWS, logit_rows: ROWS, positions: window };
        Ok(Reader {
            pages: ops.pages(decoder.config.page_shape(), decoder.precision().kv, pages)?,
            table: (0..pages as u32).collect(),
            scratch: Scratch::new(&ops, &decoder.config, limits)?,
            decoder,
            ops,
        })
    }

    /// The logits after each of `tokens`, which are in their window from `start` on; what came before was read.
    fn read(&mut self, tokens: &[u32], start: usize) -> Result<Vec<f32>, OpsError> {
        let positions: Vec<u32> = (start..start + tokens.len()).map(|at| at as u32).collect();
        let rows = Rows {
            tokens,
            positions: &positions,
            sequences: &vec![0; tokens.len()],
            segments: &[],
            tables: &[&self.table],
        };
        let chosen: Vec<usize> = (0..tokens.len()).collect();
        let Reader { decoder, ops, pages, scratch, .. } = self;
        decoder.forward(ops, rows, &chosen, pages, scratch);
        ops.read(scratch.logits().0, tokens.len())
    }
}

/// Both readers' logits over a window, added to `sums`. Gives whether all are numbers.
///
/// # Errors
/// A failure of the machine.
pub fn compare<B: Backend>(
    exact: &mut Reader<Cpu>,
    rounded: &mut Reader<B>,
    window: &[u32],
    sums: &mut Sums,
) -> Result<bool, OpsError> {
    let width = exact.decoder.config.vocab_size;
    // The last token has none after it.
    let read = &window[..window.len().saturating_sub(1)];
    for start in (0..read.len()).step_by(ROWS) {
        let tokens = &read[start..read.len().min(start + ROWS)];
        let next = &window[start + 1..][..tokens.len()];
        let (p, q) = (exact.read(tokens, start)?, rounded.read(tokens, start)?);
        if !sums.add(&p, &q, width, next) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `tokens` in whole windows of `window`, each after the tokens `before` a text.
pub fn windows(tokens: &[u32], before: &[u32], window: usize) -> Vec<Vec<u32>> {
    let own = window.saturating_sub(before.len()).max(1);
    tokens.chunks_exact(own).map(|tokens| [before, tokens].concat()).collect()
}

impl QualityReport {
    /// A table, and above it what was read.
    pub fn markdown(&self) -> String {
        let QualityReport { model, text, .. } = self;
        let mut table = format!(
            "{} ({}, {:.2} billion parameters) on {} by wardround {}\n\
             {}: {} positions in {} windows of {} tokens; perplexity in f32 {:.4}\n\n",
            model.name,
            model.family,
            model.parameters as f64 / 1e9,
            self.device_kind,
            self.version,
            text.name,
            text.positions,
            text.windows,
            text.window,
            self.perplexity,
        );
        table +=
            "| format | bytes per weight | mean KL | worst KL | same first token | perplexity |\n";
        table += "| --- | ---: | ---: | ---: | ---: | ---: |\n";
        for result in &self.results {
            table += &format!(
                "| {} | {:.3} | {:.5} | {:.4} | {:.2} % | {:.4} |\n",
                result.format,
                result.bytes_per_weight,
                result.mean_divergence,
                result.worst_divergence,
                100.0 * result.same_first,
                result.perplexity,
            );
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(exact: &[f32], rounded: &[f32], next: &[u32]) -> Sums {
        let mut sums = Sums::default();
        assert!(sums.add(exact, rounded, exact.len() / next.len(), next));
        sums
    }

    #[test]
    fn equal_rows_do_not_diverge() {
        let rows = [0.3, -7.5, 12.0, 1e-3, 0.25, 0.125];
        let quality = of(&rows, &rows, &[2, 0]).quality(Format::F32, 4.0);
        assert_eq!((quality.mean_divergence, quality.worst_divergence), (0.0, 0.0));
        assert_eq!(quality.same_first, 1.0);
    }

    #[test]
    fn divergence_and_perplexity_are_those_by_hand() {
        // Probabilities ½, ¼, ¼ beside ¼, ½, ¼; then the same twice, ⅛, ⅝ and ¼.
        let logits = |p: [f64; 3]| p.map(|p| (p.ln() + 3.0) as f32);
        let (p, q) = (logits([0.5, 0.25, 0.25]), logits([0.25, 0.5, 0.25]));
        let same = logits([0.125, 0.625, 0.25]);
        let sums = of(&[p, same].concat(), &[q, same].concat(), &[0, 1]);
        let quality = sums.quality(Format::Q8_0, 1.0625);
        // ½ ln 2 − ¼ ln 2.
        let divergence = 0.25 * 2f64.ln();
        assert!((quality.worst_divergence - divergence).abs() < 1e-6);
        assert!((quality.mean_divergence - divergence / 2.0).abs() < 1e-6);
        assert_eq!((quality.same_first, sums.positions), (0.5, 2));
        assert!((quality.perplexity - (4.0f64 / 0.625).sqrt()).abs() < 1e-5);
        assert!((sums.exact_perplexity() - (2.0f64 / 0.625).sqrt()).abs() < 1e-5);
    }

    #[test]
    fn what_is_no_number_is_not_summed() {
        let mut sums = Sums::default();
        assert!(!sums.add(&[1.0, 2.0], &[f32::NAN, 2.0], 2, &[0]));
        assert!(!sums.add(&[f32::INFINITY, 2.0], &[1.0, 2.0], 2, &[0]));
        // A token that the model has no row for.
        assert!(!sums.add(&[1.0, 2.0], &[1.0, 2.0], 2, &[2]));
        assert_eq!(sums.positions, 0);
    }

    #[test]
    fn every_window_begins_as_a_text_does_and_is_whole() {
        let tokens: Vec<u32> = (10..20).collect();
        assert_eq!(windows(&tokens, &[2], 5), [[2, 10, 11, 12, 13], [2, 14, 15, 16, 17]]);
        assert_eq!(windows(&tokens, &[], 5).len(), 2);
        assert!(windows(&tokens, &[2], 12).is_empty());
    }
}
