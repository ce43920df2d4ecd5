//! The frame of a page: its style, its policy, and the links to the other pages.

use crate::html::page::{STYLE, hash};
use crate::html::text::text;

const RECORD_STYLE: &str = include_str!("record.css");

/// A page that the others link to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Runs,
    Cases,
    Trend,
    Progress,
    /// None of them.
    Other,
}

/// Pages that each page links to: their addresses and names.
const SECTIONS: [(Section, &str, &str); 4] = [
    (Section::Runs, "/", "Runs"),
    (Section::Cases, "/cases", "Cases"),
    (Section::Trend, "/trend", "Trend"),
    (Section::Progress, "/progress", "In progress"),
];

/// Returns the content security policy of these pages.
pub fn record_policy() -> String {
    format!(
        "default-src 'none'; style-src {} {}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        hash(STYLE),
        hash(RECORD_STYLE)
    )
}

/// Returns a page. `title` is plain text, and `main` is HTML.
pub(super) fn page(section: Section, title: &str, main: &str) -> String {
    let link = |(of, address, name): &(Section, &str, &str)| {
        let current = if *of == section { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{address}\"{current}>{name}</a>")
    };
    let links: String = SECTIONS.iter().map(link).collect();
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{} · trialrun</title>
<style>{STYLE}</style>
<style>{RECORD_STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header id="top"><a class="home" href="/">trialrun</a><nav>{links}</nav></header>
<main id="main" tabindex="-1">{main}</main>
</body>
</html>
"##,
        text(title)
    )
}

/// Returns a page with a heading and a sentence, such as that of an error.
pub fn message_page(title: &str, message: &str) -> String {
    page(Section::Other, title, &format!("<h1>{}</h1><p>{}</p>", text(title), text(message)))
}

/// Returns a part of an address in which every character that may have a meaning there is escaped.
pub(in crate::html) fn encoded(part: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    part.bytes().map(escaped).collect()
}

/// Returns a link to a run. `name` is plain text.
pub(super) fn run_link(id: &str, name: &str) -> String {
    format!("<a href=\"/runs/{}/\">{}</a>", encoded(id), text(name))
}

/// Returns a link to a case.
pub(super) fn case_link(suite: &str, case: &str) -> String {
    format!("<a href=\"/cases/{}/{}\">{}</a>", encoded(suite), encoded(case), text(&format!("{suite}::{case}")))
}

/// Returns a link to a trial of a run.
pub(super) fn trial_link(run: &str, trial: &str, name: &str) -> String {
    format!("<a href=\"/runs/{}/#/trial/{}\">{}</a>", encoded(run), encoded(trial), text(name))
}

/// A cell of a table: its classes and its HTML.
pub(super) struct Cell(&'static str, String);

impl Cell {
    /// Creates a cell with this text.
    pub(super) fn text(plain: &str) -> Self {
        Self("", text(plain))
    }

    /// Creates a cell with this HTML.
    pub(super) fn html(html: String) -> Self {
        Self("", html)
    }

    /// Creates a cell with a figure.
    pub(super) fn number(plain: &str) -> Self {
        Self("number", text(plain))
    }

    /// Creates a cell with text that is not important.
    pub(super) fn muted(plain: &str) -> Self {
        Self("muted", text(plain))
    }
}

/// Returns a table, which is a list of cards on a narrow screen. The first cell of each row names it.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [Cell; N]>) -> String {
    let mut rows = rows.into_iter().peekable();
    let classes = rows.peek().map_or([""; N], |row| row.each_ref().map(|Cell(class, _)| *class));
    let mut html = String::from("<div class=\"wide\"><table class=\"stack\"><thead><tr>");
    for (head, class) in heads.iter().zip(classes) {
        html.push_str(&format!("<th scope=\"col\" class=\"{class}\">{}</th>", text(head)));
    }
    html.push_str("</tr></thead>\n<tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (index, (Cell(class, cell), head)) in row.into_iter().zip(heads).enumerate() {
            html.push_str(&match index {
                0 => format!("<th scope=\"row\" class=\"name\">{cell}</th>"),
                _ => format!("<td class=\"{class}\" data-label=\"{}\">{cell}</td>", text(head)),
            });
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>\n"
}

/// Returns links to other pages of a long list: addresses, and their names.
pub(super) fn pages(links: &[(Option<String>, &str)]) -> String {
    let link = |(address, name): &(Option<String>, &str)| {
        address.as_ref().map(|address| format!("<a href=\"{}\">{name}</a>", text(address)))
    };
    let links: String = links.iter().filter_map(link).collect();
    if links.is_empty() { links } else { format!("<nav class=\"pages\" aria-label=\"Pages\">{links}</nav>\n") }
}
