//! What was read of a call's text: an object whose fields are the system's. Whoever reads a log asks it here, by methods, so that a
//! field's name stands in one place.

use itertools::Itertools;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What was read of a call's text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Reply(Value);

/// Under which stand the values that the protocol goes on with where an unread reply gives none.
const ASSUMED: &str = "assumed";
/// An answer letter that is not one of the item's options.
pub const NOT_AN_OPTION: &str = "not_an_option";
/// Marks an unread reply that has the letter of one option beside the text of another, or calls a note right and names an error.
pub const CONTRADICTION: &str = "contradiction";

/// What a reply comes to, in the order in which it is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Says<'a> {
    /// A letter; empty where none was read.
    Answer(&'a str),
    /// Whether there is an error, and in which sentence; `None` where it could not be read.
    Flag(Option<bool>, Option<usize>),
    /// One of a searching agent's actions, by its name; `None`: neither.
    Action(Option<&'a str>),
    /// The last score of a review, in hundredths.
    Score(Option<u64>),
    /// A sentence's id or text, or that there is none.
    Sentence(Option<&'a str>),
    Correction(Option<&'a str>),
    /// None of these: a plan, a critique, a text.
    Other,
}

impl Reply {
    /// What a system read. What does not serialise becomes null, which no reader of logs accepts as one.
    pub fn of(read: impl Serialize) -> Reply {
        Reply(serde_json::to_value(read).unwrap_or(Value::Null))
    }

    /// Moves a field that nothing in the reply says below `assumed`, so that no record says what its reply does not.
    pub fn set_apart(&mut self, name: &str) {
        let Some(fields) = self.0.as_object_mut() else { return };
        if let Some(value) = fields.shift_remove(name) {
            fields.insert(ASSUMED.to_owned(), json!({ name: value }));
        }
    }

    /// Keeps an answer letter that is not one of the item's options.
    pub fn mark_not_an_option(&mut self, letter: String) {
        self.0[NOT_AN_OPTION] = letter.into();
    }

    pub fn mark_contradiction(&mut self) {
        self.0[CONTRADICTION] = true.into();
    }

    pub fn is_not_an_option(&self) -> bool {
        self.0.get(NOT_AN_OPTION).is_some()
    }

    pub fn is_contradiction(&self) -> bool {
        self.0.get(CONTRADICTION).is_some()
    }

    pub fn says(&self) -> Says<'_> {
        let field = |name: &str| self.0.get(name);
        if let Some(Value::String(answer)) = field("answer") {
            return Says::Answer(answer);
        }
        if let Some(flag) = field("flag").or_else(|| field("is_error")) {
            let id = field("sentence_id").and_then(Value::as_u64);
            return Says::Flag(flag.as_bool(), id.map(|id| id as usize));
        }
        // A plan is a word.
        if let Some(action) = field("action").filter(|action| !action.is_string()) {
            return Says::Action(action["name"].as_str());
        }
        if let Some(Value::Array(scores)) = field("scores") {
            return Says::Score(scores.last().and_then(Value::as_u64));
        }
        if let Some(sentence) = field("result") {
            return Says::Sentence(sentence.as_str());
        }
        match field("correction") {
            Some(correction) => Says::Correction(correction.as_str()),
            None => Says::Other,
        }
    }

    /// From 0 to 1, of the systems that ask for one.
    pub fn confidence(&self) -> Option<f64> {
        self.0["confidence"].as_f64()
    }

    pub fn correction(&self) -> Option<&str> {
        self.0["correction"].as_str()
    }

    /// The reasons that are given, under the names that systems have for them; empty where there are none.
    pub fn reasons(&self) -> &str {
        let names = ["reasoning", "explanation", "thought"];
        names.iter().find_map(|name| self.0[*name].as_str()).unwrap_or_default()
    }

    /// A reply that is one text.
    pub fn text(&self) -> &str {
        self.0["text"].as_str().unwrap_or_default()
    }

    /// As the system has it that read it; the default of what is another's.
    pub fn read<T: Default + DeserializeOwned>(&self) -> T {
        T::deserialize(&self.0).unwrap_or_default()
    }

    /// What of a reply is embedded to compare trajectories (MED-MAD, Appendix B.7): the steps of its reasoning, or else its support,
    /// under the names that systems have for them, every run of whitespace made one space. `None` where both are blank: such a
    /// trajectory is left out.
    pub fn trajectory(&self) -> Option<String> {
        let steps = match &self.0["cot"] {
            Value::Array(steps) => steps.iter().filter_map(Value::as_str).join(" "),
            Value::String(text) => text.clone(),
            _ => String::new(),
        };
        let support = match self.reasons() {
            "" => self.0["structured_reasoning"]["final_support"].as_str().unwrap_or_default(),
            reasons => reasons,
        };
        let collapse =
            |text: &str| Some(text.split_whitespace().join(" ")).filter(|words| !words.is_empty());
        collapse(&steps).or_else(|| collapse(support))
    }

    /// A letter, or what stands in its place; empty where there is none.
    pub fn answer(&self) -> &str {
        self.0["answer"].as_str().unwrap_or_default()
    }

    /// Every field in words, for a page that shows whatever there is.
    pub fn fields(&self) -> impl Iterator<Item = (&str, String)> {
        let fields = self.0.as_object().into_iter().flatten();
        fields.map(|(name, value)| (name.as_str(), in_words(value)))
    }
}

/// Texts of a list on one line, other entries a line each, an object's fields one after another.
fn in_words(value: &Value) -> String {
    let joined = |entries: &[Value], between: &str| entries.iter().map(in_words).join(between);
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(entries) if entries.iter().all(Value::is_string) => joined(entries, ", "),
        Value::Array(entries) => joined(entries, "\n"),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}: {}", in_words(value))).join("; ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl std::ops::Index<&str> for Reply {
        type Output = Value;

        fn index(&self, name: &str) -> &Value {
            &self.0[name]
        }
    }

    #[test]
    fn lists_and_objects_are_told_in_words() {
        let experts = json!([{"role": "Cardiologist", "knows": ["hearts", "vessels"]}, {"role": "GP", "lead": true}]);
        let reply = Reply::of(json!({"experts": experts, "text": "x", "nothing": null}));
        let told: Vec<(&str, String)> = reply.fields().collect();
        let experts = "role: Cardiologist; knows: hearts, vessels\nrole: GP; lead: true";
        let expected = [("experts", experts), ("text", "x"), ("nothing", "")];
        assert_eq!(told, expected.map(|(name, text)| (name, text.to_owned())));
    }

    #[test]
    fn steps_come_before_the_support_under_any_name_and_whitespace_collapses() {
        let text = |reply: Value| Reply::of(reply).trajectory();
        let support = json!({"final_support": " A  fits\n"});
        let reply = |cot: Value| json!({"cot": cot, "structured_reasoning": support});
        let steps = text(reply(json!(["  fever,\n\tcough ", "so A"])));
        assert_eq!(steps.as_deref(), Some("fever, cough so A"));
        for blank in [json!([]), json!([" ", ""]), Value::Null] {
            assert_eq!(text(reply(blank)).as_deref(), Some("A fits"));
        }
        for name in ["reasoning", "explanation", "thought"] {
            let said = text(json!({name: "because\n x", "answer": "A"}));
            assert_eq!(said.as_deref(), Some("because x"));
        }
        assert_eq!(text(json!({"cot": [], "reasoning": "\n "})), None);
        assert_eq!(text(json!({"answer": "A"})), None);
        assert_eq!(text(Value::Null), None);
    }

    #[test]
    fn a_reply_says_one_thing_and_one_that_was_not_read_says_so() {
        let cases = [
            (json!({"answer": "B", "confidence": 0.5}), Says::Answer("B")),
            (json!({"flag": true, "sentence_id": 2}), Says::Flag(Some(true), Some(2))),
            (json!({"is_error": null}), Says::Flag(None, None)),
            (json!({"action": null, "thought": "x"}), Says::Action(None)),
            (json!({"action": {"name": "search"}}), Says::Action(Some("search"))),
            (json!({"action": "INQUIRY"}), Says::Other),
            (json!({"scores": [100, null, 320]}), Says::Score(Some(320))),
            (json!({"scores": [100, null]}), Says::Score(None)),
            (json!({"result": "NAN"}), Says::Sentence(Some("NAN"))),
            (json!({"correction": null}), Says::Correction(None)),
            (json!({"text": "a plan"}), Says::Other),
            (Value::Null, Says::Other),
        ];
        for (reply, says) in cases {
            assert_eq!(Reply::of(&reply).says(), says, "{reply}");
        }
    }

    #[test]
    fn what_is_assumed_stands_apart() {
        let mut reply = Reply::of(json!({"agree": true, "text": "", "fields": []}));
        reply.set_apart("agree");
        reply.set_apart("missing");
        let expected = json!({"text": "", "fields": [], "assumed": {"agree": true}});
        assert_eq!(reply.0.to_string(), expected.to_string());
    }
}
