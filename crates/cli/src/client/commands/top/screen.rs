//! How the view looks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table, TableState, Wrap};

use super::state::{Mode, Row, Top};

/// How many recent problems have a line.
const PROBLEM_LINES: u16 = 4;
const KEYS: &str = "j/k move  enter details  / filter  q quit";
const KEYS_OF_DETAILS: &str = "j/k next  enter back  q quit";

pub(super) fn draw(frame: &mut Frame<'_>, top: &Top, has_colours: bool) {
    let problems = u16::try_from(top.problems.len()).unwrap_or(u16::MAX).min(PROBLEM_LINES);
    let heading = u16::from(problems > 0);
    let [title, middle, below, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(problems + heading),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(summary(top)), title);
    match (top.mode, top.selected()) {
        (Mode::Details, Some(row)) => details(frame, middle, (row, top), has_colours),
        _ => list(frame, middle, top, has_colours),
    }
    let mut lines = vec![Line::styled("RECENT PROBLEMS", bold())];
    let line = |problem: &super::state::Problem| {
        Line::raw(format!("{}  {}  {}", problem.time, problem.name, problem.what))
    };
    lines.extend(top.problems.iter().take(problems.into()).map(line));
    frame.render_widget(Paragraph::new(lines), below);
    frame.render_widget(Paragraph::new(footer(top)), keys);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// How many deployments there are in each status.
fn summary(top: &Top) -> String {
    let shown = top.shown();
    let count = |status: &str| shown.iter().filter(|row| row.status == status).count();
    let mut words = vec![format!("{}{} deployments", shown.len(), if top.is_cut { "+" } else { "" })];
    for (status, word) in [("HEALTHY", "healthy"), ("UNHEALTHY", "unhealthy"), ("HIBERNATING", "hibernating")]
    {
        words.push(format!("{} {word}", count(status)));
    }
    let busy = shown.iter().filter(|row| !row.operation.is_empty()).count();
    words.push(format!("{busy} in operation"));
    words.join("  ")
}

fn list(frame: &mut Frame<'_>, area: Rect, top: &Top, has_colours: bool) {
    let header = ["NAME", "WORKSPACE", "STATUS", "RUNTIME", "MEMORY", "RUNS", "OPERATION", "REASON"];
    let header = TableRow::new(header).style(bold());
    let rows = top.shown().into_iter().map(|row| {
        let status = Cell::new(Span::styled(row.status.clone(), colour(&row.status, has_colours)));
        TableRow::new([
            Cell::new(row.name.clone()),
            Cell::new(row.workspace.clone()),
            status,
            Cell::new(row.runtime.clone()),
            Cell::new(row.memory.clone()),
            Cell::new(top.runs(&row.id)),
            Cell::new(row.operation.clone()),
            Cell::new(row.reason.clone()),
        ])
    });
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(15),
        Constraint::Fill(2),
        Constraint::Fill(3),
    ];
    let table = Table::new(rows, widths)
        .header(header)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(top.place()));
}

fn details(frame: &mut Frame<'_>, area: Rect, (row, top): (&Row, &Top), has_colours: bool) {
    let status = colour(&row.status, has_colours);
    let field = |name: &'static str, value: &str, style: Style| {
        Line::from(vec![Span::styled(format!("{name:<11}"), bold()), Span::styled(value.to_owned(), style)])
    };
    let plain = Style::new();
    let lines = vec![
        field("NAME", &row.name, plain),
        field("ID", &row.id, plain),
        field("WORKSPACE", &row.workspace, plain),
        field("STATUS", &row.status, status),
        field("RUNTIME", &row.runtime, plain),
        field("MEMORY", &row.memory, plain),
        field("RUNS", &top.runs(&row.id), plain),
        field("OPERATION", &row.operation, plain),
        field("REASON", &row.reason, plain),
    ];
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

fn footer(top: &Top) -> Line<'static> {
    if let Some(trouble) = &top.trouble {
        return Line::styled(format!("{trouble}; trying again"), bold());
    }
    match top.mode {
        Mode::Typing => Line::raw(format!("/{}_", top.filter)),
        Mode::Details => Line::raw(KEYS_OF_DETAILS),
        Mode::List if top.filter.is_empty() => Line::raw(KEYS),
        Mode::List => Line::raw(format!("/{}  (esc clears)  {KEYS}", top.filter)),
    }
}

fn colour(status: &str, has_colours: bool) -> Style {
    let colour = match status {
        "HEALTHY" => Color::Green,
        "UNHEALTHY" => Color::Red,
        "CREATING" | "DEPLOYING" => Color::Yellow,
        _ => return Style::new(),
    };
    if has_colours { Style::new().fg(colour) } else { Style::new() }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::super::state::{Key, Processes, UnderWay};
    use super::*;
    use crate::client::answer::read;

    fn drawn(top: &Top, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, top, false)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line =
            |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn top() -> Top {
        let deployment = |name: &str, status: &str, reason: &str| {
            json!({
                "id": format!("c-{name}"), "name": name, "workspaceName": "Data", "status": status,
                "statusReason": reason, "platformRuntimeVersion": "3.0-1",
            })
        };
        let operations = json!([{ "kind": "DEPLOY", "state": "RUNNING", "target": { "id": "c-hourly" } }]);
        let operations: Vec<UnderWay> = read(&operations).unwrap();
        let processes = json!([{ "deploymentId": "c-nightly", "memoryBytes": 1_572_864 }]);
        let processes: Vec<Processes> = read(&processes).unwrap();
        let rows = [
            deployment("nightly", "HEALTHY", ""),
            deployment("hourly", "DEPLOYING", ""),
            deployment("daily", "UNHEALTHY", "No space left"),
        ];
        let mut top = Top::default();
        let row = |row: &_| Row::of(&read(row).unwrap(), &operations, &processes);
        top.refresh(rows.iter().map(row).collect());
        top
    }

    #[test]
    fn deployments_are_a_table_with_a_summary_and_the_keys() {
        let expected = [
            "3 deployments  1 healthy  1 unhealthy  0 hibernating  1 in operation",
            "NAME            WORKSPACE STATUS      RUNTIME    MEMORY RUNS OPERATION        REASON",
            "nightly         Data      HEALTHY     3.0-1 1.50 MiB",
            "hourly          Data      DEPLOYING   3.0-1      deploy running",
            "daily           Data      UNHEALTHY   3.0-1                       No space left",
            "",
            KEYS,
        ];
        let lines = drawn(&top(), 130, 7);
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
        assert_eq!(lines, expected.map(squeezed));
    }

    #[test]
    fn problems_and_trouble_have_lines_of_their_own() {
        let mut top = top();
        let event = json!({
            "time": "12:00", "type": "podium.deployment.unhealthy",
            "data": { "resource": { "name": "daily" }, "statusReason": "No space left" },
        });
        top.note(&read(&event).unwrap());
        top.trouble = Some("the server cannot be reached".into());
        let lines = drawn(&top, 90, 9);
        assert_eq!(
            lines[6..],
            ["RECENT PROBLEMS", "12:00  daily  No space left", "the server cannot be reached; trying again"]
        );
    }

    #[test]
    fn one_deployment_is_shown_in_full() {
        let mut top = top();
        for key in
            [Key::Letter('/'), Key::Letter('d'), Key::Letter('a'), Key::Letter('i'), Key::Enter, Key::Enter]
        {
            top.press(key);
        }
        let lines = drawn(&top, 60, 12);
        assert_eq!(lines[1], "NAME       daily");
        assert_eq!(lines[4], "STATUS     UNHEALTHY");
        assert_eq!(lines[9], "REASON     No space left");
        assert_eq!(lines[11], KEYS_OF_DETAILS);
    }

    #[test]
    fn a_tiny_terminal_is_no_reason_to_panic() {
        for (width, height) in [(1, 1), (3, 2), (10, 3)] {
            drawn(&top(), width, height);
        }
    }
}
