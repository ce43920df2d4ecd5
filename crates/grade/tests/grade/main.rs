//! Tests of assertions and expectations through the public API: cases and evidence in, findings out.

mod budget_vectors;
mod expect;
mod skill_eval_vectors;
mod vectors;
