//! The gold of the published notes, answered as the prompts ask for it, comes out of a system as it is.

use std::path::Path;

use crate::data::{Format, Note, load};
use crate::panel::scripted::Script;
use crate::record::GoldLine;
use crate::systems::SystemConfig;
use crate::systems::scripted::check;

/// Notes with an error.
fn notes(file: &str, format: Format) -> Vec<(Note, GoldLine)> {
    let directory = std::env::var("WARDROUND_DATA").unwrap();
    let dataset = load(&Path::new(&directory).join(file), format).unwrap();
    let error = |note: &Note| Some((note.clone(), note.error()?.clone()));
    dataset.notes().into_iter().filter_map(error).collect()
}

/// How many notes the system `name` does not judge as their gold does, where its agents reply `said`.
fn lost(
    name: &str,
    notes: &[(Note, GoldLine)],
    said: fn(&str, &GoldLine) -> String,
) -> Vec<String> {
    let config = SystemConfig::parse::<&str>(name, &[]).unwrap();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_lost = |(note, error): &&(Note, GoldLine)| {
        let correction = error.correction.as_deref().map(one_line);
        let error = GoldLine { correction, ..error.clone() };
        let gold = error.clone();
        let script = Script::new(move |key, _| said(&key.purpose, &gold));
        let (line, _) = check(&config, note, script);
        let correction = line.correction.as_deref().map(one_line);
        let is_same = correction == error.correction;
        (line.flag.said(), line.sentence_id) != (Some(true), error.sentence_id) || !is_same
    };
    notes.iter().filter(is_lost).map(|(note, _)| note.id.clone()).collect()
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_gold_replies_come_out_as_gold() {
    // In ms-test-153, whose text stands there twice, the correction is another sentence of the note; the sentence of en-test-204 is one
    // misspelt word; that of ara-test-67 without its last word, and no mark behind it, could be cut off, as that of ara-test-20 could, which says
    // something else without a mark.
    for (file, format, base, guards) in [
        ("medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv", Format::Medec, 1, 1),
        ("mederrbench/reviewed_data_EN_test.csv", Format::Mederrbench, 0, 1),
        ("mederrbench/reviewed_data_ARA_test.csv", Format::Mederrbench, 2, 1),
        ("mederrbench/reviewed_data_CN_test.csv", Format::Mederrbench, 0, 0),
    ] {
        let notes = notes(file, format);
        let found = lost("base-llm", &notes, |_, error| {
            format!("{} {}", error.sentence_id.unwrap(), error.correction.as_deref().unwrap())
        });
        println!("{file}: base-llm loses {found:?}");
        assert!(found.len() <= base, "{file}");
        let found = lost("medguards", &notes, |purpose, error| match purpose {
            "detection" => "<think>t</think>\nINCORRECT\n<confidence>90</confidence>".to_owned(),
            "localisation" => format!("<result>{}</result>", error.sentence.as_deref().unwrap()),
            _ => format!("<result>{}</result>", error.correction.as_deref().unwrap()),
        });
        println!("{file}: medguards loses {found:?}");
        assert!(found.len() <= guards, "{file}");
    }
}
