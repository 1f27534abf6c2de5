//! Where images are pushed to, and their tags.

use podium_api::Timestamp;

/// The repository of a deployment's images: a folder of its own at the host of the public URL.
pub fn image_repository(public_url: &str, namespace: &str) -> String {
    let host = public_url.split_once("://").map_or(public_url, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    format!("{host}/{namespace}")
}

/// A tag that tells when the deploy was made, and that no other deploy has.
pub fn image_tag(now: Timestamp, random: u64) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let time: String = now.to_string().chars().take(19).collect();
    let time = time.to_ascii_lowercase().replace(':', "-");
    let digit = |place: u32| char::from(DIGITS[(random >> (5 * place)) as usize % 32]);
    let random: String = (0..8).map(digit).collect();
    format!("deploy-{time}-{random}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_named_after_host_and_namespace() {
        for (url, expected) in [
            ("https://podium.test", "podium.test/calm-sun-1234"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080/calm-sun-1234"),
            ("https://podium.test/below/this", "podium.test/calm-sun-1234"),
        ] {
            assert_eq!(image_repository(url, "calm-sun-1234"), expected);
        }
    }

    #[test]
    fn tags_tell_the_time_and_are_unlike() {
        let now = Timestamp::from_millis(1_800_000_000_123);
        assert_eq!(image_tag(now, 0), "deploy-2027-01-15t08-00-00-aaaaaaaa");
        assert_eq!(image_tag(now, 0x1234_5678_9abc), "deploy-2027-01-15t08-00-00-4vgrhlrg");
        assert_eq!(image_tag(now, u64::MAX), "deploy-2027-01-15t08-00-00-77777777");
    }
}
