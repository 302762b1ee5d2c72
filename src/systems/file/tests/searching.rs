//! The system that searches articles.

use std::sync::Arc;

use crate::diagnosis::Failure;
use crate::panel::scripted::{Script, panel};
use crate::prompts::PromptSet;
use crate::record::{CallLine, ItemLine, NoteLine, Passage};
use crate::retrieval::{Retrieve, SearchRequest, SearchResult, Searched};
use crate::systems::file::ask::longest_word;
use crate::systems::scripted::{exemplars, note};
use crate::systems::{SystemConfig, Task};

/// Finds one passage for everything that has a letter e, else nothing.
#[derive(Default)]
struct Library(Searched);

impl Retrieve for Library {
    fn searched(&self) -> &Searched {
        &self.0
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
        let passage = Passage {
            chunk: "a/1#0".into(),
            source: "a".into(),
            title: "Asthma".into(),
            score: 1.0,
            text: Some("Beta agonists open the airways.".into()),
            ..Passage::default()
        };
        let shown = if request.query.contains('e') { vec![passage] } else { Vec::new() };
        Ok(SearchResult { shown, ..SearchResult::default() })
    }
}

fn run(reply: impl Fn(&str) -> &'static str + Send + Sync + 'static) -> (NoteLine, Vec<CallLine>) {
    let config = SystemConfig::named("em-mixers").unwrap();
    let script = Script::new(move |key, _| reply(&key.purpose).to_owned());
    let (mut panel, calls) = panel(&["solo".to_owned()], script);
    panel.retriever = Some(Arc::new(Library::default()));
    let system = config.build(&PromptSet::embedded(), &exemplars()).unwrap();
    let item = note().into();
    let line = system.answer(&Task { panel: &panel, dataset: "d", item: &item, run: 1 });
    let ItemLine::Note(line) = line.unwrap() else { panic!() };
    let calls: Vec<CallLine> = calls.try_iter().collect();
    assert!(calls.len() <= config.max_calls() as usize && line.calls as usize == calls.len());
    (line, calls)
}

const FOUND: &str = r#"{"Error": "yes", "Error Sentence ID": 1, "Error Sentence": "x", "Corrected Sentence": "Beta agonists were given for the attack."}"#;

#[test]
fn an_article_must_confirm_the_finding() {
    let (line, calls) = run(|purpose| match purpose {
        "answer" => FOUND,
        "keyword" => r#"{"keyword": "Beta blockers"}"#,
        _ => r#"{"Error Flag": "yes", "Revised Sentence": "Other."}"#,
    });
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 3));
    assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
    let last = calls[2].messages.last().unwrap();
    assert!(last.content.contains("Beta agonists open the airways.") && !last.parts.is_empty());
    let (line, _) = run(|purpose| match purpose {
        "answer" => FOUND,
        "keyword" => "hm\nhm",
        _ => r#"{"Error Flag": "no", "Revised Sentence": "NA"}"#,
    });
    assert_eq!((line.flag.said(), line.sentence_id, line.correction), (Some(false), None, None));
}

#[test]
fn without_an_article_the_first_stage_stands() {
    let (line, calls) = run(|purpose| match purpose {
        "answer" => FOUND,
        _ => r#"{"keyword": "hyponym"}"#,
    });
    assert_eq!((line.flag.said(), calls.len()), (Some(true), 2));
    let none = r#"{"Error": "no", "Error Sentence ID": -1, "Error Sentence": "NA", "Corrected Sentence": "NA"}"#;
    fn none_reply(_: &str) -> &'static str {
        r#"{"Error": "no", "Error Sentence ID": -1, "Error Sentence": "NA", "Corrected Sentence": "NA"}"#
    }
    let (line, calls) = run(none_reply);
    assert_eq!((line.flag.said(), calls.len(), calls[0].text.as_str()), (Some(false), 1, none));
    // The same exemplars for every note, four with an error and three without, or as many as there are.
    assert!(calls[0].messages.iter().any(|one| one.content.contains("Patient 2")));
    assert_eq!(longest_word("Give beta-blockers at once."), "beta-blockers");
}

#[test]
fn the_longest_prompt_has_room_for_its_passages() {
    let longest = |pairs: &[&str]| {
        let config = SystemConfig::parse("em-mixers", pairs).unwrap();
        let system = config.build(&PromptSet::embedded(), &exemplars()).unwrap();
        system.longest_prompt(&note().into(), 100)
    };
    let (_, calls) = run(|_| r#"{"Error": "yes", "Error Sentence ID": 1, "keyword": "Beta"}"#);
    let messages = &calls.last().unwrap().messages;
    let sent: usize = messages.iter().map(|message| message.content.chars().count()).sum();
    let longest_prompt = longest(&[]).unwrap();
    assert!(longest_prompt >= sent && longest_prompt < sent + 400, "{longest_prompt}, {sent}");
    assert_eq!(longest(&["evidence=off"]), None);
}
