//! all-MiniLM-L6-v2 on LiveQA's judged answers, beside what sentence-transformers finds in the same chunks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wardround::corpus::Description;
use wardround::corpus::formats::records;

use super::{golden, real_model};
use crate::common;

#[derive(Deserialize)]
struct Golden {
    chunks: usize,
    mean_ndcg: f64,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    ndcg: f64,
    /// The ten best documents with their cosines.
    best: Vec<(String, f64)>,
}

/// Grades of LiveQA's judges, 0 to 3, by question and document.
fn grades(text: &str, known: &BTreeSet<String>) -> BTreeMap<String, BTreeMap<String, u32>> {
    let mut grades: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let document = words[2].trim_end_matches(".txt");
        if known.contains(document) {
            let grade = words[1][..1].parse::<u32>().unwrap() - 1;
            grades.entry(words[0].to_owned()).or_default().insert(document.to_owned(), grade);
        }
    }
    grades
}

/// The summaries of the judges, by question.
fn summaries(page: &str) -> BTreeMap<String, String> {
    let part = |part: &str| {
        let (number, rest) = part.split_once('"')?;
        let (_, summary) = rest.split_once("<NLM-Summary>")?;
        Some((number.to_owned(), summary.split_once("</NLM-Summary>")?.0.trim().to_owned()))
    };
    page.split("<NLM-QUESTION qid=\"TQ").skip(1).filter_map(part).collect()
}

fn gain(grades: impl Iterator<Item = u32>) -> f64 {
    let gain = |(rank, grade)| f64::from(grade) / (rank as f64 + 2.0).log2();
    grades.take(10).enumerate().map(gain).sum()
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS and WARDROUND_DATA"]
fn with_real_models_ndcg_on_liveqa_is_that_of_sentence_transformers() {
    let golden: Golden = serde_json::from_value(golden("minilm_liveqa")).unwrap();
    let data = common::data();
    let description = Description::open("medquad").unwrap();
    let source = &description.sources[0];
    let all = records(source, &data.join(&source.path), &data).unwrap().map(Result::unwrap);
    let all: BTreeMap<String, _> = all.map(|record| (record.document.id.clone(), record)).collect();
    let known = all.keys().cloned().collect();
    let read = |name: &str| std::fs::read_to_string(data.join("corpus").join(name)).unwrap();
    let grades = grades(&read("liveqa_qrels_2479.txt"), &known);
    let summaries = summaries(&read("liveqa_2017_questions.xml"));

    let asked = golden.questions.iter().map(|question| &grades[&question.question]);
    let judged: BTreeSet<&String> = asked.flat_map(BTreeMap::keys).collect();
    let (mut documents, mut texts) = (Vec::new(), Vec::new());
    for document in judged {
        let record = &all[document];
        for chunk in source.splitter().split(&record.text) {
            documents.push(document.as_str());
            texts.push(format!("{}\n{chunk}", record.document.title));
        }
    }
    assert_eq!(texts.len(), golden.chunks);
    let minilm = crate::encoder::all_minilm(&real_model("minilm"));
    let encoder = common::open_encoder(minilm.path()).unwrap();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = encoder.embed(&texts).unwrap();

    let mut total = 0.0;
    for question in &golden.questions {
        let number = &question.question;
        let query = &encoder.embed(&[&summaries[number]]).unwrap()[0];
        let grades = &grades[number];
        let mut scores: BTreeMap<&str, f64> = BTreeMap::new();
        for (document, vector) in documents.iter().zip(&vectors) {
            if grades.contains_key(*document) {
                let score = query.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b));
                let best = scores.entry(document).or_insert(-2.0);
                *best = best.max(score.sum());
            }
        }
        for (document, theirs) in &question.best {
            let off = (scores[document.as_str()] - theirs).abs();
            assert!(off <= 1e-5, "{number}: {document} off by {off}");
        }
        let mut ranked: Vec<&str> = scores.keys().copied().collect();
        ranked.sort_by(|one, other| scores[other].total_cmp(&scores[one]));
        let mut ideal: Vec<u32> = grades.values().copied().collect();
        ideal.sort_unstable_by(|one, other| other.cmp(one));
        let ndcg = gain(ranked.iter().map(|document| grades[*document])) / gain(ideal.into_iter());
        assert!((ndcg - question.ndcg).abs() < 1e-9, "{number}: {ndcg}, not {}", question.ndcg);
        total += ndcg;
    }
    let mean = total / golden.questions.len() as f64;
    println!("nDCG@10 on LiveQA: {mean:.4} over {} questions", golden.questions.len());
    assert!(golden.questions.len() >= 20 && (mean - golden.mean_ndcg).abs() < 1e-9);
}
