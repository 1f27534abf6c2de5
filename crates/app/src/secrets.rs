//! Secrets at rest: AES-256-GCM under one key, bound to the row that they belong to. Signatures of values that are
//! handed out and come back, such as upload URLs: HMAC-SHA256 under a key derived from it.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podium_api::{hex, unhex};
use zeroize::Zeroizing;

use crate::world::World;

/// Names the way in which a secret was sealed, so that another can follow.
const FORMAT: u8 = 1;

/// The purpose of the derived key, so that signatures use a key of their own.
const SIGNATURES: &[u8] = b"podium signatures 1";

/// Encrypts and decrypts secrets, signs and verifies values that are handed out.
pub struct Secrets {
    sealing: LessSafeKey,
    signing: hmac::Key,
}

/// A sealed secret cannot be opened: the key is another, or the secret is damaged or belongs elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecryptionFailed;

/// A text that is not a valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret key must be 32 bytes in base64, or at least 32 characters")]
pub struct InvalidKey;

impl Secrets {
    /// From 32 bytes in base64, or from any passphrase of at least 32 characters.
    pub fn from_text(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        let bytes = match STANDARD.decode(text).map(Zeroizing::new) {
            Ok(bytes) if bytes.len() == 32 => bytes,
            _ if text.chars().count() >= 32 => {
                Zeroizing::new(digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec())
            }
            _ => return Err(InvalidKey),
        };
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| InvalidKey)?;
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), SIGNATURES);
        let signing = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Ok(Self { sealing: LessSafeKey::new(key), signing })
    }

    /// Signs a text for a purpose, in lower-case hexadecimal.
    pub fn sign(&self, purpose: &str, text: &str) -> String {
        hex(hmac::sign(&self.signing, &signed(purpose, text)).as_ref())
    }

    /// Whether a text was signed here for a purpose; takes as long whether it was or not.
    pub fn verify(&self, purpose: &str, text: &str, signature: &str) -> bool {
        let signature = unhex(signature).unwrap_or_default();
        hmac::verify(&self.signing, &signed(purpose, text), &signature).is_ok()
    }

    /// A new key, in base64.
    pub fn new_key(world: &World) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0; 32]);
        world.fill(bytes.as_mut());
        Zeroizing::new(STANDARD.encode(bytes.as_ref()))
    }

    /// Encrypts a secret that belongs to `owner`.
    pub fn seal(&self, world: &World, owner: &str, secret: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        world.fill(&mut nonce);
        let mut sealed = secret.to_vec();
        let tag = self
            .sealing
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut sealed)
            .expect("a secret is smaller than the cipher's limit");
        [&[FORMAT], nonce.as_slice(), &sealed, tag.as_ref()].concat()
    }

    /// Decrypts a secret that belongs to `owner`.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, DecryptionFailed> {
        let rest = sealed.strip_prefix(&[FORMAT]).ok_or(DecryptionFailed)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN).ok_or(DecryptionFailed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| DecryptionFailed)?;
        let mut secret = Zeroizing::new(rest.to_vec());
        let length = self
            .sealing
            .open_in_place(nonce, Aad::from(owner), &mut secret)
            .map_err(|_| DecryptionFailed)?
            .len();
        secret.truncate(length);
        Ok(secret)
    }
}

/// The signed message: two texts, joined unambiguously.
fn signed(purpose: &str, text: &str) -> Vec<u8> {
    [purpose.as_bytes(), b"\0", text.as_bytes()].concat()
}

/// The SHA-256 of something, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

/// The SHA-256 of something, in base64.
pub fn sha256_base64(bytes: &[u8]) -> String {
    STANDARD.encode(sha256(bytes))
}

/// The SHA-256 of something.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use podium_api::Timestamp;

    use super::*;

    #[test]
    fn a_secret_opens_only_under_its_key_and_for_its_owner() {
        let world = World::fixed(Timestamp::from_millis(0));
        let key = Secrets::from_text(&Secrets::new_key(&world)).unwrap();
        let other = Secrets::from_text(&Secrets::new_key(&world)).unwrap();
        let sealed = key.seal(&world, "row", b"secret");
        assert_eq!(key.open("row", &sealed).unwrap().as_slice(), b"secret");
        assert_eq!(key.open("another row", &sealed), Err(DecryptionFailed));
        assert_eq!(other.open("row", &sealed), Err(DecryptionFailed));
        assert_eq!(key.open("row", &sealed[..10]), Err(DecryptionFailed));
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn a_signature_fits_its_text_its_purpose_and_its_key() {
        let world = World::fixed(Timestamp::from_millis(0));
        let key = Secrets::from_text(&Secrets::new_key(&world)).unwrap();
        let other = Secrets::from_text(&Secrets::new_key(&world)).unwrap();
        let signature = key.sign("upload", "text");
        assert_eq!(signature.len(), 64);
        assert!(key.verify("upload", "text", &signature));
        assert!(key.verify("upload", "text", &signature.to_uppercase()));
        assert!(!key.verify("upload", "texts", &signature));
        assert!(!key.verify("uploadt", "ext", &signature));
        assert!(!other.verify("upload", "text", &signature));
        for wrong in ["", "zz", &signature[2..], &signature[1..], &format!("{signature}00"), "+1"] {
            assert!(!key.verify("upload", "text", wrong), "{wrong}");
        }
    }

    #[test]
    fn a_weak_key_is_refused() {
        assert!(Secrets::from_text("too short").is_err());
        assert!(Secrets::from_text("a passphrase of more than 32 characters").is_ok());
    }
}
