//! The figures of a recipe: small ones, one per dataset, side by side where there is room.

use super::note_figures;
use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::recipe::analysis::{CollapseRow, NetGainRow, Similarity};
use crate::analysis::recipe::paired::PairedRow;
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::analysis::recipe::tables;
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::file::{Analysis, DatasetEntry, MethodEntry};
use crate::experiment::recipe::paper::PapersDifference;
use crate::report::calibration;
use crate::report::figure::{Five, Key, Lane, Line, Mark, Plane, Point, Row, Rows, Subplot};

/// The figures that stand with a table.
pub fn panels(table: &str, recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let one = |panel: Subplot| Vec::from([panel]);
    match table {
        "accuracy" => {
            sweep(recipe, results).into_iter().chain([accuracy(recipe, results)]).collect()
        }
        "notes" => {
            let sweeps = note_figures::sweeps(recipe, results);
            sweeps.into_iter().chain([note_figures::accuracy(recipe, results)]).collect()
        }
        "consensus" => one(note_figures::consensus(recipe, results)),
        "netgain" => one(net_gain(recipe, results)),
        "paired" => one(paired(recipe, results)),
        "collapse" => {
            let asks = |analysis| recipe.analyses.contains(&analysis);
            let panels = [
                asks(Analysis::SimilarityInitial).then(|| similarity_initial(recipe, results)),
                asks(Analysis::SimilarityRounds).then(|| similarity_rounds(recipe, results)),
                Some(correlated_errors(recipe, results)),
            ];
            panels.into_iter().flatten().filter(|panel| !panel.drawings.is_empty()).collect()
        }
        "calibration" => calibration(recipe, results),
        "cost" => one(cost(recipe, results)),
        _ => Vec::new(),
    }
}

/// The legend of the paper's figures.
fn papers() -> Key {
    Key {
        swatch: "diamond".to_owned(),
        label: "the paper's, with its spread or interval".to_owned(),
    }
}

/// The legend of our figures and, where there are some, of the paper's.
fn key(ours: &str, has_papers: bool) -> Vec<Key> {
    [Key::series(0, ours)].into_iter().chain(has_papers.then(papers)).collect()
}

/// A row that is named after its method.
fn of_method(recipe: &Recipe, method: &str, lanes: Vec<Lane>) -> Row {
    Row { label: tables::method(recipe, method).to_owned(), lanes }
}

/// A figure of rows: what it is called and is said of it, values that its axes must reach, its legend.
pub struct Figure<'a> {
    pub title: &'a str,
    pub description: &'a str,
    pub reach: &'a [f64],
    pub key: Vec<Key>,
}

impl Figure<'_> {
    /// With a drawing for every dataset that has a row, named after it.
    pub fn panel(self, recipe: &Recipe, rows: impl Fn(&str) -> Vec<Row>) -> Subplot {
        let drawing = |dataset: &DatasetEntry| {
            let rows = rows(&dataset.name);
            (!rows.is_empty()).then(|| {
                let (title, description) = (dataset.label.clone(), self.description.to_owned());
                Rows { title, description, reach: self.reach.to_vec(), rows }.draw()
            })
        };
        let drawings = recipe.dataset.iter().filter_map(drawing).collect();
        Subplot { title: self.title.to_owned(), drawings, key: self.key }
    }
}

pub fn cells<'a>(
    results: &'a RecipeResults,
    dataset: &str,
) -> impl Iterator<Item = &'a CellResult> {
    let cells = results.cells.iter();
    cells.filter(move |cell| cell.dataset == dataset)
}

/// Bars of accuracy ± the deviation over runs, the paper's figure beside.
fn accuracy(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let row = |cell: &CellResult| {
        let paper =
            cell.paper.map(|[mean, std]| Mark::Paper { mean, low: mean - std, high: mean + std });
        let mut bar = Lane::over_runs(0, cell.spread()?);
        bar.marks.extend(paper);
        Some(of_method(recipe, &cell.method, vec![bar]))
    };
    let has_papers = results.cells.iter().any(|cell| cell.paper.is_some());
    let figure = Figure {
        title: "",
        description: "Accuracy by method: a bar to the mean over the runs, a line of one standard deviation to either side.",
        reach: &[0.0, 1.0],
        key: key("ours: mean ± standard deviation over runs", has_papers),
    };
    figure.panel(recipe, |dataset| cells(results, dataset).filter_map(row).collect())
}

/// Accuracy over the methods in their order, one line per dataset; `None` for a recipe that is no sweep.
fn sweep(recipe: &Recipe, results: &RecipeResults) -> Option<Subplot> {
    if !recipe.analyses.contains(&Analysis::Sweep) {
        return None;
    }
    let lines = recipe.dataset.iter().enumerate().map(|(number, dataset)| {
        let methods = recipe.method.iter().enumerate();
        let point = |(place, method): (usize, &MethodEntry)| {
            let cell = tables::cell(results, &method.name, &dataset.name)?;
            Some(Point {
                x: beside(place, number, recipe.dataset.len()),
                y: cell.mean?,
                std: cell.std,
                radius: 3.5,
            })
        };
        Line { series: number % SERIES, points: methods.filter_map(point).collect() }
    });
    let sweeps_rounds = recipe.method.iter().all(|one| one.label.starts_with("T_max = "));
    let name = |label: &str| match sweeps_rounds {
        true => label.trim_start_matches("T_max = ").to_owned(),
        false => label.to_owned(),
    };
    let plane = Plane {
        title: "Accuracy in the order of the methods".to_owned(),
        description: "Accuracy of each method, a line a dataset, with one standard deviation over the runs to either side.".to_owned(),
        across: match sweeps_rounds {
            true => "most rounds of debate, T_max".to_owned(),
            false => "method".to_owned(),
        },
        up: "accuracy".to_owned(),
        names: recipe.method.iter().map(|one| name(&one.label)).collect(),
        ..over_methods(recipe, lines.collect())
    };
    let datasets = recipe.dataset.iter().enumerate();
    Some(Subplot {
        title: "In the order of the methods".to_owned(),
        drawings: vec![plane.draw()],
        key: datasets
            .map(|(number, dataset)| Key::series(number % SERIES, &dataset.label))
            .collect(),
    })
}

/// Lines over the methods in their order, under their labels.
pub fn over_methods(recipe: &Recipe, lines: Vec<Line>) -> Plane {
    Plane {
        title: String::new(),
        description: String::new(),
        width: (64 + 92 * recipe.method.len().max(3)) as u32,
        height: 280,
        across: "method".to_owned(),
        up: String::new(),
        names: recipe.method.iter().map(|one| one.label.clone()).collect(),
        reach: [Vec::new(), Vec::new()],
        diagonal: false,
        lines,
    }
}

/// The x value of a point of one of several lines, shifted a little so that they do not cover one another.
pub fn beside(place: usize, line: usize, of: usize) -> f64 {
    place as f64 + 0.06 * (line as f64 - (of - 1) as f64 / 2.0)
}

/// The number of the page's colours.
const SERIES: usize = 6;

fn interval(series: usize, estimate: &Estimate, paper: Option<[f64; 3]>) -> Lane {
    let Estimate { mean, low, high, .. } = *estimate;
    // Without an interval a dot alone; what is said beside it tells why.
    let (low, high) = (low.unwrap_or(mean), high.unwrap_or(mean));
    let ours = Mark::Interval { mean, low, high };
    let paper = paper.map(|[mean, low, high]| Mark::Paper { mean, low, high });
    // The paper's first, so that ours is not hidden.
    let marks = paper.into_iter().chain([ours]).collect();
    Lane { series, said: estimate.to_string(), marks }
}

/// NetGain with its interval.
fn net_gain(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let rows = |dataset: &str| {
        let rows = results.netgain.iter().filter(|row| row.dataset == dataset);
        let row = |row: &NetGainRow| {
            let conditional = row.conditional.as_ref();
            let conditional = conditional.map(|one| interval(0, &one.estimate, row.paper));
            let all = interval(1, &row.estimate, None);
            of_method(recipe, &row.method, conditional.into_iter().chain([all]).collect())
        };
        rows.map(row).collect()
    };
    let has_papers = results.netgain.iter().any(|row| row.paper.is_some());
    let mut key = key("of the questions that could turn, with its 95 % interval", has_papers);
    key.insert(1, Key::series(1, "of all questions"));
    let description = "NetGain by method: a dot at the mean, a line over its 95 % interval.";
    Figure { title: "", description, reach: &[0.0], key }.panel(recipe, rows)
}

/// Paired differences with their intervals.
fn paired(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let rows = |dataset: &str| {
        let rows = results.paired.iter().filter(|row| row.dataset == dataset);
        let row = |row: &PairedRow| {
            let (method, baseline) = (&row.method, &row.baseline);
            let (method, baseline) =
                (tables::method(recipe, method), tables::method(recipe, baseline));
            let paper = row.paper.map(|paper| match paper {
                PapersDifference::Mean(mean) => [mean; 3],
                PapersDifference::WithInterval(interval) => interval,
            });
            Row {
                label: format!("{method} − {baseline}"),
                lanes: vec![interval(0, &row.difference, paper)],
            }
        };
        rows.map(row).collect()
    };
    let description = "Differences of accuracy, paired by question: a dot at the mean, a line over its 95 % interval.";
    let has_papers = results.paired.iter().any(|row| row.paper.is_some());
    let key = key("ours, with its 95 % interval", has_papers);
    Figure { title: "", description, reach: &[0.0], key }.panel(recipe, rows)
}

/// Boxes of the questions' similarities before any interaction (Figure 3, left).
fn similarity_initial(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let row = |row: &CollapseRow| {
        let five = Five::of(&row.similarity.as_ref()?.initial_by_question)?;
        let said = format!("median {:.4}, {} questions", five.median, five.n);
        let lane = Lane { series: 0, said, marks: vec![Mark::Box(five)] };
        Some(of_method(recipe, &row.method, vec![lane]))
    };
    let figure = Figure {
        title: "Initial similarity",
        description: "Mean pairwise similarity of first texts over the questions: quartiles, the median as a line, whiskers to the last value within 1.5 interquartile ranges, others as rings.",
        reach: &[],
        key: vec![Key::series(
            0,
            "questions: quartiles and median, whiskers within 1.5 interquartile ranges",
        )],
    };
    figure.panel(recipe, |dataset| of_dataset(results, dataset).filter_map(row).collect())
}

/// Bars of similarity in the first round and in the last (Figure 6).
fn similarity_rounds(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let row = |row: &CollapseRow| {
        let Similarity { first_round, last, .. } = row.similarity.as_ref()?;
        bars(recipe, &row.method, &[(1, first_round.as_ref()), (0, last.as_ref())])
    };
    let figure = Figure {
        title: "Similarity in the first round and in the last",
        description: "Similarity of texts in the first round of interaction and in the last, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        key: vec![Key::series(1, "first round of interaction"), Key::series(0, "last round")],
    };
    figure.panel(recipe, |dataset| of_dataset(results, dataset).filter_map(row).collect())
}

/// Bars of Agreement@0, Same-wrong@0 and Same-wrong@final (Figures 3, right, and 7).
fn correlated_errors(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let row = |row: &CollapseRow| {
        let agreement = row.agreement.as_ref()?;
        let lanes = [
            (2, Some(&agreement.agreement_at_0)),
            (1, Some(&agreement.same_wrong_at_0)),
            (4, Some(&agreement.same_wrong_at_final)),
        ];
        bars(recipe, &row.method, &lanes)
    };
    let figure = Figure {
        title: "Correlated errors",
        description: "Shares of questions on which all first answers agree, agree and are wrong, and on which all last answers agree and are wrong, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        key: vec![
            Key::series(2, "Agreement@0"),
            Key::series(1, "Same-wrong@0"),
            Key::series(4, "Same-wrong@final"),
        ],
    };
    figure.panel(recipe, |dataset| of_dataset(results, dataset).filter_map(row).collect())
}

fn of_dataset<'a>(
    results: &'a RecipeResults,
    dataset: &str,
) -> impl Iterator<Item = &'a CollapseRow> {
    let rows = results.collapse.iter();
    rows.filter(move |row| row.dataset == dataset)
}

fn bars(recipe: &Recipe, method: &str, lanes: &[(usize, Option<&OverRuns>)]) -> Option<Row> {
    let bar =
        |(series, over): &(usize, Option<&OverRuns>)| Some(Lane::over_runs(*series, (*over)?));
    let lanes: Vec<Lane> = lanes.iter().filter_map(bar).collect();
    (!lanes.is_empty()).then(|| of_method(recipe, method, lanes))
}

/// A reliability diagram for each cell, by dataset.
fn calibration(recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let drawing = |cell: &CellResult| {
        let label = tables::method(recipe, &cell.method);
        Some(calibration::drawing(label, cell.calibration.as_ref()?))
    };
    let panels = recipe.dataset.iter().map(|dataset| {
        let drawings = cells(results, &dataset.name).filter_map(drawing);
        Subplot { title: dataset.label.clone(), drawings: drawings.collect(), key: Vec::new() }
    });
    panels.filter(|panel| !panel.drawings.is_empty()).collect()
}

/// Bars of completion tokens per item and per right answer.
fn cost(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let rows = |dataset: &str| {
        let row = |cell: &CellResult| {
            let cost = cell.cost.as_ref()?;
            let bar = |series, value: f64| {
                let marks = vec![Mark::Bar { value, std: None }];
                Lane { series, said: format!("{value:.0}"), marks }
            };
            let right = cost.per_correct.map(|spent| bar(1, spent.completion_tokens));
            let item = bar(0, cost.per_item.completion_tokens);
            Some(of_method(recipe, &cell.method, [item].into_iter().chain(right).collect()))
        };
        cells(results, dataset).filter_map(row).collect()
    };
    let figure = Figure {
        title: "",
        description: "Completion tokens that an item takes, and that a right answer takes.",
        reach: &[0.0],
        key: vec![
            Key::series(0, "completion tokens per item"),
            Key::series(1, "completion tokens per right answer"),
        ],
    };
    figure.panel(recipe, rows)
}
