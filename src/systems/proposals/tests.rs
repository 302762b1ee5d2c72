use super::*;
use crate::panel::scripted::Script;
use crate::record::CallLine;
use crate::systems::scripted;
use crate::systems::table::SYSTEMS;

fn open() -> Question {
    Question {
        id: "q1".into(),
        question: "What is the antidote of heparin?".into(),
        reference: Some("Protamine.".into()),
        ..Question::default()
    }
}

/// What each agent says of itself; afterwards all choose the option that says `chosen`.
fn work(
    system: &str,
    pairs: &[&str],
    own: impl Fn(&str, u32) -> &'static str + Send + Sync + 'static,
    chosen: &'static str,
) -> (AnswerLine, Vec<CallLine>) {
    let config = SystemConfig::parse(system, pairs).unwrap();
    let script = Script::new(move |key, messages| {
        if key.purpose == PURPOSE {
            return own(&key.agent, key.sample).to_owned();
        }
        let prompt: String = messages.iter().map(|one| one.content.as_str()).collect();
        let line = prompt.lines().find(|line| line.ends_with(chosen)).unwrap_or("?");
        let letter = line.trim_start_matches("- ").chars().next().unwrap_or('?');
        format!(r#"{{"answer": "{letter}", "confidence": 0.8}}"#)
    });
    scripted::answer(&config, &open(), script)
}

#[test]
fn a_panel_debates_on_what_its_agents_said() {
    let own = |agent: &str, _: u32| match agent {
        "sym" => "Vitamin K.",
        "ddx" => "Protamine sulfate.",
        _ => "Idarucizumab.",
    };
    let (line, calls) = work("medmad", &[], own, "Protamine sulfate.");
    assert_eq!(line.answer, "Protamine sulfate.");
    assert_eq!((line.gold, line.correct), (None, None));
    assert_eq!(line.reference.as_deref(), Some("Protamine."));
    let mut options = line.options.clone();
    options.sort();
    assert_eq!(options, ["Idarucizumab.", "Protamine sulfate.", "Vitamin K."]);
    // Three answers of their own, three choices.
    assert_eq!((line.calls, calls.len()), (6, 6));
    let letter = ('A'..).zip(&line.options).find(|(_, text)| **text == line.answer).unwrap().0;
    assert_eq!(
        line.rounds[0].answers,
        [letter.to_string(), letter.to_string(), letter.to_string()]
    );
    // No prompt holds the reference.
    assert!(
        calls
            .iter()
            .all(|call| call.messages.iter().all(|one| !one.content.contains("Protamine.")))
    );
}

#[test]
fn letters_are_drawn_for_each_item() {
    let own = |agent: &str, _: u32| if agent == "sym" { "Vitamin K." } else { "Protamine." };
    let first = |id: usize| {
        let config = SystemConfig::named("medmad").unwrap();
        let question = Question { id: id.to_string(), ..open() };
        let script = Script::new(move |key, _| match key.purpose.as_str() {
            PURPOSE => own(&key.agent, 0).to_owned(),
            _ => r#"{"answer": "A"}"#.to_owned(),
        });
        scripted::answer(&config, &question, script).0.options[0] == "Vitamin K."
    };
    let first = (0..40).filter(|id| first(*id)).count();
    assert!((8..33).contains(&first), "{first} of 40");
}

#[test]
fn what_all_say_is_the_answer_and_nothing_more_is_asked() {
    let same = |agent: &str, _: u32| {
        if agent == "sym" { "Protamine sulfate" } else { "protamine sulfate." }
    };
    let (line, calls) = work("medmad", &[], same, "?");
    assert_eq!((line.answer.as_str(), calls.len()), ("Protamine sulfate", 3));
    assert_eq!((line.options.len(), line.team_confidence), (1, 1.0));
    assert_eq!(line.rounds[0].answers, ["A", "A", "A"]);
    let (line, calls) = work("zero-shot", &[], |_, _| "Protamine.", "?");
    assert_eq!((line.answer.as_str(), calls.len()), ("Protamine.", 1));
}

#[test]
fn answers_that_differ_in_a_sign_are_two() {
    let own = |agent: &str, _: u32| if agent == "sym" { "If K+ < 3.5" } else { "if K+ >  3.5." };
    let (line, calls) = work("medmad", &["t_max=0"], own, "if K+ >  3.5.");
    assert_eq!((line.options.len(), line.answer.as_str()), (2, "if K+ >  3.5."));
    assert_eq!(calls.len(), 6);
}

#[test]
fn one_model_chooses_among_its_own_answers() {
    let own = |_: &str, sample: u32| ["Vitamin K.", "Protamine.", "Vitamin K."][sample as usize];
    let (line, calls) = work("self-consistency", &["samples=3"], own, "Protamine.");
    assert_eq!((line.answer.as_str(), line.options.len(), calls.len()), ("Protamine.", 2, 3 + 3));
}

#[test]
fn what_could_not_be_read_is_no_option_and_no_answer() {
    for nothing in ["", "...", "I cannot help with that.", "<think>Protamine or"] {
        let own = move |agent: &str, _: u32| if agent == "sym" { nothing } else { "Protamine." };
        let (line, calls) = work("medmad", &[], own, "?");
        assert_eq!((line.answer.as_str(), line.options.len(), calls.len()), ("Protamine.", 1, 3));
        assert_eq!(line.rounds[0].answers, ["", "A", "A"], "{nothing}");
        assert!(line.team_confidence < 0.7);
        let (line, calls) = work("medmad", &[], move |_, _| nothing, "?");
        assert_eq!((line.answer.as_str(), line.options.len()), ("", 0), "{nothing}");
        assert!(calls.iter().all(|call| matches!(call.parse, Parse::Unread | Parse::Refused)));
    }
    // Nobody's letter could be read.
    let own = |agent: &str, _: u32| if agent == "sym" { "Vitamin K." } else { "Protamine." };
    let (line, _) = work("medmad", &["t_max=0"], own, "no such line");
    assert_eq!((line.answer.as_str(), line.options.len()), ("", 2));
}

#[test]
fn a_reply_may_be_a_record_or_cut_off() {
    let said = |text, finish| {
        let (proposal, parse) = read(text, finish);
        (proposal.text, parse)
    };
    let stop = FinishReason::Stop;
    assert_eq!(said(r#"{"answer": "Protamine."}"#, stop), ("Protamine.".into(), Parse::Ok));
    assert_eq!(said("<think>hm</think> Protamine.", stop), ("Protamine.".into(), Parse::Ok));
    assert_eq!(said("Protamine, since", FinishReason::Length).1, Parse::Fallback);
    assert_eq!(said(r#"{"answer": ""}"#, stop), (String::new(), Parse::Unread));
}

#[test]
fn every_system_of_questions_takes_open_ones() {
    for entry in SYSTEMS.iter().filter(|entry| entry.takes == crate::data::ItemKind::Questions) {
        let config = SystemConfig::named(entry.name).unwrap();
        let system = config.build(&PromptSet::embedded(), &scripted::exemplars()).unwrap();
        let openings = system.opening("open", &open().into()).unwrap();
        assert_eq!(openings.len(), config.slots().len(), "{}", entry.name);
        if config.check_proposals().is_err() {
            panic!("{}: more agents than letters", entry.name);
        }
        let said = "<think>so</think>\nAnswer: B";
        let script = Script::new(move |key, _| match key.purpose.as_str() {
            PURPOSE => format!("{} says so.", key.agent),
            _ => said.to_owned(),
        });
        let (line, calls) = scripted::answer(&config, &open(), script);
        let is_alone = config.slots().len() == 1;
        assert_eq!(line.options.len(), config.slots().len(), "{}", entry.name);
        assert_eq!(calls.len() == config.samples() as usize, is_alone, "{}", entry.name);
        assert_eq!(line.answer, line.options[usize::from(!is_alone)], "{}", entry.name);
    }
    let many = SystemConfig::parse("medmad", &["samples=4"]).unwrap();
    let told = many.check_proposals().unwrap_err().to_string();
    assert_eq!(
        told,
        "medmad: 3 agents with 4 answers each to an open question, and options have the letters A to J"
    );
}
