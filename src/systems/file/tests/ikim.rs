//! IKIM: one candidate sentence of a note is judged, with the most similar right and wrong sentence of the exemplars in the prompt.

use crate::panel::scripted::Script;
use crate::prompts::PromptSet;
use crate::systems::SystemConfig;
use crate::systems::scripted::{check, note};

const WRONG: &str =
    "Reasoning: no\nIs correct: No\nCorrected sentence: Beta agonists were given for the attack.";

#[test]
fn the_candidate_is_judged_beside_the_nearest_right_and_wrong_sentence() {
    let config = SystemConfig::parse("ikim", &["choice=tfidf"]).unwrap();
    let (line, calls) = check(&config, &note(), Script::new(|_, _| WRONG.to_owned()));
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(2), 1));
    assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
    let messages = &calls[0].messages;
    let roles: Vec<&str> = messages.iter().map(|one| one.role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"]);
    assert!(messages[2].content.contains("Is correct: Yes\nCorrected sentence: NA"));
    assert!(messages[3].content.contains("Aspirin was given for malaria."));
    assert!(messages[5].content.contains("She went home."));
    let unread = Script::new(|_, _| "hm".to_owned());
    let (line, calls) = check(&config, &note(), unread);
    assert_eq!((line.flag.said(), calls.len()), (None, 1));
}

#[test]
fn the_candidate_stands_where_most_errors_do() {
    let config = SystemConfig::parse("ikim", &["choice=tfidf"]).unwrap();
    let right = "Reasoning: yes\nIs correct: Yes\nCorrected sentence: NA";
    let (line, calls) = check(&config, &note(), Script::new(move |_, _| right.to_owned()));
    assert_eq!((line.flag.said(), calls.len()), (Some(false), 1));
    assert!(calls[0].messages[5].content.ends_with("She went home."));
    assert!(SystemConfig::parse("ikim", &["choice=random"]).is_err());
    let config = SystemConfig::named("ikim").unwrap();
    let refused = config.build(&PromptSet::embedded(), &Default::default()).err().unwrap();
    assert!(refused.to_string().contains("there is no encoder"));
}
