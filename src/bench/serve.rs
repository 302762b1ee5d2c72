//! What a server of completions delivers under load, beside the same engine asked in process.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use super::load::{Arrival, Finished, LoadFigures, Outcome, Percentiles, PromptShape, Seen, Watch};
use crate::engine::{Latencies, Request, Sampling};
use crate::experiment::plan::HostPlan;
use crate::panel::backbone::Backbone;

#[derive(Clone, Debug, Serialize)]
pub struct ServeReport {
    pub results: Vec<ServeMeasurement>,
    /// The server's address, or what it was started with.
    pub server: String,
    pub model: String,
    pub prompts: PromptShape,
    pub created_at: String,
    pub hardware: HostPlan,
    pub version: &'static str,
    pub profile: &'static str,
}

/// One load.
#[derive(Clone, Debug, Serialize)]
pub struct ServeMeasurement {
    pub arrival: Arrival,
    pub http: LoadFigures,
    /// Of the requests for `/health` that were made while the load was on.
    pub health_ms: Percentiles,
    /// Of the server; `None` where it is another machine's.
    pub memory: Option<Memory>,
    /// The same load on the engine in this process.
    pub in_process: Option<LoadFigures>,
    /// Answers whose text is the same over HTTP and in process.
    pub equal_answers: Option<usize>,
}

/// The server's resident memory in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    pub before: f64,
    pub most: f64,
    pub after: f64,
    /// The slope of the last nine tenths of the load's time, of loads of a minute and more.
    pub growth_per_hour: Option<f64>,
}

/// Completes the prompt of request `index` as the server does, without it.
pub fn ask_in_process(backbone: &Backbone, shape: &PromptShape, index: usize) -> Seen {
    let mut watch = Watch::start();
    let tokens = match backbone.description.tokenizer.encode_with(&shape.prompt(index), true) {
        Ok(tokens) => tokens,
        Err(error) => return watch.end(Outcome::Failed(error.to_string()), 0, 0),
    };
    let sampling = Sampling { temperature: 0.0, ..backbone.description.generation.sampling };
    let request = Request {
        tokens,
        sampling,
        max_tokens: shape.max_tokens,
        pieces: true,
        ..Request::default()
    };
    let ended = backbone.engine.submit(request);
    match ended.and_then(|ticket| ticket.wait_with(|piece| watch.piece(piece))) {
        Ok(done) => {
            let usage = &done.usage;
            watch.end(Outcome::Answered, usage.prompt_tokens, usage.completion_tokens)
        }
        Err(error) => watch.end(Outcome::Failed(error.to_string()), 0, 0),
    }
}

/// How many requests were answered with the same text by both.
pub fn equal_answers(one: &Finished, other: &Finished) -> usize {
    let pairs = one.seen.iter().zip(&other.seen);
    let answered = |seen: &Seen| seen.outcome == Outcome::Answered;
    let equal = pairs.filter(|((index, one), (other_index, other))| {
        index == other_index && answered(one) && answered(other) && one.text == other.text
    });
    equal.count()
}

/// The resident memory of a process in MiB.
pub fn resident_mib(pid: u32) -> Option<f64> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new().ok()?;
    let what = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    Some(system.process(pid)?.memory() as f64 / f64::from(1 << 20))
}

/// What was seen of a server from outside while `is_over` was not yet.
#[derive(Default)]
pub struct Observed {
    /// Of the requests for `/health` that were answered.
    pub health: Latencies,
    /// When, in seconds, and how much, in MiB.
    pub memory: Vec<(f64, f64)>,
}

/// Asks for the server's health ten times a second, and looks at its memory.
pub fn observe(
    pid: Option<u32>,
    health: impl Fn() -> Result<Duration, String>,
    is_over: impl Fn() -> bool,
) -> Observed {
    let began = Instant::now();
    let mut observed = Observed::default();
    while !is_over() {
        if let Ok(time) = health() {
            observed.health.record(time);
        }
        if let Some(resident) = pid.and_then(resident_mib) {
            observed.memory.push((began.elapsed().as_secs_f64(), resident));
        }
        thread::sleep(Duration::from_millis(100));
    }
    observed
}

impl Memory {
    /// From samples of (seconds, MiB) during the load.
    pub fn new(before: f64, samples: &[(f64, f64)], after: f64) -> Memory {
        let most = samples.iter().map(|sample| sample.1).fold(before.max(after), f64::max);
        let end = samples.last().map_or(0.0, |sample| sample.0);
        let late: Vec<(f64, f64)> =
            samples.iter().copied().filter(|sample| sample.0 >= end / 10.0).collect();
        let growth_per_hour = (end >= 60.0).then(|| 3600.0 * slope(&late));
        Memory { before, most, after, growth_per_hour }
    }
}

/// Of the line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let together: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    together / spread
}

impl ServeReport {
    /// What it was measured on, then a table.
    pub fn markdown(&self) -> String {
        let PromptShape { words, shared, max_tokens, .. } = self.prompts;
        let mut text = format!(
            "{} of {}\n{}, {} cores; wardround {} ({})\nprompts of {words} words, {:.0} % of them shared; {max_tokens} tokens each, streamed\n\n",
            self.model,
            self.server,
            self.hardware.cpu,
            self.hardware.cores,
            self.version,
            self.profile,
            100.0 * shared,
        );
        text += "| load | requests | refused | failed | req/s | tokens/s | in process | first text p50 / p99 ms | between pieces | request | in process p50 | health p99 | memory before / most / after MiB | equal answers |\n";
        text += "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        for result in &self.results {
            text += &result.row();
        }
        for result in &self.results {
            if let Some(failure) = &result.http.failure {
                text += &format!("\nfirst failure of {}: {failure}\n", result.arrival);
            }
        }
        text
    }
}

impl ServeMeasurement {
    fn row(&self) -> String {
        let http = &self.http;
        let number = |figure: Option<f64>| figure.map_or("–".to_owned(), |f| format!("{f:.1}"));
        let both =
            |figures: &Percentiles| format!("{} / {}", number(figures.p50), number(figures.p99));
        let in_process = self.in_process.as_ref();
        let rate = in_process.map_or("–".to_owned(), |figures| {
            let share = 100.0 * http.tokens_per_second / figures.tokens_per_second;
            format!("{:.0} ({share:.0} %)", figures.tokens_per_second)
        });
        let memory = self.memory.map_or("–".to_owned(), |memory| {
            let growth = memory.growth_per_hour;
            let growth = growth.map(|slope| format!(", {slope:+.1} an hour")).unwrap_or_default();
            format!("{:.0} / {:.0} / {:.0}{growth}", memory.before, memory.most, memory.after)
        });
        format!(
            "| {} | {} | {} | {} | {:.1} | {:.0} | {rate} | {} | {} | {} | {} | {} | {memory} | {} |\n",
            self.arrival,
            http.requests,
            http.refused,
            http.failed,
            http.requests_per_second,
            http.tokens_per_second,
            both(&http.first_text_ms),
            both(&http.between_pieces_ms),
            both(&http.request_ms),
            number(in_process.and_then(|figures| figures.request_ms.p50)),
            number(self.health_ms.p99),
            self.equal_answers.map_or("–".to_owned(), |count| count.to_string()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_slope_of_all_but_the_beginning() {
        // Ten seconds of loading, then 36 MiB an hour.
        let samples: Vec<(f64, f64)> = (0..=100)
            .map(f64::from)
            .map(|second| (second, if second < 10.0 { 0.0 } else { 50.0 + second / 100.0 }))
            .collect();
        let memory = Memory::new(20.0, &samples, 40.0);
        assert_eq!((memory.before, memory.most, memory.after), (20.0, 51.0, 40.0));
        assert!((memory.growth_per_hour.unwrap() - 36.0).abs() < 1e-6);
        assert_eq!(Memory::new(1.0, &samples[..50], 2.0).growth_per_hour, None);
    }

    #[test]
    fn answers_are_equal_only_where_both_answered() {
        let seen = |outcome: Outcome, text: &str| {
            let mut watch = Watch::start();
            watch.piece(text);
            watch.end(outcome, 1, 1)
        };
        let finished = |texts: [&str; 3], last: Outcome| Finished {
            seen: texts
                .into_iter()
                .zip([Outcome::Answered, Outcome::Answered, last])
                .map(|(text, outcome)| seen(outcome, text))
                .enumerate()
                .collect(),
            wall: Duration::from_secs(1),
        };
        let one = finished(["a", "b", "c"], Outcome::Answered);
        assert_eq!(equal_answers(&one, &finished(["a", "b", "c"], Outcome::Answered)), 3);
        assert_eq!(equal_answers(&one, &finished(["a", "x", "c"], Outcome::Refused)), 1);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_mib(std::process::id()).unwrap() > 1.0);
    }
}
