//! Encoders and rerankers of every form that retrieval takes, tiny random ones of the true architecture, and what
//! sentence-transformers and transformers make of their texts.

use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use serde_json::Value;
use wardround::encoder::{Document, Embedded, Encoder, EncoderOptions, Pair, Reranker};

/// Prompts of a few words, so that tiny models take seconds.
const BRIEF_PROMPTS: [(&str, &str); 10] = [
    ("common-system", "Review."),
    ("user", "{note}\n{memory}\n{history}\n{task}"),
    ("instructions", "Look."),
    ("react-task", "{instructions}{actions}{turns}{left}"),
    ("actions-object", "act"),
    ("eval-task", "score"),
    ("reflex-task", "{instructions}{reviews}"),
    ("parser-task", "{numbered}"),
    ("no-memory", "-"),
    ("no-history", "-"),
];

/// Puts them into the folder of a system that searches.
pub fn write_brief_prompts(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in BRIEF_PROMPTS {
        fs::write(folder.join(format!("{name}.txt")), text).unwrap();
    }
}

pub struct Goldens {
    queries: Vec<String>,
    pub documents: Vec<(String, String)>,
    tolerance: f64,
    bytes: Vec<u8>,
}

impl Goldens {
    pub fn read() -> Goldens {
        let folder = super::goldens().join("retrieval");
        let expected = super::golden::read(&folder.join("expected.json"));
        let part = |document: &Value, name: &str| document[name].as_str().unwrap().to_owned();
        let documents = expected["documents"].as_array().unwrap().iter();
        Goldens {
            queries: serde_json::from_value(expected["queries"].clone()).unwrap(),
            documents: documents.map(|one| (part(one, "title"), part(one, "text"))).collect(),
            bytes: fs::read(folder.join("expected.safetensors")).unwrap(),
            tolerance: expected["tolerance"].as_f64().unwrap(),
        }
    }

    pub fn queries(&self) -> Vec<&str> {
        self.queries.iter().map(String::as_str).collect()
    }

    pub fn documents(&self) -> Vec<Document<'_>> {
        self.documents.iter().map(|(title, text)| Document { title, text }).collect()
    }

    /// Every query with every document.
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        let mut pairs = Vec::new();
        for query in &self.queries {
            pairs.extend(self.documents.iter().map(|(title, text)| Pair { query, title, text }));
        }
        pairs
    }

    pub fn check(&self, name: &str, ours: &[Vec<f32>]) {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        let tensor = tensors.tensor(name).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<4>();
        let theirs: Vec<f32> = numbers.iter().copied().map(f32::from_le_bytes).collect();
        assert_eq!(tensor.shape(), [ours.len(), ours[0].len()], "{name}");
        let largest = theirs.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let tolerance = self.tolerance as f32 * largest;
        let mut furthest = 0.0_f32;
        for (at, (ours, theirs)) in ours.iter().flatten().zip(&theirs).enumerate() {
            assert!((ours - theirs).abs() <= tolerance, "{name} {at}: {ours}, not {theirs}");
            furthest = furthest.max((ours - theirs).abs() / largest);
        }
        println!("{name}: within {furthest:.2e} of the largest number");
    }

    /// Documents and queries.
    pub fn check_encoder(&self, name: &str, encoder: &Encoder) -> Embedded {
        let documents = encoder.embed_documents(&self.documents()).unwrap();
        self.check(&format!("{name}.documents"), &documents);
        let queries = encoder.embed_queries(&self.queries()).unwrap();
        self.check(&format!("{name}.queries"), &queries.vectors);
        queries
    }

    pub fn check_reranker(&self, reranker: &Reranker) {
        let scores = reranker.score(&self.pairs()).unwrap();
        self.check("cross", &scores.into_iter().map(|score| vec![score]).collect::<Vec<_>>());
    }

    /// Vectors and scores in batches of 33, 1, 7 and 32 have the same bits; `options` of a folder and a count of threads.
    pub fn assert_no_bit_depends_on_the_batch(
        &self,
        options: &dyn Fn(&Path, usize) -> EncoderOptions,
    ) {
        let texts: Vec<Document<'_>> = self.documents().into_iter().cycle().take(33).collect();
        let pairs: Vec<Pair<'_>> = self.pairs().into_iter().cycle().take(33).collect();
        let batches = [(33, 2), (1, 1), (7, 2), (32, 3)];
        for copy in [cut(), medcpt()] {
            let all = batches.map(|(batch, threads)| {
                let encoder = Encoder::open(&options(copy.path(), threads)).unwrap();
                let batches = texts.chunks(batch);
                batches
                    .map(|texts| encoder.embed_documents(texts).unwrap())
                    .collect::<Vec<_>>()
                    .concat()
            });
            assert!(all.iter().all(|vectors| *vectors == all[0]), "{}", copy.path().display());
        }
        let copy = cross();
        let all = batches.map(|(batch, threads)| {
            let reranker = Reranker::open(&options(copy.path(), threads)).unwrap();
            let batches = pairs.chunks(batch);
            batches.map(|pairs| reranker.score(pairs).unwrap()).collect::<Vec<_>>().concat()
        });
        assert!(all.iter().all(|scores| *scores == all[0]));
    }
}

/// A copy of a golden folder with an `encoder.toml`.
pub struct Copy(tempfile::TempDir);

impl Copy {
    pub fn of(folder: &str, own: &str) -> Copy {
        let copy = Copy(tempfile::tempdir().unwrap());
        copy.add(folder, "");
        fs::write(copy.path().join("encoder.toml"), own).unwrap();
        copy
    }

    pub fn add(&self, folder: &str, below: &str) {
        let to = self.path().join(below);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(super::goldens().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

const TITLED: &str = r#"document = "TITLE: {title}\nTEXT: {text}""#;

/// PubMedBERT's way: means, cut to the first numbers, titled documents.
pub fn cut() -> Copy {
    Copy::of(
        "encoders/tiny-mean",
        &format!(
            "output = \"mean\"\nwidths = [4, 8]\nquery_tokens = 24\ndocument_tokens = 24\n{TITLED}"
        ),
    )
}

/// MedCPT's way: two models, pairs, first states.
pub fn medcpt() -> Copy {
    let copy = Copy::of(
        "encoders/tiny-cls",
        "output = \"cls\"\npair = true\nquery_folder = \"query\"\nquery_tokens = 12\ndocument_tokens = 24",
    );
    copy.add("encoders/tiny-mean", "query");
    copy
}

pub fn cross() -> Copy {
    let own = "output = \"one-logit\"\nquery_tokens = 24\ndocument_tokens = 24\n";
    Copy::of("retrieval/tiny-cross", &format!("{own}{TITLED}"))
}

/// Queries and documents behind prompts.
pub fn asking() -> Copy {
    Copy::of(
        "encoders/tiny-mean",
        "output = \"mean\"\nnormalised = true\nquery_tokens = 41\ndocument_tokens = 41\n\
         query = \"query: {query}\"\ndocument = \"passage: {text}\"",
    )
}
