//! Table that shows as many columns as fit.

use super::Paint;
use crate::columns;

/// Style of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CellStyle {
    /// Normal text.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// More important.
    Bold,
    /// Good.
    Green,
    /// Bad.
    Red,
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    style: CellStyle,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, style: CellStyle) -> Self {
        Self { text: text.into(), style }
    }

    /// Returns the text without its style.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn width(&self) -> usize {
        columns::width(&self.text)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, CellStyle::Plain)
    }
}

struct Column {
    head: String,
    /// Priority for leaving the column out if there is no room: the highest rank goes first, rank 0 never.
    rank: u8,
    is_left: bool,
}

enum Row {
    /// A line that spans all columns.
    Heading(String),
    Cells(Vec<Cell>),
}

/// A table. The first column is aligned to the left and the others to the right, unless set otherwise. Empty columns
/// are not drawn.
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// Width of the left margin.
const MARGIN: usize = 2;
/// Width of the gap between two columns.
const GAP: usize = 2;

impl Grid {
    /// Creates a table with the heads and ranks of its columns. If there is no room, the column with the highest rank
    /// is omitted first, and those of rank 0 never.
    pub(crate) fn new(columns: &[(&str, u8)]) -> Self {
        let column = |(index, (head, rank)): (usize, &(&str, u8))| Column {
            head: (*head).to_owned(),
            rank: *rank,
            is_left: index == 0,
        };
        Self { columns: columns.iter().enumerate().map(column).collect(), rows: Vec::new() }
    }

    /// Aligns the first `columns` to the left.
    pub(crate) fn left(mut self, columns: usize) -> Self {
        self.columns.iter_mut().take(columns).for_each(|column| column.is_left = true);
        self
    }

    /// Adds a line that spans all columns.
    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Heading(text.into()));
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(Row::Cells(cells.into()));
    }

    /// Formats the table. The text ends with a line end.
    pub(crate) fn draw(&self, paint: &Paint) -> String {
        let widths = self.widths();
        let shown = self.shown(&widths, paint.table_width());
        let heads: Vec<Cell> = self.columns.iter().map(|column| Cell::new(&column.head, CellStyle::Dim)).collect();
        let mut text = self.line(&heads, &shown, &widths, paint);
        for row in &self.rows {
            match row {
                Row::Heading(heading) => {
                    let heading = paint.one_line(heading, paint.table_width() - MARGIN);
                    text.push_str(&format!("{:MARGIN$}{}\n", "", paint.bold(&heading)));
                }
                Row::Cells(cells) => text.push_str(&self.line(cells, &shown, &widths, paint)),
            }
        }
        text
    }

    fn line(&self, cells: &[Cell], shown: &[usize], widths: &[usize], paint: &Paint) -> String {
        let mut text = String::new();
        let mut owed = MARGIN;
        for at in shown {
            let Some(cell) = cells.get(*at) else { continue };
            let padding = widths[*at].saturating_sub(cell.width());
            let (left, right) = if self.columns[*at].is_left { (0, padding) } else { (padding, 0) };
            owed += left;
            // Avoids trailing spaces.
            if !cell.text.is_empty() {
                text.push_str(&" ".repeat(owed));
                text.push_str(&painted(cell, paint));
                owed = 0;
            } else {
                owed += cell.width();
            }
            owed += right + GAP;
        }
        text.push('\n');
        text
    }

    /// Returns the columns that fit.
    fn shown(&self, widths: &[usize], room: usize) -> Vec<usize> {
        let has_any = |index: &usize| {
            *index == 0
                || self.rows.iter().any(|row| matches!(row, Row::Cells(cells) if !cells[*index].text.is_empty()))
        };
        let mut shown: Vec<usize> = (0..self.columns.len()).filter(has_any).collect();
        while MARGIN + shown.iter().map(|index| widths[*index] + GAP).sum::<usize>() - GAP > room {
            let rank = |index: &usize| self.columns[*index].rank;
            let Some(last) = shown.iter().copied().filter(|index| rank(index) > 0).max_by_key(rank) else { break };
            shown.retain(|index| *index != last);
        }
        shown
    }

    /// Returns the width of each column. Long tables need it for every cell.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| columns::width(&column.head)).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                widths.iter_mut().zip(cells).for_each(|(width, cell)| *width = cell.width().max(*width));
            }
        }
        widths
    }
}

fn painted(cell: &Cell, paint: &Paint) -> String {
    match cell.style {
        CellStyle::Plain => cell.text.clone(),
        CellStyle::Dim => paint.dim(&cell.text),
        CellStyle::Bold => paint.bold(&cell.text),
        CellStyle::Green => paint.green(&cell.text),
        CellStyle::Red => paint.red(&cell.text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&[("name", 0), ("long head", 1), ("empty", 0), ("last", 2)]);
        grid.heading("a heading that is longer than all columns are together");
        grid.row(["a".into(), "1".into(), "".into(), "22,222".into()]);
        grid.row(["longer".into(), "".into(), "".into(), Cell::default()]);
        grid
    }

    fn drawn(width: usize) -> String {
        grid().draw(&Paint::new(Style { width, ..Style::plain() }))
    }

    #[test]
    fn a_grid_is_aligned_and_omits_empty_columns() {
        let drawn = drawn(80);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "  name    long head    last");
        assert_eq!(lines[2], "  a               1  22,222");
        assert_eq!(lines[3], "  longer", "no trailing text");
    }

    #[test]
    fn wide_characters_do_not_break_alignment() {
        let mut grid = Grid::new(&[("name", 0), ("n", 0)]);
        for name in ["挨拶する", "👍 ok", "plain"] {
            grid.row([name.into(), "1".into()]);
        }
        let drawn = grid.draw(&Paint::new(Style::plain()));
        assert_eq!(drawn, "  name      n\n  挨拶する  1\n  👍 ok     1\n  plain     1\n");
    }

    #[test]
    fn columns_that_do_not_fit_are_omitted_by_rank() {
        let mut wide = Grid::new(&[("first", 0), ("second", 1), ("third", 2)]);
        wide.row(["x".repeat(20).into(), "y".repeat(10).into(), "z".repeat(10).into()]);
        let heads = |wide: &Grid, width| {
            let drawn = wide.draw(&Paint::new(Style { width, ..Style::plain() }));
            drawn.lines().next().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(heads(&wide, 46), ["first", "second", "third"]);
        assert_eq!(heads(&wide, 45), ["first", "second"]);
        wide.row(["x".repeat(60).into(), Cell::default(), Cell::default()]);
        assert_eq!(heads(&wide, 40), ["first"], "required columns are kept");
    }

    #[test]
    fn colour_does_not_affect_the_layout() {
        let mut grid = Grid::new(&[("a", 0), ("b", 0)]);
        grid.row([Cell::new("x", CellStyle::Green), Cell::new("1", CellStyle::Red)]);
        let colored = grid.draw(&Paint::new(Style { color: true, ..Style::plain() }));
        assert!(colored.contains("\u{1b}[32mx\u{1b}[0m  \u{1b}[31m1\u{1b}[0m\n"), "{colored:?}");
    }
}
