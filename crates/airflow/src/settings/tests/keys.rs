use super::*;

#[test]
fn keys_differ_by_purpose_and_are_long_enough() {
    let keys = EnvironmentKeys::new(|purpose| secret(&format!("{purpose:-<43}")));
    assert_eq!(BASE64_URL_SAFE.decode(keys.fernet.reveal()).unwrap().len(), 32);
    assert!(keys.token_signing.reveal().len() >= 64 && keys.session.reveal().len() >= 64);
    assert_ne!(keys.token_signing, keys.session);
}

#[test]
fn a_key_of_one_environment_is_useless_for_another() {
    let keys = |id: u32| {
        let keys =
            EnvironmentKeys::new(|purpose| secret(&format!("{purpose} of {id}, which is long enough")));
        [keys.fernet, keys.token_signing, keys.session].map(|key| key.reveal().to_owned())
    };
    let all: BTreeSet<String> = keys(1).into_iter().chain(keys(2)).collect();
    assert_eq!(all.len(), 6, "{all:?}");
}
