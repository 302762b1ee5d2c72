//! Corpora built whole, killed and damaged, with an encoder of words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::corpus::Corpus;
use crate::corpus::fake::FakeEncoder;

/// A directory with two sources; the first has more chunks than a segment.
pub(crate) struct Sources {
    pub(crate) folder: tempfile::TempDir,
}

const DESCRIPTION: &str = r#"
name = "small"

[[source]]
label = "rows"
format = "jsonl"
path = "rows.jsonl"
size = 40
overlap = 10
licence = "CC0"
redistribute = true
url_template = "https://example.org/{id}"

[[source]]
label = "ward"
group = "own"
format = "folder"
path = "ward"
size = 60
overlap = 20
licence = "internal"
"#;

impl Sources {
    pub(crate) fn new(rows: usize) -> Sources {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = String::new();
        for row in 0..rows {
            let text = match row % 50 {
                7 => " ".to_owned(),
                _ => format!(
                    "Row {row} is about fever number {} and drug {}.\n\nIt ends with word{}.",
                    row % 13,
                    row % 29,
                    row * 7
                ),
            };
            let date = 2000 + row % 20;
            lines += &format!(
                "{}\n",
                serde_json::json!({"id": format!("r{row}"), "title": format!("Title {row}"), "text": text, "date": format!("{date}-01-01")})
            );
        }
        fs_err::write(folder.path().join("rows.jsonl"), lines).unwrap();
        let ward = folder.path().join("ward/inner");
        fs_err::create_dir_all(&ward).unwrap();
        fs_err::write(ward.join("a.md"), "# Sepsis\nGive fluids, thirty millilitres a kilogram, and measure lactate again.\n## Drugs\nCeftriaxone two grams.\n").unwrap();
        fs_err::write(
            ward.join("b.txt"),
            "A plain text of the ward about eclampsia and magnesium.",
        )
        .unwrap();
        fs_err::write(ward.join("empty.txt"), "\n").unwrap();
        Sources { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self, out: &str) -> BuildOptions {
        BuildOptions {
            description: Description::parse(DESCRIPTION, Path::new("small.toml")).unwrap(),
            data: self.folder.path().to_owned(),
            out: self.path(out),
            encoder: PathBuf::from("fake"),
            search_dims: Some(8),
        }
    }

    pub(crate) fn build(&self, options: &BuildOptions) -> Corpus {
        let encoder = FakeEncoder::new();
        Build::begin(options, &encoder).unwrap().run(&encoder, BATCH, &mut |_, _| Ok(())).unwrap();
        Corpus::open(&options.out).unwrap()
    }

    fn refusal(&self, options: &BuildOptions, encoder: &FakeEncoder) -> Failure {
        match Build::begin(options, encoder) {
            Err(error) => error,
            Ok(build) => build.run(encoder, BATCH, &mut |_, _| Ok(())).unwrap_err(),
        }
    }
}

/// Every file by its name, `corpus.toml` without what is local.
fn bytes(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs_err::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let bytes = fs_err::read(entry.path()).unwrap();
        match name == MANIFEST {
            true => {
                let text = String::from_utf8(bytes).unwrap();
                (name, text.split("\n[local]").next().unwrap().as_bytes().to_vec())
            }
            false => (name, bytes),
        }
    };
    entries.map(read).collect()
}

#[test]
fn a_corpus_holds_what_its_sources_hold() {
    let sources = Sources::new(60);
    let corpus = sources.build(&sources.options("out"));
    let manifest = corpus.manifest();
    assert_eq!((manifest.sources[0].documents, manifest.sources[0].empty), (58, 2));
    assert_eq!((manifest.sources[1].documents, manifest.sources[1].empty), (2, 1));
    assert_eq!(manifest.documents, 60);
    assert_eq!(corpus.name(0).unwrap(), "rows/r0#0");
    let [first, _] = manifest.sources[1].range;
    let names: Vec<String> =
        (first as usize..corpus.len()).map(|chunk| corpus.name(chunk).unwrap()).collect();
    assert_eq!(names[0], "ward/inner/a.md#0");
    assert!(names.contains(&"ward/inner/a.md#2".to_owned()), "{names:?}");
    let last = corpus.chunk(first as usize + 2).unwrap();
    assert_eq!(corpus.document(last.record.document).unwrap().title, "Sepsis -- Drugs");
    assert_eq!(last.text, "Ceftriaxone two grams.");
    assert_eq!(corpus.vectors().unwrap().dims(), 8);
    assert_eq!(corpus.full_vectors().unwrap().dims(), 16);
    let own = first as usize..corpus.len();
    assert_eq!(corpus.ranges(&["own".to_owned()]), std::slice::from_ref(&own));
    assert!(
        Corpus::verify(&sources.path("out")).unwrap().iter().all(|(_, problem)| problem.is_none())
    );
}

#[test]
fn bytes_depend_on_neither_batches_nor_kills() {
    let sources = Sources::new(3000);
    let whole = sources.options("whole");
    sources.build(&whole);
    let expected = bytes(&whole.out);
    let encoder = FakeEncoder::new();
    for (out, batch) in [("one", 1), ("seven", 7)] {
        let options = sources.options(out);
        let mut build = Build::begin(&options, &encoder).unwrap();
        // Killed after each segment, in the middle of the next one.
        for stop in 0.. {
            let mut tell = |chunks: u64, _| match chunks > stop * SEGMENT as u64 {
                true => Err(std::io::Error::other("killed").into()),
                false => Ok(()),
            };
            match build.run(&encoder, batch, &mut tell) {
                Ok(()) => break,
                Err(error) => assert_eq!(error.to_string(), "killed"),
            }
            let path = options.out.join("texts.bin");
            let mut torn = fs_err::read(&path).unwrap();
            torn.extend(b"torn");
            fs_err::write(&path, torn).unwrap();
            // Half of what was to say how far the next segment came.
            fs_err::write(options.out.join(".progress.json.partial"), "{\"chunks\": 9").unwrap();
            build = Build::begin(&options, &encoder).unwrap();
        }
        assert!(bytes(&options.out) == expected, "{out}");
    }
    assert!(expected["chunks.bin"].len() > 2 * SEGMENT * 32);
}

/// With postings, and of bytes the share of hits that they keep; `verify` still checks what it lists.
#[test]
fn what_earlier_versions_wrote_too_is_left_aside() {
    let sources = Sources::new(20);
    let options = sources.options("out");
    let old = sources.build(&options);
    let path = options.out.join(MANIFEST);
    let text = fs_err::read_to_string(&path).unwrap();
    let postings = "[[file]]\nname = \"bm25.bin\"\nsize_bytes = 8\nsha256 = \"";
    let text = text.replacen("[vectors]", "bm25 = true\n\n[vectors]\noverlap_at_50 = 0.9", 1);
    let listed = format!("{postings}{}\"\n\n[local]", crate::digest::sha256("postings"));
    fs_err::write(&path, text.replacen("[local]", &listed, 1)).unwrap();
    fs_err::write(options.out.join("bm25.bin"), "postings").unwrap();
    let corpus = Corpus::open(&options.out).unwrap();
    assert!(corpus.file.id != old.file.id && corpus.chunk(3).unwrap() == old.chunk(3).unwrap());
    assert_eq!(corpus.vectors().unwrap().numbers(3), old.vectors().unwrap().numbers(3));
    drop((corpus, old));
    let checks = Corpus::verify(&options.out).unwrap();
    assert!(checks.iter().all(|(_, problem)| problem.is_none()));
    assert!(checks.iter().any(|(name, _)| name == "bm25.bin"));
}

#[test]
fn bad_input_is_refused_by_name() {
    let sources = Sources::new(20);
    let encoder = FakeEncoder::new();
    let with = |change: &dyn Fn(&mut BuildOptions)| {
        let mut options = sources.options(&format!("out{}", crate::random::mix(7)));
        change(&mut options);
        let _ = fs_err::remove_dir_all(&options.out);
        let error = sources.refusal(&options, &encoder);
        (error.to_string(), error.blame().exit_code())
    };
    let (text, code) =
        with(&|options| options.description.sources[0].path = "absent.jsonl".to_owned());
    assert!(text.starts_with("source `rows` has no input at") && code == 3, "{text}");
    let (text, code) = with(&|options| options.search_dims = Some(99));
    assert!(
        text == "vectors of 99 numbers are asked for, and the encoder's have 16" && code == 2,
        "{text}"
    );
    fs_err::write(
        sources.path("twice.jsonl"),
        "{\"id\": 1, \"text\": \"a\"}\n{\"id\": 1, \"text\": \"b\"}\n",
    )
    .unwrap();
    let (text, code) =
        with(&|options| options.description.sources[0].path = "twice.jsonl".to_owned());
    assert!(text == "source `rows` has two documents with the id `1`" && code == 2, "{text}");
    fs_err::write(sources.path("ward/paper.pdf"), "%PDF").unwrap();
    let (text, _) = with(&|_| {});
    assert!(
        text.ends_with("ward/paper.pdf cannot be read: text is not extracted from .pdf files"),
        "{text}"
    );
    fs_err::remove_file(sources.path("ward/paper.pdf")).unwrap();
    fs_err::write(sources.path("ward/page.HTML.gz"), "packed").unwrap();
    let (text, _) = with(&|_| {});
    assert!(text.ends_with("text is not extracted from .html files"), "{text}");
    fs_err::remove_file(sources.path("ward/page.HTML.gz")).unwrap();
    for (number, problem) in [(f32::NAN, "has a number that is not finite"), (0.0, "has length 0")]
    {
        let broken = FakeEncoder { name: "fake", broken: Some(("drug 3.", number)) };
        let options = sources.options("broken");
        let error = sources.refusal(&options, &broken);
        assert_eq!(error.to_string(), format!("the vector of chunk r3#1 {problem}"));
        fs_err::remove_dir_all(&options.out).unwrap();
    }
    let options = sources.options("out");
    sources.build(&options);
    assert!(
        sources.refusal(&options, &encoder).to_string().ends_with("out exists and is not empty")
    );
}

#[test]
fn a_changed_input_and_a_second_process_are_refused() {
    let sources = Sources::new(20);
    let options = sources.options("out");
    let build = Build::begin(&options, &FakeEncoder::new()).unwrap();
    let error = Build::begin(&options, &FakeEncoder::new()).unwrap_err();
    assert!(error.to_string().ends_with("is being written by another process"), "{error}");
    drop(build);
    assert!(
        Corpus::open(&options.out).unwrap_err().to_string().ends_with("was not built to its end")
    );
    let other = BuildOptions { search_dims: None, ..options.clone() };
    let is_refused = |options: &BuildOptions, encoder: FakeEncoder| {
        let error = sources.refusal(options, &encoder).to_string();
        assert!(
            error.ends_with("was begun with other inputs, options or another encoder"),
            "{error}"
        );
    };
    is_refused(&other, FakeEncoder::new());
    is_refused(&options, FakeEncoder { name: "other", broken: None });
    fs_err::write(sources.path("rows.jsonl"), "{\"text\": \"other\"}").unwrap();
    is_refused(&options, FakeEncoder::new());
}

#[test]
fn damage_is_found() {
    let sources = Sources::new(60);
    let options = sources.options("out");
    drop(sources.build(&options));
    let refused = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = options.out.join(name);
        let good = fs_err::read(&path).unwrap();
        let mut bad = good.clone();
        change(&mut bad);
        fs_err::write(&path, bad).unwrap();
        let error = Corpus::open(&options.out).map(drop).map_err(|error| error.to_string());
        let checks = Corpus::verify(&options.out);
        fs_err::write(&path, good).unwrap();
        let problem = checks.map(|checks| checks.into_iter().find_map(|(_, problem)| problem));
        (error.err().unwrap_or_default(), problem.unwrap_or_default().unwrap_or_default())
    };
    let (open, found) = refused("vectors.bin", &|bytes| bytes.truncate(100));
    assert!(
        open.contains("vectors.bin is damaged: it has 100 bytes, and corpus.toml says "),
        "{open}"
    );
    assert!(found.starts_with("has 100 bytes"), "{found}");
    let (open, found) = refused("texts.bin", &|bytes| bytes[40] ^= 1);
    assert_eq!(open, "");
    assert!(found.starts_with("has another sha256"), "{found}");
    let (open, _) = refused("vectors.bin", &|bytes| bytes[16] = 77);
    assert!(open.contains("its header says"), "{open}");
    let newer = |bytes: &mut Vec<u8>| {
        *bytes = String::from_utf8(bytes.clone())
            .unwrap()
            .replace("schema = 1", "schema = 9")
            .into_bytes();
    };
    let (open, _) = refused("corpus.toml", &newer);
    assert!(open.ends_with("corpus.toml is of schema 9; this program reads up to 1"), "{open}");
    let absent = Corpus::open(&sources.path("ward")).unwrap_err().to_string();
    assert!(absent.starts_with("there is no corpus at "), "{absent}");
}
