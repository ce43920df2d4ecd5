//! Modules: resolution, formats and loading.

pub(crate) mod commonjs;
pub(crate) mod json;
pub(crate) mod library;
pub(crate) mod loader;
pub(crate) mod lookup;
pub(crate) mod node;
pub(crate) mod resolve;

#[cfg(test)]
mod tests;
