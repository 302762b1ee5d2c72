//! Selects the items of a dataset that run: all, the first, a random sample, or a list of ids.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;

use super::source::Source;
use super::{DataError, Item, Place, Position};
use crate::random::sample;

/// A selection of the items of a dataset: all of them, unless something is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Subset {
    // In the file's order, or all if there are fewer: the first, or with a seed a random sample without replacement. It depends only on
    // the seed and the number of items, on every machine and in every version; the sample of a smaller limit is a subset of that of a
    // larger one.
    /// The first N items at most, or a random sample by --sample-seed
    #[arg(long, help_heading = "Data", value_name = "N")]
    pub limit: Option<usize>,
    /// Random seed of the sample that --limit takes
    #[arg(long, help_heading = "Data", value_name = "S", requires = "limit")]
    pub sample_seed: Option<u64>,
    // In its order; blank lines and lines that begin with `#` are ignored.
    /// File with the ids of the items to run, one per line
    #[arg(long, help_heading = "Data", value_name = "FILE", conflicts_with = "limit")]
    pub ids: Option<PathBuf>,
    /// The ids that a plan or a recipe lists, in its order, and where they stand, for error messages.
    #[arg(skip)]
    pub listed: Option<(PathBuf, Vec<String>)>,
}

impl Subset {
    /// The selected items, in the order in which they run, without duplicates.
    ///
    /// # Errors
    /// An id that is unknown or listed twice, with its line; an ids file that cannot be read; an empty selection.
    pub fn choose(&self, items: Vec<Item>) -> Result<Vec<Item>, DataError> {
        let limit = self.limit.unwrap_or(items.len());
        let chosen = if let Some(path) = &self.ids {
            let source = Source::read(path)?;
            let lines = source.lines().map(|(line, text)| (source.at_line(line), text.trim()));
            pick(&items, lines.filter(|(_, id)| !id.is_empty() && !id.starts_with('#')))?
        } else if let Some((path, ids)) = &self.listed {
            let place = |number: usize| Place {
                path: path.clone(),
                position: Position::Record(number.to_string()),
            };
            pick(&items, (1..).zip(ids).map(|(number, id)| (place(number), id.as_str())))?
        } else if let Some(seed) = self.sample_seed {
            let mut indices = sample(items.len(), limit, seed);
            indices.sort_unstable();
            indices.into_iter().map(|index| items[index].clone()).collect()
        } else {
            items.into_iter().take(limit).collect()
        };
        if chosen.is_empty() {
            return Err(DataError::NoneChosen);
        }
        Ok(chosen)
    }
}

fn pick<'a>(
    items: &[Item],
    ids: impl Iterator<Item = (Place, &'a str)>,
) -> Result<Vec<Item>, DataError> {
    let by_id: HashMap<&str, &Item> = items.iter().map(|item| (item.id(), item)).collect();
    let mut positions = HashMap::new();
    let mut chosen = Vec::new();
    for (place, id) in ids {
        let Some(item) = by_id.get(id) else {
            let example = items.first().map(|item| item.id().to_owned()).unwrap_or_default();
            return Err(DataError::UnknownId { place, id: id.to_owned(), example });
        };
        if let Some(first) = positions.insert(id, place.position.clone()) {
            return Err(place.repeats(id, &first));
        }
        chosen.push((*item).clone());
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnosis;
    use std::collections::HashSet;
    use std::io::Write;

    use super::super::Question;
    use super::*;

    fn items(count: usize) -> Vec<Item> {
        let question = |number| Question {
            id: format!("q{number}"),
            question: String::new(),
            options: Vec::new(),
            gold: None,
            ..Question::default()
        };
        (0..count).map(question).map(Item::from).collect()
    }

    fn first(limit: usize) -> Subset {
        Subset { limit: Some(limit), ..Subset::default() }
    }

    fn sampled(limit: usize, seed: u64) -> Subset {
        Subset { sample_seed: Some(seed), ..first(limit) }
    }

    fn ids(subset: &Subset, count: usize) -> Vec<String> {
        subset.choose(items(count)).unwrap().into_iter().map(|item| item.id().to_owned()).collect()
    }

    fn choose_from_file(text: &str) -> Result<Vec<String>, DataError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let chosen =
            Subset { ids: Some(file.path().to_owned()), ..Subset::default() }.choose(items(5))?;
        Ok(chosen.into_iter().map(|item| item.id().to_owned()).collect())
    }

    fn problem(text: &str) -> String {
        let message = choose_from_file(text).unwrap_err().to_string();
        message.rsplit_once('/').unwrap().1.split_once([':', ' ']).unwrap().1.to_owned()
    }

    #[test]
    fn sample_stays_what_it_was() {
        assert_eq!(sample(1273, 6, 42), [256, 1076, 862, 457, 1217, 71]);
    }

    #[test]
    fn sample_keeps_file_order_and_grows_with_the_limit() {
        let small = sample(500, 50, 7);
        let large = sample(500, 100, 7);
        assert_eq!(large[..50], small);
        assert_eq!(large.iter().collect::<HashSet<_>>().len(), 100);
        assert_ne!(sample(500, 50, 8), small);
        let mut in_order = small.clone();
        in_order.sort_unstable();
        let expected: Vec<String> = in_order.iter().map(|index| format!("q{index}")).collect();
        assert_eq!(ids(&sampled(50, 7), 500), expected);
    }

    #[test]
    fn sample_draws_every_question_alike() {
        let mut counts = [0; 10];
        for seed in 0..10_000 {
            for index in sample(10, 3, seed) {
                counts[index] += 1;
            }
        }
        // 3000 expected, standard deviation 46.
        assert!(counts.iter().all(|count| (2_800..3_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn limits_beyond_the_dataset_take_all() {
        assert_eq!(ids(&Subset::default(), 3), ["q0", "q1", "q2"]);
        assert_eq!(ids(&first(2), 3), ["q0", "q1"]);
        assert_eq!(ids(&first(9), 3), ["q0", "q1", "q2"]);
        assert_eq!(ids(&sampled(9, 1), 3), ["q0", "q1", "q2"]);
        let error = first(0).choose(items(3)).unwrap_err();
        assert_eq!(error.to_string(), "no item is chosen");
    }

    #[test]
    fn takes_the_ids_of_a_file_in_its_order() {
        assert_eq!(
            choose_from_file("\u{feff}# two of five\r\n\r\nq3\r\n  q1 \r\n").unwrap(),
            ["q3", "q1"]
        );
    }

    #[test]
    fn refuses_ids_that_are_unknown_or_listed_twice() {
        assert_eq!(problem("q1\n\nq9\n"), "3: no item has the id `q9`");
        assert_eq!(problem("q1\n# again\nq1\n"), "3: the id `q1` came before, in line 1");
        assert_eq!(choose_from_file("# none\n").unwrap_err().to_string(), "no item is chosen");
        let planned = Subset {
            listed: Some(("plan.toml".into(), vec!["q1".into(), "q9".into()])),
            ..Subset::default()
        };
        let error = planned.choose(items(5)).unwrap_err();
        assert_eq!(error.to_string(), "plan.toml: record 2: no item has the id `q9`");
        assert_eq!(error.hint().as_deref(), Some("an id of this dataset is `q0`"));
    }
}
