use model::Source;

use crate::Language;
use crate::positions::Calls;

/// Returns the places and the messages of the unknown names in the first scenario of `text`, as if the runtime had only
/// the global variables `console`, `Math`, `JSON`, `Object` and `process`.
fn unknown(text: &str) -> Vec<(String, String)> {
    const GLOBALS: [&str; 8] = ["console", "Math", "JSON", "Object", "process", "globalThis", "Promise", "setTimeout"];
    let calls = Calls::new(text, Language::TypeScript);
    let source = Source::new("a.ts", text);
    let at = text.find("scenario(").or(text.find("scenario.")).unwrap();
    let scenario = calls.around(at, "scenario").unwrap();
    let undeclared = calls.undeclared(scenario, &source).into_iter();
    let undeclared = undeclared.filter(|(name, _)| !GLOBALS.contains(&&**name)).map(|(_, problem)| problem);
    let place = |at: model::Excerpt| at.text[at.column - 1..at.column - 1 + at.length].to_owned();
    let all = calls.mistakes(scenario, &source).into_iter().chain(undeclared);
    all.map(|problem| {
        (place(problem.source.clone().unwrap()), format!("{}; {}", problem.message, problem.help.join("; ")))
    })
    .collect()
}

/// Returns the same for a scenario with this body.
fn in_body(body: &str) -> Vec<(String, String)> {
    unknown(&format!(
        "import {{ scenario }} from 'trialrun'; \
         export default scenario('a', async ({{ agent, agents, assert, persona }}) => {{ {body} }});"
    ))
}

fn is_one(found: &[(String, String)], place: &str, message: &str) -> bool {
    found.len() == 1 && found[0].0 == place && found[0].1.contains(message)
}

#[test]
fn a_variable_in_the_form_of_a_template_in_plain_quotes_is_found() {
    let found = in_body("const order = 'A17'; await agent.send(\"Where is ${order}?\");");
    assert!(is_one(&found, "\"Where is ${order}?\"", "`${order}` is text and not the value of `order`"), "{found:?}");
    for right in ["const order = 1; await agent.send(`${order}`);", "await agent.run('echo ${HOME}');"] {
        assert_eq!(in_body(right), [], "{right}");
    }
}

#[test]
fn mentions_takes_a_text() {
    for (argument, message) in [("", "`mentions` needs a text"), ("/sure/i", "takes a text, not a regular expression")]
    {
        let found = in_body(&format!("const r = await agent.send('x'); if (r.mentions({argument})) return;"));
        assert!(is_one(&found, &format!("r.mentions({argument})"), message), "{found:?}");
    }
    assert_eq!(in_body("const r = await agent.send('x'); if (r.mentions(`sure`)) return;"), []);
}

#[test]
fn a_member_that_does_not_exist_is_found_and_ours_suggested() {
    for (body, place, message) in [
        ("await agent.sned('x');", "sned", "an agent has no `sned`; did you mean `send`?"),
        ("await agents.shop.Send('x');", "Send", "did you mean `send`?"),
        ("await agents['a b'].ask('x');", "ask", "an agent has no `ask`; did you mean `send`?"),
        ("const text = await agent.file.read('a');", "file", "did you mean `files`?"),
        ("await agent.fly();", "fly", "an agent has no `fly`; it has name, model, send, run and files"),
        (
            "await agent.files.readFile('a');",
            "readFile",
            "`agent.files` has no member `readFile`; did you mean `read`?",
        ),
        ("const r = await agent.send('x'); assert.contains(r.txt, 'y');", "txt", "a reply has no `txt`; did you mean"),
        ("const r = await agents.b.send('x'); if (r.mention('y')) r.text;", "mention", "did you mean `mentions`?"),
        ("{ const r = await agent.send('x'); } { const r = await agent.send('y'); r.txt; }", "txt", "`text`"),
        ("let r; r = await agent.send('x'); r = await agent.send('y'); r.content;", "content", "mean `text`?"),
        ("(await agent.send('x')).tool_calls;", "tool_calls", "did you mean `toolCalls`?"),
        (
            "const { text, usage } = await agent.send('x'); console.log(text, usage);",
            "usage",
            "write `tokenUsage: usage`",
        ),
        ("const u = persona({ role: 'a' }); u.say('x');", "say", "a persona has no `say`; did you mean `says`?"),
        (
            "await persona({ role: 'a' }).converse(agent, { gaol: 'x' });",
            "gaol",
            "`converse` has no option `gaol`; did you",
        ),
        ("await agent.run('ls', { cwd: 'x' });", "cwd", "`run` has no option `cwd`; its options: timeout"),
        (
            "const t = await persona({ role: 'a' }).converse(agent, { goal: 'x' }); t.messages;",
            "messages",
            "mean `replies`?",
        ),
    ] {
        let found = in_body(body);
        assert!(is_one(&found, place, message), "{body}: {found:?}");
    }
    for right in [
        "await agent.files.read('a'); await agents.sned.send('x');",
        "{ const agent = { sned() {} }; agent.sned('x'); }",
        "[1].map((agent) => agent.age);",
        "const r = await agent.send('x'); r.text.length; r.toolCalls; r.toString();",
        "let r = await agent.send('x'); r = { txt: 1 }; r.txt;",
        "let r = { txt: 1 }; r = await agent.send('x'); r.txt;",
        "const r = await agent.send('x'); { const r = { txt: 1 }; r.txt; }",
        "const agnt = agent; agnt.send('x');",
        "const { text = 'x', other = 'y' } = await agent.send('x'); console.log(text, other);",
        "agent.send('x').then((r) => r.text);",
    ] {
        assert_eq!(in_body(right), [], "{right}");
    }
}

#[test]
fn functions_and_comparisons_without_effect_are_found() {
    for (body, place, message) in [
        ("r.toolCalls.some((c) => { c.name === 'a'; });", "(c) => { c.name === 'a'; }", "which `some` takes for false"),
        ("r.toolCalls.find(function (c) {});", "function (c) {}", "which `find` takes for false"),
        ("if (r.text.toLowerCase().includes('Refund')) return;", "'Refund'", "write \"refund\""),
        ("const t = r.text.toUpperCase(); if (t === 'No') return;", "'No'", "upper case never contains \"No\""),
        ("if (!r.text.indexOf('a')) return;", "r.text.indexOf('a')", "write `includes`"),
        ("for (const call in r.toolCalls) call.name;", "name", "`for … in` gives positions, which have no `name`"),
        ("setTimeout(() => assert.contains(r, 'a'), 9);", "() => assert.contains(r, 'a')", "write `await sleep"),
        ("if (r.text === ('a' || 'b')) return;", "'a'", "this text is always the result"),
        ("if (r.text === 'a' || 'b') return;", "'b'", "this text is not compared"),
        ("const [ls] = Promise.all([agent.run('ls')]); ls.stdout;", "Promise.all([agent.run('ls')])", "write `await`"),
        ("JSON.parse(r);", "r", "`JSON.parse` takes a text, not a reply"),
        ("assert.contains(r.text.trim(), 'a');", "r", "takes the reply, not its text"),
        ("const m = await persona({ role: 'a' }).says('b'); assert.contains(m, 'b');", "m", "agent.send(m)"),
        ("persona({ role: 'a' }).says(agent, 'b');", "agent", "`says` takes a text, not an agent"),
    ] {
        let body = format!("const r = await agent.send('x'); {body}");
        let found = in_body(&body);
        assert!(is_one(&found, place, message), "{body}: {found:?}");
    }
    for right in [
        "if (r.toolCalls.some((c) => { return c.name === 'a'; })) return;",
        "r.toolCalls.forEach((c) => { assert.contains(r, c.name); });",
        "const lower = r.text.toLowerCase(); if (lower.includes('refund') || r.text.includes('No')) return;",
        "let t = r.text.toLowerCase(); t = r.text; if (t === 'No') return;",
        "if (r.text.indexOf('a') >= 0) return;",
        "for (const i in r.toolCalls) r.toolCalls[i].name;",
        "await new Promise((done) => { setTimeout(() => { assert.contains(r, 'a'); done(); }, 9); });",
        "setTimeout(() => console.log('slow'), 9);",
        "const label = r.text || 'none'; assert.contains(r, label);",
        "const [ls] = await Promise.all([agent.run('ls')]); ls.stdout;",
        "const runs = [agent.run('ls')]; const [ls] = await Promise.all(runs); ls.stdout;",
        "JSON.parse(r.text);",
        "assert.contains(r, r.text.trim());",
        "assert.contains(await agent.send(persona({ role: 'a' }).says('b')), 'b');",
    ] {
        let body = format!("const r = await agent.send('x'); {right}");
        assert_eq!(in_body(&body), [], "{right}");
    }
}

#[test]
fn a_member_that_a_text_or_a_list_of_a_reply_does_not_have_is_found() {
    for (body, place, message) in [
        ("r.toolCalls.lenght;", "lenght", "a list has no `lenght`; did you mean `length`?"),
        ("r.toolCalls.size;", "size", "did you mean `length`?"),
        ("const calls = r.toolCalls; calls.lenght;", "lenght", "did you mean `length`?"),
        ("r.text.lenght;", "lenght", "a text has no `lenght`; did you mean `length`?"),
        ("r.text.include('x');", "include", "did you mean `includes`?"),
        ("const { text } = r; text.contains('x');", "contains", "did you mean `includes`?"),
        ("r.text.test(/x/);", "test", "did you mean `match`?"),
        (
            "r.toolCalls.includes('x');",
            "r.toolCalls.includes('x')",
            "an item of `toolCalls` is a call and never a text",
        ),
        ("r.toolCalls[0].tool;", "tool", "a tool call has no `tool`; did you mean `name`?"),
        ("r.toolCalls.some((c) => c.nmae === 'x');", "nmae", "did you mean `name`?"),
        ("r.toolCalls.filter((c) => c.name)[0].args;", "args", "did you mean `arguments`?"),
        ("r.toolCalls.find(({ tool }) => tool === 'x');", "tool", "write `name: tool`"),
        ("r.toolCalls.find((c) => c.name)?.output;", "output", "did you mean `result`?"),
        ("for (const call of r.toolCalls) call.fly;", "fly", "it has name, arguments, result and isError"),
        ("const [first] = r.toolCalls; first.input;", "input", "did you mean `arguments`?"),
        (
            "r.tokenUsage?.inputTokens;",
            "inputTokens",
            "`tokenUsage` has no member `inputTokens`; did you mean `input`?",
        ),
        ("(await agent.run('ls')).code;", "code", "the result of `agent.run` has no `code`; did you mean `exitCode`?"),
        ("assert.custom('x', (reply) => reply.toolCalls.lenght === 0);", "lenght", "did you mean `length`?"),
        ("assert.custom(r, 'x', ({ txt }) => txt === '');", "txt", "a reply has no `txt`; write `text: txt`"),
        ("if (!(await assert.contains(r, 'x')).pass) return;", "pass", "did you mean `passed`?"),
        ("const found = await assert.custom('x', () => true); found.reason;", "reason", "did you mean `reasoning`?"),
        ("(await agent.files.list()).count;", "count", "did you mean `length`?"),
        ("(await agent.files.read('a')).contains('x');", "contains", "did you mean `includes`?"),
        (
            "const t = await persona({ role: 'a' }).converse(agent, { goal: 'x' }); t.replies[0].content; t.last.text;",
            "content",
            "a reply has no `content`; did you mean `text`?",
        ),
    ] {
        let found = in_body(&format!("const r = await agent.send('x'); {body}"));
        assert!(is_one(&found, place, message), "{body}: {found:?}");
    }
    let chain = "r.toolCalls".to_owned() + &"\n.filter((c) => c.name)".repeat(200) + "\n.lenght;";
    let found = in_body(&format!("const r = await agent.send('x'); {chain}"));
    assert!(is_one(&found, "lenght", "did you mean `length`?"), "{found:?}");
    for right in [
        "r.toolCalls.map((c) => c.name).sort().join(); r.toolCalls.unshift; r.text.sub(); r.text.length.toFixed(1);",
        "r.text.should.contain('x'); r.toolCalls.should.be.empty; r.toolCalls.groupBy((c) => c.name);",
        "r.toolCalls[0].arguments.lenght; r.toolCalls[0].result.lenght; r.raw.lenght; r.text.split(' ').lenght;",
        "r.toolCalls['length'].toFixed(1); r.toolCalls.toString(); r.toolCalls.reduce((n, c) => n + c.size, 0);",
        "let c = r.toolCalls[0]; c = { tool: 'x' }; c.tool;",
        "let found; for (const c of r.toolCalls) { found = c.name; } found.lenght;",
        "const { stdout, exitCode } = await agent.run('ls'); stdout.trim(); exitCode + 1;",
        "for (const c of [{ tool: 1 }]) c.tool; [{ tool: 1 }].some((c) => c.tool);",
    ] {
        assert_eq!(in_body(&format!("const r = await agent.send('x'); {right}")), [], "{right}");
    }
}

#[test]
fn a_name_of_rows_with_more_placeholders_than_values_is_found() {
    let of = |rows: &str, name: &str| {
        let each = format!("scenario.each({rows})('{name}', async () => {{}});");
        unknown(&format!("import {{ scenario }} from 'trialrun';\n{each}"))
    };
    let message = "the name has 2 placeholders, but no row has more than 1 value";
    assert!(is_one(&of("['a', 'b']", "%s is %s"), "'%s is %s'", message), "{:?}", of("['a', 'b']", "%s is %s"));
    let short = of("[['a', 1], ['b']]", "%s is %d");
    assert!(is_one(&short, "['b']", "the name has 2 placeholders, but this row has 1 value"), "{short:?}");
    for (rows, name) in [
        ("['a', 'b']", "%s"),
        ("['a', 'b']", "%s is 100%%, %#"),
        ("[['a', 1], ['b', 2]]", "%s is %d"),
        ("[['a', ...other]]", "%s is %d"),
        ("[a, b]", "%s is %d"),
        ("rows", "%s is %d"),
        ("[{ a: 1, b: 2 }]", "$a is $b"),
    ] {
        assert!(of(rows, name).iter().all(|(_, found)| !found.contains("placeholders")), "{rows} {name}");
    }
}

#[test]
fn a_value_of_a_row_that_is_taken_apart_is_found() {
    let of = |rows: &str, parameters: &str| {
        let each = format!("scenario.each({rows})('%s', async ({parameters}) => {{}});");
        unknown(&format!("import {{ scenario }} from 'trialrun';\n{each}"))
    };
    let found = of("[['a', 1], ['b', 2]]", "{ agent }, [name, age]");
    assert!(is_one(&found, "[name, age]", "brackets take one apart"), "{found:?}");
    let found = of("[['a', 1], ['b', 2]]", "name, age, { agent }");
    assert!(is_one(&found, "{ agent }", "what a scenario receives is its first argument"), "{found:?}");
    for (rows, parameters) in [
        ("[['a', ['x', 'y']]]", "{ agent }, name, [first, second]"),
        ("[['a', ['x', 'y']], ['b', 'z']]", "{ agent }, name, [first, second]"),
        ("[[{ agent: 'x' }]]", "context, { agent }"),
        ("[{ agent: 'x' }]", "context, { agent }"),
        ("rows", "{ agent }, [name]"),
    ] {
        assert_eq!(of(rows, parameters).iter().filter(|(_, found)| !found.contains("defined")).count(), 0, "{rows}");
    }
}

#[test]
fn a_text_that_is_no_regular_expression_is_found() {
    // Which global variables exist is asked of the runtime.
    let regexes = |body: &str| {
        let mut found = in_body(&format!("const r = await agent.send('x'); {body}"));
        found.retain(|(_, message)| !message.contains("not defined"));
        found
    };
    for (body, place) in [
        ("new RegExp('(a').test(r.text);", "'(a'"),
        ("RegExp('*a').test(r.text);", "'*a'"),
        ("new RegExp('a', 'x').test(r.text);", "'a'"),
    ] {
        let found = regexes(body);
        assert!(is_one(&found, place, "invalid regular expression"), "{body}: {found:?}");
    }
    for right in [
        "new RegExp('a/b', 'i').test(r.text); RegExp('').test(r.text);",
        "new RegExp('[[:alpha:]]').test(r.text); new RegExp(r.text).test('(a');",
        "{ class RegExp {} new RegExp('(a'); }",
    ] {
        assert_eq!(regexes(right), [], "{right}");
    }
}

#[test]
fn a_variable_that_nothing_declares_is_found_once_with_the_way_to_define_it() {
    for (body, place, message) in [
        ("await agnt.send('x'); await agnt.send('y');", "agnt", "`agnt` is not defined; did you mean `agent`?"),
        ("const reply = await agent.send('x'); assert.contains(replay, 'y');", "replay", "did you mean `reply`?"),
        ("consle.log(1);", "consle", "did you mean `console`?"),
        ("conversation.say('x');", "conversation", "define `conversation`, or import it"),
        ("score('a', 1);", "score", "write `import { score } from \"trialrun\"`"),
        ("profile.name;", "profile", "a scenario receives it: write `async ({ profile }) => …`"),
        ("if (agent) { const later = 1; } console.log(later);", "later", "`later` is declared in another block"),
        (
            "expect(1).toBe(1);",
            "expect",
            "`expect` is not available here: it belongs to another test runner; write `assert",
        ),
        ("const a = require('a');", "require", "this file is an ECMAScript module, use `import`"),
        ("await fetch('http://127.0.0.1');", "fetch", "`fetch` is not available"),
        ("counter = 1;", "counter", "`counter` is not defined"),
        ("const r = 1; r = 2;", "r", "`r` is a constant, so it cannot be set; declare it with `let`"),
        ("assert(agent.name === 'x');", "assert", "`assert` is not a function; write `assert.custom("),
    ] {
        let found = in_body(body);
        assert!(is_one(&found, place, message), "{body}: {found:?}");
    }
    let found = unknown(
        "import { scenario } from 'trialrun';\nscenario('a', async ({ agent }) => { assert.contains(await agent.send('x'), 'y'); });",
    );
    assert!(is_one(&found, "assert", "write `import { assert } from \"trialrun\"` at the top"), "{found:?}");
    for right in [
        "console.log(Math.max(1, 2)); process.env.X; JSON.parse('1');",
        "if (typeof window !== 'undefined') window.alert();",
        "globalThis.cache = 1; cache += 1;",
        "const f = function () { return arguments.length; };",
        "function fetch(url) { return url; } fetch('x');",
        "const x: Missing | typeof Absent = 1 as Unknown;",
        "label: for (const a of [1]) continue label;",
        "for (const key in {}) { let made = key; made += '1'; }",
    ] {
        assert_eq!(in_body(right), [], "{right}");
    }
    let common = "const { scenario } = require('trialrun'); module.exports = scenario('a', async () => { made = 1; require('b'); });";
    assert_eq!(unknown(common), []);
    let declared = "import { scenario } from 'trialrun'; declare global { var shared: number } declare const other: number;\n\
        scenario('a', () => { shared + other; });";
    assert_eq!(unknown(declared), []);
}

#[test]
fn a_function_that_a_scenario_uses_belongs_to_it() {
    let text = |used: &str| {
        format!(
            "import {{ scenario }} from 'trialrun';\nscenario('a', async ({{ agent }}) => {{ await {used}(agent); }});\n\
             const outer = async (agent) => inner(agent);\nasync function inner(agent) {{ await agnt.send('x'); }}\n\
             function other() {{ nowhere(); }}"
        )
    };
    assert!(is_one(&unknown(&text("outer")), "agnt", "did you mean `agent`?"));
    assert!(is_one(&unknown(&text("other")), "nowhere", "define `nowhere`"));
    let sent = "import { scenario } from 'trialrun';\nscenario('a', async ({ agent }) => { await ask(agent); });\n\
        const ask = (agent) => agent.sned('x');";
    assert!(is_one(&unknown(sent), "sned", "did you mean `send`?"));
}

#[test]
fn what_a_scenario_does_not_receive_is_found() {
    for (text, place, message) in [
        ("scenario('a', async ({ agnt }) => { await agnt.send('x'); });", "agnt", "did you mean `agent`?"),
        ("scenario('a', async ({ agnt }) => { await agent.send('x'); });", "agnt", "did you mean `agent`?"),
        ("scenario.only('a', async function ({ agent, asert: check }) { check.x(agent); });", "asert", "`assert`?"),
        (
            "scenario('a', async ({ agent, expect }) => { expect(agent); });",
            "expect",
            "a scenario does not receive `expect`; it receives agent, agents, assert, persona, score, scores and profile",
        ),
        ("scenario('a', async (ctx) => { await ctx.agnt.send('x'); });", "agnt", "did you mean `agent`?"),
        ("scenario('a', async (ctx) => { const { agnt } = ctx; agnt.send('x'); });", "agnt", "did you mean `agent`?"),
        ("scenario('a', async (ctx) => { await ctx.agent.ask('x'); });", "ask", "did you mean `send`?"),
        (
            "scenario('a', async (agent, assert) => { assert.contains(await agent.send('x'), 'y'); });",
            "agent",
            "a scenario receives one object, not `agent`; write `async ({ agent, assert }) => …`",
        ),
        (
            "scenario('a', async ({ agent }, assert) => { assert.contains(await agent.send('x'), 'y'); });",
            "assert",
            "a scenario receives one object, and `assert` is in it; write `async ({ agent, assert }) => …`",
        ),
        (
            "scenario.each([{ city: 'x' }])('a', async (row) => { row.city; });",
            "city",
            "the values of a row follow what the scenario receives: `async ({ agent, assert }, row) => …`",
        ),
    ] {
        let found = unknown(&format!("import {{ scenario }} from 'trialrun';\n{text}"));
        assert!(is_one(&found, place, message), "{text}: {found:?}");
    }
    for right in [
        "scenario.each([1])('a', async ({ agent, other }, age) => { await agent.send(age); });",
        "scenario.each([{ agent: 'x' }])('a', async ({ agent }, row) => { await agent.send(row.agent); });",
        "scenario('a', async (ctx) => { ctx.cache = 1; ctx.cache + 1; await ctx.agent.send('x'); });",
        "scenario('a', async (agent) => { await agent.agent.send('x'); });",
        "scenario('a', async (agent) => {});",
        "scenario('a', check);\nasync function check({ agent }) { await agent.send('x'); }",
    ] {
        assert_eq!(unknown(&format!("import {{ scenario }} from 'trialrun';\n{right}")), [], "{right}");
    }
    let own =
        "import { scenario } from './with-database';\nscenario('a', async ({ agent, db }) => { agent.ask(db.rows); });";
    assert_eq!(unknown(own), [], "another module passes what it likes");
    let common =
        "const { scenario } = require('trialrun'); module.exports = scenario('a', ({ agent }) => agent.ask('x'));";
    assert!(is_one(&unknown(common), "ask", "`send`"));
    let whole = "import * as t from 'trialrun'; export default t.scenario('a', ({ agent }) => agent.ask('x'));";
    assert!(is_one(&unknown(whole), "ask", "`send`"));
}

#[test]
fn an_argument_that_a_method_takes_or_may_take_is_not_reported() {
    for right in [
        "await agent.send('x'); await agent.send(`x ${agent.name}`, { a: 1 }); await agent.send({ text: 'x' });",
        "await agent.send(...['x']); await agent.send(agent.name); await agent.run('ls', { timeout: 5 });",
        "let user = persona({ role: 'a' }); user = 'x'; await agent.send(user);",
        "await persona({ role: 'a' }).converse(agent, { ...agent }); await agent.files.list();",
        "const goal = 'x'; await persona({ role: 'a' }).converse(agent, { goal, maxTurns: 3 });",
        "[1].map((n) => n === 1); [1].find((n) => { return n === 1; }); return;",
        "{ const console = { assert() {} }; console.assert(agent); }",
    ] {
        assert_eq!(in_body(right), [], "{right}");
    }
    for rows in [
        "[['a', 1], ['b']])('x', async ({ agent }, a, b) => { await agent.send(a + b); }",
        "[['a']])('x', async ({ agent }, a, b = 'c', ...more) => { await agent.send(a + b + more); }",
        "[{ a: 1 }, { b: 2 }])('x', async ({ agent }, { a, b, c = 3 }) => { await agent.send(a + b + c); }",
        "[{ a: 1 }, ...agents])('x', async ({ agent }, { c }) => { await agent.send(c); }",
    ] {
        let text = format!("import {{ scenario }} from 'trialrun'; const agents = []; scenario.each({rows});");
        assert_eq!(unknown(&text), [], "{rows}");
    }
}

#[test]
fn an_argument_that_an_assertion_does_not_take_is_found() {
    for (body, place, message) in [
        (
            "assert.toolCalled('refund', r);",
            "r",
            "the reply is the first argument of `assert.toolCalled`; write `assert.toolCalled(r, …)`",
        ),
        ("assert.contains('x', await agent.send('y'));", "await agent.send('y')", "`assert.contains(await agent"),
        ("const s = await agent.send('y'); assert.contains(r, s);", "s", "a second reply; its text is `s.text`"),
        ("assert.contains(agent, 'x');", "agent", "`assert.contains` does not take an agent; write the reply first"),
        ("assert.contains(agents.shop, 'x');", "agents.shop", "does not take an agent"),
        ("assert.fileExists(agent.files, 'x');", "agent.files", "does not take the files of an agent"),
        (
            "const t = await persona({ role: 'a' }).converse(agent, { goal: 'x' }); assert.contains(t, 'x');",
            "t",
            "does not take a conversation; its last reply is `t.last`",
        ),
        (
            "assert.contains(r.text, 'x');",
            "r",
            "`assert.contains` takes the reply, not its text; write `assert.contains(r",
        ),
        ("assert.toolCalled(r.toolCalls, 'x');", "r", "takes the reply, not its tool calls"),
        ("assert.custom('x', r.text === 'y');", "r.text === 'y'", "takes a function after the name; write `() => …`"),
        ("assert.custom('x');", "'x'", "takes a function after the name"),
        ("assert.custom(() => true);", "() => true", "takes a name before the function"),
        ("assert.custom(() => true, 'x');", "() => true", "takes a name before the function"),
        ("assert.custom(r, 'x', () => { r.text; });", "() => { r.text; }", "this function returns nothing"),
        ("assert.custom('x', () => r.text.match(/y/));", "() => r.text.match(/y/)", "never returns `true`"),
        ("assert.custom('x', () => r.text || 'y');", "() => r.text || 'y'", "never returns `true`"),
        ("assert.custom('x', () => { return 1; });", "() => { return 1; }", "never returns `true`"),
        ("assert.custom('x', () => r.text.includes);", "() => r.text.includes", "never returns `true`"),
        ("assert.custom('x', () => r.toolCalls);", "() => r.toolCalls", "never returns `true`"),
        (
            "assert.custom('x', () => r.toolCalls.find((c) => c.isError));",
            "() => r.toolCalls.find((c) => c.isError)",
            "`true`",
        ),
        ("assert.custom('x', async () => await agent.run('y'));", "async () => await agent.run('y')", "`true`"),
        ("assert.that(r).contains('x');", "assert.that(r).contains", "the result of an assertion has no `contains`"),
        ("await assert.that(r).to.be('x');", "assert.that(r).to.be", "the result of an assertion has no `to`"),
        ("agents('x').send('y');", "agents", "`agents` is not a function; write `agents.NAME`"),
    ] {
        let found = in_body(&format!("const r = await agent.send('x'); {body}"));
        assert!(is_one(&found, place, message), "{body}: {found:?}");
    }
    for right in [
        "const r = await agent.send('x'); assert.contains(r, 'x'); assert.contains(r.text); assert.contains('x');",
        "const r = await agent.send('x'); assert.custom('x', (r) => r.text === '', r); assert.custom(r, 'x', Math.max);",
        "assert.contains('x').then((found) => found.passed); (await assert.contains('x')).status.trim();",
        "assert.custom('x', ...agent); assert.custom(agent, () => true); assert.custom(...agent);",
        "assert.custom('x', () => { if (agent) { return true; } }); assert.custom('x', async function () { return agent; });",
        "const r = await agent.send('x'); assert.fileContains(r.text, 'y'); assert.contains(r.text, { flags: 'i' });",
        "let r = 'x'; assert.contains(await agent.send('x'), r); r = await agent.send('y');",
        "const r = await agent.send('x'); assert.contains(agent.name, { flags: r.text });",
    ] {
        assert_eq!(in_body(right), [], "{right}");
    }
}

#[test]
fn a_comparison_with_a_certain_result_and_a_condition_that_compares_nothing_are_found() {
    for (body, place, message) in [
        ("if (r.toolCalls == []) r.text;", "r.toolCalls == []", "a new list is not equal to any other value"),
        ("agent.x = r.text === /y/;", "r.text === /y/", "write `/pattern/.test(text)`"),
        ("agent.x = r === 'y';", "r === 'y'", "a reply is not equal to any text; its text is `.text`"),
        ("agent.x = r.latencyMs === '5';", "r.latencyMs === '5'", "write the number without quotes"),
        ("if (r.text = 'y') r.raw;", "r.text = 'y'", "this assigns a value"),
        ("if (!r.mentions) r.raw;", "r.mentions", "`mentions` is a method"),
        ("if (r.toolCalls) r.raw;", "r.toolCalls", "a list is always true; test its `.length`"),
        ("if (r.toolCalls.filter((c) => c.isError)) r.raw;", "r.toolCalls.filter((c) => c.isError)", "a list"),
        ("const ok = assert.contains(r, 'y'); if (!ok) r.raw;", "ok", "write `(await assert.…(…)).passed`"),
        ("const ok = await assert.contains(r, 'y'); r.x = ok ? 1 : 2;", "ok", "test its `.passed`"),
        ("const there = agent.files.exists('y'); if (there) r.raw;", "there", "write `await` before the call"),
        ("if (await agent.run('y')) r.raw;", "await agent.run('y')", "test its `.exitCode`"),
    ] {
        let found = in_body(&format!("const r = await agent.send('x'); {body}"));
        assert!(is_one(&found, place, message), "{body}: {found:?}");
    }
    for right in [
        "const r = await agent.send('x'); if (r.text === '' || r.toolCalls.length === 0) r.raw;",
        "const r = await agent.send('x'); if (r && r.toolCalls && r.toolCalls[0]) r.raw; if (r.toolCalls.find((c) => c.isError)) r.raw;",
        "let ok; if (agent.name) ok = assert.contains('y'); if (ok) await ok; if (await agent.files.exists('y')) ok = 1;",
        "let r = await agent.send('x'); r = 'y'; if (r === 'y') agent.model;",
        "const r = await agent.send('x'); let m; while (m = /a/g.exec(r.text)) m.index; if (r.text == ['y']) r.raw;",
        "const r = await agent.send('x'); assert.custom('x', () => false); assert.custom('x', () => r.raw && 'y');",
    ] {
        assert_eq!(in_body(right), [], "{right}");
    }
}
