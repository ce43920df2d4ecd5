use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;

use crate::test_project::BUDGET;
use crate::{Expression, Level, Library, Options, Runtime, Value};

fn evaluate(text: &str) -> serde_json::Value {
    let environment = vec![("HOME".into(), Some("/h".into())), ("API_KEY".into(), None)];
    let options = Options { library: Library::with_environment(environment), ..Options::new("/base") };
    let mut runtime = Runtime::new(options).unwrap();
    runtime.evaluate(&Expression::parse(text).unwrap(), &|_| None, BUDGET).unwrap().to_json()
}

#[test]
fn urls_are_parsed_according_to_the_standard() {
    for (url, expected) in [
        ("http://User@EXAMPLE.com:80/a/../b/./c?x=1 2#h é", "http://User@example.com/b/c?x=1%202#h%20%C3%A9"),
        ("//h/p", "http://h/p"),
        ("../x?y#z", "http://base/x?y#z"),
        ("?q", "http://base/dir/file?q"),
        ("#f", "http://base/dir/file#f"),
        ("/abs", "http://base/abs"),
        ("https://[::1]:443/x", "https://[::1]/x"),
        ("http://[2001:db8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"),
        ("http://[1:0:0:0:0:0:0:0]/", "http://[1::]/"),
        ("http://[1:2:0:0:0:0:7:8]/", "http://[1:2::7:8]/"),
        ("http://1.2.3/", "http://1.2.0.3/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://M\u{fc}nchen.de/\u{fc}", "http://xn--mnchen-3ya.de/%C3%BC"),
        ("http://\u{ff11}27.0.0.1/", "http://127.0.0.1/"),
        ("file:///a b", "file:///a%20b"),
        ("mailto:x@y", "mailto:x@y"),
        ("data:text/plain,hi", "data:text/plain,hi"),
        ("https://ex.com?q", "https://ex.com/?q"),
    ] {
        let text = format!("new URL({}, 'http://base/dir/file').href", json!(url));
        assert_eq!(evaluate(&text), json!(expected), "{url}");
    }
    for url in
        ["http://a b/", "http://[1::2::3]", "http://h:99999", "http://", "nonsense", "http://a@/x", "http://\u{ad}/"]
    {
        assert_eq!(evaluate(&format!("URL.canParse({})", json!(url))), json!(false), "{url}");
    }
}

#[test]
fn parts_of_urls_can_be_changed() {
    let text = "const u = new URL('http://a/?x=1&y=a+b%20c'); u.searchParams.append('z', 'é&'); u.searchParams.delete('x'); \
                u.port = 8080; u.pathname = '/q r'; u.hash = 'f'; u.hostname = 'b.c'; u.protocol = 'https'; \
                return [String(u), u.searchParams.get('y'), [...u.searchParams], u.origin, JSON.stringify(u)]";
    let href = "https://b.c:8080/q%20r?y=a+b+c&z=%C3%A9%26#f";
    assert_eq!(
        evaluate(text),
        json!([href, "a b c", [["y", "a b c"], ["z", "é&"]], "https://b.c:8080", format!("\"{href}\"")])
    );
    assert_eq!(evaluate("new URLSearchParams({ a: 1, b: 'x y' }).toString()"), json!("a=1&b=x+y"));
}

#[test]
fn text_is_encoded_to_bytes_and_decoded_again() {
    assert_eq!(evaluate("new TextDecoder().decode(new TextEncoder().encode('é😀\\ud800x'))"), json!("é😀\u{fffd}x"));
    assert_eq!(
        evaluate("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 0xe2, 0x82, 98, 0xff, 0xf0, 0x9f]))"),
        json!("a\u{fffd}b\u{fffd}\u{fffd}")
    );
    assert_eq!(
        evaluate(
            "try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { return e.name }"
        ),
        json!("TypeError")
    );
    let names = "['latin1', 'utf-16le', 'Windows-1252', 'nonsense'].map((name) => { try { new TextDecoder(name) } catch (e) { return e.name } })";
    assert_eq!(evaluate(names), json!(["ReferenceError", "ReferenceError", "ReferenceError", "RangeError"]));
    assert_eq!(evaluate("[btoa('hé'), atob(btoa('abc')), atob('YQ')]"), json!(["aOk=", "abc", "a"]));
}

#[test]
fn a_structured_clone_shares_nothing_with_its_original() {
    let text = "const a = { d: new Date(0), m: new Map([[1, { s: new Set([2]) }]]), r: /x/g, e: new TypeError('t'), list: [1, , 3] }; \
                a.self = a; const b = structuredClone(a); \
                return [b !== a, b.self === b, b.d.getTime(), b.m.get(1).s.has(2), String(b.r), b.e instanceof TypeError, 1 in b.list]";
    assert_eq!(evaluate(text), json!([true, true, 0, true, "/x/g", true, false]));
    assert_eq!(evaluate("try { structuredClone(() => 1) } catch (e) { return e.name }"), json!("DataCloneError"));
}

#[test]
fn the_process_object_has_the_configured_values() {
    assert_eq!(evaluate("[process.env, process.cwd(), process.versions]"), json!([{"HOME": "/h"}, "/base", {}]));
    assert_eq!(
        evaluate("try { process.exit(1) } catch (e) { return e.message }"),
        json!("process.exit is not available here: a script cannot act on the program it runs in")
    );
}

#[test]
fn timers_fire_in_order_and_can_be_cleared() {
    let text = "const seen = []; const stop = setTimeout(() => seen.push('never'), 1); clearTimeout(stop); \
                setTimeout((x) => seen.push(x), 3, 'third'); setTimeout(() => seen.push('second'), 1); \
                queueMicrotask(() => seen.push('first')); let n = 0; \
                await new Promise((done) => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); done() } }, 2) }); \
                return [seen, n]";
    assert_eq!(evaluate(text), json!([["first", "second", "third"], 3]));
}

#[test]
fn errors_in_microtasks_are_reported() {
    let mut runtime = Runtime::new(Options::new("/")).unwrap();
    let text = "queueMicrotask(() => { throw new RangeError('late') }); return 1";
    let error = runtime.evaluate(&Expression::parse(text).unwrap(), &|_| None, BUDGET).unwrap_err();
    assert_eq!(error.to_string(), "RangeError: late");
}

#[test]
fn console_output_is_recorded_line_by_line() {
    let lines: Rc<RefCell<Vec<(Level, String)>>> = Rc::default();
    let sink = Rc::clone(&lines);
    let console = Box::new(move |level, line: &str| sink.borrow_mut().push((level, line.to_owned())));
    let mut runtime = Runtime::new(Options { console: Some(console), ..Options::new("/") }).unwrap();
    let text = "console.log('a', 1, { b: [null, 'x'] }, new Map([[1, 2]])); console.error('two\\nlines'); console.warn('%s is %d%%', 'x', 4); \
                console.group('in'); console.debug(undefined); console.groupEnd(); console.assert(false, 'no'); return 1";
    let value = runtime.evaluate(&Expression::parse(text).unwrap(), &|_| None, BUDGET);
    assert_eq!(value, Ok(Value::Number(1.0)));
    let lines = lines.borrow();
    let lines: Vec<(Level, &str)> = lines.iter().map(|(level, line)| (*level, line.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Level::Info, "a 1 { b: [ null, 'x' ] } Map(1) { 1 => 2 }"),
            (Level::Error, "two"),
            (Level::Error, "lines"),
            (Level::Warning, "x is 4%"),
            (Level::Info, "in"),
            (Level::Debug, "  undefined"),
            (Level::Error, "Assertion failed: no"),
        ]
    );
}

#[test]
fn globals_are_created_on_first_use() {
    let text = "const isMade = () => 'value' in Object.getOwnPropertyDescriptor(globalThis, 'setTimeout'); \
                const before = isMade(); void setTimeout; globalThis.console = 1; \
                return [before, isMade(), console, queueMicrotask.name]";
    assert_eq!(evaluate(text), json!([false, true, 1, "queueMicrotask"]));
}

#[test]
fn random_numbers_come_from_the_system() {
    let text = "const a = crypto.randomUUID(); const b = crypto.getRandomValues(new Uint8Array(32)); \
                return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(a), a !== crypto.randomUUID(), \
                b.some((byte) => byte > 0)]";
    assert_eq!(evaluate(text), json!([true, true, true]));
    let refused = "try { crypto.getRandomValues(new Float32Array(2)) } catch (e) { return e.name }";
    assert_eq!(evaluate(refused), json!("TypeMismatchError"));
    let missing = evaluate("try { crypto.subtle.digest('SHA-256') } catch (e) { return e.name + e.message }");
    assert!(
        missing.as_str().unwrap().starts_with("ReferenceErrorcrypto.subtle.digest is not available here"),
        "{missing}"
    );
}

#[test]
fn a_locale_is_right_or_refused() {
    for (text, expected) in [
        ("(1234567.891).toLocaleString('en-US')", "1,234,567.891"),
        ("(1.005).toLocaleString('en-US', { maximumFractionDigits: 2 })", "1.01"),
        ("(-0.5).toLocaleString('en', { maximumFractionDigits: 0 })", "-1"),
        ("(1e21).toLocaleString('en-US')", "1,000,000,000,000,000,000,000"),
        ("(1e-7).toLocaleString('en-US')", "0"),
        ("(12n ** 5n).toLocaleString('en-GB')", "248,832"),
        ("(5).toLocaleString(undefined, { minimumFractionDigits: 2 })", "5.00"),
        ("(0.256).toLocaleString('en-US', { style: 'percent', maximumFractionDigits: 1 })", "25.6%"),
        ("(-1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })", "-$1,234.50"),
        ("(1234).toLocaleString('en-US', { useGrouping: false })", "1234"),
        ("[NaN, Infinity].map((n) => n.toLocaleString('en-US')).join()", "NaN,∞"),
        ("new Date(Date.UTC(2026, 0, 9)).toLocaleDateString('en-US', { timeZone: 'UTC' })", "1/9/2026"),
        ("new Date(2026, 0, 9).toLocaleDateString('sv-SE')", "2026-01-09"),
        ("['b', 'a', 'B', 'A', '10', '9', '_'].sort((x, y) => x.localeCompare(y, 'en')).join('')", "_109aAbB"),
        ("['a10', 'a9', 'A9'].sort((x, y) => x.localeCompare(y, undefined, { numeric: true })).join()", "a9,A9,a10"),
        ("'Total'.localeCompare('total', 'de', { sensitivity: 'base' }) + ''", "0"),
        ("['b', 'a', 'C'].sort((x, y) => x.localeCompare(y)).join('')", "abC"),
        (
            "['c\u{f4}te', 'cot\u{e9}', 'cote', 'Cote'].sort((x, y) => x.localeCompare(y)).join()",
            "cote,Cote,cot\u{e9},c\u{f4}te",
        ),
        ("'\u{1f600}'.localeCompare('\u{1f600}') + ''", "0"),
        ("(1234567.5).toLocaleString()", "1,234,567.5"),
        ("[1234.5, 6n].toLocaleString()", "1,234.5,6"),
        ("new Date(2024, 4, 7, 17, 5, 9).toLocaleString()", "5/7/2024, 5:05:09 PM"),
        ("new Date(2024, 4, 7).toLocaleTimeString('en-US')", "12:00:00 AM"),
        ("new Date(NaN).toLocaleDateString()", "Invalid Date"),
    ] {
        assert_eq!(evaluate(text), json!(expected), "{text}");
    }
    for text in [
        "(1234.5).toLocaleString('de-DE')",
        "(5).toLocaleString('en-US', { style: 'unit', unit: 'liter' })",
        "new Date(0).toLocaleDateString('en-US', { month: 'long' })",
        "new Date(0).toLocaleTimeString('en-GB')",
        "new Date(0).toLocaleString('en-US', { dateStyle: 'long' })",
        "'ä'.localeCompare('z', 'sv')",
        "'\u{436}'.localeCompare('z')",
        "'I'.toLocaleLowerCase('tr')",
        "[1].toLocaleString('de')",
    ] {
        let caught = evaluate(&format!("try {{ return {text} }} catch (e) {{ return e.message }}"));
        assert!(caught.as_str().unwrap().contains(" is not available here"), "{text}: {caught}");
    }
}

#[test]
fn buffers_read_and_write_numbers() {
    for (text, expected) in [
        ("Buffer.from([1, 2, 255, 254]).readUInt16BE(1)", json!(767)),
        ("Buffer.from([1, 2, 255, 254]).readInt16LE(2)", json!(-257)),
        ("Buffer.from([0, 255]).readUInt8(1)", json!(255)),
        ("Buffer.from([1, 2, 3]).readUIntBE(0, 3)", json!(66051)),
        ("Buffer.from([254, 255]).readIntLE(0, 2)", json!(-2)),
        (
            "const b = Buffer.alloc(12); b.writeDoubleBE(1.5, b.writeUInt32LE(7)); return [...b]",
            json!([7, 0, 0, 0, 63, 248, 0, 0, 0, 0, 0, 0]),
        ),
        ("const b = Buffer.alloc(3); b.writeIntBE(-2, 0, 3); return [...b]", json!([255, 255, 254])),
        (
            "[Buffer.from('abcb').indexOf('b'), Buffer.from('abcb').lastIndexOf('b'), Buffer.from('abc').includes('bc')]",
            json!([1, 3, true]),
        ),
        (
            "Buffer.from('aé', 'utf16le').toString('hex') + Buffer.from('6100', 'hex').toString('ucs2')",
            json!("6100e900a"),
        ),
        ("[...Buffer.from([1, 2, 3, 4]).swap16()]", json!([2, 1, 4, 3])),
        ("try { Buffer.alloc(1).readUInt16LE(0) } catch (e) { return e.name }", json!("RangeError")),
    ] {
        assert_eq!(evaluate(text), expected, "{text}");
    }
    let time = "const [s, n] = process.hrtime(); const d = process.hrtime([s, n]); return [s >= 0, d[0], typeof process.hrtime.bigint()]";
    assert_eq!(evaluate(time), json!([true, 0, "bigint"]));
}

#[test]
fn buffers_turn_text_into_bytes_and_back() {
    for (text, expected) in [
        ("Buffer.from('é😀').toString('hex')", json!("c3a9f09f9880")),
        ("Buffer.from('c3a9zz', 'hex').toString()", json!("é")),
        ("Buffer.from('hello?').toString('base64')", json!("aGVsbG8/")),
        ("Buffer.from('aGVsbG8_', 'base64url').toString()", json!("hello?")),
        ("Buffer.from('hi').toString('base64url')", json!("aGk")),
        ("Buffer.from('\\xff', 'latin1')[0]", json!(255)),
        ("Buffer.concat([Buffer.from('a'), Buffer.alloc(2, 'b')]).toString()", json!("abb")),
        ("JSON.stringify(Buffer.from([1, 2]))", json!("{\"type\":\"Buffer\",\"data\":[1,2]}")),
        ("Buffer.isBuffer(Buffer.from('a').slice(0, 1)) && Buffer.from('a').equals(Buffer.from([97]))", json!(true)),
        ("Buffer.byteLength('é') + Buffer.compare(Buffer.from('a'), Buffer.from('b'))", json!(1)),
        ("btoa('ab\\xff') + atob('aGk=')", json!("YWL/hi")),
    ] {
        assert_eq!(evaluate(text), expected, "{text}");
    }
    assert!(
        evaluate("try { Buffer.from('a', 'utf7') } catch (e) { return e.message }").as_str().unwrap().contains("utf7")
    );
}

#[test]
fn event_listeners_are_called_and_abort_signals_end_work() {
    let text = "const heard = []; const c = new AbortController(); c.signal.onabort = () => heard.push('own'); \
                c.signal.addEventListener('abort', (e) => heard.push(e.type), { once: true }); \
                const all = AbortSignal.any([c.signal]); c.abort(); c.abort('again'); \
                try { all.throwIfAborted() } catch (e) { heard.push(e.name, e instanceof DOMException) } return heard";
    assert_eq!(evaluate(text), json!(["own", "abort", "AbortError", true]));
    let text = "const t = new EventTarget(); const heard = []; \
                t.addEventListener('x', (e) => { heard.push(e.detail); e.preventDefault(); e.stopImmediatePropagation() }); \
                t.addEventListener('x', () => heard.push('late')); \
                return [t.dispatchEvent(new CustomEvent('x', { detail: 5, cancelable: true })), heard]";
    assert_eq!(evaluate(text), json!([false, [5]]));
}

#[test]
fn environment_variables_are_available_except_secrets() {
    let text = "try { process.env.API_KEY } catch (e) { return [process.env.HOME, Object.keys(process.env), process.env.NONE, e.message] }";
    assert_eq!(
        evaluate(text),
        json!([
            "/h",
            ["HOME"],
            null,
            "process.env.API_KEY is not available here: it is a secret by its name, and scripts are given none"
        ])
    );
}
