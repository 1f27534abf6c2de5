//! Names of deployments in the data plane: `adjective-noun-NNNN`.

use std::sync::LazyLock;

const ADJECTIVES: &str = "\
    amber ancient arctic brave bright calm clear clever cosmic crimson curious deep distant eager early \
    electric faithful fast fearless gentle golden graceful green happy hidden honest icy jolly keen kind \
    lively lucky lunar mellow merry mighty misty noble patient polar proud quick quiet radiant rapid robust \
    royal rustic serene sharp silent silver smooth solar steady stellar sunny swift tidal tranquil vivid \
    warm wild wise";
const NOUNS: &str = "\
    anchor asteroid aurora badger beacon breeze brook canyon cascade cedar cloud comet compass condor crater \
    delta dune eclipse ember falcon fjord forest galaxy geyser glacier grove harbor heron horizon island \
    juniper kestrel lagoon lantern lynx maple meadow meteor nebula oasis ocean orbit otter planet prairie \
    pulsar quasar raven reef river satellite sequoia sparrow spruce summit sunrise tundra valley vertex \
    volcano walrus willow zenith zephyr";

/// Adjectives and nouns, told apart once.
static WORDS: LazyLock<[Vec<&str>; 2]> =
    LazyLock::new(|| [ADJECTIVES, NOUNS].map(|words| words.split(' ').collect()));

/// The name that follows from some randomness.
pub fn namespace(random: u64) -> String {
    let [adjectives, nouns] = &*WORDS;
    let pick = |words: &[&'static str], bits: u64| words[(bits & 0xffff) as usize % words.len()];
    format!("{}-{}-{:04}", pick(adjectives, random), pick(nouns, random >> 16), (random >> 32) % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_two_words_and_a_number() {
        assert_eq!(namespace(0), "amber-anchor-0000");
        assert_eq!(namespace((7 << 32) | (1 << 16) | 2), "arctic-asteroid-0007");
        assert_eq!(namespace(u64::MAX).split('-').count(), 3);
    }

    #[test]
    fn words_are_told_apart() {
        for words in &*WORDS {
            assert!(words.is_sorted_by(|one, other| one < other), "each once, in order");
            assert!(
                words.iter().all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
            );
        }
    }
}
