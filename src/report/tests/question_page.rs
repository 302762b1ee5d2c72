//! The page of a run on questions as a whole.

use serde_json::json;

use super::fixtures::{assert_asks_for_nothing, call, item, round};
use super::only_page;
use super::questions::{contents, contents_of, records};
use crate::analysis::notes::CorrectionScorer;
use crate::experiment::contents::Contents;
use crate::panel::DecodingMode;
use crate::record::{AnswerLine, CallLine, Parse, Reply};

fn shown(contents: &Contents) -> String {
    only_page(contents, &CorrectionScorer::default()).unwrap()
}

fn page() -> String {
    shown(&contents())
}

/// The page of one item with the plan's panel.
fn page_of(item: AnswerLine, calls: &[CallLine]) -> String {
    shown(&contents_of(records().0, vec![item], calls.to_vec()))
}

/// The part of the page that shows one case of one run.
fn case_of<'a>(page: &'a str, run: u32, id: &str) -> &'a str {
    let start = page.find(&format!("id=\"ward/{run}/{id}\"")).unwrap();
    let rest = &page[start..];
    let end = rest.find("<details class=\"case\"").unwrap_or(rest.len());
    &rest[..end]
}

#[test]
fn equal_records_give_equal_bytes_in_any_order() {
    let (plan, mut items, mut calls) = records();
    let page = shown(&contents_of(plan.clone(), items.clone(), calls.clone()));
    items.reverse();
    calls.reverse();
    assert_eq!(page, shown(&contents_of(plan.clone(), items.clone(), calls.clone())));
}

#[test]
fn cases_follow_the_plan_run_by_run() {
    let (plan, ..) = records();
    let page = page();
    let ids = (1..=2).flat_map(|run| plan.dataset.items.iter().map(move |id| (run, id)));
    let places: Vec<_> =
        ids.map(|(run, id)| page.find(&format!("id=\"ward/{run}/{id}\"")).unwrap()).collect();
    assert!(places.is_sorted());
}

#[test]
fn asks_for_nothing_and_says_what_it_is() {
    let page = page();
    assert_asks_for_nothing(&page);
    assert!(!page.contains("is noise"));
    let (mut plan, items, calls) = records();
    plan.synthetic = true;
    let page = shown(&contents_of(plan.clone(), items.clone(), calls.clone()));
    assert!(page.contains("every answer on this page is noise"));
}

#[test]
fn json_mode_is_not_called_unconstrained() {
    let (mut plan, items, calls) = records();
    plan.decoding = DecodingMode::Json;
    let page = shown(&contents_of(plan, items, calls));
    assert!(page.contains("decoding: JSON mode where MedAgentBoard has it, free text elsewhere;"));
    assert!(page.contains(", JSON mode where MedAgentBoard has it, random seed"));
}

#[test]
fn what_models_write_stays_text() {
    let hostile = "</script></pre></template><script>alert(1)</script>]]>--><img src=x onerror='a'>\" \u{202E}\0\u{1b}{{ page }}";
    let mut attack = call(hostile, hostile, 0);
    attack.text = hostile.into();
    attack.backbone = hostile.into();
    attack.purpose = hostile.into();
    attack.messages[0].content = hostile.into();
    attack.messages[1].content =
        format!("{hostile}\n\nOptions:\nA: {hostile}\nB: no\n\nIMPORTANT: x");
    attack.record = Reply::of(json!({
        "cot": [hostile], "answer": hostile, "confidence": hostile,
        "option_analysis": [{"option": hostile, "pros": hostile, "cons": hostile, "fit_score": hostile}],
        "structured_reasoning": {"elimination": [{"dx_or_option": hostile, "why_not": hostile}, hostile]},
        "counterfactual_check": hostile, "debate_moves": {"challenge": hostile}, (hostile): hostile,
    }));
    let mut victim = item(hostile, Some(hostile), vec![round(0, [hostile, "A", "A"])], hostile);
    victim.rationale = hostile.into();
    victim.rounds[0].brief = hostile.into();
    victim.rounds[0].labels = vec![hostile.into()];
    let clean = page_of(item("x", None, Vec::new(), ""), &[]);
    let page = page_of(victim, &[attack]);
    for (markup, count) in [("<script", 1), ("</script", 1), ("<style", 1)] {
        assert_eq!(page.matches(markup).count(), count, "{markup}");
        assert_eq!(clean.matches(markup).count(), count, "{markup}");
    }
    for broken in ["<img", "</template", "\u{202E}", "\0", "\u{1b}", "' onerror"] {
        assert!(!page.contains(broken), "{broken:?}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;"));
    assert!(page.contains("⟨U+202E⟩⟨U+0000⟩⟨U+001B⟩{{ page }}"));
}

#[test]
fn rows_carry_what_filters_read() {
    let page = page();
    for (run, id, flags) in [
        (1, "ward-001", "right"),
        (1, "ward-002", "right wrong-to-right"),
        (1, "ward-003", "wrong right-to-wrong"),
        (2, "ward-003", "right disagreement"),
        (1, "ward-004", "wrong right-to-wrong disagreement"),
        (1, "ward-005", "wrong error"),
        (1, "ward-006", "right fallback"),
        (1, "ward-007", ""),
        (1, "21645374", "wrong"),
    ] {
        let case = case_of(&page, run, id);
        let data = format!("data-run=\"{run}\" data-flags=\"{flags}\"");
        assert!(case.contains(&data), "{id}: {}", &case[..200]);
    }
}

#[test]
fn the_table_counts_errors_as_wrong() {
    let page = page();
    // Run 1: 3 of 7 graded, run 2: 4 of 7; the deviation is the sample's.
    for figure in
        ["0.4286", "0.5714", "0.5000", "7 of 14 right over 2 runs (50 ± 10 %, 95 % interval"]
    {
        assert!(page.contains(figure), "{figure}");
    }
    let lone = page_of(item("x", Some("A"), vec![round(0, ["A", "A", "A"])], "A"), &[]);
    assert!(lone.contains(">1 of 1 right (100 %)<"));
    assert!(lone.contains("1 of 16 planned cases"));
}

#[test]
fn an_error_without_calls_is_shown() {
    let page = page();
    let case = case_of(&page, 1, "ward-005");
    assert!(case.contains("the prompt has 9214 tokens"));
    assert!(case.contains("<p class=\"stem\" dir=\"auto\">"), "the question is there all the same");
    assert!(case.contains("counts as wrong, gold is “D”"));
}

#[test]
fn a_retried_item_shows_its_answer() {
    let answered = item("x", Some("A"), vec![round(0, ["A", "A", "A"])], "A");
    let mut failed = item("x", Some("A"), Vec::new(), "");
    failed.error = Some("the endpoint is gone".into());
    let plan = records().0;
    let page = shown(&contents_of(plan, vec![failed, answered], Vec::new()));
    assert_eq!(page.matches("<details class=\"case\"").count(), 1);
    assert!(!page.contains("the endpoint is gone"));
}

#[test]
fn a_question_without_gold_is_neither_right_nor_wrong() {
    let page = page_of(item("x", None, vec![round(0, ["A", "B", "A"])], "A"), &[]);
    assert!(page.contains("The question has no gold answer."));
    assert!(page.contains("have no gold, so none is right or wrong"));
    assert!(!page.contains("<b class=\"letter right\">"));
}

#[test]
fn a_fallback_shows_its_text_and_its_emptiness() {
    let mut fallback = call("x", "sym", 0);
    fallback.parse = Parse::Fallback;
    fallback.text = "<think>well</think> B it is".into();
    fallback.record = Reply::of(json!({"answer": "B", "confidence": 0}));
    let page = page_of(item("x", Some("B"), vec![round(0, ["B", "B", "B"])], "B"), &[fallback]);
    assert!(page.contains("does not have the form that was asked for; what it says was read"));
    assert!(page.contains("&lt;think&gt;well&lt;/think&gt; B it is"));
}

#[test]
fn panels_of_other_sizes_and_unknown_agents_are_shown() {
    let (mut plan, ..) = records();
    plan.panel.truncate(2);
    let two = item("x", Some("A"), vec![round(0, ["A", "B"])], "A");
    let calls = ["sym", "ddx", "passer-by"].map(|agent| call("x", agent, 0));
    let page = shown(&contents_of(plan, vec![two], calls.to_vec()));
    assert!(page.contains("panel of 2"));
    assert_eq!(page.matches("<article class=\"card\">").count(), 3);
    let mut five = records().0;
    five.panel.extend_from_within(..2);
    let split = item("x", Some("A"), vec![round(0, ["A", "B", "C", "D", "E"])], "A");
    let page = shown(&contents_of(five, vec![split], Vec::new()));
    assert!(page.contains("panel of 5"));
}

#[test]
fn a_system_prompt_stands_in_the_page_once() {
    let page = page();
    assert_eq!(page.matches("You are sym, in the initial stage.").count(), 1);
    assert_eq!(page.matches("You are sym, in the debate stage.").count(), 1);
}

#[test]
fn a_change_of_mind_is_told() {
    let page = page();
    let case = case_of(&page, 1, "ward-002");
    let changed = "<span class=\"before\">A → </span><b class=\"letter right\">B</b>";
    assert_eq!(case.matches(changed).count(), 2, "guide in round 1, sym in round 2");
    assert!(case.contains("Doctor A = <b>guide</b>, Doctor B = <b>sym</b>"));
}

#[test]
fn a_case_shows_the_question_as_it_was_put_and_no_instructions() {
    let page = page();
    let case = case_of(&page, 1, "ward-001");
    assert!(case.contains("Which of the following is the most appropriate treatment?</p>"));
    assert!(case.contains(
        "<b>C</b><span>Cephalexin</span><i class=\"badge right\">gold, team&#39;s answer</i>"
    ));
    assert!(!case.contains("IMPORTANT: Follow this exact process"));
}

#[test]
fn cases_beyond_a_pages_fill_pages_of_their_own() {
    let contents = contents();
    let whole = page();
    let pages =
        crate::report::run::render_parts(&contents, &CorrectionScorer::default(), 2).unwrap();
    let count = |text: &str| text.matches("<details class=\"case\"").count();
    let cases: Vec<usize> = pages.iter().map(|(_, page)| count(page)).collect();
    assert_eq!(cases.iter().sum::<usize>(), count(&whole));
    assert!(
        cases.len() > 2 && cases[..cases.len() - 1].iter().all(|cases| *cases == 2),
        "{cases:?}"
    );
    let files: Vec<&str> = pages.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(files[..3], ["report.html", "report-2.html", "report-3.html"]);
    for (index, (_, page)) in pages.iter().enumerate() {
        assert_asks_for_nothing(page);
        // Figures and prompts stand on the first alone, and every page leads to the others.
        assert_eq!(page.contains("id=\"result-title\""), index == 0);
        assert_eq!(page.contains("id=\"prompts-title\""), index == 0);
        assert_eq!(page.matches("<nav class=\"pages\"").count(), 2);
        let next = format!("href=\"report-{}.html#cases\" rel=next>", index + 2);
        assert_eq!(page.contains(&next), index + 1 < pages.len());
        assert_eq!(page.contains("Not finished"), whole.contains("Not finished"));
        assert!(!page.contains("href=\"#prompt-"), "a prompt is on the first page");
    }
    assert!(pages[1].1.contains("href=\"report.html#prompt-"));
    assert!(!whole.contains("<nav class=\"pages\""));
}
