//! grade
