//! The tables of a run on notes: detection, localisation, error types, correction, consensus, confidence, cost.

use crate::metrics::over_runs::OverRuns;
use crate::notes::{
    Confidence, Consensus, Correction, Detection, Localisation, MEASURES, Measured, NoteFigures,
    Prices, StageCost,
};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// Those that there are figures for.
pub fn all(figures: &NoteFigures, prices: &Prices) -> Vec<Table> {
    let detection = figures.detection.as_ref();
    let types = detection.filter(|detection| !detection.by_type.is_empty());
    let consensus = (!figures.consensus.is_empty()).then_some(&figures.consensus);
    let confidence = figures.confidence.as_ref();
    let stages = (!figures.stages.is_empty()).then_some(&figures.stages);
    let tables = [
        detection.map(detection_table),
        detection.map(confusion_table),
        figures
            .localisation
            .as_ref()
            .zip(detection)
            .map(localisation_table),
        types.map(types_table),
        figures
            .correction
            .as_ref()
            .map(|one| correction_table(one, figures.n_graded)),
        consensus.map(|stages| consensus_table(stages)),
        confidence.map(confidence_table),
        confidence.map(low_confidence_table),
        stages.map(|stages| cost_table(stages, prices)),
    ];
    tables.into_iter().flatten().collect()
}

/// What stands where a measure has no weights.
const NOT_COMPUTED: &str = "not computed: give --scorers DIR";

/// What is said where BERTScore, BLEURT or both have no weights.
pub fn missing_weights(figures: &NoteFigures) -> Option<String> {
    let correction = figures.correction.as_ref()?;
    let missing = [("bertscore", "BERTScore"), ("bleurt", "BLEURT")]
        .into_iter()
        .filter(|(name, _)| correction.measure(name).is_none());
    let names: Vec<&str> = missing.map(|(_, name)| name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}, and with {} AggregateScore and KPCS: {NOT_COMPUTED}",
            names.join(" and "),
            if names.len() == 1 { "it" } else { "them" },
        )
    })
}

fn table(
    name: &'static str,
    title: &str,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: &[&str],
) -> Table {
    Table {
        name,
        title: title.to_owned(),
        columns,
        rows,
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
    }
}

fn spread(figure: Option<&OverRuns>) -> Cell {
    figure.map_or(Cell::Nothing, |figure| Cell::Spread {
        mean: figure.mean,
        std: figure.std,
        n: Some(figure.per_run.len()),
        best: false,
    })
}

fn detection_table(detection: &Detection) -> Table {
    let confusion = &detection.confusion;
    let flagged = confusion.true_positives + confusion.false_positives;
    let errors = confusion.true_positives + confusion.false_negatives + confusion.unread_positives;
    let unread = confusion.unread_positives + confusion.unread_negatives;
    let all =
        errors + confusion.false_positives + confusion.true_negatives + confusion.unread_negatives;
    let row = |label: &str, figure: Option<&OverRuns>, of: usize| {
        Row::new(vec![Cell::text(label), spread(figure), Cell::Count(of)])
    };
    table(
        "detection",
        "Detection: has the note an error?",
        vec![
            Column::new("", Kind::Text),
            Column::new("share", Kind::Spread),
            Column::new("of notes × runs", Kind::Number),
        ],
        vec![
            row(
                "accuracy, unreadable counts as wrong",
                Some(&detection.accuracy),
                all,
            ),
            row(
                "accuracy without the unreadable, as the published code counts",
                detection.accuracy_of_read.as_ref(),
                all - unread,
            ),
            row("precision", detection.precision.as_ref(), flagged),
            row("recall", detection.recall.as_ref(), errors),
            row("F1", detection.f1.as_ref(), all),
        ],
        &[
            "Mean ± sample standard deviation over n runs. Precision is of the notes that were flagged, recall of those with an error; an error whose flag could not be read was not found.",
        ],
    )
}

fn confusion_table(detection: &Detection) -> Table {
    let confusion = &detection.confusion;
    let row = |label: &str, counts: [usize; 3]| {
        let counts = counts.map(Cell::Count);
        Row::new([Cell::text(label)].into_iter().chain(counts).collect())
    };
    table(
        "confusion",
        "What was said, by gold",
        vec![
            Column::new("gold", Kind::Text),
            Column::new("error", Kind::Number),
            Column::new("no error", Kind::Number),
            Column::new("unreadable or errored", Kind::Number),
        ],
        vec![
            row(
                "error",
                [
                    confusion.true_positives,
                    confusion.false_negatives,
                    confusion.unread_positives,
                ],
            ),
            row(
                "no error",
                [
                    confusion.false_positives,
                    confusion.true_negatives,
                    confusion.unread_negatives,
                ],
            ),
        ],
        &["Sums over the runs."],
    )
}

fn localisation_table((localisation, detection): (&Localisation, &Detection)) -> Table {
    let confusion = &detection.confusion;
    let errors = confusion.true_positives + confusion.false_negatives + confusion.unread_positives;
    let all =
        errors + confusion.false_positives + confusion.true_negatives + confusion.unread_negatives;
    let row = |label: &str, figure: Option<&OverRuns>, of: usize| {
        Row::new(vec![Cell::text(label), spread(figure), Cell::Count(of)])
    };
    table(
        "localisation",
        "Localisation: which sentence?",
        vec![
            Column::new("", Kind::Text),
            Column::new("share", Kind::Spread),
            Column::new("of notes × runs", Kind::Number),
        ],
        vec![
            row(
                "soft: the sentence most like the words that were given",
                Some(&localisation.accuracy),
                all,
            ),
            row(
                "exact: the very words",
                Some(&localisation.accuracy_exact),
                all,
            ),
            row(
                "soft, of the notes with an error alone",
                localisation.of_errors.as_ref(),
                errors,
            ),
        ],
        &["A note without an error is right where no sentence was named."],
    )
}

fn types_table(detection: &Detection) -> Table {
    let row = |one: &crate::notes::ByType| {
        Row::new(vec![
            Cell::text(&one.kind),
            Cell::Count(one.n),
            spread(Some(&one.detected)),
            spread(Some(&one.located)),
        ])
    };
    table(
        "types",
        "By type of error",
        vec![
            Column::new("type", Kind::Text),
            Column::new("notes", Kind::Number),
            Column::new("detected", Kind::Spread),
            Column::new("located", Kind::Spread),
        ],
        detection.by_type.iter().map(row).collect(),
        &["Located by likeness. Shares are of the notes of the type."],
    )
}

fn correction_table(correction: &Correction, n_graded: usize) -> Table {
    let sum = |counts: &[usize]| counts.iter().sum::<usize>();
    let (pairs, nothing) = (sum(&correction.n_pairs), sum(&correction.n_correct_na));
    let row = |label: String, measured: Option<&Measured>, remark: &str| {
        Row::new(vec![
            Cell::Text(label),
            spread(measured.and_then(|one| one.subset.as_ref())),
            spread(measured.map(|one| &one.composite)),
            Cell::text(remark),
        ])
    };
    let remark = |name: &str| match (correction.measure(name), name) {
        (Some(_), _) => "",
        (None, "bertscore" | "bleurt" | "aggregate") => NOT_COMPUTED,
        (None, _) => "English alone has its stems",
    };
    let names = MEASURES
        .iter()
        .copied()
        .chain([("aggregate", "AggregateScore")]);
    let mut rows: Vec<Row> = names
        .map(|(name, label)| row(label.to_owned(), correction.measure(name), remark(name)))
        .collect();
    for kpcs in &correction.kpcs {
        let alpha = kpcs.alpha;
        rows.push(row(
            format!("KPCS, α = {alpha}, Eq. 9"),
            Some(&kpcs.eq9),
            "",
        ));
        rows.push(row(
            format!("KPCS, α = {alpha}, gated"),
            Some(&kpcs.gated),
            "",
        ));
    }
    if correction.kpcs.is_empty() {
        rows.push(row("KPCS, Eq. 9".to_owned(), None, NOT_COMPUTED));
        rows.push(row("KPCS, gated".to_owned(), None, NOT_COMPUTED));
    }
    let keywords = match correction.keywords_are_changed_words {
        true => "KPCS' keywords are the words that the gold correction changes.",
        false => {
            "KPCS' keywords are those given with --keywords, else those that the notes' file names, matched to the letter; where there are none, the words that the gold correction changes."
        }
    };
    let counts = format!(
        "Subset: mean over the {pairs} pairs in which both sides correct. Composite: mean over all {} notes × runs, 1 for each of the {nothing} that neither side corrects, 0 where one does.",
        n_graded * correction.n_pairs.len(),
    );
    table(
        "correction",
        "Correction: how like the gold one?",
        vec![
            Column::new("measure", Kind::Text),
            Column::new("subset", Kind::Spread),
            Column::new("composite", Kind::Spread),
            Column::new("remark", Kind::Text),
        ],
        rows,
        &[
            &counts,
            "AggregateScore is the mean of ROUGE-1, BERTScore and BLEURT. Gated, as the published code does: all keywords as one string, or nothing.",
            keywords,
        ],
    )
}

fn consensus_table(stages: &[Consensus]) -> Table {
    let of_stage = |stage: &Consensus| {
        let row = |settled: &crate::notes::Settled| Row {
            group: stage.stage.clone(),
            cells: vec![
                Cell::text(settled.source.in_words()),
                Cell::Count(settled.n),
                Cell::share(Some(settled.share)),
                Cell::Count(settled.n_right),
                Cell::Count(settled.n - settled.n_right),
                Cell::share(Some(settled.accuracy)),
            ],
        };
        stage.settled.iter().map(row).collect::<Vec<_>>()
    };
    table(
        "consensus",
        "Who settled it (Table 13)",
        vec![
            Column::new("settled by", Kind::Text),
            Column::new("notes × runs", Kind::Number),
            Column::new("share", Kind::Number),
            Column::new("right", Kind::Number),
            Column::new("wrong", Kind::Number),
            Column::new("share right", Kind::Number),
        ],
        stages.iter().flat_map(of_stage).collect(),
        &[
            "Shares are of the notes that the stage saw. In localisation a note without an error has no right sentence; the stage sees it where detection was wrong.",
        ],
    )
}

fn confidence_table(confidence: &Confidence) -> Table {
    let row = |label: &str, means: Option<[f64; 2]>| {
        let means = [0, 1].map(|agent| Cell::share(means.map(|pair| pair[agent])));
        Row::new([Cell::text(label)].into_iter().chain(means).collect())
    };
    let n = format!(
        "Means over the {} notes × runs on which both agreed.",
        confidence.n_agreed
    );
    table(
        "confidence",
        "How sure the detectors are (Table 16)",
        vec![
            Column::new("of these", Kind::Text),
            Column::new("first agent", Kind::Number),
            Column::new("second agent", Kind::Number),
        ],
        vec![
            row("all", confidence.all),
            row("right", confidence.right),
            row("wrong", confidence.wrong),
        ],
        &[&n],
    )
}

fn low_confidence_table(confidence: &Confidence) -> Table {
    let row = |low: &crate::notes::LowPair| {
        let share = |part: usize| (low.n > 0).then(|| part as f64 / low.n as f64);
        Row::new(vec![
            Cell::Text(format!("{:.2}", low.below)),
            Cell::Count(low.n),
            Cell::Count(low.n_agreed),
            Cell::share(share(low.n_agreed)),
            Cell::Count(low.n_right),
            Cell::share(share(low.n_right)),
        ])
    };
    table(
        "low-confidence",
        "When both detectors are unsure (Table 16)",
        vec![
            Column::new("both below", Kind::Text),
            Column::new("notes × runs", Kind::Number),
            Column::new("agreed", Kind::Number),
            Column::new("share agreed", Kind::Number),
            Column::new("right", Kind::Number),
            Column::new("share right", Kind::Number),
        ],
        confidence.low.iter().map(row).collect(),
        &["Right: the flag that came out, however it was settled."],
    )
}

fn cost_table(stages: &[StageCost], prices: &Prices) -> Table {
    let row = |stage: &StageCost| {
        Row::new(vec![
            Cell::text(&stage.stage),
            Cell::Count(stage.calls),
            Cell::Number(stage.latency_seconds, 2),
            Cell::Number(stage.prompt_tokens, 1),
            Cell::Number(stage.cached_tokens, 1),
            Cell::Number(stage.completion_tokens, 1),
            Cell::Number(stage.price(prices), 6),
        ])
    };
    let whose = match *prices == Prices::default() {
        true => ", the paper's (Gemini 2.0 Flash)",
        false => "",
    };
    let Prices {
        prompt,
        completion,
        cached,
    } = *prices;
    let prices = format!(
        "Prices for a million tokens: ${prompt} prompt, ${completion} completion, ${cached} cached{whose}; what this run's models cost is another matter."
    );
    table(
        "cost",
        "What a note costs, by stage (Table 10)",
        vec![
            Column::new("stage", Kind::Text),
            Column::new("calls in all", Kind::Number),
            Column::under("a note", "seconds", Kind::Number),
            Column::under("a note", "prompt tokens", Kind::Number),
            Column::under("a note", "of these cached", Kind::Number),
            Column::under("a note", "completion tokens", Kind::Number),
            Column::under("a note", "dollars", Kind::Number),
        ],
        stages.iter().map(row).collect(),
        &[
            "Means over all notes × runs, those that a stage did not see too. Of calls side by side the longest counts in seconds.",
            &prices,
        ],
    )
}
