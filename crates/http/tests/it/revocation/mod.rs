//! Rights that end while something is going on: a body that still arrives, a stream that is still read, two who take
//! rights away from each other.

mod bodies;
mod concurrent_changes;
mod streams;
