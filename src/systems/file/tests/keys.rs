//! Keys of files without effect.

use super::own::{DEBATE, open};

/// A stage that asks for a sentence, and one that says what is wrong there.
const NOTES: &str = r#"takes = "notes"
[settings]
tone = ["plain", "stern"]
[texts.how]
by = "tone"
plain = "Be plain."
stern = "Be stern."
[[stage]]
name = "where"
user = "{note} {how}"
reply = "sentence"
fields = [{ key = "number", is = "text" }]
[[stage]]
name = "answer"
when = "suspected"
user = "{note}"
fields = [{ key = "error", is = "flag", words = ["no", "yes"] }, { key = "number", is = "sentence-id" }]
"#;

#[test]
fn two_fields_of_one_key_are_refused() {
    assert!(open(NOTES, &[]).is_ok());
    let text = NOTES.replace("\"number\"", "\"ERROR\"");
    let refused = open(&text, &[]).err().unwrap().to_string();
    assert!(
        refused.contains("line 17: stage answer, fields: two fields have the key"),
        "{refused}"
    );
}

#[test]
fn a_key_without_effect_is_refused_with_what_it_needs() {
    // Behind `old`, in the file of questions or of notes.
    let (judge, opinion) = ("reply = \"letter\"", "name = \"opinion\"");
    let (asked, answer) = ("reply = \"sentence\"", "name = \"answer\"");
    for (file, old, new, key) in [
        (DEBATE, judge, "gives = \"opinion\"", "gives"),
        (DEBATE, judge, "vote = \"apart\"", "vote"),
        (DEBATE, judge, "most = 3", "most"),
        (DEBATE, judge, "passages = 2", "passages"),
        (DEBATE, judge, "shots = 2", "shots"),
        (DEBATE, judge, "drawn_from = 2", "drawn_from"),
        (DEBATE, judge, "style = \"lines\"", "style"),
        (DEBATE, opinion, "style = \"lines\"", "style"),
        (DEBATE, opinion, "example = \"{number}\"", "example"),
        (DEBATE, opinion, "temperature = 0.0\ntries = 2", "tries"),
        (DEBATE, opinion, "when = \"disagree\"", "when"),
        (DEBATE, judge, "rounds = 2\nfrom = \"judge\"", "from"),
        (DEBATE, opinion, "from = \"opinion\"", "from"),
        (NOTES, asked, "agents = []", "agents"),
        (NOTES, asked, "gives = \"opinion\"", "gives"),
        (NOTES, asked, "vote = \"majority\"", "vote"),
        (NOTES, asked, "most = 2", "most"),
        (NOTES, answer, "gives = \"veto\"", "gives"),
        (NOTES, answer, "most = 2", "most"),
        (NOTES, answer, "passages = 2", "passages"),
        (NOTES, answer, "shots = 2", "shots"),
        (NOTES, answer, "drawn_from = 2", "drawn_from"),
        (NOTES, asked, "when = \"suspected\"", "when"),
        (NOTES, asked, "when = \"error\"", "when"),
        (NOTES, "[settings]", "shots = 2", "shots"),
        (NOTES, "[settings]", "choice = \"tfidf\"", "choice"),
        (NOTES, "[settings]", "temperatures = \"paper\"", "temperatures"),
        (NOTES, "[settings]", "evidence = [\"on\", \"off\"]", "evidence"),
        (NOTES, "[settings]", "candidate = [\"asked\", \"position\"]", "candidate"),
        (NOTES, "[settings]", "mood = [\"kind\", \"stern\"]", "mood"),
    ] {
        let text = file.replacen(old, &format!("{old}\n{new}"), 1);
        let refused = open(&text, &[]).err().unwrap_or_else(|| panic!("{new} is taken"));
        let told = format!("{key}: it has no effect here");
        assert!(refused.to_string().contains(&told), "{refused}, not {told}");
        assert!(refused.hint().is_some_and(|hint| hint.starts_with("it needs ")), "{refused}");
    }
    let text = NOTES.replacen("when = \"suspected\"", "when = \"disagree\"", 1);
    let hint = open(&text, &[]).err().unwrap().hint().unwrap();
    assert!(hint.contains("always") && hint.contains("suspected"), "{hint}");
}
