//! Known attacks, against the real program over real sockets. The tests run each attack with few repetitions; `cargo
//! xtask attack` runs them at full strength. Every attack is bounded, stays on loopback and ends on its own.

#[cfg(target_os = "linux")]
mod authors;
#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod connections;
#[cfg(target_os = "linux")]
mod databases;
mod forgeries;
#[cfg(target_os = "linux")]
mod networks;
#[cfg(target_os = "linux")]
mod origins;
mod rights;
mod smuggling;

/// How often to repeat an attack: `quick` in the tests, `full` in `cargo xtask attack`.
fn strength(quick: usize, full: usize) -> usize {
    if std::env::var_os("PODIUM_ATTACK").is_some_and(|value| value == "full") { full } else { quick }
}
