//! The page and the tables of a run on notes as a whole.

use serde_json::Value;

use super::fixtures::assert_asks_for_nothing;
use super::notes::{ARABIC, called, contents, gold, located, note, plan, records};
use super::only_page;
use crate::analysis::Outcomes;
use crate::analysis::notes::{CorrectionScorer, Measure, NeuralScores, NoteFigures};
use crate::analysis::table::Table;
use crate::record::{Reply, SettledBy};
use crate::report::tables;

fn page() -> String {
    only_page(&records(), &CorrectionScorer::default()).unwrap()
}

/// The part of the page that shows one note of one run.
fn case_of<'a>(page: &'a str, run: u32, id: &str) -> &'a str {
    let start = page.find(&format!("id=\"medec-ms-test/{run}/{id}\"")).unwrap();
    let rest = &page[start..];
    let end = rest.find("<details class=\"case\"").unwrap_or(rest.len());
    &rest[..end]
}

/// A table's rows as JSON.
fn rows(tables: &[Table], name: &str) -> Vec<Value> {
    let table = tables.iter().find(|table| table.name == name).unwrap();
    table.json()["rows"].as_array().unwrap().clone()
}

#[test]
fn equal_records_give_equal_bytes_in_any_order() {
    let mut records = records();
    let page = page();
    records.items.records.reverse();
    records.calls.records.reverse();
    assert_eq!(page, only_page(&records, &CorrectionScorer::default()).unwrap());
}

#[test]
fn asks_for_nothing_and_says_what_it_is() {
    let page = page();
    assert_asks_for_nothing(&page);
    assert!(page.contains("MEDEC-MS, 597 of the paper&#39;s 925, of which"));
    assert!(
        page.contains("The Arabic and Chinese notes were given to the English prompts, unchanged.")
    );
    assert!(!page.contains("is noise"));
    let mut records = records();
    records.plan.synthetic = true;
    let page = only_page(&records, &CorrectionScorer::default()).unwrap();
    assert!(page.contains("every answer on this page is noise"));
}

#[test]
fn what_models_and_notes_say_stays_text() {
    let hostile = "</script></pre></mark><script>alert(1)</script>]]>--><img src=x onerror='a'>\" \u{202E}\0\u{1b}{{ page }}";
    let mut attack = called(hostile, "det1", "detection");
    attack.purpose = hostile.into();
    attack.agent = hostile.into();
    attack.backbone = hostile.into();
    attack.text = format!("<think>{hostile}</think>{hostile}");
    attack.record = Reply::of(
        serde_json::json!({"thought": hostile, "result": hostile, "correction": hostile, (hostile): hostile}),
    );
    for message in &mut attack.messages {
        message.content = hostile.into();
    }
    let mut victim = note(hostile);
    victim.gold = Some(gold(Some(1)));
    let wanted = victim.gold.as_mut().unwrap();
    wanted.sentence = Some(hostile.into());
    wanted.correction = Some(format!("{hostile} more"));
    wanted.kind = Some(hostile.into());
    victim.flag = Some(true).into();
    victim.sentence_id = Some(0);
    victim.sentence = format!("{hostile} elsewhere");
    victim.correction = Some(format!("{hostile} other"));
    let mut failed = note("failed");
    failed.error = Some(hostile.into());
    let mut plan = plan();
    plan.runs = 1;
    plan.dataset.items = vec![hostile.into(), "failed".into()];
    let page = only_page(
        &contents(plan, vec![victim, failed], vec![attack]),
        &CorrectionScorer::default(),
    );
    let page = page.unwrap();
    for (markup, count) in [("<script", 1), ("</script", 1), ("<style", 1)] {
        assert_eq!(page.matches(markup).count(), count, "{markup}");
    }
    for broken in ["<img", "\u{202E}", "\0", "\u{1b}", "' onerror"] {
        assert!(!page.contains(broken), "{broken:?}");
    }
    assert_eq!(page.matches("<mark").count(), page.matches("</mark>").count());
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;"));
    assert!(page.contains("⟨U+202E⟩⟨U+0000⟩⟨U+001B⟩{{ page }}"));
}

#[test]
fn rows_carry_what_filters_read() {
    let page = page();
    for (run, id, flags) in [
        (1, "ms-test-found", "right"),
        (1, "ms-test-missed", "wrong missed-error"),
        (2, "ms-test-missed", "right"),
        (1, "ms-test-alarm", "wrong false-alarm"),
        (1, "ms-test-elsewhere", "right wrong-sentence"),
        (1, "ms-test-arabic", "right"),
        (1, "ms-test-chinese", "wrong unreadable"),
        (2, "ms-test-errored", "wrong error"),
    ] {
        let case = case_of(&page, run, id);
        let data = format!("data-run=\"{run}\" data-flags=\"{flags}\"");
        assert!(case.contains(&data), "{id}: {}", &case[..200]);
    }
    for (flag, label, count) in [
        ("wrong", "wrong", 7),
        ("right", "right", 7),
        ("missed-error", "missed errors", 1),
        ("false-alarm", "false alarms", 2),
        ("wrong-sentence", "wrong sentence", 2),
        ("unreadable", "unreadable or refused", 2),
        ("error", "failed", 2),
    ] {
        let chip = format!("value=\"{flag}\"><span>{label} <b>{count}</b>");
        assert!(page.contains(&chip), "{chip}");
    }
}

#[test]
fn a_note_shows_both_sentences_and_both_corrections() {
    let page = page();
    let found = case_of(&page, 1, "ms-test-found");
    assert!(found.contains("He came in with a fever.\n<mark class=\"located gold\"><i class=\"badge\">located and gold</i> He was given aspirin daily.</mark>\n\nHe was sent home.</p>"));
    assert!(found.contains("He was given <del>aspirin</del> <ins>ibuprofen</ins> daily.</p>"));
    assert!(found.contains("He was given <del>aspirin</del> <ins>paracetamol</ins> daily.</p>"));
    assert!(found.contains("He was given <del>paracetamol</del> <ins>ibuprofen</ins> daily.</p>"));
    assert!(found.contains("Right sentence, word for word."));
    let elsewhere = case_of(&page, 1, "ms-test-elsewhere");
    assert!(elsewhere.contains(
        "<mark class=\"located\"><i class=\"badge\">located</i> He came in with a fever.</mark>"
    ));
    assert!(elsewhere.contains(
        "<mark class=\" gold\"><i class=\"badge\">gold</i> He was given aspirin daily.</mark>"
    ));
    assert!(elsewhere.contains("Wrong sentence: sentence 1 was located, gold is sentence 2."));
    assert!(elsewhere.contains("settled by arbitration"));
    assert!(!page.contains("dataset.jsonl</code> does not hold"));
    assert!(
        !elsewhere.contains("Instructions that no case shows")
            || elsewhere.contains("having read both")
    );
    let missed = case_of(&page, 1, "ms-test-missed");
    assert!(missed.contains("No correction was proposed.") && missed.contains(">run 2</a>"));
    let errored = case_of(&page, 1, "ms-test-errored");
    assert!(
        errored.contains("the prompt has 9214 tokens")
            && errored.contains("He came in with a fever.")
    );
}

#[test]
fn other_languages_run_in_their_own_direction() {
    let page = page();
    let arabic = case_of(&page, 1, "ms-test-arabic");
    let (before, _) = ARABIC.split_once('.').unwrap();
    assert!(
        arabic.contains(&format!("<p class=\"stem\" lang=\"ar\" dir=\"auto\">{before}. <mark"))
    );
    assert!(arabic.contains("<del>الأسبرين</del> <ins>الإيبوبروفين</ins>"));
    let chinese = case_of(&page, 1, "ms-test-chinese");
    assert!(chinese.contains("lang=\"zh\" dir=\"auto\">患者发热三天。<mark"));
    assert!(chinese.contains("Wrong: no label could be read; gold is “an error in sentence 2”."));
}

#[test]
fn tables_equal_the_figures() {
    let records = records();
    let figures = NoteFigures::of(&Outcomes::of(&records), &CorrectionScorer::default());
    let (tables, _) = tables(&records, &CorrectionScorer::default());
    let detection = figures.detection.as_ref().unwrap();
    let shown = rows(&tables, "detection");
    assert_eq!(shown[0]["share"]["mean"], detection.accuracy.mean);
    // Of 14, 7 are right; 4 could not be read or errored.
    assert_eq!((detection.accuracy.mean, &shown[0]["of notes × runs"]), (0.5, &Value::from(14)));
    assert_eq!(shown[1]["share"]["mean"], detection.accuracy_of_read.as_ref().unwrap().mean);
    assert_eq!(shown[1]["of notes × runs"], 10);
    for (row, figure) in
        shown[2..].iter().zip([&detection.precision, &detection.recall, &detection.f1])
    {
        assert_eq!(row["share"]["mean"], figure.as_ref().unwrap().mean);
    }
    let confusion = rows(&tables, "confusion");
    assert_eq!(confusion[0]["error"], detection.confusion.true_positives);
    assert_eq!(confusion[0]["unreadable or errored"], 4);
    assert_eq!(confusion[1]["error"], 2);
    let localisation = figures.localisation.as_ref().unwrap();
    let shown = rows(&tables, "localisation");
    let means: Vec<&Value> = shown.iter().map(|row| &row["share"]["mean"]).collect();
    assert_eq!(
        means,
        [
            &Value::from(localisation.accuracy.mean),
            &Value::from(localisation.accuracy_exact.mean),
            &Value::from(localisation.of_errors.as_ref().unwrap().mean),
        ]
    );
    assert_eq!(rows(&tables, "types")[0]["detected"]["mean"], detection.by_type[0].detected.mean);
    let consensus = rows(&tables, "consensus");
    let arbitrated = figures.consensus[0]
        .settled
        .iter()
        .find(|one| one.source == SettledBy::Arbitration)
        .unwrap();
    assert_eq!(consensus[1]["settled by"], "arbitration");
    assert_eq!(consensus[1]["wrong"], arbitrated.n - arbitrated.n_right);
    let confidence = figures.confidence.as_ref().unwrap();
    assert_eq!(rows(&tables, "confidence")[0]["first agent"], confidence.all.unwrap()[0]);
    assert_eq!(rows(&tables, "low-confidence")[2]["notes × runs"], confidence.low[2].n);
    let cost = rows(&tables, "cost");
    let all = figures.stages.last().unwrap();
    assert_eq!(cost.last().unwrap()["per note: dollars"], all.price());
    assert_eq!(cost.last().unwrap()["per note: prompt tokens"], all.prompt_tokens);
    let page = only_page(&records, &CorrectionScorer::default()).unwrap();
    for table in &tables {
        let html = table.html();
        let (cells, _) = html.split_once("</table>").unwrap();
        assert!(page.contains(cells), "{}", table.name);
    }
    assert_eq!(page.matches("Made with: ").count(), 1, "what all tables share is said once");
}

/// The stage sees a sound note where detection was wrong; that no sentence is wrong is then the right answer, and counts as one.
#[test]
fn of_a_sound_note_the_right_location_is_none() {
    let located_as = |id| {
        let mut sound = note("ms-test-sound");
        sound.gold = Some(gold(None));
        sound.flag = Some(true).into();
        sound.sentence_id = id;
        sound.exact_sentence_id = id;
        sound.localisation = Some(located(SettledBy::Agreement, &[id, id]));
        sound
    };
    for (id, right) in [(None, 1), (Some(1), 0)] {
        let mut plan = plan();
        plan.dataset.items = vec!["ms-test-sound".into()];
        plan.runs = 1;
        let records = contents(plan, vec![located_as(id)], Vec::new());
        let rows = rows(&tables(&records, &CorrectionScorer::default()).0, "consensus");
        assert_eq!(rows[0]["right"], right, "{rows:?}");
    }
}

#[test]
fn a_measure_without_weights_is_empty_and_loud() {
    let records = records();
    let told = |scorer: &CorrectionScorer| {
        (rows(&tables(&records, scorer).0, "correction"), only_page(&records, scorer).unwrap())
    };
    let row = |rows: &[Value], measure: &str| {
        let row = rows.iter().find(|row| row["measure"] == measure);
        row.unwrap_or_else(|| panic!("{measure}")).clone()
    };
    let (rows, page) = told(&CorrectionScorer::default());
    assert!(page.contains("BERTScore and BLEURT, and with them AggregateScore and KPCS: not computed: needs its model in --scorers DIR"));
    let mut measures = rows.iter().map(|row| row["measure"].as_str().unwrap());
    assert!(measures.all(|measure| measure.starts_with("ROUGE")), "{rows:?}");
    assert!(row(&rows, "ROUGE-1")["subset"]["mean"].is_f64());

    let mut scorer = CorrectionScorer::default();
    for record in records.notes().into_values() {
        let wanted = record.gold.as_ref().and_then(|gold| gold.correction.clone());
        if let Some((wanted, given)) = wanted.zip(record.correction.clone()) {
            let learned = NeuralScores::from([(Measure::BertScore, 0.5), (Measure::Bleurt, 0.25)]);
            scorer.neural.insert((wanted, given), learned);
        }
    }
    let (rows, page) = told(&scorer);
    assert!(!page.contains("not computed"));
    assert_eq!(row(&rows, "BERTScore")["subset"]["mean"], 0.5);
    assert!(row(&rows, "KPCS, α = 0.5, Eq. 9")["composite"]["mean"].is_f64());
    assert!(row(&rows, "KPCS, α = 0.8, gated")["composite"]["mean"].is_f64());

    // Keywords that are given for a note replace its own: one that no correction has, then one that each has.
    let similarity = row(&rows, "AggregateScore")["subset"]["mean"].as_f64().unwrap();
    for (keyword, expected) in [("quinine", 0.0), ("", 0.5 + 0.5 * similarity)] {
        for record in records.notes().into_values() {
            let given = vec![keyword.to_owned()];
            scorer.keywords.by_note.insert(record.item.clone(), given);
        }
        let (rows, page) = told(&scorer);
        let kpcs = row(&rows, "KPCS, α = 0.5, Eq. 9")["subset"]["mean"].as_f64().unwrap();
        assert!((kpcs - expected).abs() < 1e-12, "{keyword:?}: {kpcs} against {expected}");
        assert!(
            page.contains("KPCS takes as keywords those given by the recipe or with --keywords")
        );
    }
}

#[test]
fn without_gold_or_without_records_there_is_a_page() {
    let mut ungraded = records();
    for record in &mut ungraded.items.records {
        if let crate::record::ItemLine::Note(note) = record {
            note.gold = None;
        }
    }
    let page = only_page(&ungraded, &CorrectionScorer::default()).unwrap();
    assert!(page.contains("so none is right or wrong") && page.contains("title=\"no gold\""));
    let empty =
        only_page(&contents(plan(), Vec::new(), Vec::new()), &CorrectionScorer::default()).unwrap();
    assert!(empty.contains("0 of 14 planned cases") && empty.contains("No note has a record yet."));
    assert!(empty.contains("No note is finished yet"));
}
