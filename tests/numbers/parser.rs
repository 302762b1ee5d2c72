//! Answers read from real model outputs, against the letters that were published for them.
//!
//! 818 outputs of Llama-3.1-8B on MMLU-Pro's health questions: free reasoning that should end in "The answer is (X)." What was
//! published is the letter after the first "answer is"; else the last capital letter that stands alone; else G, whatever the text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use wardround::data::Choice;
use wardround::systems::reading::answer::normalise_answer;
use wardround::systems::reading::letter::letter;

#[derive(Deserialize)]
struct Row {
    question_id: u32,
    pred: String,
    output: String,
}

/// Where a letter that stands alone comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// The letter of "answer is (X)".
    Answer,
    /// The word "a".
    Article,
    /// "A", which begins a sentence or is a name's (vitamin A).
    CapitalA,
    /// A name's letter (vitamin D, E. coli, option (C)) or a unit (g).
    Other,
    /// No letter stands alone, so that it is the text's last of A–J.
    InWord,
}

/// How the published letter was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Published {
    Sentence,
    LastLetter,
    NoReading,
}

fn rows() -> Vec<Row> {
    let data = std::env::var_os("WARDROUND_DATA").map(PathBuf::from).unwrap();
    let path = data.join("parser/mmlu_pro_health_llama3.1-8b_outputs.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 818);
    rows
}

/// Where the letter of the first `answer is \(?([A-J])` stands, in characters.
fn sentence(text: &[char]) -> Option<usize> {
    let phrase: Vec<char> = "answer is ".chars().collect();
    let mut places = (0..text.len()).filter(|&at| text[at..].starts_with(&phrase));
    places.find_map(|at| {
        let at = at + phrase.len();
        let at = at + usize::from(text.get(at) == Some(&'('));
        matches!(text.get(at), Some('A'..='J')).then_some(at)
    })
}

fn stands_alone(text: &[char], at: usize) -> bool {
    let in_word = |at: Option<usize>| {
        at.and_then(|at| text.get(at)).is_some_and(|c| c.is_alphanumeric() || *c == '_')
    };
    !in_word(at.checked_sub(1)) && !in_word(Some(at + 1))
}

/// The letter of B.2's rules by another way than the library's: over the text as it was written.
fn read(text: &[char]) -> (Option<char>, Origin) {
    let is_letter = |at: &usize| matches!(text[*at].to_ascii_uppercase(), 'A'..='J');
    let letters = || (0..text.len()).filter(is_letter);
    let upper = |at: usize| text[at].to_ascii_uppercase();
    let Some(at) = letters().find(|&at| stands_alone(text, at)) else {
        return (letters().next_back().map(upper), Origin::InWord);
    };
    let origin = match text[at] {
        _ if sentence(text) == Some(at) => Origin::Answer,
        'a' => Origin::Article,
        'A' => Origin::CapitalA,
        _ => Origin::Other,
    };
    (Some(upper(at)), origin)
}

/// As it was published.
fn publish(text: &[char]) -> (char, Published) {
    if let Some(at) = sentence(text) {
        return (text[at], Published::Sentence);
    }
    let last = (0..text.len()).rfind(|&at| matches!(text[at], 'A'..='J') && stands_alone(text, at));
    match last {
        Some(at) => (text[at], Published::LastLetter),
        None => ('G', Published::NoReading),
    }
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_every_disagreement_of_b2_with_what_was_published_is_explained() {
    let rows = rows();
    let mut table: BTreeMap<(bool, Published, Origin), usize> = BTreeMap::new();
    for row in &rows {
        let text: Vec<char> = row.output.chars().collect();
        let (published, way) = publish(&text);
        assert_eq!(row.pred, published.to_string(), "{}", row.question_id);
        let answer = normalise_answer(&row.output);
        let (letter, origin) = read(&text);
        assert_eq!(answer, String::from_iter(letter), "{}", row.question_id);
        *table.entry((answer == row.pred, way, origin)).or_default() += 1;
    }
    println!("agrees  published by  letter from  outputs");
    for ((agrees, way, origin), count) in &table {
        let (way, origin) = (format!("{way:?}"), format!("{origin:?}"));
        println!("{agrees:6}  {way:12}  {origin:11}  {count:7}");
    }
    use Origin::{Answer, Article, CapitalA, InWord, Other};
    use Published::{LastLetter, NoReading, Sentence};
    let expected = [
        // The answer comes last; B.2 takes what stands alone first, which is a word, a name or a unit of the reasoning.
        ((false, Sentence, Article), 357),
        ((false, Sentence, CapitalA), 32),
        ((false, Sentence, Other), 16),
        // The output never says its answer, and each rule finds another letter.
        ((false, LastLetter, Article), 3),
        ((false, LastLetter, CapitalA), 1),
        ((false, LastLetter, Other), 1),
        // The output ran on to its end without a capital letter alone; the published G is nowhere in it.
        ((false, NoReading, Article), 53),
        ((false, NoReading, InWord), 5),
        ((true, Sentence, Answer), 290),
        // The first letter alone is that of the answer by chance.
        ((true, Sentence, Article), 51),
        ((true, Sentence, CapitalA), 2),
        ((true, Sentence, Other), 6),
        ((true, LastLetter, CapitalA), 1),
    ];
    assert_eq!(table, BTreeMap::from(expected));
    let agreeing = table.iter().filter(|((agrees, ..), _)| *agrees);
    assert_eq!(agreeing.map(|(_, count)| count).sum::<usize>(), 350);
}

/// A model that was asked for a letter alone says little more than this.
#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_b2_reads_answers_from_their_own_sentences() {
    let rows = rows();
    let (mut sentences, mut others) = (0, Vec::new());
    for row in &rows {
        let text: Vec<char> = row.output.chars().collect();
        let Some(at) = sentence(&text) else { continue };
        let from_letter: String = text[at..].iter().collect();
        let line = from_letter.lines().next().unwrap();
        sentences += 1;
        if normalise_answer(&format!("answer is {line}")) != row.pred {
            others.push((row.question_id, line.to_owned()));
        }
    }
    println!("{} of {sentences} sentences read as published", sentences - others.len());
    assert_eq!(sentences, 754);
    // The one where the published letter begins a name.
    assert_eq!(others.len(), 1, "{others:?}");
    assert_eq!(others[0].0, 6414);
    assert!(others[0].1.starts_with("Elizabeth F. Loftus."));
}

/// What a person takes from them: the letter after "answer is", and nothing where the text ran on, or says that no option is right.
#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_the_answer_is_what_the_text_says() {
    let choice = |letter| Choice { letter, text: String::new() };
    let options: Vec<Choice> = ('A'..='J').map(choice).collect();
    let (mut read, mut unread) = (0, Vec::new());
    for row in rows() {
        let text: Vec<char> = row.output.chars().collect();
        let (published, way) = publish(&text);
        match letter(&row.output, &options) {
            None => unread.push((row.question_id, way)),
            found => {
                assert_eq!(found, Some(published), "{}: {}", row.question_id, row.output);
                assert_ne!(way, Published::NoReading, "{}", row.question_id);
                read += 1;
            }
        }
    }
    println!("{read} read as published, {} unread", unread.len());
    // Of the texts that ran on without an answer none is read.
    let ran_on = unread.iter().filter(|(_, way)| *way == Published::NoReading).count();
    assert_eq!(ran_on, 58);
    // Nor six that were cut, or eight that name several options, as «The answer is (E) and (G)», or none.
    let others: Vec<_> = unread.iter().filter(|(_, way)| *way != Published::NoReading).collect();
    assert!(others.len() <= 14, "{others:?}");
}
