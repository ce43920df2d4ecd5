//! Assertions and expectations from outside: cases and evidence in, findings out.

mod budget_vectors;
mod expect;
mod skill_eval_vectors;
mod vectors;
