//! The contract for Docker containers.

use super::container;
use super::container_contract::container_tests;
use super::contract::directory_tests;
use super::kind::Kind;
use super::processes::process_tests;

fn kind() -> Kind {
    container::kind("docker")
}

directory_tests!(kind, [#[cfg_attr(not(has = "docker"), ignore = "needs Docker; run scripts/test")]]);
process_tests!(kind, [#[cfg_attr(not(has = "docker"), ignore = "needs Docker; run scripts/test")]]);
container_tests!(kind, [#[cfg_attr(not(has = "docker"), ignore = "needs Docker; run scripts/test")]]);
