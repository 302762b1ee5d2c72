//! How fast a run was: items a minute, and of each engine how full its steps were and how much of the time it was at work.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::console;
use crate::engine::{EngineSnapshot, EngineStats, Work};
use crate::panel::backbone::Backbone;

/// A line on stderr for all runs, and one for each engine, from its start on.
pub fn tell(engines: &[Arc<Backbone>], items: u64, took: Duration) {
    // All of it may come from a store of calls, in no time.
    let seconds = took.as_secs_f64().max(0.001);
    console::note(format!("speed: {:.1} items a minute", items as f64 * 60.0 / seconds));
    for backbone in engines {
        if let Some(stats) = stats(backbone) {
            console::note(format!(
                "speed: {}",
                of_engine(&backbone.description.checkpoint.name, &stats, seconds)
            ));
        }
    }
}

/// `None`: the engine has stopped.
fn stats(backbone: &Backbone) -> Option<EngineStats> {
    let (sender, snapshots) = channel();
    let keep = move |snapshot: EngineSnapshot| drop(sender.send(snapshot.stats));
    backbone.engine.request_snapshot(Box::new(keep)).ok()?;
    snapshots.recv().ok()
}

fn of_engine(name: &str, stats: &EngineStats, seconds: f64) -> String {
    let EngineStats { decode, prefill, counts, .. } = stats;
    let share = |part: f64, whole: f64| 100.0 * part / whole.max(f64::MIN_POSITIVE);
    let rows = |work: &Work| work.rows as f64 / work.steps.max(1) as f64;
    let both = |of: fn(&Work) -> Duration| (of(decode) + of(prefill)).as_secs_f64();
    format!(
        "{name}: {} decode steps of {:.1} rows and {} prefill steps of {:.1}, busy {:.0} % of the time and idle {:.0} % between steps; \
         {:.0} % of prompt tokens cached",
        decode.steps,
        rows(decode),
        prefill.steps,
        rows(prefill),
        share(both(|work| work.busy), seconds),
        share(both(|work| work.idle), seconds),
        share(counts.cached_tokens as f64, counts.prompt_tokens as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Counts;

    #[test]
    fn an_engines_line_follows_from_what_it_counted() {
        let milliseconds = Duration::from_millis;
        let stats = EngineStats {
            decode: Work {
                steps: 10,
                rows: 35,
                busy: milliseconds(800),
                idle: milliseconds(100),
                ..Work::default()
            },
            prefill: Work { steps: 2, rows: 600, busy: milliseconds(400), ..Work::default() },
            counts: Counts { prompt_tokens: 200, cached_tokens: 84, ..Counts::default() },
            ..EngineStats::default()
        };
        assert_eq!(
            of_engine("qwen3-4b", &stats, 2.0),
            "qwen3-4b: 10 decode steps of 3.5 rows and 2 prefill steps of 300.0, busy 60 % of the time and idle 5 % between steps; \
             42 % of prompt tokens cached"
        );
        assert!(
            of_engine("none", &EngineStats::default(), 2.0).contains("0 decode steps of 0.0 rows")
        );
    }
}
