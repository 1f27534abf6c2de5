//! Signed tokens: JWTs with EdDSA only, signed with the newest key and verified with any active one.

use std::collections::HashMap;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use podium_api::{CredentialId, SubjectId, Timestamp, hex};
use podium_store::signing_keys::SigningKeyRow;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::secrets::Secrets;
use crate::world::World;

/// The claims of a token. Rights come from the store, never from here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// Who issued it: the public URL.
    pub iss: String,
    /// Whom it is for: the same.
    pub aud: String,
    pub sub: SubjectId,
    pub jti: CredentialId,
    /// When it was issued, in seconds.
    pub iat: i64,
    /// When it ends, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub api_token_id: Option<CredentialId>,
    /// Where an API token works.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub permissions: Option<Vec<String>>,
    /// Makes two tokens of one second differ: a signature alone would not.
    #[serde(default)]
    pub nonce: String,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

/// Why stored keys cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("there is no signing key")]
    None,
    /// The one that signs can only verify.
    #[error("the signing key has no private half")]
    NoPrivateHalf,
    #[error("the signing key cannot be decrypted")]
    Sealed,
    /// It is no key.
    #[error("the signing key is damaged")]
    Damaged,
}

/// Why a token is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It is no token at all, or its signature is wrong.
    Malformed,
    /// It names a key that this process does not know; another replica may have made it.
    UnknownKey,
}

pub struct Keys {
    current: String,
    pair: Ed25519KeyPair,
    public: HashMap<String, Vec<u8>>,
}

impl Keys {
    pub fn generate(world: &World, secrets: &Secrets, now: Timestamp) -> SigningKeyRow {
        let mut seed = zeroize::Zeroizing::new([0; 32]);
        world.fill(seed.as_mut());
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).expect("any 32 bytes are a seed");
        let public_key = pair.public_key().as_ref().to_vec();
        let id = hex(&crate::secrets::sha256(&public_key)[..8]);
        let sealed_private_key = Some(secrets.seal(world, &id, seed.as_ref()));
        SigningKeyRow { id, public_key, sealed_private_key, created_at: now, retired_at: None }
    }

    /// Loads stored keys, the oldest first.
    pub fn load(rows: &[SigningKeyRow], secrets: &Secrets) -> Result<Self, KeyError> {
        let current = rows.iter().rfind(|row| row.retired_at.is_none()).ok_or(KeyError::None)?;
        let sealed = current.sealed_private_key.as_deref().ok_or(KeyError::NoPrivateHalf)?;
        let seed = secrets.open(&current.id, sealed).map_err(|_| KeyError::Sealed)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::Damaged)?;
        let public = rows.iter().map(|row| (row.id.clone(), row.public_key.clone())).collect();
        Ok(Self { current: current.id.clone(), pair, public })
    }

    pub fn current(&self) -> &str {
        &self.current
    }

    pub fn sign(&self, claims: &Claims) -> String {
        let header = Header { alg: "EdDSA".into(), typ: "JWT".into(), kid: self.current.clone() };
        let part = |value: Value| BASE64.encode(value.to_string());
        let mut token = format!("{}.{}", part(json!(header)), part(json!(claims)));
        let signature = self.pair.sign(token.as_bytes());
        token.push('.');
        BASE64.encode_string(signature.as_ref(), &mut token);
        token
    }

    /// Verifies a token; whether it is alive is for the store to say.
    pub fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        let decode = |part: &str| BASE64.decode(part).map_err(|_| TokenError::Malformed);
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
        if header.alg != "EdDSA" {
            return Err(TokenError::Malformed);
        }
        let key = self.public.get(&header.kid).ok_or(TokenError::UnknownKey)?;
        UnparsedPublicKey::new(&ED25519, key)
            .verify(signed.as_bytes(), &decode(signature)?)
            .map_err(|_| TokenError::Malformed)?;
        serde_json::from_slice(&decode(claims)?).map_err(|_| TokenError::Malformed)
    }

    /// The public keys, as a JSON Web Key Set.
    pub fn jwks(&self) -> Value {
        let mut keys: Vec<_> = self.public.iter().collect();
        keys.sort_unstable();
        let key = |(id, public): (&String, &Vec<u8>)| json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": id, "x": BASE64.encode(public) });
        json!({ "keys": keys.into_iter().map(key).collect::<Vec<_>>() })
    }
}
