//! The `expect` and `template` libraries for WebAssembly: requests and answers are JSON texts.
//!
//! The host writes a request into the memory at [`input`], calls [`call`], and reads the answer from [`output`]. While a
//! request is answered, the engine asks the host for regular expressions and code: it calls the imported function
//! `trialrun.ask` with the position of a question, and the host writes its answer into the memory at [`input`]. The host
//! may make further requests meanwhile.

mod host;
mod request;

use std::cell::RefCell;

thread_local! {
    /// What the host has written.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What the host is to read.
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[link(wasm_import_module = "trialrun")]
unsafe extern "C" {
    /// Answers the question at `start`, of `length` bytes.
    safe fn ask(start: *const u8, length: usize);
}

/// Returns the position at which the host is to write `length` bytes.
// SAFETY: no other library of the module exports this name.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Answers the request at [`input`]. Returns the length of the answer in bytes.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    let answer = request::answer(&INPUT.take()).to_string().into_bytes();
    let length = answer.len();
    OUTPUT.set(answer);
    length
}

/// Returns the position of the last answer.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// Asks the host a question and returns its answer.
fn answer_of_host(question: &serde_json::Value) -> serde_json::Value {
    let question = question.to_string();
    ask(question.as_ptr(), question.len());
    serde_json::from_slice(&INPUT.take()).unwrap_or_default()
}

/// Returns "random" bytes for the libraries, which seed their hash tables with them. These hold the caller's own keys, so
/// they need no protection, and the module needs nothing else from its host.
// SAFETY: `getrandom` declares this function, and calls it with the start and the length of memory that it owns.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(start: *mut u8, length: usize) -> Result<(), getrandom::Error> {
    // SAFETY: as above.
    unsafe { start.write_bytes(0x5a, length) };
    Ok(())
}
