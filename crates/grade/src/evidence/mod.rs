//! Reads what an agent did from the evidence of a trial: changes to the repository, test runs, hosts, paths, and signs
//! that it tried to influence how it is graded. Assertions use what these modules return; nothing here is a verdict on
//! a case's own expectations.

pub(crate) mod egress;
pub(crate) mod integrity;
pub(crate) mod paths;
pub(crate) mod repository;
pub(crate) mod test_run;
