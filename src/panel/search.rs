//! A search of a panel: on disk before the next call, and answered from the log of an earlier attempt at the run.

use super::{Panel, PanelError};
use crate::diagnosis::Failure;
use crate::record::{SearchKey, SearchLine};
use crate::retrieval::SearchRequest;

impl Panel {
    /// Searches the corpora of the run; the passages come with their texts. A search that an earlier attempt at the run made is answered
    /// from its log.
    ///
    /// # Errors
    /// A panel without a corpus; a search that failed or could not be logged.
    pub fn search(
        &self,
        key: SearchKey,
        request: &SearchRequest,
    ) -> Result<SearchLine, PanelError> {
        if let Some(known) = self.recorder.find_search(&key) {
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
            ..SearchLine::default()
        };
        self.recorder.record_search(&line)?;
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::panel::recorder::{Recorder, Telling};
    use crate::panel::scripted::{Script, panel};
    use crate::record::{CallLine, Passage};
    use crate::retrieval::{Retrieve, SearchResult, Searched};

    fn passage(text: &str) -> Passage {
        Passage {
            chunk: "a/1#0".into(),
            source: "a".into(),
            score: 1.0,
            text: Some(text.to_owned()),
            ..Passage::default()
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
    fn a_search_of_an_earlier_attempt_is_not_made_again() {
        let (mut panel, _calls) = panel(&[], Script::new(|_, _| String::new()));
        let key = SearchKey { dataset: "d".into(), run: 1, item: "n".into(), round: 0, step: 0 };
        let request = SearchRequest { query: "q".into(), retrieve_top_k: 1, rerank_top_k: 1 };
        panel.retriever = None;
        let missing = panel.search(key.clone(), &request).unwrap_err();
        assert!(missing.to_string().contains("none was given"), "{missing}");
        let logged = SearchLine { shown: vec![passage("logged")], ..SearchLine::default() };
        panel.recorder = Box::new(Earlier(logged.clone()));
        assert_eq!(panel.search(key, &request).unwrap(), logged);
    }

    /// Cuts every query, and finds nothing for blank ones.
    struct Cutting(Searched);

    impl Retrieve for Cutting {
        fn searched(&self) -> &Searched {
            &self.0
        }

        fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
            let is_blank = request.query.trim().is_empty();
            let shown = if is_blank { Vec::new() } else { vec![passage("found")] };
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
