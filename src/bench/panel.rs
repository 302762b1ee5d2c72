//! What a panel's test came to: a whole system over questions, with every call that it makes.

use std::time::Duration;

use serde::Serialize;

use super::environment::Environment;
use crate::analysis::table::{Cell, Table};
use crate::engine::{EngineStats, Work};
use crate::experiment::plan::Plan;
use crate::ops::{Limits, Precision};
use crate::record::Usage;

#[derive(Clone, Debug, Serialize)]
pub struct PanelReport {
    pub panel: PanelFigures,
    /// One a backbone.
    pub engines: Vec<EngineFigures>,
    /// As a run of the same would have it.
    pub plan: Plan,
    pub environment: Environment,
}

/// Over all engines. Tokens a second are over the whole wall time, from the first question to the last answer.
#[derive(Clone, Debug, Serialize)]
pub struct PanelFigures {
    pub questions: usize,
    /// Of them, those that ended in an error.
    pub errors: usize,
    pub calls: usize,
    pub wall_seconds: f64,
    pub questions_per_minute: f64,
    #[serde(flatten)]
    pub tokens: Usage,
    pub completion_tokens_per_second: f64,
    /// Completions, and prompts but for what was cached.
    pub computed_tokens_per_second: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct EngineFigures {
    pub backbone: String,
    pub pages: usize,
    pub pages_peak: usize,
    pub preemptions: u64,
    pub drafted_tokens: u64,
    pub accepted_tokens: u64,
    pub decode: WorkFigures,
    pub prefill: WorkFigures,
}

/// Steps without (`decode`) or with a chunk of a prompt (`prefill`).
#[derive(Clone, Debug, Serialize)]
pub struct WorkFigures {
    pub steps: u64,
    pub rows: u64,
    /// Without waiting for other engines; with masks and sampling.
    pub busy_seconds: f64,
    /// From a step's draws to the start of the next one: what a GPU idles.
    pub idle_seconds: f64,
    /// Of a step.
    pub idle_us: Option<f64>,
    /// Shares of the busy time; `None` without any.
    pub share_of_bandwidth: Option<f64>,
    pub share_of_matrix_rate: Option<f64>,
}

impl PanelFigures {
    /// From the usage of every call and what every engine counted.
    pub fn new(questions: usize, errors: usize, wall: Duration, usages: &[Usage]) -> PanelFigures {
        let tokens = usages.iter().copied().fold(Usage::default(), Usage::and);
        let seconds = wall.as_secs_f64().max(1e-9);
        let computed = tokens.prompt_tokens - tokens.cached_tokens + tokens.completion_tokens;
        PanelFigures {
            questions,
            errors,
            calls: usages.len(),
            wall_seconds: seconds,
            questions_per_minute: questions as f64 * 60.0 / seconds,
            tokens,
            completion_tokens_per_second: tokens.completion_tokens as f64 / seconds,
            computed_tokens_per_second: computed as f64 / seconds,
        }
    }
}

impl EngineFigures {
    pub fn new(
        backbone: &str,
        stats: &EngineStats,
        limits: &Limits,
        precision: Precision,
    ) -> EngineFigures {
        EngineFigures {
            backbone: backbone.to_owned(),
            pages: stats.pages,
            pages_peak: stats.pages_peak,
            preemptions: stats.counts.preemptions,
            drafted_tokens: stats.drafted_tokens,
            accepted_tokens: stats.accepted_tokens,
            decode: WorkFigures::new(&stats.decode, limits, precision),
            prefill: WorkFigures::new(&stats.prefill, limits, precision),
        }
    }
}

impl WorkFigures {
    fn new(work: &Work, limits: &Limits, precision: Precision) -> WorkFigures {
        let busy = work.busy.as_secs_f64();
        let share = |amount: u64, rate: f64| (busy > 0.0).then(|| amount as f64 / rate / busy);
        WorkFigures {
            steps: work.steps,
            rows: work.rows,
            busy_seconds: busy,
            idle_seconds: work.idle.as_secs_f64(),
            idle_us: (work.steps > 0).then(|| work.idle.as_secs_f64() * 1e6 / work.steps as f64),
            share_of_bandwidth: share(work.cost.bytes_read, limits.bytes_per_second),
            share_of_matrix_rate: share(work.cost.multiply_adds, limits.matrix_rate(precision)),
        }
    }
}

impl PanelReport {
    /// Two tables, the panel's and the engines', and below them what it was measured on.
    pub fn tables(&self) -> [Table; 2] {
        let (panel, plan) = (&self.panel, &self.plan);
        let Usage { prompt_tokens, cached_tokens, completion_tokens, forced_tokens } = panel.tokens;
        let title = format!(
            "{} on {}, {} text, seed {}, {} in flight, batches of {}",
            plan.system,
            plan.dataset.name,
            plan.decoding.adjective(),
            plan.seed,
            plan.host.engine.max_in_flight,
            plan.host.engine.max_batch,
        );
        let rows = [
            ("questions (errors)", format!("{} ({})", panel.questions, panel.errors)),
            ("calls", panel.calls.to_string()),
            ("wall time, s", format!("{:.2}", panel.wall_seconds)),
            ("questions a minute", format!("{:.2}", panel.questions_per_minute)),
            ("prompt tokens (cached)", format!("{prompt_tokens} ({cached_tokens})")),
            ("completion tokens (forced)", format!("{completion_tokens} ({forced_tokens})")),
            ("completion tokens a second", format!("{:.1}", panel.completion_tokens_per_second)),
            ("computed tokens a second", format!("{:.1}", panel.computed_tokens_per_second)),
            ("peak memory", self.environment.peak_memory()),
        ];
        let panel = Table::of("panel", title, &rows).text("of the panel", |row| row.0);
        let panel = panel.text("figure", |row| &row.1).build();
        let seconds = |seconds: f64| Cell::Number(seconds, 2);
        let microseconds = |figure: Option<f64>| figure.map(|figure| Cell::Number(figure, 0));
        let percent = |share: Option<f64>| share.map(|share| Cell::Number(100.0 * share, 1));
        let engines = Table::of("engines", "Engines", &self.engines)
            .text("engine", |one| &one.backbone)
            .number("pages", |one| one.pages)
            .number("at peak", |one| one.pages_peak)
            .number("preemptions", |one| one.preemptions as usize)
            .number("drafted tokens", |one| one.drafted_tokens as usize)
            .number("accepted", |one| one.accepted_tokens as usize)
            .number("busy, s", |one| seconds(one.decode.busy_seconds + one.prefill.busy_seconds))
            .number("idle, s", |one| seconds(one.decode.idle_seconds + one.prefill.idle_seconds))
            .under("decode")
            .number("steps", |one| one.decode.steps as usize)
            .number("idle a step, µs", |one| microseconds(one.decode.idle_us))
            .number("share of bandwidth, %", |one| percent(one.decode.share_of_bandwidth))
            .under("prefill")
            .number("steps", |one| one.prefill.steps as usize)
            .number("idle a step, µs", |one| microseconds(one.prefill.idle_us))
            .number("share of matrix rate, %", |one| percent(one.prefill.share_of_matrix_rate))
            .note(self.environment.describe());
        [panel, engines.build()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cost;
    use crate::ops::StoredType;

    fn stats() -> EngineStats {
        EngineStats {
            decode: Work {
                steps: 10,
                rows: 30,
                cost: Cost { bytes_read: 4_000_000, multiply_adds: 1_000_000 },
                busy: Duration::from_millis(8),
                idle: Duration::from_millis(1),
            },
            pages: 100,
            pages_peak: 40,
            ..EngineStats::default()
        }
    }

    #[test]
    fn figures_follow_from_what_was_counted() {
        let limits = Limits {
            bytes_per_second: 1e9,
            f32_multiply_adds_per_second: 1e9,
            bf16_multiply_adds_per_second: None,
            i8_multiply_adds_per_second: None,
        };
        let stats = stats();
        let engine = EngineFigures::new("one", &stats, &limits, StoredType::Bf16.into());
        assert_eq!(engine.decode.share_of_bandwidth, Some(0.5));
        assert_eq!(engine.decode.share_of_matrix_rate, Some(0.125));
        assert_eq!(engine.prefill.share_of_matrix_rate, None);
        assert_eq!((engine.decode.idle_us, engine.prefill.idle_us), (Some(100.0), None));

        let usage = Usage {
            prompt_tokens: 100,
            cached_tokens: 60,
            completion_tokens: 50,
            forced_tokens: 20,
        };
        let wall = Duration::from_secs(2);
        let panel = PanelFigures::new(3, 0, wall, &[usage; 6]);
        assert_eq!((panel.calls, panel.questions_per_minute), (6, 90.0));
        assert_eq!(panel.tokens.forced_tokens, 120);
        assert_eq!(panel.completion_tokens_per_second, 150.0);
        assert_eq!(panel.computed_tokens_per_second, 270.0);
    }
}
