//! What an environment runs at a moment.

/// The task instances that an environment runs at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningTasks {
    /// The names of some of them, `dag/run/task`.
    pub names: Vec<String>,
    /// How many there are.
    pub count: u64,
}
