//! A real browser without a window. `TRIALRUN_TEST_BROWSER` is the path of the program, a Chromium. Tests that need it
//! are ignored where `scripts/needs` does not find it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::TIMEOUT;

/// A running browser with one page. Dropping it ends the browser.
pub struct Browser {
    child: Child,
    /// Commands and responses in the DevTools protocol, each ending with a zero byte.
    commands: ChildStdin,
    answers: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    /// Errors that the page reported: exceptions, and violations of its content security policy.
    pub problems: Vec<String>,
    _profile: tempfile::TempDir,
}

/// Returns the program.
#[track_caller]
pub fn installed() -> PathBuf {
    crate::path_in("TRIALRUN_TEST_BROWSER")
}

impl Browser {
    /// Starts the browser with an empty page.
    pub fn start(program: &Path) -> Self {
        let profile = tempfile::Builder::new().prefix("testkit-browser-").tempdir().expect("a directory");
        // The browser uses the descriptors 3 and 4. Its own sandbox needs privileges that containers lack.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let commands = child.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).split(0);
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            while let Some(Ok(line)) = lines.next() {
                let answer = serde_json::from_slice(&line).expect("JSON from the browser");
                if sender.send(answer).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Self { child, commands, answers, sent: 0, session: None, problems: Vec::new(), _profile: profile };
        let target = browser.send("Target.createTarget", &json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.send("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.send(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Sends a command in the DevTools protocol and returns its result.
    #[track_caller]
    pub fn send(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        write!(self.commands, "{command}\0").and_then(|()| self.commands.flush()).expect("the browser runs");
        loop {
            let answer = self.answers.recv_timeout(TIMEOUT).expect("a response from the browser");
            if answer["id"] == self.sent {
                assert_eq!(answer["error"], Value::Null, "{method}: {answer}");
                return answer["result"].clone();
            }
            if answer["method"] == "Runtime.exceptionThrown" || answer["params"]["entry"]["level"] == "error" {
                self.problems.push(answer["params"].to_string());
            }
        }
    }

    /// Opens an address in a new document.
    #[track_caller]
    pub fn open(&mut self, address: &str) {
        // Another address in the same file would only change the fragment.
        self.send("Page.navigate", &json!({ "url": "about:blank" }));
        self.send("Page.navigate", &json!({ "url": address }));
    }

    /// Returns the value of an expression, which may be a promise.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.send("Runtime.evaluate", &parameters);
        assert_eq!(result["exceptionDetails"], Value::Null, "{expression}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait(&mut self, expression: &str) {
        let is_true = crate::until(|| self.evaluate(&format!("Boolean({expression})")) == true);
        assert!(is_true, "never true: {expression}; the page: {}", self.evaluate("document.body.innerText"));
    }

    /// Presses a key, such as `j` or `ArrowRight`.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        self.send("Input.dispatchKeyEvent", &json!({ "type": "keyDown", "key": key, "text": text }));
        self.send("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "key": key }));
    }

    /// Sets the size of the page.
    #[track_caller]
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.send("Emulation.setDeviceMetricsOverride", &size);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
