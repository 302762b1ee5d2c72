//! Corpora against other people's code: numpy's order, rank-bm25's scores, LiveQA's judgements.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wardround::corpus::Description;
use wardround::corpus::formats::records;
use wardround::corpus::postings::build::Runs;
use wardround::corpus::postings::{Postings, words};
use wardround::ops::Cpu;
use wardround::ops::vectors::{VectorRows, VectorType};
use wardround::random::mix;

fn golden<T: for<'a> Deserialize<'a>>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/corpus").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[derive(Deserialize)]
struct Order {
    rows: usize,
    dims: usize,
    /// The best rows of each query, by numpy.
    best: Vec<Vec<usize>>,
}

/// Eighths between −1 and 7/8: every product is exact. Every hundredth row equals the one fifty before it.
fn row(row: usize, dims: usize) -> Vec<f32> {
    let row = if row % 100 == 99 { row - 50 } else { row };
    let number = |column: usize| ((mix((row * dims + column) as u64) >> 60) as f32 - 8.0) / 8.0;
    (0..dims).map(number).collect()
}

#[test]
fn the_best_rows_are_numpys_with_ties_to_the_lower_row() {
    let Order { rows, dims, best } = golden("order.json");
    for (kind, threads) in [(VectorType::F16, 1), (VectorType::F16, 2), (VectorType::F32, 2)] {
        let (mut bytes, mut scales) = (Vec::new(), Vec::new());
        for number in 0..rows {
            kind.append(&row(number, dims), &mut bytes, &mut scales).unwrap();
        }
        let matrix = VectorRows::new(&bytes, &scales, kind, dims).unwrap();
        // Queries are rows behind the last one.
        let queries: Vec<_> =
            (0..best.len()).map(|query| matrix.query(&row(rows + query, dims))).collect();
        let whole = 0..rows;
        let found = Cpu::new(threads).unwrap().scan(
            &matrix,
            &queries,
            std::slice::from_ref(&whole),
            best[0].len(),
        );
        for (found, best) in found.iter().zip(&best) {
            assert_eq!(found.iter().map(|hit| hit.row).collect::<Vec<_>>(), *best, "{kind:?}");
        }
    }
}

/// MedQuAD's chunks with the document that each is of.
struct Medquad {
    documents: Vec<String>,
    postings: Vec<u8>,
    chunks: Vec<usize>,
}

impl Medquad {
    fn read(data: &Path) -> Medquad {
        let description = Description::open("medquad").unwrap();
        let source = &description.sources[0];
        let folder = tempfile::tempdir().unwrap();
        let mut runs = Runs::new(folder.path().to_owned(), 10_000);
        let (mut documents, mut chunks) = (Vec::new(), Vec::new());
        for record in records(source, &data.join(&source.path), data).unwrap() {
            let record = record.unwrap();
            for chunk in source.splitter().split(&record.text) {
                runs.add(chunks.len() as u32, words(&record.title).chain(words(chunk))).unwrap();
                chunks.push(documents.len());
            }
            documents.push(record.id);
        }
        let path = folder.path().join("bm25.bin");
        runs.merge(&path).unwrap();
        Medquad { documents, postings: std::fs::read(path).unwrap(), chunks }
    }

    fn search(&self, query: &str, count: usize) -> Vec<(usize, f64)> {
        let postings = Postings::open(&self.postings, self.chunks.len()).unwrap();
        let whole = 0..self.chunks.len();
        let found = postings.search(query, std::slice::from_ref(&whole), count);
        found.into_iter().map(|scored| (scored.chunk, scored.score)).collect()
    }
}

#[derive(Deserialize)]
struct Scores {
    chunks: usize,
    queries: Vec<ScoredQuery>,
}

#[derive(Deserialize)]
struct ScoredQuery {
    query: String,
    best: Vec<(usize, f64)>,
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_medquad_has_32_092_chunks_and_scores_as_rank_bm25_has_them() {
    let medquad = Medquad::read(&PathBuf::from(std::env::var_os("WARDROUND_DATA").unwrap()));
    assert_eq!((medquad.documents.len(), medquad.chunks.len()), (16_407, 32_092));
    assert_eq!(medquad.documents.iter().collect::<BTreeSet<_>>().len(), 16_407);
    let golden: Scores = golden("bm25_medquad.json");
    assert_eq!(golden.chunks, medquad.chunks.len());
    for ScoredQuery { query, best } in golden.queries {
        let found: BTreeMap<usize, f64> = medquad.search(&query, 1000).into_iter().collect();
        for (chunk, score) in best {
            assert!(
                (found[&chunk] - score).abs() < 1e-9,
                "{query}: {chunk} {score} {}",
                found[&chunk]
            );
        }
    }
}

/// The questions by their numbers: the summaries of the judges.
fn questions(data: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(data.join("corpus/liveqa_2017_questions.xml")).unwrap();
    let between = |text: &str, from: &str, to: &str| {
        let (_, rest) = text.split_once(from)?;
        Some(rest.split_once(to)?.0.trim().to_owned())
    };
    text.split("<NLM-QUESTION ")
        .skip(1)
        .filter_map(|part| {
            Some((
                between(part, "qid=\"TQ", "\"")?,
                between(part, "<NLM-Summary>", "</NLM-Summary>")?,
            ))
        })
        .collect()
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_ndcg_on_liveqa() {
    let data = PathBuf::from(std::env::var_os("WARDROUND_DATA").unwrap());
    let medquad = Medquad::read(&data);
    let known: BTreeSet<&str> = medquad.documents.iter().map(|id| &**id).collect();
    let text = std::fs::read_to_string(data.join("corpus/liveqa_qrels_2479.txt")).unwrap();
    let mut grades: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let document = words[2].trim_end_matches(".txt");
        // Answers whose text MedQuAD may not hand on are judged too; nothing can find them here.
        if known.contains(document) {
            let grade = words[1][..1].parse::<u32>().unwrap() - 1;
            grades.entry(words[0]).or_default().insert(document, grade);
        }
    }
    let questions = questions(&data);
    let gain = |rank: usize, grade: u32| f64::from(grade) / (rank as f64 + 2.0).log2();
    let (mut total, mut count) = (0.0, 0);
    for (question, grades) in &grades {
        let mut ideal: Vec<u32> = grades.values().copied().collect();
        ideal.sort_unstable_by(|one, other| other.cmp(one));
        let best: f64 =
            ideal.iter().take(10).enumerate().map(|(rank, grade)| gain(rank, *grade)).sum();
        if best == 0.0 {
            continue;
        }
        // A document stands where its best chunk stands, and judged ones alone are ranked.
        let mut ranked: Vec<&str> = Vec::new();
        for (chunk, _) in medquad.search(&questions[*question], medquad.chunks.len()) {
            let document = &*medquad.documents[medquad.chunks[chunk]];
            if grades.contains_key(document) && !ranked.contains(&document) {
                ranked.push(document);
            }
        }
        let found: f64 = ranked
            .iter()
            .take(10)
            .enumerate()
            .map(|(rank, document)| gain(rank, grades[document]))
            .sum();
        (total, count) = (total + found / best, count + 1);
    }
    let mean = total / f64::from(count);
    println!(
        "nDCG@10 of BM25 on LiveQA's judged answers in MedQuAD: {mean:.4} over {count} questions"
    );
    assert!(count > 50 && mean > 0.5, "{mean} over {count}");
}
