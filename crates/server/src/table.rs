//! Aligned text tables.

/// The text of a table; its first line is the header.
pub(crate) fn text<const N: usize>(lines: Vec<[String; N]>) -> String {
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let written = |cells: [String; N]| {
        let cells: Vec<String> =
            cells.into_iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    lines.into_iter().map(written).collect()
}
