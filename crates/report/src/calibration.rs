//! Formats the comparison of a judge with human labels, as text and as JSON.

use model::statistics::Agreement;
use model::{Calibration, Disagreement, Estimate};
use serde_json::{Value, json};

use crate::format::{counted, percent, range};
use crate::terminal::{Paint, Style};

/// Maximum length of a reason or a question, in characters.
const TEXT: usize = 400;

/// Maximum number of disagreements that are shown.
const LISTED: usize = 50;

/// Formats the agreement, the corrected pass rate, and each disagreement with the reasons of both sides.
pub fn calibration(calibration: &Calibration, style: &Style) -> String {
    let paint = Paint::new(*style);
    let counts = calibration.counts;
    let labels = counted(usize::try_from(counts.count()).unwrap_or(usize::MAX), "label");
    let mut text = format!("{}\n", paint.bold(&format!("{}: {labels}", calibration.judge)));
    let of = |part: u64, whole: u64| format!("{part} of {whole}");
    let rows = [
        ("agreement", share(counts.share()), of(counts.both_pass + counts.both_fail, counts.count())),
        ("κ", kappa(counts), "agreement beyond chance".to_owned()),
        (
            "TPR",
            share(counts.true_positive_rate()),
            met(counts.both_pass, counts.both_pass + counts.judge_fails, "met"),
        ),
        (
            "TNR",
            share(counts.true_negative_rate()),
            met(counts.both_fail, counts.both_fail + counts.judge_passes, "unmet"),
        ),
        (
            "pass rate",
            share(model::statistics::rate(calibration.passed, calibration.judged)),
            format!("{} judged assertions, according to the judge", of(calibration.passed, calibration.judged)),
        ),
        (
            "corrected",
            share(counts.corrected_pass_rate(calibration.passed, calibration.judged)),
            "pass rate without the judge's errors".to_owned(),
        ),
    ];
    let width = rows.iter().map(|(_, value, _)| value.chars().count()).max().unwrap_or(0);
    for (name, value, note) in rows {
        let padding = " ".repeat(width - value.chars().count());
        text.push_str(&format!("  {}  {value}{padding}  {}\n", paint.dim(&format!("{name:<9}")), paint.dim(&note)));
    }
    for (count, what) in
        [(calibration.undecided, "left undecided by the judge"), (calibration.unlabelled, "without a label")]
    {
        if count > 0 {
            text.push_str(&format!("  {}\n", paint.dim(&format!("not counted: {count} {what}"))));
        }
    }
    text.push_str(&weak_questions(calibration, &paint));
    let disagreements = &calibration.disagreements;
    if !disagreements.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold(&counted(disagreements.len(), "disagreement"))));
    }
    for disagreement in disagreements.iter().take(LISTED) {
        text.push_str(&one(disagreement, &paint));
    }
    if let Some(more) = disagreements.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text.push_str(&format!("\n  and {more} more, which the JSON form has\n"));
    }
    text
}

/// Returns the comparison as JSON: the data that a run needs to check its judge, and all figures.
pub fn calibration_json(calibration: &Calibration) -> Value {
    let counts = calibration.counts;
    let mut json = json!(calibration);
    if let Some(fields) = json.as_object_mut() {
        let figures = json!({
            "labels": counts.count(),
            "agreement": counts.share(),
            "kappa": counts.kappa(),
            "tpr": counts.true_positive_rate(),
            "tnr": counts.true_negative_rate(),
            "pass_rate": model::statistics::rate(calibration.passed, calibration.judged),
            "corrected_pass_rate": counts.corrected_pass_rate(calibration.passed, calibration.judged),
        });
        fields.extend(figures.as_object().cloned().unwrap_or_default());
    }
    json
}

/// Lists assertions with several labels about which the judge was wrong more than once, worst first.
fn weak_questions(calibration: &Calibration, paint: &Paint) -> String {
    let wrong = |counts: Agreement| counts.judge_fails + counts.judge_passes;
    let mut weak: Vec<_> = calibration.questions.values().filter(|question| wrong(question.counts) > 1).collect();
    weak.sort_by_key(|question| (std::cmp::Reverse(wrong(question.counts)), question.assertion.clone()));
    let line = |question: &&model::CalibratedQuestion| {
        let (wrong, all) = (wrong(question.counts), question.counts.count());
        let name = paint.folded(&question.assertion, TEXT);
        format!("  {name} ({}): the judge differs in {wrong} of {all}\n", question.kind)
    };
    let lines: String = weak.iter().take(LISTED).map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{}\n{lines}", paint.bold("assertions with several disagreements")) }
}

fn one(disagreement: &Disagreement, paint: &Paint) -> String {
    let Disagreement { run, trial, assertion, kind, question, human_met, note, because, evidence } = disagreement;
    let folded = |text: &str| paint.folded(text, TEXT);
    let verdict = |is_met: bool| if is_met { paint.green("met") } else { paint.red("unmet") };
    let mut text = format!("\n  {} {assertion} ({kind})\n", paint.bold(&folded(trial)));
    let mut line = |name: &str, value: String| {
        text.push_str(&format!("    {} {}\n", paint.dim(&format!("{name:<5}")), value));
    };
    line("asks", folded(&question.replace('\n', "; ")));
    let note = note.as_ref().map_or_else(String::new, |note| format!(": {}", folded(note)));
    line("label", format!("{}{note}", verdict(*human_met)));
    line("judge", format!("{}: {}", verdict(!human_met), folded(because)));
    for passage in evidence.iter().take(3) {
        line("", folded(passage));
    }
    line("see", paint.dim(&format!("trialrun show '{run}/{trial}'")));
    text
}

fn met(part: u64, whole: u64, label: &str) -> String {
    format!("{part} of {whole} labelled {label}")
}

fn share(estimate: Option<Estimate>) -> String {
    let shown = |estimate: Estimate| match estimate.ci95 {
        Some(ci95) => format!("{} ({})", percent(estimate.mean), range(ci95)),
        None => percent(estimate.mean),
    };
    estimate.map_or_else(|| "unknown".to_owned(), shown)
}

fn kappa(counts: Agreement) -> String {
    let shown = |kappa: Estimate| match kappa.ci95 {
        Some([low, high]) => format!("{:.2} ({low:.2} to {high:.2})", kappa.mean),
        None => format!("{:.2}", kappa.mean),
    };
    counts.kappa().map_or_else(|| "not defined: all verdicts are the same".to_owned(), shown)
}

#[cfg(test)]
mod tests {
    use model::CalibratedQuestion;

    use super::*;

    fn style() -> Style {
        Style { color: false, width: 100, interactive: false, unicode: true }
    }

    #[test]
    fn figures_have_intervals_and_disagreements_both_reasons() {
        let mut judged = Calibration::of_judge("a:b", "3");
        let asked = || CalibratedQuestion { assertion: "warm".into(), kind: "sentiment".into(), ..Default::default() };
        for (human, judge, count) in [(true, true, 40), (false, false, 30), (false, true, 10), (true, false, 2)] {
            (0..count).for_each(|_| judged.add("d", asked(), human, judge));
        }
        (judged.passed, judged.judged, judged.unlabelled) = (150, 200, 3);
        judged.disagreements.push(Disagreement {
            run: "0198".into(),
            trial: "s::c@fake#1".into(),
            assertion: "warm".into(),
            kind: "sentiment".into(),
            question: "the tone is warm".into(),
            human_met: false,
            note: Some("it is curt".into()),
            because: "4 of 5: It greets.".into(),
            evidence: vec!["\"hello\"".into()],
        });
        let text = calibration(&judged, &style());
        for part in [
            "a:b: 82 labels",
            "agreement  85%",
            "70 of 82",
            "κ          0.71 (0.5",
            "40 of 42 labelled met",
            "30 of 40 labelled unmet",
            "150 of 200 judged assertions",
            "not counted: 3 without a label",
            "warm (sentiment): the judge differs in 12 of 82",
            "label unmet: it is curt",
            "judge met: 4 of 5: It greets.",
            "trialrun show '0198/s::c@fake#1'",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let json = calibration_json(&judged);
        assert_eq!((&json["labels"], &json["counts"]["both_pass"]), (&json!(82), &json!(40)));
        let corrected = json["corrected_pass_rate"]["mean"].as_f64().unwrap();
        assert!((corrected - 0.7143).abs() < 0.01, "{corrected}");
        assert_eq!(serde_json::from_value::<Calibration>(json).unwrap(), judged);
    }

    #[test]
    fn undefined_figures_are_named() {
        let text = calibration(&Calibration::of_judge("a:b", "3"), &style());
        assert!(
            text.contains("0 labels") && text.contains("κ          not defined") && text.contains("unknown"),
            "{text}"
        );
    }
}
