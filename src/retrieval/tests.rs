//! Searches over small corpora with an encoder of words: orders, filters, errors.

use std::sync::Arc;

use super::search::Searcher;
use super::*;
use crate::corpus::build::tests::Sources;
use crate::corpus::fake::FakeEncoder;
use crate::corpus::store::manifest::{Manifest, ManifestFile};
use crate::ops::Cpu;

fn options(sources: &Sources) -> RetrieverOptions {
    RetrieverOptions {
        corpus: CorpusSpec { directories: vec![sources.path("out")], ..CorpusSpec::default() },
        rerank: Rerank::Off,
        encoder: None,
        device: Device::Cpu(Cpu::new(1).unwrap()),
    }
}

fn with(sources: &Sources, change: impl FnOnce(&mut CorpusSpec)) -> RetrieverOptions {
    let mut options = options(sources);
    change(&mut options.corpus);
    options
}

fn start(options: &RetrieverOptions) -> Retriever {
    let retriever = Retriever::open(options.clone()).unwrap();
    let (corpora, rerank) = (retriever.corpora.clone(), options.rerank);
    let (encoder, cpu) = (Box::new(FakeEncoder::new()), Cpu::new(2).unwrap());
    let searcher = Searcher { corpora, encoder, reranker: None, rerank, cpu };
    retriever.turn().searcher = Some(searcher);
    retriever
}

fn request(query: &str) -> SearchRequest {
    SearchRequest { query: query.to_owned(), retrieve_top_k: 10, rerank_top_k: 5 }
}

fn sources() -> Sources {
    let sources = Sources::new(120);
    sources.build(&sources.options("out"));
    sources
}

fn without_times(result: SearchResult) -> SearchResult {
    SearchResult { took: SearchTimes::default(), is_cached: false, ..result }
}

#[test]
fn passages_say_where_they_are_from() {
    let sources = sources();
    let retriever = start(&with(&sources, |corpus| corpus.sources = vec!["ward".to_owned()]));
    let result = retriever.search(&request("Ceftriaxone two grams drugs sepsis")).unwrap();
    // The ward's corpus is smaller than what was asked for.
    assert!(result.retrieved.len() < 10 && result.shown.len() == 5.min(result.retrieved.len()));
    let first = &result.shown[0];
    assert_eq!((&*first.chunk, &*first.title), ("ward/inner/a.md#2", "Sepsis -- Drugs"));
    assert_eq!(first.text.as_deref(), Some("Ceftriaxone two grams."));
    assert_eq!(first.licence.as_deref(), Some("internal"));
    assert!(first.url.is_none() && first.score == result.retrieved[0].score);
    let all = start(&options(&sources)).search(&request("row 3 fever number 3 drug 3")).unwrap();
    let row = all.shown.iter().find(|passage| passage.source == "rows").unwrap();
    assert!(row.url.as_ref().unwrap().starts_with("https://example.org/r"));
    assert!(row.date.as_ref().unwrap().ends_with("-01-01"));
}

#[test]
fn searches_alone_and_at_once_have_equal_results() {
    let sources = sources();
    let queries: Vec<String> =
        (0..50).map(|number| format!("fever number {number} drug {}", number * 3)).collect();
    let one = start(&options(&sources));
    let alone: Vec<SearchResult> =
        queries.iter().map(|query| without_times(one.search(&request(query)).unwrap())).collect();
    let shared: Arc<Retriever> = Arc::new(start(&options(&sources)));
    let together: Vec<SearchResult> = std::thread::scope(|scope| {
        let threads: Vec<_> = queries
            .iter()
            .map(|query| {
                let shared = Arc::clone(&shared);
                scope.spawn(move || without_times(shared.search(&request(query)).unwrap()))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
    let again = one.search(&request(&queries[0])).unwrap();
    assert!(again.is_cached && without_times(again) == alone[0]);
}

#[test]
fn a_smaller_k_gives_the_beginning_of_a_larger() {
    let sources = sources();
    let retriever = start(&options(&sources));
    let many = retriever.search(&request("fever drug")).unwrap();
    let few = SearchRequest { retrieve_top_k: 4, rerank_top_k: 2, ..request("fever drug") };
    let few = retriever.search(&few).unwrap();
    assert_eq!(few.retrieved, many.retrieved[..4]);
    assert_eq!(few.shown, many.shown[..2]);
}

#[test]
fn empty_and_long_queries() {
    let sources = sources();
    let retriever = start(&options(&sources));
    assert_eq!(retriever.search(&request(" \n")).unwrap(), SearchResult::default());
    assert!(retriever.search(&request(&"fever ".repeat(200))).unwrap().is_query_cut);
}

#[test]
fn reranking_by_embedding_takes_the_longer_vectors() {
    let sources = sources();
    let retriever = start(&RetrieverOptions { rerank: Rerank::Embedding, ..options(&sources) });
    let result =
        retriever.search(&request("Title 5 Row 5 is about fever number 5 and drug 5.")).unwrap();
    let scores: Vec<f32> = result.shown.iter().map(|passage| passage.score).collect();
    assert!(scores.is_sorted_by(|one, next| one >= next) && scores[0] > 0.98, "{scores:?}");
}

#[test]
fn options_that_cannot_be_are_refused() {
    let sources = sources();
    let describe = |options| Ok::<_, Failure>(Retriever::open(options)?.searched().clone());
    let refused = |options: RetrieverOptions| describe(options).unwrap_err().to_string();
    let bad = with(&sources, |corpus| corpus.sources = vec!["wards".to_owned()]);
    assert_eq!(refused(bad), "no source is called `wards`; known: rows, ward");
    let bad = RetrieverOptions { rerank: Rerank::CrossEncoder, ..options(&sources) };
    assert_eq!(refused(bad), "reranking by a cross-encoder needs one");
    assert_eq!(
        refused(with(&sources, |corpus| corpus.directories = Vec::new())),
        "there is no corpus to search"
    );
    let beside = |change: &dyn Fn(&mut Manifest)| {
        let path = sources.path("out/corpus.toml");
        let ManifestFile { mut manifest, local, .. } = ManifestFile::read(&path).unwrap();
        change(&mut manifest);
        let other = sources.path("other");
        let _ = fs_err::remove_dir_all(&other);
        fs_err::create_dir(&other).unwrap();
        for file in fs_err::read_dir(sources.path("out")).unwrap().map(Result::unwrap) {
            fs_err::copy(file.path(), other.join(file.file_name())).unwrap();
        }
        let text = ManifestFile::new(manifest, local).unwrap().text().unwrap();
        fs_err::write(other.join("corpus.toml"), text).unwrap();
        let corpora = vec![sources.path("out"), other];
        describe(with(&sources, |corpus| corpus.directories = corpora))
            .map_err(|error| error.to_string())
    };
    assert_eq!(beside(&|_| {}).unwrap().corpus.len(), 2);
    let other = beside(&|manifest| {
        manifest.encoder.insert("weights_sha256".to_owned(), "other".into());
    });
    assert!(
        other.unwrap_err().starts_with("the encoder's `weights_sha256` differs: \"fake\" here")
    );
    let mut narrower = sources.options("narrower");
    narrower.search_dims = Some(4);
    sources.build(&narrower);
    let corpora = vec![sources.path("out"), narrower.out];
    assert_eq!(
        refused(with(&sources, |corpus| corpus.directories = corpora)),
        "the width of vectors differs: 8 here, 4 there"
    );
    let searched = describe(options(&sources)).unwrap();
    assert_eq!((searched.corpus.len(), searched.reranker), (1, None));
    assert!(searched.longest_chunk_chars > 20);
}

#[test]
fn a_text_that_was_changed_is_an_error_and_never_a_passage() {
    let sources = sources();
    let path = sources.path("out/texts.bin");
    let text = fs_err::read_to_string(&path).unwrap();
    let changed = text.replace("Ceftriaxone two grams.", "Ceftriaxone ten grams.");
    assert!(changed != text && changed.len() == text.len());
    fs_err::write(&path, changed).unwrap();
    let retriever = start(&with(&sources, |corpus| corpus.sources = vec!["ward".to_owned()]));
    let error = retriever.search(&request("Ceftriaxone grams")).unwrap_err().to_string();
    let is_told = error.contains("out/texts.bin is damaged: chunk ")
        && error.ends_with(" has another sum than chunks.bin says");
    assert!(is_told, "{error}");
}

#[test]
fn a_rerankers_files_are_summed_and_not_loaded() {
    let sources = sources();
    let folder = sources.path("reranker");
    fs_err::create_dir(&folder).unwrap();
    fs_err::write(folder.join("model.safetensors"), "weights").unwrap();
    let options = RetrieverOptions {
        rerank: Rerank::CrossEncoder,
        ..with(&sources, |corpus| corpus.reranker = Some(folder.clone()))
    };
    let retriever = Arc::new(Retriever::open(options).unwrap());
    assert!(retriever.searched().reranker.is_some());
    assert!(retriever.loaded().is_err());
}
