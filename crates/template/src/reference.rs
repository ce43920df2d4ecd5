//! Tables of the template language.

use crate::filter::FILTERS;
use crate::function::FUNCTIONS;
use crate::method;
use crate::operation::{Entry, Operation};
use crate::predicate::TESTS;

/// Filters, functions, tests and methods, by the names of their tables.
pub fn reference() -> [(&'static str, Vec<Entry>); 5] {
    let entries = |operations: &[Operation]| operations.iter().map(|operation| operation.entry).collect();
    [
        ("filters", entries(FILTERS)),
        ("functions", entries(FUNCTIONS)),
        ("tests", entries(TESTS)),
        ("string methods", entries(method::TEXT)),
        ("map methods", entries(method::MAP)),
    ]
}
