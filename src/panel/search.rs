//! A search of a panel: on disk before the next call, and answered from the log of an earlier attempt at the run.

use super::{Panel, PanelError};
use crate::diagnosis::Failure;
use crate::record::{SearchKey, SearchLine};
use crate::retrieval::SearchRequest;

impl Panel {
    /// Searches the corpora of the run; the passages come with their texts. A search that an earlier attempt at the run made is answered
    /// from its log; where the log has no texts the search is repeated, and must find the same passages.
    ///
    /// # Errors
    /// A panel without a corpus; a search that failed, could not be logged, or found other passages than the log has.
    pub fn search(
        &self,
        key: SearchKey,
        request: &SearchRequest,
    ) -> Result<SearchLine, PanelError> {
        let known = self.recorder.find_search(&key);
        if let Some(known) = known.filter(|known| known.has_texts()) {
            return Ok(known.clone());
        }
        let retriever = self.retriever.as_ref().ok_or_else(|| {
            let hint = "give --corpus DIR, which `wardround corpus build` writes";
            Failure::usage("the system searches a corpus, and none was given", hint)
        })?;
        let searched = retriever.searched();
        let found = retriever.search(request)?;
        let SearchKey { dataset, run, item, round, step } = key;
        let line = SearchLine {
            seq: 0,
            dataset,
            run,
            item,
            round,
            step,
            query: request.query.clone(),
            query_cut: found.is_query_cut,
            corpus: searched.corpus.clone(),
            sources: searched.sources.clone(),
            retrieved: found.retrieved,
            shown: found.shown,
            took: found.took,
            cached: found.is_cached,
            prev: String::new(),
            hash: String::new(),
        };
        match known {
            None => self.recorder.record_search(&line)?,
            Some(known) => {
                let sums = |line: &SearchLine| -> Vec<String> {
                    line.shown.iter().map(|passage| passage.sha256.clone()).collect()
                };
                if sums(known) != sums(&line) {
                    let SearchLine { item, query, .. } = line;
                    return Err(Failure::mismatch(format!(
                        "search {query:?} of item {item} found other passages than the run's log has: the corpus is not the same"
                    ))
                    .into());
                }
            }
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::panel::recorder::{Recorder, Telling};
    use crate::panel::scripted::{Script, panel};
    use crate::record::{CallLine, Passage};
    use crate::retrieval::{Retrieve, SearchResult, Searched};

    /// Counts the searches that it answers.
    #[derive(Default)]
    struct Counting(Searched, AtomicU32);

    fn passage(text: Option<&str>, sha256: &str) -> Passage {
        Passage {
            chunk: "a/1#0".into(),
            source: "a".into(),
            score: 1.0,
            sha256: sha256.into(),
            text: text.map(str::to_owned),
            ..Passage::default()
        }
    }

    impl Retrieve for Counting {
        fn searched(&self) -> &Searched {
            &self.0
        }

        fn search(&self, _: &SearchRequest) -> Result<SearchResult, Failure> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let shown = vec![passage(Some("found"), "1")];
            Ok(SearchResult { shown, ..SearchResult::default() })
        }
    }

    /// Has one search of an earlier attempt.
    struct Earlier(SearchLine);

    impl Recorder for Earlier {
        fn find_search(&self, _: &SearchKey) -> Option<&SearchLine> {
            Some(&self.0)
        }

        fn record_search(&self, _: &SearchLine) -> Result<(), Failure> {
            panic!("it is logged already")
        }

        fn record(&self, _: &CallLine) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_search_of_an_earlier_attempt_is_not_made_again_unless_its_texts_were_not_kept() {
        let (mut panel, _calls) = panel(&[], Script::new(|_, _| String::new()));
        let key = SearchKey { dataset: "d".into(), run: 1, item: "n".into(), round: 0, step: 0 };
        let request = SearchRequest { query: "q".into(), retrieve_top_k: 1, rerank_top_k: 1 };
        panel.retriever = None;
        let missing = panel.search(key.clone(), &request).unwrap_err();
        assert!(missing.to_string().contains("none was given"), "{missing}");
        let retriever = Arc::new(Counting::default());
        panel.retriever = Some(retriever.clone());
        let mut said = |shown: Passage| {
            panel.recorder =
                Box::new(Earlier(SearchLine { shown: vec![shown], ..SearchLine::default() }));
            let found = panel.search(key.clone(), &request);
            (found.map(|line| line.shown[0].text.clone()), retriever.1.load(Ordering::Relaxed))
        };
        let (text, made) = said(passage(Some("logged"), "1"));
        assert_eq!((text.unwrap().as_deref(), made), (Some("logged"), 0));
        let (text, made) = said(passage(None, "1"));
        assert_eq!((text.unwrap().as_deref(), made), (Some("found"), 1));
        let (other, _) = said(passage(None, "2"));
        assert!(other.unwrap_err().to_string().contains("found other passages"));
    }
    /// Cuts every query, and finds nothing for blank ones.
    struct Cutting(Searched);

    impl Retrieve for Cutting {
        fn searched(&self) -> &Searched {
            &self.0
        }

        fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
            let is_blank = request.query.trim().is_empty();
            let shown = if is_blank { Vec::new() } else { vec![passage(Some("found"), "1")] };
            Ok(SearchResult { shown, is_query_cut: !is_blank, ..SearchResult::default() })
        }
    }

    #[test]
    fn blank_queries_and_cut_ones_are_logged_as_such() {
        let (mut panel, _calls) = panel(&[], Script::new(|_, _| String::new()));
        let (recorder, _calls, searches) = Telling::new();
        panel.recorder = Box::new(recorder);
        panel.retriever = Some(Arc::new(Cutting(Searched::default())));
        for (step, query) in ["", " \n", "long"].into_iter().enumerate() {
            let step = step as u32;
            let key = SearchKey { dataset: "d".into(), run: 1, item: "n".into(), round: 0, step };
            let request = SearchRequest { query: query.into(), retrieve_top_k: 9, rerank_top_k: 9 };
            let line = panel.search(key, &request).unwrap();
            assert_eq!((line.shown.len(), line.query_cut), (usize::from(step == 2), step == 2));
            assert_eq!(searches.try_recv().unwrap(), line);
        }
    }
}
