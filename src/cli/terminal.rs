//! Tables for people: aligned, folded to the terminal's width, the best figures in bold. A pipe gets them unfolded and plain.

use std::io::IsTerminal;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle};
use itertools::Itertools;
use serde::Serialize;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::options::OutputFormat;
use crate::analysis::table::{Cell, Column, Kind, Row, Table};
use crate::cli::exit::Failure;
use crate::console;
use crate::text::ellipsis;

/// Around each bold word, until it is drawn; they take no place.
const BOLD: char = '\u{2061}';
const PLAIN: char = '\u{2062}';
/// A space at which nothing is folded.
const KEPT: char = '\u{a0}';
const INDENT: &str = "\u{a0}\u{a0}";
/// Spaces between columns.
const GAP: u16 = 2;
/// A word of a text is broken only where it is longer.
const LONGEST_WORD: usize = 30;
/// Characters of a cell that are shown: Markdown and the other formats have all.
const LONGEST_CELL: usize = 1000;
/// Of a terminal that does not say.
const USUAL_WIDTH: u16 = 80;
/// A line under the headings, and no others.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// What stdout is shown on.
#[derive(Clone, Copy)]
pub struct Screen {
    /// `None` of what is no terminal.
    width: Option<u16>,
    is_styled: bool,
}

/// A table as texts.
struct Grid {
    /// Of its columns; empty where there are none.
    headings: Vec<String>,
    kinds: Vec<Kind>,
    /// A row of one text alone is the heading of those below it.
    rows: Vec<Vec<String>>,
}

impl Screen {
    fn of_stdout() -> Screen {
        let is_terminal = std::io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_dumb = set("TERM").is_none_or(|kind| kind == "dumb");
        let size = is_terminal.then(terminal_size::terminal_size);
        Screen {
            width: size.map(|size| size.map_or(USUAL_WIDTH, |(width, _)| width.0)),
            is_styled: is_terminal && !is_dumb && set("NO_COLOR").is_none(),
        }
    }

    /// The tables, one below the other.
    fn draw(self, tables: &[Table]) -> String {
        let drawn = tables.iter().map(|table| self.table(table)).join("\n");
        let drawn = drawn.replace(BOLD, "\u{1b}[1m").replace(PLAIN, "\u{1b}[0m");
        drawn.replace(KEPT, " ")
    }

    fn table(self, table: &Table) -> String {
        let mut text = self.folded(self.bold(&table.title));
        let whole = self.grid(table, |_| true, Column::heading);
        let over = table.columns.iter().map(|column| column.over.as_str());
        let over: Vec<&str> = over.filter(|over| !over.is_empty()).unique().collect();
        if whole.fits(self.width) || over.len() < 2 {
            text += &self.grid_or_blocks(whole);
        } else {
            // Those columns alone that share a heading, beside what says of whom.
            for over in over {
                let is_of = |column: &Column| column.over.is_empty() || column.over == over;
                let part = self.grid(table, is_of, |column| column.label.clone());
                text += &format!("\n{}{}", self.folded(self.bold(over)), self.grid_or_blocks(part));
            }
        }
        table.notes.iter().fold(text, |text, note| text + &self.folded(shown(note)))
    }

    fn grid(
        self,
        table: &Table,
        is_of: impl Fn(&Column) -> bool,
        heading: impl Fn(&Column) -> String,
    ) -> Grid {
        let columns = || table.columns.iter().filter(|column| is_of(column));
        let has_groups = table.rows.iter().any(|row| !row.group.is_empty());
        let cells = |row: &Row| {
            let cells = table.columns.iter().zip(&row.cells).filter(|(column, _)| is_of(column));
            let mut cells: Vec<String> =
                cells.map(|(column, cell)| self.cell(cell, column)).collect();
            if let (Some(first), true) = (cells.first_mut(), has_groups) {
                *first = format!("{INDENT}{first}");
            }
            cells
        };
        let mut rows = Vec::new();
        for (group, row) in table.with_headings() {
            rows.extend(group.map(|group| vec![self.bold(group)]));
            rows.push(cells(row));
        }
        Grid {
            headings: columns().map(|column| shown(&heading(column))).collect(),
            kinds: columns().map(|column| column.kind).collect(),
            rows,
        }
    }

    fn cell(self, cell: &Cell, column: &Column) -> String {
        let text = ellipsis(&shown(&cell.shown()), LONGEST_CELL);
        let is_prose = column.kind == Kind::Text && column.figures.is_empty();
        let text = if is_prose { text } else { kept_together(&text) };
        if cell.is_best() { self.bold(&text) } else { text }
    }

    /// As a grid, or where its columns do not fit, a figure a line.
    fn grid_or_blocks(self, grid: Grid) -> String {
        match grid.fits(self.width) {
            true => grid.draw(self.width),
            false => grid.turned().draw(self.width),
        }
    }

    fn folded(self, text: String) -> String {
        let text = text.replace(" %", "\u{a0}%");
        Grid { headings: Vec::new(), kinds: vec![Kind::Text], rows: vec![vec![text]] }
            .draw(self.width)
    }

    fn bold(self, text: &str) -> String {
        let text = shown(text);
        match self.is_styled {
            true => text.split(' ').map(|word| format!("{BOLD}{word}{PLAIN}")).join(" "),
            false => text,
        }
    }
}

impl Grid {
    /// What each column takes at least.
    fn least(&self) -> Vec<usize> {
        let least = |(place, kind): (usize, &Kind)| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let words = self.headings.get(place).into_iter().chain(cells);
            let words = words.flat_map(|text| text.split(' ')).map(UnicodeWidthStr::width);
            let longest = words.max().unwrap_or(0);
            if *kind == Kind::Text { longest.min(LONGEST_WORD) } else { longest }
        };
        self.kinds.iter().enumerate().map(least).collect()
    }

    fn fits(&self, width: Option<u16>) -> bool {
        let gaps = usize::from(GAP) * self.kinds.len().saturating_sub(1);
        width.is_none_or(|width| self.least().iter().sum::<usize>() + gaps <= usize::from(width))
    }

    /// A line a figure, row by row.
    fn turned(self) -> Grid {
        let lines = |row: &Vec<String>| {
            let figures = self.headings.iter().zip(row).skip(1);
            let figures =
                figures.map(|(heading, cell)| format!("{INDENT}{INDENT}{heading}: {cell}"));
            let label = row.first().cloned();
            label.into_iter().chain(figures).map(|line| vec![line]).collect::<Vec<_>>()
        };
        let rows = self.rows.iter().flat_map(lines).collect();
        Grid { headings: Vec::new(), kinds: vec![Kind::Text], rows }
    }

    fn draw(self, width: Option<u16>) -> String {
        let least = self.least();
        let mut drawn = comfy_table::Table::new();
        drawn.load_style(STYLE);
        if let Some(width) = width {
            drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        } else {
            drawn.set_content_arrangement(ContentArrangement::Disabled);
        }
        if !self.headings.is_empty() {
            drawn.set_header(self.headings);
        }
        for row in self.rows {
            drawn.add_row(row);
        }
        let last = least.len().saturating_sub(1);
        let columns = drawn.column_iter_mut().zip(least.into_iter().zip(self.kinds));
        for (place, (column, (least, kind))) in columns.enumerate() {
            let gap = if place == last { 0 } else { GAP };
            column.set_padding((0, gap));
            let least = u16::try_from(least).unwrap_or(u16::MAX).saturating_add(gap);
            column
                .set_constraint(ColumnConstraint::LowerBoundary(comfy_table::Width::Fixed(least)));
            if kind != Kind::Text {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        drawn.trim_fmt() + "\n"
    }
}

/// A text on one line that no terminal obeys.
fn shown(text: &str) -> String {
    console::obeyed_by_none(text).replace(['\n', '\t', BOLD, PLAIN], " ")
}

/// A mean with its spread, and what stands in brackets, is folded as one word.
fn kept_together(text: &str) -> String {
    let mut depth = 0;
    let kept = |c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        if c == ' ' && depth > 0 { KEPT } else { c }
    };
    text.replace(" ± ", "\u{a0}±\u{a0}").chars().map(kept).collect()
}

/// Draws tables on stdout.
pub fn show(tables: &[Table]) -> Result<(), Failure> {
    Ok(console::draw(&Screen::of_stdout().draw(tables))?)
}

/// Prints tables to stdout; as JSON, the `report` that they are of.
pub fn print(
    tables: &[Table],
    format: OutputFormat,
    report: &impl Serialize,
) -> Result<(), Failure> {
    let text = match (format, tables) {
        (OutputFormat::Text, _) => return show(tables),
        (OutputFormat::Md, _) => tables.iter().map(Table::markdown).join("\n"),
        (OutputFormat::Csv, [table]) => table.csv()?,
        (OutputFormat::Csv, _) => {
            let printed =
                tables.iter().map(|table| Ok(format!("# {}\n{}", table.name, table.csv()?)));
            printed.collect::<std::io::Result<Vec<_>>>()?.join("\n")
        }
        (OutputFormat::Json, _) => {
            serde_json::to_string_pretty(report).map_err(std::io::Error::from)? + "\n"
        }
    };
    Ok(console::write(&text)?)
}

/// Prints tables that are a report's all.
pub fn print_tables(tables: &[Table], format: OutputFormat) -> Result<(), Failure> {
    let all: Vec<_> = tables.iter().map(Table::json).collect();
    print(tables, format, &json!({ "tables": all }))
}

#[cfg(test)]
mod tests;
