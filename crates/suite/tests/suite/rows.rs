//! Cases from rows of data: in scenarios, conversations and fixtures files.

use model::UserMessage;

use crate::scratch::{Scratch, all_problems, describe, outline};

const GREETS: &str = "scenario: greets
system_prompt: Greet.
user_prompt: 'Greet {{ name }} of {{ city }}'
cases: people.csv
assertions:
  - { id: says, type: output_matches, pattern: '{{ word }}' }
";

fn texts(messages: &[UserMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_str()).collect()
}

#[test]
fn each_row_of_a_table_is_a_case() {
    let scratch = Scratch::new();
    scratch.write(
        "people.csv",
        "\u{feff}name,city,word\r\nAda,London,\"Hi, Ada\"\r\n\r\nGrace,\"New\nYork\",\"say \"\"hi\"\"\"\r\n",
    );
    let loaded = scratch.write("s.yaml", GREETS).load(&["s.yaml"]);
    assert_eq!(describe(&all_problems(&loaded)), [""; 0]);
    assert_eq!(outline(&loaded), ["s: greets [Ada], greets [Grace]"]);
    let cases = &loaded.suites[0].cases;
    assert_eq!(texts(&cases[0].messages), ["Greet Ada of London"]);
    assert_eq!(texts(&cases[1].messages), ["Greet Grace of New\nYork"]);
    let patterns =
        cases.iter().map(|case| case.assertions[0].node.get("pattern").unwrap().as_str().unwrap().to_owned());
    assert_eq!(patterns.collect::<Vec<_>>(), ["Hi, Ada", "say \"hi\""]);
}

#[test]
fn a_template_without_its_last_brace_causes_a_warning() {
    let scratch = Scratch::new();
    scratch.write("people.csv", "name,city\nAda,London\nGrace,Paris\n");
    let problems = |prompt: &str| {
        let text = format!("scenario: s\nsystem_prompt: p\nuser_prompt: '{prompt}'\ncases: people.csv\n");
        describe(&scratch.problems(&text))
    };
    let expected = "s.yaml:3:14: this `{{` of the column `city` is not closed, so it is text";
    assert_eq!(problems("{{ name }} of {{ city }"), [expected]);
    for fine in ["{{ name }} of {{ city }}", "{{\"a\": {\"b\": 1}}", "a {{ b }"] {
        assert!(problems(fine).iter().all(|problem| !problem.contains("of the column")), "{fine}");
    }
}

#[test]
fn values_keep_their_types_and_an_id_with_a_template_is_complete() {
    let scratch = Scratch::new();
    scratch.write("rows.jsonl", "{\"n\": 3, \"tags\": [\"a\"]}\n{\"n\": 4, \"tags\": []}\n");
    let text = "scenario: 'takes {{ n }} turns'\nsystem_prompt: p\nmax_turns: '{{ n }}'\ntags: '{{ tags }}'\ncases: rows.jsonl\nassertions: [{ id: a, type: no_path_escape }]\n";
    let loaded = scratch.write("s.yaml", text).load(&["s.yaml"]);
    assert_eq!(describe(&all_problems(&loaded)), [""; 0]);
    assert_eq!(outline(&loaded), ["s: takes 3 turns, takes 4 turns"]);
    let cases = &loaded.suites[0].cases;
    assert_eq!((cases[0].max_turns, cases[1].max_turns), (Some(3), Some(4)));
    assert_eq!(cases[0].tags, ["a"]);
}

#[test]
fn the_cell_of_a_table_is_read_as_a_number_and_a_wrong_one_names_its_row() {
    let scratch = Scratch::new();
    scratch.write("rows.csv", "name,turns,share\nAda,3,0.5\nBob,many,\"0,5\"\n");
    let text = "scenario: s\nsystem_prompt: p\ncases: rows.csv\nmax_turns: '{{ turns }}'\nthreshold: '{{ share }}'\n\
        assertions: [{ id: a, type: no_path_escape }]\n";
    let loaded = scratch.write("s.yaml", text).load(&["s.yaml"]);
    assert_eq!(loaded.suites[0].cases[0].max_turns, Some(3));
    let problems = all_problems(&loaded);
    assert_eq!(
        describe(&problems),
        [
            "s.yaml:4:12: `max_turns` must be a whole number of at least 1, not `many`",
            "s.yaml:5:12: `threshold` must be a number above 0, up to 1, not `0,5`",
        ]
    );
    assert_eq!(problems[0].help, ["only with row `Bob` (rows.csv:3:1)"]);
    assert_eq!(problems[1].help, ["write `0.5`", "only with row `Bob` (rows.csv:3:1)"]);
    scratch.write("rows.csv", "name,turns,share\nBob,many,1\n");
    let problems = all_problems(&scratch.load(&["s.yaml"]));
    assert_eq!(problems[0].help, ["with row `Bob` (rows.csv:2:1)"], "also if all rows are wrong");
}

#[test]
fn rows_can_be_written_in_the_file_itself() {
    let scratch = Scratch::new();
    let text = "name: talks\ncases:\n  - { id: polite, says: Please }\n  - { says: Now }\n  - { says: Now }\n  - { says: [1] }\n\
        turns: ['{{ says }}']\nassertions: [{ contains: yes }]\n";
    let loaded = scratch.write("c.yaml", text).load(&["c.yaml"]);
    assert_eq!(outline(&loaded), ["c: talks [polite], talks [Now], talks [Now (3)], talks [4]"]);
    let cases = &loaded.suites[0].cases;
    assert_eq!(texts(&cases[1].messages), ["Now"]);
    assert!(cases[..3].iter().all(|case| case.broken.is_empty()));
    let broken = describe(&cases[3].broken);
    assert_eq!(broken, ["c.yaml:7:9: a turn must be a map, not a list"]);
    assert_eq!(cases[3].broken[0].help.last().unwrap(), "only with row `4` (c.yaml:6:5)");
}

#[test]
fn a_problem_of_every_row_is_reported_once_and_others_name_the_row() {
    let scratch = Scratch::new();
    scratch.write(
        "rows.jsonl",
        "{\"id\": \"a\", \"n\": 1}\n{\"id\": \"b\"}\n{\"id\": \"c\"}\n{\"id\": \"d\", \"n\": 2}\n",
    );
    let text = "scenario: s\nsystem_prompt: '{{ id }}'\nmax_turns: '{{ n }}'\ncase: x\ncases: rows.jsonl\nassertions: [{ id: a, type: no_path_escape }]\n";
    let problems = scratch.problems(text);
    assert_eq!(
        describe(&problems),
        ["s.yaml:3:16: unknown variable `n`", "s.yaml:4:1: unknown key `case` in the scenario"]
    );
    assert_eq!(problems[1].help, ["did you mean `cases`?"]);
    assert_eq!(problems[0].help.last().unwrap(), "with row `b` (rows.jsonl:2:1) and another one");
}

#[test]
fn rows_that_cannot_be_read_are_reported() {
    for (rows, written, problem) in [
        ("a,b\n1\n", "rows.csv", "rows.csv:2:1: the row has 1 cell, but the header has 2"),
        ("a,b\n1,2,3\n", "rows.csv", "rows.csv:2:1: the row has 3 cells, but the header has 2"),
        ("a,a\n1,2\n", "rows.csv", "rows.csv:1:1: two columns are called `a`"),
        (
            "a;b\n1,5;2\n",
            "rows.csv",
            "rows.csv:1:1: the columns are separated by semicolons, but those of such a file by commas",
        ),
        (
            "a,b\n1,2\n",
            "rows.tsv",
            "rows.tsv:1:1: the columns are separated by commas, but those of such a file by tabs",
        ),
        ("a,\n1,2\n", "rows.csv", "rows.csv:1:1: column 2 has no name"),
        ("a,b\n1,\"2\n3,4\n", "rows.csv", "rows.csv:2:1: a quote is opened and never closed"),
        (
            "a,b\n1, \"2, 3\"\n",
            "rows.csv",
            "rows.csv:2:1: a space is before the quotes of `2, 3`, so they are part of the cell",
        ),
        ("a,b\n", "rows.csv", "s.yaml:3:8: `cases` has no rows, so nothing would run"),
        ("", "rows.csv", "s.yaml:3:8: `cases` has no rows, so nothing would run"),
        ("{\"a\": 1}\n[2]\n", "rows.jsonl", "rows.jsonl:2:1: a row of `cases` must be a map, not a list"),
        ("a: 1\n", "rows.yaml", "rows.yaml:1:1: a table is a list of maps, not a map"),
        ("a\n1\n", "rows.xls", "s.yaml:3:8: `rows.xls` is not a table in a known format"),
        ("a\n1\n", "7", "s.yaml:3:8: `cases` must be the name of a file or a list of maps, not a number"),
        ("a\n1\n", "[7]", "s.yaml:3:9: a row of `cases` must be a map, not a number"),
    ] {
        let scratch = Scratch::new();
        scratch.write(written, rows);
        let text = format!(
            "scenario: s\nsystem_prompt: p\ncases: {written}\nassertions: [{{ id: a, type: no_path_escape }}]\n"
        );
        assert_eq!(describe(&scratch.problems(&text)), [problem], "{written}: {rows}");
    }
    let scratch = Scratch::new();
    let problems = scratch.problems("scenario: s\nsystem_prompt: p\ncases: none.csv\n");
    assert!(problems[0].message.starts_with("`none.csv`: cannot read the file: "), "{problems:?}");
}

#[test]
fn without_rows_braces_are_text() {
    let case = Scratch::new().case(
        "scenario: s\nsystem_prompt: p\nuser_prompt: 'a {{ b }}'\nassertions: [{ id: a, type: no_path_escape }]\n",
    );
    assert_eq!(texts(&case.messages), ["a {{ b }}"]);
}

#[test]
fn rows_are_cases_of_a_fixtures_file() {
    let scratch = Scratch::new();
    scratch.write("rows.csv", "city,output,passScore,title\nRome,Italy,,\nOslo,Norway,,in the north\n");
    let text =
        "message: 'Where is {{ city }}?'\ncases: rows.csv\n---\n- { title: first, city: Bern, output: Switzerland }\n";
    let loaded = scratch.write("f.fixture.yaml", text).load(&["f.fixture.yaml"]);
    assert_eq!(describe(&all_problems(&loaded)), [""; 0]);
    assert_eq!(outline(&loaded), ["f: first, Rome, in the north"]);
    let cases = &loaded.suites[0].cases;
    assert_eq!(texts(&cases[1].messages), ["Where is Rome?"]);
    assert_eq!((cases[1].source.to_string().as_str(), cases[1].assertions.len()), ("rows.csv:2:1", 1));
    // The front matter alone is sufficient.
    let loaded = scratch
        .write("g.fixture.yaml", "title: 'Finds {{ city }}'\ncases: rows.csv\nmessage: x\n---\n")
        .load(&["g.fixture.yaml"]);
    assert_eq!(describe(&all_problems(&loaded)), [""; 0]);
    assert_eq!(outline(&loaded), ["g: Finds Rome, in the north"]);
}
