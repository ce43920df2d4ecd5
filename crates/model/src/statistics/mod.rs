//! The few figures a report needs, as pure functions.

mod binomial;
mod mean;

pub use binomial::{pass_at_k, pass_hat_k, wilson};
pub use mean::estimate;
