//! Lists that stand beside the agents of a line: whoever reads one may count on their being as long.

use serde::de::{Deserialize, Deserializer, Error};

use super::{DetectionLine, LocalisationLine, RoundLine};

pub trait Even {
    /// The agents.
    fn agents(&self) -> usize;
    /// Each list beside them, and how long it is.
    fn beside(&self) -> Vec<(&'static str, usize)>;
}

impl Even for RoundLine {
    fn agents(&self) -> usize {
        self.agents.len()
    }

    fn beside(&self) -> Vec<(&'static str, usize)> {
        // None where a system asks for none, or weighs none.
        let some = [("confidences", self.confidences.len()), ("weights", self.weights.len())];
        let some = some.into_iter().filter(|(_, count)| *count > 0);
        some.chain([("answers", self.answers.len())]).collect()
    }
}

impl Even for DetectionLine {
    fn agents(&self) -> usize {
        self.agents.len()
    }

    fn beside(&self) -> Vec<(&'static str, usize)> {
        vec![("flags", self.flags.len()), ("confidences", self.confidences.len())]
    }
}

impl Even for LocalisationLine {
    fn agents(&self) -> usize {
        self.agents.len()
    }

    fn beside(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("opinions", self.opinions.len()),
            ("sentence_ids", self.sentence_ids.len()),
            ("confidences", self.confidences.len()),
        ]
    }
}

pub fn all<'de, D: Deserializer<'de>, T: Even + Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let lines = Vec::<T>::deserialize(deserializer)?;
    lines.iter().try_for_each(check)?;
    Ok(lines)
}

pub fn one<'de, D: Deserializer<'de>, T: Even + Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let line = Option::<T>::deserialize(deserializer)?;
    line.iter().try_for_each(check)?;
    Ok(line)
}

fn check<T: Even, E: Error>(line: &T) -> Result<(), E> {
    let agents = line.agents();
    match line.beside().into_iter().find(|(_, count)| *count != agents) {
        None => Ok(()),
        Some((list, count)) => {
            Err(E::custom(format_args!("{count} {list} beside {agents} agents")))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::record::{AnswerLine, ItemLine, NoteLine};

    fn read(line: &ItemLine, from: &str, to: &str) -> Result<ItemLine, String> {
        let text = serde_json::to_string(line).unwrap();
        assert!(text.contains(from), "{text}");
        serde_json::from_str(&text.replacen(from, to, 1)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_whose_lists_are_not_equally_long_is_refused() {
        let round = r#"{"round": 0, "stage": "initial", "agents": ["a", "b"], "labels": [], "answers": ["A", "B"], "confidences": [], "weights": [1, 1], "aggregate": "A", "brief": ""}"#;
        let rounds = vec![serde_json::from_str(round).unwrap()];
        let answer = ItemLine::from(AnswerLine { rounds, ..AnswerLine::default() });
        assert_eq!(read(&answer, "brief", "brief").unwrap(), answer);
        for (from, to, told) in [
            (r#"["A","B"]"#, r#"["A"]"#, "1 answers beside 2 agents"),
            (r#""confidences":[]"#, r#""confidences":[1]"#, "1 confidences beside 2 agents"),
            (r#""weights":[1.0,1.0]"#, r#""weights":[1,1,1]"#, "3 weights beside 2 agents"),
            (r#"["a","b"]"#, r#"[]"#, "beside 0 agents"),
        ] {
            assert!(read(&answer, from, to).unwrap_err().contains(told), "{from}");
        }
        let detection =
            r#"{"source": "single", "agents": ["a"], "flags": [true], "confidences": [null]}"#;
        let localisation = r#"{"source": "single", "agents": ["a"], "opinions": ["1"], "sentence_ids": [1], "confidences": [0.5]}"#;
        let note = ItemLine::from(NoteLine {
            detection: Some(serde_json::from_str(detection).unwrap()),
            localisation: Some(serde_json::from_str(localisation).unwrap()),
            ..NoteLine::default()
        });
        assert_eq!(read(&note, "flags", "flags").unwrap(), note);
        for (from, to) in [("[true]", "[]"), (r#"["1"]"#, "[]"), ("[0.5]", "[0.5,0.5]")] {
            assert!(read(&note, from, to).unwrap_err().contains("beside 1 agents"), "{from}");
        }
    }
}
