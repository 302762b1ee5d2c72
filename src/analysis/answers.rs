//! Tables of the answers to questions: by their places; and what a panel's did on their way to its own: who was right at first, who went over to
//! whom, and which agents answer alike.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;

use crate::analysis::metrics::agreement::{Weights, cohen_kappa};
use crate::analysis::table::{Cell, Table};
use crate::experiment::plan::Plan;
use crate::record::{AnswerLine, Cause};

/// The tables of the questions that several agents answered; none without such.
pub fn tables(plan: &Plan, answers: &[&AnswerLine]) -> Vec<Table> {
    let of_several = |line: &&AnswerLine| {
        let first = line.rounds.first();
        first.is_some_and(|round| round.agents.iter().collect::<BTreeSet<_>>().len() > 1)
    };
    let lines: Vec<&AnswerLine> = answers.iter().copied().filter(of_several).collect();
    [minorities(&lines), flips(&lines), pairs(plan, &lines)].into_iter().flatten().collect()
}

/// What the first answers held, and what became of it.
fn minorities(lines: &[&AnswerLine]) -> Option<Table> {
    let count = |is: &dyn Fn(&AnswerLine, &String) -> bool| {
        let is = |line: &&&AnswerLine| line.gold.as_ref().is_some_and(|gold| is(line, gold));
        lines.iter().filter(is).count()
    };
    let knows = |line: &AnswerLine, gold: &String| line.rounds[0].answers.contains(gold);
    let is_right = |line: &AnswerLine| line.correct == Some(true);
    let (all, some) = (count(&|_, _| true), count(&knows));
    let minority = count(&|line, _| line.has_right_minority());
    let rows = [
        ("some first answer is right", some, all),
        (
            "the vote of the first answers is right",
            count(&|line, gold| line.rounds[0].aggregate == *gold),
            all,
        ),
        ("the panel's answer is right", count(&|line, _| is_right(line)), all),
        (
            "some first answer is right, the panel's is not",
            count(&|line, gold| knows(line, gold) && !is_right(line)),
            some,
        ),
        (
            "the right ones are less than half, and the panel's answer is not theirs",
            count(&|line, _| line.has_right_minority() && !is_right(line)),
            minority,
        ),
    ];
    let table = Table::of("debate", "What the first answers held", &rows)
        .text("questions on which", |(what, ..)| *what)
        .number("count", |(_, count, _)| *count)
        .number("of", |(.., of)| *of)
        .number("%", |(_, count, of)| percent(*count, *of))
        .note("Over the graded questions of all runs that several agents answered. The first row is what a panel would have that always knew whom to believe.")
        .build();
    (all > 0).then_some(table)
}

/// Who went over, and to whom.
fn flips(lines: &[&AnswerLine]) -> Option<Table> {
    // All, to the right answer, from it, and those with gold.
    let mut by_cause: BTreeMap<Cause, [usize; 4]> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.rounds.len() > 1) {
        for flip in line.flips() {
            let [all, to_right, from_right, graded] = by_cause.entry(flip.cause).or_default();
            *all += 1;
            let Some(gold) = &line.gold else { continue };
            *graded += 1;
            *to_right += usize::from(flip.to == gold);
            *from_right += usize::from(flip.from == gold);
        }
    }
    let faced: usize = lines.iter().map(|line| line.faced_majorities()).sum();
    let gave_in = by_cause.get(&Cause::Majority).map_or(0, |[all, ..]| *all);
    Table::of("flips", "Changes of answers, by who had given the new one", &by_cause)
        .text("the new answer was that of", |(cause, _)| match cause {
            Cause::Majority => "more than half of the others",
            Cause::Other => "another, not of more than half",
            Cause::Nobody => "nobody",
            Cause::Unread => "nobody: it could not be read",
        })
        .number("changes", |(_, [all, ..])| *all)
        .number("wrong → right", |(_, [_, to_right, ..])| *to_right)
        .number("right → wrong", |(_, [.., from_right, _])| *from_right)
        .number("wrong → wrong", |(_, [_, to_right, from_right, graded])| {
            graded - to_right - from_right
        })
        .note(format!("Conformity: where more than half of the others stood together against an agent, it went over to them in {gave_in} of {faced} cases."))
        .unless_empty()
}

/// Which agents answer alike before any of them has seen another's answer.
fn pairs(plan: &Plan, lines: &[&AnswerLine]) -> Option<Table> {
    struct Pair<'a> {
        agents: [String; 2],
        /// Of both, and the right one, of questions that both answered.
        answers: Vec<[&'a str; 3]>,
        kappa: Option<f64>,
    }
    let pairs = plan.panel.iter().tuple_combinations().map(|(left, right)| {
        let both = lines.iter().filter_map(|line| {
            let first = &line.rounds[0];
            let of = |agent: &String| {
                let place = first.agents.iter().position(|other| other == agent)?;
                Some(first.answers[place].as_str()).filter(|answer| !answer.is_empty())
            };
            let gold = line.gold.as_deref().unwrap_or_default();
            Some([of(&left.agent)?, of(&right.agent)?, gold])
        });
        let answers: Vec<[&str; 3]> = both.collect();
        let letters = |side: usize| -> Vec<u8> {
            answers.iter().filter_map(|answers| answers[side].bytes().next()).collect()
        };
        let kappa = cohen_kappa(&letters(0), &letters(1), Weights::None);
        let agents = [left, right].map(|one| format!("{} ({})", one.agent, one.backbone));
        Pair { agents, answers, kappa }
    });
    let pairs = pairs.filter(|pair| !pair.answers.is_empty()).collect_vec();
    let count = |pair: &Pair<'_>, is: fn(&[&str; 3]) -> bool| {
        pair.answers.iter().filter(|one| is(one)).count()
    };
    let graded = |pair: &Pair<'_>| count(pair, |[.., gold]| !gold.is_empty());
    Table::of("pairs", "First answers, agent by agent", &pairs)
        .text("agent", |pair| &pair.agents[0])
        .text("and", |pair| &pair.agents[1])
        .number("both read", |pair| pair.answers.len())
        .number("the same, %", |pair| {
            percent(count(pair, |[one, other, _]| one == other), pair.answers.len())
        })
        .number("kappa", |pair| pair.kappa)
        .number("both right, %", |pair| {
            percent(count(pair, |[one, other, gold]| one == gold && other == gold), graded(pair))
        })
        .number("the same and wrong, %", |pair| {
            let wrong = |[one, other, gold]: &[&str; 3]| one == other && !gold.is_empty() && one != gold;
            percent(count(pair, wrong), graded(pair))
        })
        .note("An agent of several samples stands with its first. Kappa: agreement beyond what each one's own shares of letters would give by chance.")
        .unless_empty()
}

/// `None` where no question has gold.
pub fn positions<'a>(answers: impl IntoIterator<Item = &'a AnswerLine>) -> Option<Table> {
    // How often each letter is gold, answered, and answered rightly; those without an answer come last.
    let mut counts: BTreeMap<(bool, &str), [usize; 3]> = BTreeMap::new();
    for answer in answers {
        let Some(gold) = answer.gold.as_deref() else { continue };
        let said = answer.answer.as_str();
        counts.entry((gold.is_empty(), gold)).or_default()[0] += 1;
        let answered = counts.entry((said.is_empty(), said)).or_default();
        answered[1] += 1;
        answered[2] += usize::from(said == gold);
    }
    let all: usize = counts.values().map(|[gold, ..]| gold).sum();
    Table::of("positions", "Answers by position", &counts)
        .text("option", |((is_none, letter), _)| if *is_none { "no answer" } else { *letter })
        .number("gold", |(_, [gold, ..])| *gold)
        .number("answered", |(_, [_, answered, _])| *answered)
        .number("gold, %", |(_, [gold, ..])| percent(*gold, all))
        .number("answered, %", |(_, [_, answered, _])| percent(*answered, all))
        .number("right where it is gold, %", |(_, [gold, _, right])| percent(*right, *gold))
        .note("Over the graded questions of all runs. A panel that answers a letter much more often than it is gold chooses by its place and not by its text.")
        .unless_empty()
}

/// A share of a count, of which there may be none.
fn percent(count: usize, of: usize) -> Cell {
    if of == 0 { Cell::Nothing } else { Cell::Number(100.0 * count as f64 / of as f64, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::fixtures::{rows, run_with};

    #[test]
    fn planted_courses_are_counted() {
        // Two runs: q1 and q2 graded, q3 without gold. The guide alone is right on both, and goes over on q1.
        let contents = run_with(|line| {
            let mut round = line.rounds[0].clone();
            round.agents = ["sym", "ddx", "guide"].map(str::to_owned).into();
            round.answers = ["A", "A", "B"].map(str::to_owned).into();
            round.aggregate = "A".into();
            let mut second = round.clone();
            second.round = 1;
            line.gold = line.gold.as_ref().map(|_| "B".to_owned());
            line.correct = line.gold.as_ref().map(|_| line.item == "q2");
            if line.item == "q1" {
                second.answers[2] = "A".into();
            }
            line.rounds = vec![round, second];
        });
        let answers: Vec<&AnswerLine> = contents.answers().into_values().collect();
        let tables = tables(&contents.plan, &answers);
        let counts: Vec<[u64; 2]> = rows(&tables, "debate")
            .iter()
            .map(|row| ["count", "of"].map(|name| row[name].as_u64().unwrap()))
            .collect();
        assert_eq!(counts, [[4, 4], [0, 4], [2, 4], [2, 4], [2, 4]]);
        let flips = rows(&tables, "flips");
        assert_eq!(flips.len(), 1);
        assert_eq!((&flips[0]["changes"], &flips[0]["right → wrong"]), (&2.into(), &2.into()));
        let note = tables.iter().find(|table| table.name == "flips").unwrap().notes.concat();
        assert!(note.contains("over to them in 2 of 6 cases"), "{note}");
    }
}

#[cfg(test)]
mod positions_tests {
    use super::*;

    fn answer(gold: Option<&str>, answer: &str) -> AnswerLine {
        AnswerLine {
            gold: gold.map(str::to_owned),
            answer: answer.to_owned(),
            ..AnswerLine::default()
        }
    }

    #[test]
    fn a_preferred_letter_shows() {
        let answers = [
            answer(Some("A"), "A"),
            answer(Some("B"), "A"),
            answer(Some("B"), ""),
            answer(None, "C"),
        ];
        let table = positions(&answers).unwrap();
        let shown: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.cells[..3].iter().map(Cell::shown).collect()).collect();
        assert_eq!(shown, [["A", "1", "2"], ["B", "2", "0"], ["no answer", "0", "1"]]);
        assert_eq!(table.rows[0].cells[5], Cell::Number(100.0, 1));
        assert!(super::positions(&answers[3..]).is_none());
    }
}
