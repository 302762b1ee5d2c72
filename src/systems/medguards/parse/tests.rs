use super::*;
use crate::random::SplitMix64;

#[test]
fn a_label_stands_outside_reasons() {
    let flag = |text| flag(text).flag;
    assert_eq!(
        flag("<think>this may be incorrect</think>\nCORRECT\n<confidence>90</confidence>"),
        Some(false)
    );
    assert_eq!(flag("<result>Incorrect.</result>"), Some(true));
    assert_eq!(flag("Is it CORRECT or INCORRECT? **INCORRECT**"), Some(true));
    assert_eq!(flag("INCORRECT\nThe correct agent is S. pyogenes."), Some(true));
    assert_eq!(flag("CORRECT\n…\nINCORRECT"), None);
    assert_eq!(flag("INCORRECT <result>The report is accurate.</result>"), Some(true));
    assert_eq!(flag("I cannot help with that."), None);
    assert_eq!(flag("incorrectly, uncorrected, correctness"), None);
    assert_eq!(flag("<think>INCORRECT, and then it was cut"), None);
    assert_eq!(flag("opened elsewhere: INCORRECT</think> CORRECT"), Some(false));
    assert_eq!(flag("<confidence>CORRECT</confidence>"), None);
    assert_eq!(flag(""), None);
}

#[test]
fn reasons_stand_in_their_tags_and_outside_of_all() {
    assert_eq!(thought("<think> a </think>\nINCORRECT\n<confidence>9</confidence>"), "a");
    let prose = "The dose is too high.\n\n**INCORRECT**\n<confidence>90</confidence>";
    assert_eq!(thought(prose), "The dose is too high.");
    assert_eq!(
        thought("a</think>So it is INCORRECT, by the dose."),
        "a\nSo it is INCORRECT, by the dose."
    );
    assert_eq!(thought("It is last.\n<result>He went.</result>"), "It is last.");
    assert_eq!(thought("<think>cut"), "");
    assert_eq!(thought("CORRECT"), "");
}

#[test]
fn confidence_is_a_number_up_to_100() {
    let confidence =
        |inside: &str| super::confidence(&format!("<confidence>{inside}</confidence>"));
    assert_eq!(confidence("95"), Some(0.95));
    assert_eq!(confidence(" 80% "), Some(0.8));
    assert_eq!(confidence("100"), Some(1.0));
    for none in ["101", "0.9", "high", "", "0095", "+5", "-5"] {
        assert_eq!(confidence(none), None, "{none}");
    }
    assert_eq!(super::confidence("95"), None);
    assert_eq!(super::confidence("<CONFIDENCE>7</Confidence>"), Some(0.07));
    // One that the note has, and one of the model's own.
    let both = "The note says <confidence>99</confidence>.\nCORRECT\n<confidence>40</confidence>";
    assert_eq!(super::confidence(both), None);
    assert_eq!(super::confidence(&both.replace("99", "40")), Some(0.4));
}

#[test]
fn what_says_both_is_unread_and_counted() {
    let read = |wanted, text: &str| {
        let (said, parse) = read(wanted, text);
        (said.flag, said.located == Located::Malformed, parse, json!(said)["contradiction"] == true)
    };
    let both = (None, true, Parse::Unread, true);
    for text in [
        "<think>The dose is wrong.</think>\nCORRECT\n<confidence>90</confidence>",
        "<think>All fits.</think>\nCORRECT\nSentence 2 is incorrect.",
        "<result>CORRECT</result>\nINCORRECT",
        "CORRECT\n<result>He was given it.</result>",
    ] {
        let (flag, _, parse, is_counted) = read(Wanted::Label, text);
        assert_eq!((flag, parse, is_counted), (None, Parse::Unread, true), "{text}");
    }
    let none = "<think>There is an error in the last sentence.</think>\n<result>NAN</result>";
    assert_eq!(read(Wanted::Place, none), both);
    assert_eq!(read(Wanted::Everything, &format!("CORRECT\n{none}")), both);
    let placed = "CORRECT\n<result>He was given it.</result>";
    assert_eq!(read(Wanted::Everything, placed), (None, false, Parse::Unread, true));
    let sound = "<think>No sentence is wrong.</think>\nCORRECT";
    assert_eq!(read(Wanted::Label, sound), (Some(false), false, Parse::Ok, false));
}

#[test]
fn a_sentence_may_go_over_lines_and_nan_may_stand_bare() {
    let said = |words: &str| Located::Said(words.to_owned());
    assert_eq!(
        located("<think>x</think><result>\nHe was\ngiven it.\n</result>"),
        said("He was\ngiven it.")
    );
    assert_eq!(
        located("<think>the <result>first</result></think> <result>second</result>"),
        said("second")
    );
    assert_eq!(located("<result>nan</result>"), Located::Nothing);
    assert_eq!(located("<think>fine</think>\nNAN\n<confidence>80</confidence>"), Located::Nothing);
    assert_eq!(located("<result></result>"), Located::Malformed);
    assert_eq!(located("<result>It is given.</results>"), said("It is given."));
    assert_eq!(located("<result>\"It is given.\""), said("It is given."));
    assert_eq!(located("The erroneous sentence is: \"It is given.\""), said("It is given."));
    assert_eq!(located("<result>No error found</result>"), Located::Nothing);
    // A sentence of the note that calls something right is a sentence of the note.
    assert_eq!(
        located("<result>This is consistent with gout.</result>"),
        said("This is consistent with gout.")
    );
    assert_eq!(
        located("<result>The report is accurate, he goes home.</result>"),
        said("The report is accurate, he goes home.")
    );
}

#[test]
fn a_correction_may_lack_its_tags() {
    let correction = |text| correction(text, "result");
    assert_eq!(
        correction("<think>x</think><result> Give B. </result>"),
        Some("Give B.".to_owned())
    );
    assert_eq!(correction("Give B.\n<confidence>70</confidence>"), Some("Give B.".to_owned()));
    assert_eq!(correction("<result>NAN</result>"), None);
    assert_eq!(correction("<result>cut sho"), None);
    assert_eq!(correction(""), None);
}

#[test]
fn what_says_nothing_of_what_was_wanted_is_unread() {
    let parse = |wanted, text| read_where(wanted, text, |_| false).1;
    assert_eq!(parse(Wanted::Label, "I cannot help with that."), Parse::Unread);
    assert_eq!(parse(Wanted::Place, "It is the third sentence."), Parse::Unread);
    assert_eq!(parse(Wanted::Correction, "<result>cut sho"), Parse::Unread);
    assert_eq!(parse(Wanted::Correction, "<result>NAN</result>"), Parse::Ok);
    assert_eq!(parse(Wanted::Correction, "NAN"), Parse::Fallback);
    assert_eq!(parse(Wanted::Everything, "INCORRECT"), Parse::Fallback);
    assert_eq!(parse(Wanted::Everything, "Hm."), Parse::Unread);
}

#[test]
fn hostile_text_never_panics() {
    const PIECES: [&str; 12] = [
        "<think>",
        "</think>",
        "<result>",
        "</result>",
        "<confidence>",
        "</confidence>",
        "NAN",
        "CORRECT",
        "İ",
        "ß",
        "9",
        "\n",
    ];
    let mut random = SplitMix64::new(5);
    for _ in 0..20_000 {
        let text: String = (0..random.below(12))
            .map(|_| PIECES[random.below(PIECES.len() as u64) as usize])
            .collect();
        flag(&text);
        located(&text);
        correction(&text, "result");
        assert!(confidence(&text).is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
