//! The calls of a stage of a note side by side, and who settled it.

use serde::Serialize;

use super::voice::Voice;
use crate::record::{CallLine, NoteLine, Source};
use crate::report::prompts::Prompts;

#[derive(Serialize)]
pub struct Stage<'a> {
    /// The calls' purpose.
    name: &'a str,
    settled: Option<String>,
    voices: Vec<Voice<'a>>,
}

/// The stages in the order in which they began.
pub fn stages<'a>(
    note: &NoteLine,
    calls: &[&'a CallLine],
    prompts: &mut Prompts<'a>,
) -> Vec<Stage<'a>> {
    let mut stages: Vec<Stage<'a>> = Vec::new();
    for &call in calls {
        let voice = Voice::new(call, note, prompts.number(call));
        match stages.iter_mut().find(|stage| stage.name == call.purpose) {
            Some(stage) => stage.voices.push(voice),
            None => stages.push(Stage {
                name: &call.purpose,
                settled: settled(note, &call.purpose),
                voices: vec![voice],
            }),
        }
    }
    stages
}

fn settled(note: &NoteLine, stage: &str) -> Option<String> {
    match stage {
        "detection" => {
            let detection = note.detection.as_ref()?;
            Some(who(detection.source, &detection.agents))
        }
        "localisation" => {
            let localisation = note.localisation.as_ref()?;
            Some(who(localisation.source, &localisation.agents))
        }
        _ => None,
    }
}

/// Who settled a stage, in words.
fn who(source: Source, agents: &[String]) -> String {
    let [first, second, third] =
        [0, 1, 2].map(|place| agents.get(place).map_or("?", String::as_str));
    match source {
        Source::Single => format!("{first} alone"),
        Source::Agreement => format!("{first} and {second} agreed"),
        Source::Arbitration => {
            format!("{first} and {second} did not agree; {third} read both and decided")
        }
        Source::Vote => {
            format!(
                "{first} and {second} did not agree; {third} read neither, and the majority decided"
            )
        }
    }
}

/// The same in a word, for a row.
pub fn word(source: Source) -> &'static str {
    match source {
        Source::Single => "alone",
        Source::Agreement => "agreed",
        Source::Arbitration => "arbitrated",
        Source::Vote => "voted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::notes::fixtures::{called, detected, note};

    #[test]
    fn calls_stand_by_purpose_in_the_order_of_their_beginning() {
        let mut checked = note("x");
        checked.detection = Some(detected(
            Source::Arbitration,
            &[Some(true), None, Some(true)],
        ));
        let calls = [
            called("x", "det1", "detection"),
            called("x", "det2", "detection"),
            called("x", "det3", "detection"),
            called("x", "corr1", "correction"),
        ];
        let calls: Vec<&CallLine> = calls.iter().collect();
        let stages = stages(&checked, &calls, &mut Prompts::default());
        let told: Vec<(&str, usize)> = stages
            .iter()
            .map(|one| (one.name, one.voices.len()))
            .collect();
        assert_eq!(told, [("detection", 3), ("correction", 1)]);
        assert_eq!(
            stages[0].settled.as_deref(),
            Some("det1 and det2 did not agree; det3 read both and decided")
        );
        assert_eq!(stages[1].settled, None);
    }
}
