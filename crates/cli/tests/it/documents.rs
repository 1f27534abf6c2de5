//! Documents whose commands are typed by tests.

/// What stands in blocks of commands.
pub(crate) fn commands(guide: &str) -> String {
    let mut commands = String::new();
    let mut is_command = false;
    for line in guide.lines() {
        match line {
            "```sh" => is_command = true,
            "```" => is_command = false,
            line if is_command => {
                commands.push_str(line);
                commands.push('\n');
            }
            _ => {}
        }
    }
    commands
}

/// What stands below a heading, up to the next one.
pub(crate) fn section(document: &str, heading: &str) -> String {
    let heading = format!("## {heading}");
    let below = document.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<&str> = below.take_while(|line| !line.starts_with("## ")).collect();
    assert!(!lines.is_empty(), "there is no {heading:?}");
    lines.join("\n")
}

pub(crate) fn blocks(document: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let ends = |text: &str| text.find("\n```").map(|end| format!("{}\n", &text[..end]));
    document.split(&opening).skip(1).filter_map(ends).collect()
}
