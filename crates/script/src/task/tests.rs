use std::time::Duration;

use crate::test_project::{BUDGET, TestProject};
use crate::{HostFunction, Progress, Request, ScriptError, Task, Value};

fn begin(project: &mut TestProject, export: &str, arguments: &[Value], budget: Duration) -> Task {
    let function = project.function("./a.mjs", export);
    project.runtime.begin(&function, arguments, budget).unwrap()
}

fn requests(progress: Result<Progress, ScriptError>) -> Vec<Request> {
    match progress {
        Ok(Progress::Requests(requests)) => requests,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_pauses_at_a_request_and_resumes_with_the_answer() {
    let mut project = TestProject::new(&[(
        "a.mjs",
        "export async function talk(send) {\n  const [a, b] = await Promise.all([send('one'), send('two')]);\n  return a + b + (await send(a).catch((error) => error.message));\n}\n",
    )]);
    let task = begin(&mut project, "talk", &[HostFunction::new("send").bind(vec![7.0.into()]).into()], BUDGET);
    let first = requests(project.runtime.step(&task));
    let output: Vec<_> = first.iter().map(|request| (&*request.name, request.arguments.clone())).collect();
    assert_eq!(output, [("send", vec![7.0.into(), "one".into()]), ("send", vec![7.0.into(), "two".into()])]);
    assert_eq!(project.runtime.step(&task), Ok(Progress::Owed));
    project.runtime.answer(first[1].id, &Ok("B".into())).unwrap();
    assert_eq!(project.runtime.step(&task), Ok(Progress::Owed));
    project.runtime.answer(first[0].id, &Ok("A".into())).unwrap();
    let second = requests(project.runtime.step(&task));
    project.runtime.answer(second[0].id, &Err("hung up".into())).unwrap();
    project.runtime.answer(second[0].id, &Ok("too late".into())).unwrap();
    assert_eq!(project.runtime.step(&task), Ok(Progress::Done("ABhung up".into())));
    assert!(matches!(project.runtime.step(&task), Err(ScriptError::Failed(_))), "it is over");
}

#[test]
fn two_tasks_take_turns_in_one_runtime() {
    let mut project = TestProject::new(&[("a.mjs", "export const f = async (ask, x) => (await ask(x)) + 1;\n")]);
    let ask = || Value::from(HostFunction::new("ask"));
    let one = begin(&mut project, "f", &[ask(), 1.0.into()], BUDGET);
    let two = begin(&mut project, "f", &[ask(), 10.0.into()], BUDGET);
    for request in requests(project.runtime.step(&two)) {
        let answer = Ok(request.arguments[0].clone());
        project.runtime.answer(request.id, &answer).unwrap();
    }
    assert_eq!(project.runtime.step(&one), Ok(Progress::Done(2.0.into())));
    assert_eq!(project.runtime.step(&two), Ok(Progress::Done(11.0.into())));
}

#[test]
fn a_timer_reports_its_due_time() {
    let mut project = TestProject::new(&[(
        "a.mjs",
        "export const f = () => new Promise((done) => setTimeout(done, 1e6, 1));\nexport const g = () => 5;\n",
    )]);
    let before = std::time::Instant::now();
    let task = begin(&mut project, "f", &[], BUDGET);
    let Ok(Progress::Waits(until)) = project.runtime.step(&task) else { panic!() };
    assert!(until > before + Duration::from_secs(900));
    project.runtime.cancel(&task);
    assert!(project.runtime.step(&task).is_err());
    let done = begin(&mut project, "g", &[], BUDGET);
    assert_eq!(project.runtime.step(&done), Ok(Progress::Done(5.0.into())));
}

#[test]
fn the_budget_covers_all_steps_together_but_not_the_host() {
    let spin = "const spin = (ms) => { const end = performance.now() + ms; while (performance.now() < end); };\n";
    let text = format!(
        "{spin}export async function f(ask) {{ for (let i = 0; i < 50; i++) {{ spin(20); await ask(); }} return 1 }}\n"
    );
    let mut project = TestProject::new(&[("a.mjs", &text)]);
    let budget = Duration::from_millis(200);
    let task = begin(&mut project, "f", &[HostFunction::new("ask").into()], budget);
    let mut steps = 0;
    let error = loop {
        match project.runtime.step(&task) {
            Ok(Progress::Requests(requests)) => {
                steps += 1;
                project.runtime.answer(requests[0].id, &Ok(Value::Null)).unwrap();
            }
            other => break other,
        }
    };
    assert!(
        matches!(error, Err(ScriptError::TimedOut { budget: stopped_at, .. }) if stopped_at == budget),
        "{error:?}"
    );
    assert!(steps < 50, "{steps}");
}

#[test]
fn a_task_that_throws_or_can_never_continue_ends() {
    let mut project = TestProject::new(&[(
        "a.mjs",
        "export const f = async () => { await null; throw new TypeError('t') };\nexport const g = () => new Promise(() => {});\n",
    )]);
    let task = begin(&mut project, "f", &[], BUDGET);
    assert_eq!(project.runtime.step(&task).unwrap_err().to_string(), "TypeError: t");
    let task = begin(&mut project, "g", &[], BUDGET);
    assert_eq!(project.runtime.step(&task), Err(ScriptError::NeverSettled));
}
