//! Sequences, words and ROUGE against CPython's difflib, NLTK, jieba and the ROUGE packages (tests/goldens/text.json). Real
//! notes are read from WARDROUND_DATA.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use sha2::{Digest, Sha256};
use wardround::analysis::metrics::rouge::Rouge;
use wardround::analysis::metrics::rouge::rouge_chinese;
use wardround::analysis::metrics::rouge::rouge_score;
use wardround::analysis::metrics::rouge::rouge_set;
use wardround::random::SplitMix64;
use wardround::text::{
    Language, SequenceMatcher, align, chinese_words, diff_keywords, lcs_length, porter_stem,
    split_words,
};

use crate::common;

static GOLDENS: LazyLock<Value> =
    LazyLock::new(|| common::golden::read(&common::goldens().join("text.json")));

fn cases(figure: &str) -> Vec<&'static Value> {
    let all = GOLDENS["cases"].as_array().unwrap().iter();
    let cases: Vec<&Value> = all.filter(|case| case["figure"] == figure).collect();
    assert!(!cases.is_empty(), "{figure}");
    cases
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn digest(text: &str) -> String {
    let sum = Sha256::digest(text);
    sum[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Matching blocks and opcodes as the goldens write them.
fn matched<T: Eq + Hash>(a: &[T], b: &[T]) -> String {
    let matcher = SequenceMatcher::new(b);
    let blocks = matcher.matching_blocks(a).into_iter();
    let blocks: Vec<String> =
        blocks.map(|block| format!("{},{},{}", block.a, block.b, block.size)).collect();
    let opcodes = matcher.opcodes(a).into_iter();
    let opcodes: Vec<String> = opcodes
        .map(|opcode| {
            let edit = match (opcode.is_equal, opcode.a.is_empty(), opcode.b.is_empty()) {
                (true, ..) => "equal",
                (_, true, _) => "insert",
                (_, _, true) => "delete",
                _ => "replace",
            };
            let (a, b) = (opcode.a, opcode.b);
            format!("{edit},{},{},{},{}", a.start, a.end, b.start, b.end)
        })
        .collect();
    format!("{}|{}", blocks.join(";"), opcodes.join(";"))
}

fn ratio<T: Eq + Hash>(a: &[T], b: &[T]) -> f64 {
    SequenceMatcher::new(b).ratio(a)
}

fn choose<'c, T>(random: &mut SplitMix64, choices: &'c [T]) -> &'c T {
    &choices[random.below(choices.len() as u64) as usize]
}

/// What `draw_pair` of tests/goldens/text.py draws.
fn draw_pair(seed: u64) -> (Vec<char>, Vec<char>) {
    let random = &mut SplitMix64::new(seed);
    let alphabets = GOLDENS["alphabets"].as_array().unwrap();
    let alphabet = characters(text(choose(random, alphabets)));
    let longest = choose(random, GOLDENS["lengths"].as_array().unwrap());
    let longest = longest.as_u64().unwrap();
    let draw = |random: &mut SplitMix64| -> Vec<char> {
        let length = random.below(longest + 1);
        (0..length).map(|_| *choose(random, &alphabet)).collect()
    };
    let a = draw(random);
    if random.below(3) == 0 {
        let b = draw(random);
        return (a, b);
    }
    let mut b = a.clone();
    for _ in 0..random.below(a.len() as u64 / 4 + 1) {
        let place = random.below(b.len() as u64 + 1) as usize;
        let letter = *choose(random, &alphabet);
        let (gone, new) = (random.below(3) as usize, random.below(2) as usize);
        let end = b.len().min(place + gone);
        b.splice(place..end, std::iter::repeat_n(letter, new));
    }
    (a, b)
}

/// What `draw_text` draws.
fn draw_text(seed: u64, vocabulary: &str) -> [String; 2] {
    let random = &mut SplitMix64::new(seed);
    let vocabulary = GOLDENS[vocabulary].as_array().unwrap();
    [(); 2].map(|()| {
        let words: Vec<&str> =
            (0..random.below(20)).map(|_| text(choose(random, vocabulary))).collect();
        words.join(" ")
    })
}

/// The published wrong notes by dataset and id, each row by its columns.
fn notes(data: &Path) -> HashMap<(&'static str, String), HashMap<String, String>> {
    let files = [
        ("medec", "medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv"),
        ("english", "mederrbench/reviewed_data_EN_test.csv"),
        ("chinese", "mederrbench/reviewed_data_CN_test.csv"),
        ("arabic", "mederrbench/reviewed_data_ARA_test.csv"),
    ];
    let mut notes = HashMap::new();
    for (name, file) in files {
        let bytes = std::fs::read(data.join(file)).unwrap();
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let mut reader = csv::Reader::from_reader(bytes);
        for row in reader.deserialize::<HashMap<String, String>>() {
            let row = row.unwrap();
            if row["Error Flag"] == "1" {
                notes.insert((name, row["Text ID"].clone()), row);
            }
        }
    }
    notes
}

/// A golden of a wrong note, and the note.
type NoteCase = (&'static Value, HashMap<String, String>);

/// Those of one dataset, or of all.
fn note_cases(dataset: Option<&str>) -> Vec<NoteCase> {
    let notes = notes(&common::data());
    let cases = cases("note").into_iter();
    let cases: Vec<NoteCase> = cases
        .filter(|case| dataset.is_none_or(|dataset| case["dataset"] == dataset))
        .map(|case| {
            let key = (text(&case["dataset"]), text(&case["id"]).to_owned());
            (case, notes[&key].clone())
        })
        .collect();
    assert!(!cases.is_empty());
    cases
}

#[test]
fn matching_blocks_and_opcodes_are_cpythons() {
    for case in cases("written") {
        let (a, b) = (characters(text(&case["a"])), characters(text(&case["b"])));
        assert_eq!(matched(&a, &b), text(&case["matched"]), "{case}");
        assert_eq!(ratio(&a, &b), case["ratio"], "{case}");
    }
    let drawn = cases("drawn");
    for case in &drawn {
        let (a, b) = draw_pair(case["seed"].as_u64().unwrap());
        assert_eq!(ratio(&a, &b), case["ratio"], "{case}");
        assert_eq!(digest(&matched(&a, &b)), case["matched"], "{case}");
        assert_eq!(lcs_length(&a, &b) as u64, case["lcs"], "{case}");
    }
    let long = drawn.iter().filter(|case| {
        let (_, b) = draw_pair(case["seed"].as_u64().unwrap());
        b.len() >= 200
    });
    assert!(long.count() > 80);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_matching_blocks_of_real_notes_are_cpythons() {
    let cases = note_cases(None);
    let mut pairs = 0;
    for (case, note) in cases {
        let [error, corrected, whole, mended] =
            ["Error Sentence", "Corrected Sentence", "Text", "Corrected Text"]
                .map(|column| note[column].as_str());
        let sentences = [(error, corrected), (error, whole)]
            .map(|(a, b)| (characters(a), characters(b)))
            .map(|(a, b)| (ratio(&a, &b), matched(&a, &b)));
        let texts = match case["dataset"] == "chinese" {
            true => {
                let (a, b) = (characters(whole), characters(mended));
                (ratio(&a, &b), matched(&a, &b))
            }
            false => {
                let [a, b] = [whole, mended].map(|text| split_words(text).collect::<Vec<&str>>());
                (ratio(&a, &b), matched(&a, &b))
            }
        };
        let expected = case["matched"].as_array().unwrap();
        for ((ratio, matched), expected) in sentences.into_iter().chain([texts]).zip(expected) {
            assert_eq!(ratio, expected[0], "{case}");
            assert_eq!(digest(&matched), expected[1], "{case}");
            pairs += 1;
        }
    }
    assert!(pairs > 1200, "{pairs}");
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_sentences_align_as_in_python_and_medecs_gold_ones_with_their_ids() {
    let cases = note_cases(None);
    let mut gold = [0, 0];
    for (case, note) in cases {
        let dataset = text(&case["dataset"]);
        let (language, sentences): (Language, Vec<&str>) = match dataset {
            "medec" => (Language::English, medec_sentences(&note["Sentences"])),
            "english" => (Language::English, note["Text"].split('.').collect()),
            "chinese" => (Language::Chinese, note["Text"].split('。').collect()),
            _ => (Language::Arabic, note["Text"].split('.').collect()),
        };
        let opinions = [&note["Error Sentence"], &note["Corrected Sentence"]];
        for (place, opinion) in opinions.into_iter().enumerate() {
            let found = align(&sentences, opinion, language);
            let index = found.map(|found| found.index);
            let expected = case["aligned"][place].as_u64();
            assert_eq!(index.map(|index| index as u64), expected, "{case}");
            let id = index.map(|index| index.to_string());
            if dataset == "medec" && id.as_deref() == Some(&note["Error Sentence ID"]) {
                gold[place] += 1;
            }
        }
    }
    assert_eq!(gold, [307, 283]);
}

/// As MedGuards' code cuts them: a sentence's place in the list stands for its number.
fn medec_sentences(sentences: &str) -> Vec<&str> {
    let mut pieces: Vec<&str> = sentences.split("\r\n").collect();
    if pieces.len() == 1 {
        pieces = sentences.split(". ").collect();
    }
    pieces
        .into_iter()
        .map(|piece| piece.split_once(' ').map_or(piece, |(_, sentence)| sentence))
        .collect()
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_keywords_of_real_corrections_are_those_of_the_published_script() {
    let cases = note_cases(None);
    for (case, note) in cases {
        let keywords = diff_keywords(&note["Error Sentence"], &note["Corrected Sentence"]);
        assert_eq!(digest(&keywords.join(" ")), case["keywords"], "{case}");
    }
}

#[test]
fn stems_are_nltks() {
    let mut words = 0;
    for case in cases("stems") {
        let (all, stems) = (text(&case["words"]), text(&case["stems"]));
        for (word, stem) in all.split(' ').zip(stems.split(' ')) {
            assert_eq!(porter_stem(word), stem, "{word}");
            words += 1;
        }
    }
    assert!(words > 1800, "{words}");
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_chinese_words_are_jiebas() {
    for case in cases("words") {
        let words = chinese_words(text(&case["text"]));
        let expected: Vec<&str> = case["words"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(words, expected);
    }
    let cases = note_cases(Some("chinese"));
    for (case, note) in cases {
        let words = chinese_words(&note["Text"]);
        assert_eq!(digest(&words.join("/")), case["words"], "{case}");
    }
}

/// Nine figures to the last bit, or a refusal.
fn check(found: Option<Rouge>, expected: &Value, case: &Value) {
    let found = found.map(|rouge| {
        [rouge.rouge1, rouge.rouge2, rouge.rouge_l]
            .map(|score| [score.precision, score.recall, score.f])
            .concat()
    });
    let expected: Option<Vec<f64>> = serde_json::from_value(expected.clone()).unwrap();
    assert_eq!(found, expected, "{case}");
}

#[test]
fn rouge_of_drawn_texts_is_the_packages() {
    let mut refused = 0;
    for case in cases("rouge") {
        let seed = case["seed"].as_u64().unwrap();
        let [hypothesis, reference] = draw_text(seed, "latin");
        let rouge = rouge_set(&hypothesis, &reference);
        refused += usize::from(rouge.is_none());
        check(rouge, &case["rouge"], case);
        let stemmed = rouge_score(&hypothesis, &reference);
        check(Some(stemmed), &case["rouge_score"], case);
        let [hypothesis, reference] = draw_text(seed, "chinese");
        let chinese = rouge_chinese(&hypothesis, &reference);
        check(chinese, &case["rouge_chinese"], case);
    }
    assert!(refused > 3, "{refused}");
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_rouge_of_real_corrections_is_the_packages() {
    let cases = note_cases(None);
    for (case, note) in cases {
        let (error, corrected) = (&note["Error Sentence"], &note["Corrected Sentence"]);
        match text(&case["dataset"]) {
            "chinese" => {
                let chinese = rouge_chinese(error, corrected);
                check(chinese, &case["rouge_chinese"], case);
            }
            dataset => {
                let rouge = rouge_set(error, corrected);
                check(rouge, &case["rouge"], case);
                if dataset != "arabic" {
                    let stemmed = rouge_score(error, corrected);
                    check(Some(stemmed), &case["rouge_score"], case);
                }
            }
        }
    }
}
