//! What a panel's answers did on their way to its own: who was right at first, who went over to whom, and which agents answer alike.

use std::collections::BTreeMap;

use crate::analysis::metrics::kappa::{Weights, cohen_kappa};
use crate::analysis::table::{Cell, Table};
use crate::experiment::plan::Plan;
use crate::record::{AnswerLine, Cause};

/// The tables of the questions that several agents answered; none without such.
pub fn tables(plan: &Plan, answers: &[&AnswerLine]) -> Vec<Table> {
    let of_several = |line: &&&AnswerLine| agents_of(line) > 1;
    let lines: Vec<&AnswerLine> = answers.iter().filter(of_several).copied().collect();
    [minorities(&lines), flips(&lines), pairs(plan, &lines)].into_iter().flatten().collect()
}

/// Agents that gave a first answer.
fn agents_of(line: &AnswerLine) -> usize {
    let agents = line.rounds.first().map_or(&[][..], |round| &round.agents);
    (0..agents.len()).filter(|at| !agents[..*at].contains(&agents[*at])).count()
}

fn share(count: usize, of: usize) -> Cell {
    if of == 0 { Cell::Nothing } else { Cell::Number(100.0 * count as f64 / of as f64, 1) }
}

/// What the first answers held, and what became of it.
fn minorities(lines: &[&AnswerLine]) -> Option<Table> {
    let graded: Vec<&&AnswerLine> = lines.iter().filter(|line| line.gold.is_some()).collect();
    if graded.is_empty() {
        return None;
    }
    let count = |is: &dyn Fn(&AnswerLine) -> bool| graded.iter().filter(|line| is(line)).count();
    let first = |line: &AnswerLine, is: &dyn Fn(&String) -> bool| {
        line.rounds.first().is_some_and(|round| is(&round.aggregate))
    };
    let knows = |line: &AnswerLine| {
        let answers = line.rounds.first().map_or(&[][..], |round| &round.answers);
        line.gold.as_ref().is_some_and(|gold| answers.contains(gold))
    };
    let is_right = |line: &AnswerLine| line.correct == Some(true);
    let some = count(&knows);
    let minority = count(&AnswerLine::has_right_minority);
    let suppressed = count(&|line| line.has_right_minority() && !is_right(line));
    let rows = [
        ("some first answer is right", some, graded.len()),
        (
            "the vote of the first answers is right",
            count(&|line| first(line, &|said| line.gold.as_ref() == Some(said))),
            graded.len(),
        ),
        ("the panel's answer is right", count(&is_right), graded.len()),
        (
            "some first answer is right, the panel's is not",
            count(&|line| knows(line) && !is_right(line)),
            some,
        ),
        (
            "the right ones are less than half, and the panel's answer is not theirs",
            suppressed,
            minority,
        ),
    ];
    let table = Table::of("debate", "What the first answers held", &rows)
        .text("questions on which", |(what, ..)| *what)
        .number("count", |(_, count, _)| *count)
        .number("of", |(.., of)| *of)
        .number("%", |(_, count, of)| share(*count, *of))
        .note("Over the graded questions of all runs that several agents answered. The first row is what a panel would have that always knew whom to believe.")
        .build();
    Some(table)
}

/// Who went over, and to whom.
fn flips(lines: &[&AnswerLine]) -> Option<Table> {
    #[derive(Clone, Copy, Default)]
    struct Turns {
        all: usize,
        to_right: usize,
        from_right: usize,
        graded: usize,
    }
    let mut by_cause: BTreeMap<Cause, Turns> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.rounds.len() > 1) {
        for flip in line.flips() {
            let turns = by_cause.entry(flip.cause).or_default();
            turns.all += 1;
            let Some(gold) = &line.gold else { continue };
            turns.graded += 1;
            turns.to_right += usize::from(flip.to == gold);
            turns.from_right += usize::from(flip.from == gold);
        }
    }
    let faced: usize = lines.iter().map(|line| line.faced_majorities()).sum();
    let gave_in = by_cause.get(&Cause::Majority).map_or(0, |turns| turns.all);
    Table::of("flips", "Changes of answers, by who had given the new one", &by_cause)
        .text("the new answer was that of", |(cause, _)| match cause {
            Cause::Majority => "more than half of the others",
            Cause::Other => "another, not of more than half",
            Cause::Nobody => "nobody",
            Cause::Unread => "nobody: it could not be read",
        })
        .number("changes", |(_, turns)| turns.all)
        .number("wrong → right", |(_, turns)| turns.to_right)
        .number("right → wrong", |(_, turns)| turns.from_right)
        .number("wrong → wrong", |(_, turns)| turns.graded - turns.to_right - turns.from_right)
        .note(format!("Conformity: of {faced} times that more than half of the others stood together against an agent, it went over to them {gave_in} times."))
        .unless_empty()
}

/// Which agents answer alike before any of them has seen another's answer.
fn pairs(plan: &Plan, lines: &[&AnswerLine]) -> Option<Table> {
    let mut pairs: BTreeMap<[usize; 2], Vec<[&str; 3]>> = BTreeMap::new();
    for line in lines {
        let Some(first) = line.rounds.first() else { continue };
        let of = |agent: &str| {
            let at = first.agents.iter().position(|other| other == agent);
            at.map(|at| first.answers[at].as_str())
        };
        let gold = line.gold.as_deref().unwrap_or_default();
        let members: Vec<&str> = plan.panel.iter().map(|member| member.agent.as_str()).collect();
        for left in 0..members.len() {
            for right in left + 1..members.len() {
                if let (Some(one), Some(other)) = (of(members[left]), of(members[right])) {
                    pairs.entry([left, right]).or_default().push([one, other, gold]);
                }
            }
        }
    }
    struct Row<'a> {
        agents: [String; 2],
        answers: Vec<[&'a str; 3]>,
        kappa: Option<f64>,
    }
    let named = |member: usize| {
        let member = &plan.panel[member];
        format!("{} ({})", member.agent, member.backbone)
    };
    let mut rows = Vec::new();
    for (members, mut answers) in pairs {
        answers.retain(|[one, other, _]| !one.is_empty() && !other.is_empty());
        let letters = |side: usize| -> Vec<u8> {
            let letters = answers.iter().map(|answers| answers[side].bytes().next());
            letters.map(Option::unwrap_or_default).collect()
        };
        let kappa = cohen_kappa(&letters(0), &letters(1), Weights::None);
        rows.push(Row { agents: members.map(named), answers, kappa });
    }
    let count = |row: &Row<'_>, is: fn(&[&str; 3]) -> bool| {
        row.answers.iter().filter(|one| is(one)).count()
    };
    let graded = |row: &Row<'_>| count(row, |[.., gold]| !gold.is_empty());
    Table::of("pairs", "First answers, agent by agent", &rows)
        .text("agent", |row| &row.agents[0])
        .text("and", |row| &row.agents[1])
        .number("both read", |row| row.answers.len())
        .number("the same, %", |row| share(count(row, |[one, other, _]| one == other), row.answers.len()))
        .number("kappa", |row| row.kappa)
        .number("both right, %", |row| share(count(row, |[one, other, gold]| one == gold && other == gold), graded(row)))
        .number("the same and wrong, %", |row| share(count(row, |[one, other, gold]| one == other && !gold.is_empty() && one != gold), graded(row)))
        .note("An agent of several samples stands with its first. Kappa: agreement beyond what each one's own shares of letters would give by chance.")
        .unless_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::recipe::fixtures::{rows, run_with};

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
        assert!(note.contains("of 6 times") && note.contains("to them 2 times"), "{note}");
    }
}
