//! The routes of CONTRIBUTING.md: the files that a newcomer reads, in order, are there, and are few and short enough for an afternoon.

use super::source::production;

/// Each route's heading, and the most files and production lines that it may have.
const ROUTES: [(&str, usize, usize); 2] = [
    ("### One question, from the command line to the page", 14, 3500),
    ("### One token", 10, 2000),
];

/// The files of a route's table, with the lines that it says each has.
fn files<'a>(page: &'a str, heading: &str) -> Vec<(&'a str, usize)> {
    let (_, behind) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading:?}"));
    let route = behind.split("\n#").next().unwrap_or_default();
    let rows = route.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| {
        let (name, row) = row.split_once("` | ").expect("a file and its lines");
        let lines = row.split(" | ").next().and_then(|lines| lines.parse().ok());
        (name, lines.unwrap_or_else(|| panic!("{name} has no number of lines")))
    });
    cells.collect()
}

#[test]
fn the_routes_of_a_newcomer_are_short_and_lead_through_files_that_are_there() {
    let page = std::fs::read_to_string("CONTRIBUTING.md").unwrap();
    for (heading, most_files, most_lines) in ROUTES {
        let files = files(&page, heading);
        let mut all = 0;
        for (name, said) in &files {
            let file = production().iter().find(|file| file.name == *name);
            let lines =
                file.unwrap_or_else(|| panic!("{heading}: no file {name}")).production_lines;
            // Within a few lines: a table that is renewed at every edit is no help.
            assert!(
                lines.abs_diff(*said) <= 20,
                "{name} has {lines} lines, and {heading} says {said}"
            );
            all += lines;
        }
        assert!(!files.is_empty(), "{heading} names no file");
        assert!(files.len() <= most_files, "{heading}: {} files", files.len());
        assert!(all <= most_lines, "{heading}: {all} lines");
    }
}
